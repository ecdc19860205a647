//! The fields of a trade.

use serde_json::{Value, json};

use super::{pointers, refused, total, trade_with};
use crate::harness::{Client, INVALID_ITEM, Service};

/// Posts one trade whose `field` is this JSON text, and expects it to be the one fault.
async fn expect_refused(client: &Client, field: &str, value: &str, part: &str) {
    let mut body = String::from("{");
    for (name, usual) in [("type", r#""buy""#), ("ticker", r#""MDB""#), ("qty", "1")] {
        if name != field {
            body += &format!("\"{name}\":{usual},");
        }
    }
    body += &format!("\"{field}\":{value}}}");
    let problem =
        refused(&client.post_text("/v1/customers/1/trades", body.clone()).await, 422, INVALID_ITEM, &body);
    assert_eq!(pointers(&problem), [format!("/{field}")], "{body}");
    let detail = problem["errors"][0]["detail"].as_str().expect("a text");
    assert!(detail.contains(part), "{body}: {detail}");
}

/// Appends a trade with this field, and gives back what became of the field.
async fn kept(client: &Client, field: &str, value: &Value) -> Value {
    let answer = client.append(2, &trade_with(json!({ field: value }))).await;
    answer.expect(201);
    let stored = client.get(answer.header("location")).await.expect(200);
    stored[field].clone()
}

const NOT_TEXT: [&str; 8] = ["null", "true", "5", "1e400", "[]", "[\"buy\"]", "{}", r#""\ud83d""#];

#[tokio::test(flavor = "multi_thread")]
async fn types() {
    let service = Service::start().await;
    for bad in [r#""""#, r#""BUY""#, r#""Sell""#, r#""buy ""#, r#""hold""#, r#""buy\u0000""#] {
        expect_refused(&service.client, "type", bad, "must be \"buy\" or \"sell\"").await;
    }
    for bad in NOT_TEXT {
        expect_refused(&service.client, "type", bad, "must be ").await;
    }
    for good in ["buy", "sell"] {
        assert_eq!(kept(&service.client, "type", &json!(good)).await, good);
    }
    assert_eq!(total(&service.client, 1).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn tickers() {
    let service = Service::start().await;
    for bad in [
        r#""""#,
        r#""mdb""#,
        r#""ABCDEFGHIJKLM""#,
        r#""A B""#,
        r#"" A""#,
        r#""A\n""#,
        r#""A\u0000""#,
        r#""\u0000""#,
        r#""Ä""#,
        r#""\u0410""#,
        r#""A_B""#,
        r#""$A""#,
        r#""😀""#,
        r#""\uff21""#,
    ] {
        expect_refused(&service.client, "ticker", bad, "must be 1 to 12 of the characters").await;
    }
    for bad in NOT_TEXT {
        expect_refused(&service.client, "ticker", bad, "must be ").await;
    }
    for bad in [r#""\ud800""#, r#""A\udc00""#, r#""\udc00\ud800""#] {
        expect_refused(&service.client, "ticker", bad, "lone surrogate").await;
    }
    for good in ["A", "MDB", "BRK.B", "BF-A", "7203", ".", "-", "ABCDEFGHIJKL"] {
        assert_eq!(kept(&service.client, "ticker", &json!(good)).await, good);
    }
    assert_eq!(total(&service.client, 1).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn quantities() {
    let service = Service::start().await;
    let long = "9".repeat(100_000);
    for bad in [
        "0",
        "-0",
        "-1",
        "1.5",
        "419.0",
        "1.0",
        "1e3",
        "1E3",
        "1e400",
        "-1e400",
        "1e-400",
        "9007199254740992",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999999999",
        &long,
    ] {
        expect_refused(&service.client, "qty", bad, "must be a whole number from 1 to 9007199254740991")
            .await;
    }
    for bad in [r#""5""#, "null", "true", "[1]", "{}", r#"{"$numberLong":"5"}"#] {
        expect_refused(&service.client, "qty", bad, "must be a number, not ").await;
    }
    for good in [1, 419, 2_147_483_648, 9_007_199_254_740_991_u64] {
        assert_eq!(kept(&service.client, "qty", &json!(good)).await, good);
    }
    assert_eq!(total(&service.client, 1).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn prices() {
    let service = Service::start().await;
    let (digits35, places6177) = ("1".repeat(35), format!("0.{}1", "0".repeat(6176)));
    for (bad, part) in [
        ("", "plain notation"),
        ("0", "greater than 0"),
        ("0.0", "greater than 0"),
        ("0.000", "greater than 0"),
        ("-1", "plain notation"),
        ("-0.5", "plain notation"),
        ("+1", "plain notation"),
        ("1e3", "plain notation"),
        ("1E-3", "plain notation"),
        (".5", "plain notation"),
        ("5.", "plain notation"),
        ("01", "plain notation"),
        ("00.5", "plain notation"),
        ("1.2.3", "plain notation"),
        ("1,5", "plain notation"),
        ("1_000", "plain notation"),
        ("0x10", "plain notation"),
        (" 1", "plain notation"),
        ("1 ", "plain notation"),
        ("1\n", "plain notation"),
        ("1\0", "plain notation"),
        ("$1", "plain notation"),
        ("٣", "plain notation"),
        ("NaN", "plain notation"),
        ("Infinity", "plain notation"),
        (&digits35, "34 significant digits"),
        ("0.12345678901234567890123456789012345", "34 significant digits"),
        ("1.0000000000000000000000000000000000", "34 significant digits"),
        (&places6177, "6176 digits after the point"),
    ] {
        expect_refused(&service.client, "price", &json!(bad).to_string(), part).await;
    }
    for bad in ["15.54", "1", "0", "1e400", "419.0"] {
        expect_refused(&service.client, "price", bad, "must be a string").await;
    }
    for bad in ["null", "true", "[]", r#"{"$numberDecimal":"1"}"#, r#""\ud800""#] {
        expect_refused(&service.client, "price", bad, "must be ").await;
    }
    let (least, longest) = (format!("0.{}1", "0".repeat(6175)), "9".repeat(34));
    for good in [
        "15.54",
        "15.50",
        "1",
        "1.0",
        "10",
        "1000000",
        "0.5",
        "0.00000001",
        "0.10",
        "4.82375000001",
        &longest,
        "0.1234567890123456789012345678901234",
        "1234567890.123456789012345678901234",
        "1000000000000000000000000000000000",
        &least,
    ] {
        assert_eq!(kept(&service.client, "price", &json!(good)).await, good);
    }
    assert_eq!(total(&service.client, 1).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn dates() {
    let service = Service::start().await;
    for (bad, part) in [
        ("", "RFC 3339"),
        ("now", "RFC 3339"),
        ("2004-01-09", "RFC 3339"),
        ("2004-01-09T00:00:00", "RFC 3339"),
        ("2004-01-09T00:00Z", "RFC 3339"),
        ("2004-01-09 00:00:00Z", "RFC 3339"),
        ("2004-01-09t00:00:00z", "RFC 3339"),
        ("2004-01-09T00:00:00.Z", "RFC 3339"),
        ("2004-01-09T00:00:00,5Z", "RFC 3339"),
        ("2004-01-09T00:00:00+0100", "RFC 3339"),
        ("2004-01-09T00:00:00+24:00", "RFC 3339"),
        ("2004-01-09T00:00:00ZZ", "RFC 3339"),
        ("2004-01-09T00:00:00Z\n", "RFC 3339"),
        ("2004-01-09T00:00:00Z\0", "RFC 3339"),
        ("2004-1-9T00:00:00Z", "RFC 3339"),
        ("20040109T000000Z", "RFC 3339"),
        ("2004-W02-5T00:00:00Z", "RFC 3339"),
        ("2004-01-09T00:00:00Z[Europe/Berlin]", "RFC 3339"),
        ("-0001-01-09T00:00:00Z", "RFC 3339"),
        ("10000-01-01T00:00:00Z", "RFC 3339"),
        ("２004-01-09T00:00:00Z", "RFC 3339"),
        ("1073606400000", "RFC 3339"),
        ("2004-01-09T00:00:00.0000000000Z", "milliseconds"),
        ("2004-01-09T00:00:00.123400Z", "milliseconds"),
        ("2004-01-09T00:00:00.123456789Z", "milliseconds"),
        ("2016-12-31T23:59:60Z", "leap second"),
        ("2016-12-31T23:59:60.500Z", "leap second"),
        ("2017-01-01T00:59:60+01:00", "leap second"),
        ("2004-01-09T12:00:60Z", "leap second"),
        ("2004-01-09T12:00:61Z", "exist"),
        ("2004-01-09T24:00:00Z", "exist"),
        ("2004-01-09T12:60:00Z", "exist"),
        ("2004-02-30T00:00:00Z", "exist"),
        ("2001-02-29T00:00:00Z", "exist"),
        ("1900-02-29T00:00:00Z", "exist"),
        ("2004-04-31T00:00:00Z", "exist"),
        ("2004-13-01T00:00:00Z", "exist"),
        ("2004-00-01T00:00:00Z", "exist"),
        ("2004-01-00T00:00:00Z", "exist"),
        ("9999-12-31T23:59:59-00:01", "years 0000 to 9999"),
        ("0000-01-01T00:00:00+00:01", "years 0000 to 9999"),
    ] {
        expect_refused(&service.client, "date", &json!(bad).to_string(), part).await;
    }
    for bad in
        ["1073606400000", "1e400", "null", "true", "[]", r#"{"$date":"2004-01-09T00:00:00Z"}"#, r#""\ud800""#]
    {
        expect_refused(&service.client, "date", bad, "must be ").await;
    }
    for (good, utc) in [
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("1969-07-20T20:17:40Z", "1969-07-20T20:17:40.000Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
        ("1900-01-01T00:00:00Z", "1900-01-01T00:00:00.000Z"),
        ("1582-10-10T00:00:00Z", "1582-10-10T00:00:00.000Z"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"),
        ("0000-02-29T12:00:00.5Z", "0000-02-29T12:00:00.500Z"),
        ("2000-02-29T00:00:00.12Z", "2000-02-29T00:00:00.120Z"),
        ("2286-11-20T17:46:40Z", "2286-11-20T17:46:40.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ("9999-12-31T23:59:59.999+23:59", "9999-12-31T00:00:59.999Z"),
        ("2004-01-09T01:30:00+01:30", "2004-01-09T00:00:00.000Z"),
        ("2004-01-08T20:00:00.001-04:00", "2004-01-09T00:00:00.001Z"),
        ("2004-01-09T00:00:00-00:00", "2004-01-09T00:00:00.000Z"),
        // As Python, PostgreSQL and Go write milliseconds.
        ("2004-01-09T00:00:37.123000Z", "2004-01-09T00:00:37.123Z"),
        ("2004-01-09T00:00:37.000000+00:00", "2004-01-09T00:00:37.000Z"),
        ("2004-01-09T00:00:37.120000000Z", "2004-01-09T00:00:37.120Z"),
    ] {
        assert_eq!(kept(&service.client, "date", &json!(good)).await, utc);
    }
    assert_eq!(total(&service.client, 1).await, 0);
}
