//! Bodies as a whole: what is JSON, how much of it, and that a refused one stores nothing.

use reqwest::Method;
use serde_json::{Value, json};

use super::{pointers, refused, total, trade_with};
use crate::harness::{INVALID_ITEM, Service, trade};

const PATH: &str = "/v1/customers/1/trades";

#[tokio::test(flavor = "multi_thread")]
async fn not_json() {
    let service = Service::start().await;
    let good = trade(1).to_string();
    let inside = |value: &str| format!(r#"{{"type":"buy","ticker":"MDB","qty":{value}}}"#);
    let mut bodies: Vec<Vec<u8>> = [
        "",
        " ",
        "\n",
        "{",
        "}",
        "[",
        "[1,]",
        "{,}",
        "{\"qty\":1,}",
        "{\"qty\"}",
        "{\"qty\":}",
        "{\"qty\" 1}",
        "{qty:1}",
        "{'qty':1}",
        "'a'",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\uZZZZ\"",
        "nul",
        "True",
        "undefined",
        "NaN",
        "type=buy&qty=1",
        "<trade/>",
        "/* */{}",
        "// \n{}",
        "{}{}",
        "{} x",
        "[] []",
        "\0",
        "{}\0",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    for number in [
        "NaN",
        "Infinity",
        "-Infinity",
        "+1",
        "01",
        "-01",
        ".5",
        "1.",
        "1e",
        "1e+",
        "0x10",
        "1_000",
        "--1",
        "-",
        "1,5",
    ] {
        bodies.push(inside(number).into_bytes());
    }
    for text in [
        &b"\"\x01\""[..],
        b"\"\n\"",
        b"\"\0\"",
        b"\"\xff\"",
        b"\"\xc0\x80\"",
        b"\"\xed\xa0\x80\"",
        b"\"\xc3\"",
        b"\"\xf5\x80\x80\x80\"",
    ] {
        // In a value, in a name, and where nobody reads it.
        bodies.push([br#"{"type":"buy","qty":1,"ticker":"#, text, b"}"].concat());
        bodies.push([b"{", text, br#":1}"#].concat());
        bodies.push([br#"[{"x":[["#, text, b"]]}]"].concat());
    }
    bodies.push([b"\xef\xbb\xbf\xef\xbb\xbf", good.as_bytes()].concat());
    // RFC 8259, section 8.1: in UTF-8.
    bodies.push([b"\xff\xfe".to_vec(), good.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat());
    bodies.push(good.encode_utf16().flat_map(u16::to_be_bytes).collect());
    // Cut off after every byte but the last.
    bodies.extend((0..good.len()).map(|len| good.as_bytes()[..len].to_vec()));
    for body in bodies {
        let input = String::from_utf8_lossy(&body).into_owned();
        let problem = refused(&service.client.post_text(PATH, body).await, 400, "malformed-json", &input);
        assert!(problem.get("errors").is_none(), "{problem}");
    }
    assert_eq!(total(&service.client, 1).await, 0);
    service.client.post_text(PATH, format!(" \t\r\n{good}\n")).await.expect(201);
    // A byte order mark is left out, as before the lines of an upload.
    service.client.post_text(PATH, format!("\u{feff}{good}")).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_nesting() {
    let service = Service::start().await;
    for depth in [10_000, 400_000] {
        let arrays = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let problem =
            refused(&service.client.post_text(PATH, arrays.clone()).await, 422, INVALID_ITEM, "arrays");
        assert_eq!(pointers(&problem), ["/0"]);
        for field in ["type", "ticker", "qty", "price", "date", "other"] {
            // A repeated name: the nested value comes second, where it must be skipped.
            let body = format!(r#"{{"type":"buy","ticker":"MDB","qty":1,"{field}":{arrays}}}"#);
            let answer = service.client.post_text(PATH, body).await;
            let problem = refused(&answer, 422, INVALID_ITEM, field);
            assert_eq!(pointers(&problem), [format!("/{field}")]);
        }
        refused(&service.client.post_text(PATH, "[".repeat(depth)).await, 400, "malformed-json", "opened");
    }
    let objects = format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    let problem = refused(&service.client.post_text(PATH, objects).await, 422, INVALID_ITEM, "objects");
    assert_eq!(pointers(&problem), ["/a", "/type", "/ticker", "/qty"]);
    refused(
        &service.client.post_text(PATH, r#"{"a":"#.repeat(10_000)).await,
        400,
        "malformed-json",
        "opened",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn too_large() {
    let service = Service::start().await;
    const MOST: usize = 1024 * 1024;
    let padded = |len: usize| {
        let trade = trade(1).to_string();
        " ".repeat(len - trade.len()) + &trade
    };
    service.client.post_text(PATH, padded(MOST)).await.expect(201);
    for len in [MOST + 1, 10_000_000] {
        // Again and again: an answer that is only sometimes lost would be no answer.
        for _ in 0..20 {
            let answer = service.client.post_text(PATH, padded(len)).await;
            let problem = refused(&answer, 413, "body-too-large", "large");
            assert_eq!(problem["detail"], "The body must have at most 1048576 bytes.");
        }
        // A refusal that needs no body reaches a client that is still sending one.
        let answer = service.client.send(Method::POST, PATH, |request| request.body(padded(len))).await;
        refused(&answer, 415, "unsupported-media-type", "large, without a type");
        let answer = service.client.post_text("/v1/customers/0/trades", padded(len)).await;
        refused(&answer, 400, "invalid-parameter", "large, to nobody");
        let answer = service.client.post_text("/v1/nothing", padded(len)).await;
        refused(&answer, 404, "not-found", "large, to nowhere");
    }
    assert_eq!(total(&service.client, 1).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes() {
    let service = Service::start().await;
    for (body, expected) in [
        ("null", vec![""]),
        ("true", vec![""]),
        ("5", vec![""]),
        ("1e400", vec![""]),
        ("\"trade\"", vec![""]),
        ("\"\\ud800\"", vec![""]),
        ("[]", vec![""]),
        ("{}", vec!["/type", "/ticker", "/qty"]),
        ("[{}]", vec!["/0/type", "/0/ticker", "/0/qty"]),
        ("[null,5,[],\"a\"]", vec!["/0", "/1", "/2", "/3"]),
        (r#"{"trades":[]}"#, vec!["/trades", "/type", "/ticker", "/qty"]),
        // A JSON Pointer escapes "~" and "/".
        (r#"{"type":"buy","ticker":"A","qty":1,"a/b~c":0}"#, vec!["/a~1b~0c"]),
        (r#"{"type":"buy","ticker":"A","qty":1,"":0}"#, vec!["/"]),
        (r#"{"type":"buy","ticker":"A","qty":1,"seq":1,"page":1}"#, vec!["/seq", "/page"]),
        (r#"{"type":"buy","ticker":"A","qty":1,"$set":{},"_id":1}"#, vec!["/$set", "/_id"]),
        (r#"{"Type":"buy","ticker":"A","qty":1}"#, vec!["/Type", "/type"]),
        (r#"{"type":"buy","ticker":"A","qty":1,"\u0000":0}"#, vec!["/\0"]),
        (r#"{"type":"buy","ticker":"A","qty":1,"qty\u0000":0}"#, vec!["/qty\0"]),
        // A name that is no text has no pointer: the trade's own.
        (r#"{"type":"buy","ticker":"A","qty":1,"\ud800":0}"#, vec![""]),
        (r#"[{"type":"buy","ticker":"A","qty":1,"\udc00x":0}]"#, vec!["/0"]),
        // A name given twice, also with the same value, also spelled differently.
        (r#"{"type":"buy","ticker":"A","qty":1,"qty":1}"#, vec!["/qty"]),
        (r#"{"type":"buy","ticker":"A","qty":1,"\u0071ty":2}"#, vec!["/qty"]),
        (r#"{"type":"buy","ticker":"A","qty":0,"qty":0,"qty":0}"#, vec!["/qty", "/qty", "/qty"]),
    ] {
        let problem = refused(&service.client.post_text(PATH, body).await, 422, INVALID_ITEM, body);
        assert_eq!(pointers(&problem), expected, "{body}");
        assert!(problem.get("errorsOmitted").is_none(), "{problem}");
    }
    let long = json!([trade_with(json!({ "x".repeat(10_000): 1 }))]);
    let problem = refused(&service.client.append(1, &long).await, 422, INVALID_ITEM, "a long name");
    assert_eq!(pointers(&problem), ["/0"]);
    assert!(problem.to_string().len() < 1000, "a long name is not repeated: {problem}");
    assert_eq!(total(&service.client, 1).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_or_nothing() {
    let service = Service::start().await;
    service.client.append(1, &json!(vec![trade(1); 5])).await.expect(201);
    for bad in [0, 9, 500, 999] {
        let mut trades = vec![trade(1); 1000];
        trades[bad] = trade_with(json!({ "qty": 0 }));
        for customer in [1, 2] {
            let problem =
                refused(&service.client.append(customer, &json!(trades)).await, 422, INVALID_ITEM, "one bad");
            assert_eq!(pointers(&problem), [format!("/{bad}/qty")]);
        }
    }
    let problem =
        refused(&service.client.append(2, &json!(vec![trade(1); 1001])).await, 422, INVALID_ITEM, "1,001");
    assert_eq!(pointers(&problem), [""]);
    assert_eq!(problem["errors"][0]["detail"], "must have at most 1000 trades");
    assert_eq!((total(&service.client, 1).await, total(&service.client, 2).await), (5, 0));
    service.client.append(2, &json!(vec![trade(1); 1000])).await.expect(201);
    assert_eq!(total(&service.client, 2).await, 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_faults() {
    let service = Service::start().await;
    for (faults, kept, omitted) in
        [(99, 99, None), (100, 100, None), (101, 100, Some(1)), (1000, 100, Some(900))]
    {
        let trades = vec![trade_with(json!({ "qty": 0 })); faults];
        let problem =
            refused(&service.client.append(1, &json!(trades)).await, 422, INVALID_ITEM, "many faults");
        let expected: Vec<_> = (0..kept).map(|index| format!("/{index}/qty")).collect();
        assert_eq!(pointers(&problem), expected);
        assert_eq!(problem.get("errorsOmitted").and_then(Value::as_u64), omitted, "{faults}");
        let detail = problem["detail"].as_str().expect("a sentence");
        let more = match omitted {
            None => format!("{} more faults are in `errors`", faults - 1),
            Some(_) => format!("of {} more faults, 99 are in `errors`", faults - 1),
        };
        assert!(detail.starts_with("`/0/qty` must be a whole number from 1 to "), "{detail}");
        assert!(detail.ends_with(&format!("; {more}.")), "{detail}");
    }
    // As many faults as fit into a body make no long answer.
    let answer = service.client.post_text(PATH, format!("[{}0]", "0,".repeat(500_000))).await;
    let problem = refused(&answer, 422, INVALID_ITEM, "500,001 faults");
    // One more: there are too many items.
    assert_eq!(problem["errorsOmitted"], 500_001 + 1 - 100);
    assert!(answer.body.len() < 20_000);
    assert_eq!(
        problem["detail"],
        "The body must have at most 1000 trades; of 500001 more faults, 99 are in `errors`."
    );
    // A name cannot end its quotation, nor turn the text around.
    let name = "`\u{202e}x";
    let problem =
        refused(&service.client.append(1, &trade_with(json!({ (name): 1 }))).await, 422, INVALID_ITEM, name);
    assert_eq!(pointers(&problem), [format!("/{name}")]);
    assert_eq!(problem["detail"], "`/\\u{60}\\u{202e}x` is not a field of a trade.");
    assert_eq!(total(&service.client, 1).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn media_types() {
    let service = Service::start().await;
    for (name, value) in [
        ("accept", "*/*"), // and so no type at all
        ("content-type", ""),
        ("content-type", "text/plain"),
        ("content-type", "application/x-www-form-urlencoded"),
        ("content-type", "multipart/form-data; boundary=x"),
        ("content-type", "application/jsonx"),
        ("content-type", "application/json-patch+json"),
        ("content-type", "application"),
        ("content-type", "application/json; charset=latin1"),
        ("content-type", "application/json; charset=\"utf-16\""),
        ("content-type", "application/json, text/plain"),
    ] {
        let input = format!("{name}: {value}");
        let send = |request: reqwest::RequestBuilder| request.header(name, value).body(trade(1).to_string());
        let answer = service.client.send(Method::POST, PATH, send).await;
        refused(&answer, 415, "unsupported-media-type", &input);
    }
    for encoding in ["gzip", "zstd", "br", "deflate", "identity, gzip", "aws-chunked"] {
        let send =
            |request: reqwest::RequestBuilder| request.header("content-encoding", encoding).json(&trade(1));
        let answer = service.client.send(Method::POST, PATH, send).await;
        refused(&answer, 415, "unsupported-media-type", encoding);
    }
    assert_eq!(total(&service.client, 1).await, 0);
    for good in [
        "application/json",
        "Application/JSON",
        "application/json;charset=UTF-8",
        "application/json; charset=\"utf-8\"",
    ] {
        let send = |request: reqwest::RequestBuilder| {
            request
                .header("content-type", good)
                .header("content-encoding", "identity")
                .body(trade(1).to_string())
        };
        service.client.send(Method::POST, PATH, send).await.expect(201);
    }
}
