//! Paths and queries.

use reqwest::Method;
use serde_json::json;

use super::refused;
use crate::harness::{Service, trade};

/// No whole number from 1 to 2^53 - 1 in decimal digits, as they stand in an address.
const NOT_ORDINALS: [&str; 22] = [
    "0",
    "-1",
    "+1",
    "01",
    "00",
    "1.0",
    "1.5",
    "1e3",
    "1_2",
    "0x1",
    "abc",
    "null",
    "9007199254740992",
    "9223372036854775808",
    "18446744073709551617",
    "99999999999999999999",
    "%201",
    "1%00",
    "1%0A",
    "%D9%A1",
    "1%7C",
    "1%2F2",
];

/// Not UTF-8 when decoded, or not percent-encoding at all.
const NOT_TEXT: [&str; 5] = ["%FF", "1%C3", "%", "1%", "%ZZ"];

#[tokio::test(flavor = "multi_thread")]
async fn numbers_in_the_path() {
    let service = Service::start().await;
    service.client.append(1, &trade(1)).await.expect(201);
    for bad in NOT_ORDINALS.into_iter().chain(NOT_TEXT) {
        for (path, parameter) in [
            (format!("/v1/customers/{bad}"), "customerId"),
            (format!("/v1/customers/{bad}/trades"), "customerId"),
            (format!("/v1/customers/1/trades/pages/{bad}"), "page"),
            (format!("/v1/customers/1/trades/{bad}"), "seq"),
        ] {
            let answer = service.client.get(&path).await;
            let problem = refused(&answer, 400, "invalid-parameter", &path);
            assert_eq!(problem["errors"][0]["parameter"], parameter, "{path}: {problem}");
            assert_eq!(problem["errors"].as_array().map(Vec::len), Some(1), "{path}: {problem}");
            assert_eq!(problem["instance"], path);
        }
        let path = format!("/v1/customers/{bad}/trades");
        refused(&service.client.append_to(&path).await, 400, "invalid-parameter", &path);
    }
    // RFC 3986, section 6.2.2.2: the same address in another spelling.
    service.client.get("/v1/customers/%31/trades/pages/%31").await.expect(200);
    service.client.get("/v1/customers/9007199254740991").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_in_the_query() {
    let service = Service::start().await;
    service.client.append(1, &trade(1)).await.expect(201);
    for bad in NOT_ORDINALS.into_iter().chain(NOT_TEXT).chain([""]) {
        let path = format!("/v1/customers/1/trades?page={bad}");
        let problem = refused(&service.client.get(&path).await, 400, "invalid-parameter", &path);
        assert_eq!(problem["errors"][0]["parameter"], "page", "{path}: {problem}");
        let detail = problem["errors"][0]["detail"].as_str().expect("a text");
        assert!(detail.starts_with("must be a whole number from 1 to 9007199254740991"), "{path}: {detail}");
        for (name, rule) in [
            ("after", "must be a whole number from 0 to 9007199254740991"),
            ("before", "must be a whole number from 1 to 9007199254740991"),
            ("offset", "must be a whole number from 0 to 9007199254740991"),
            ("limit", "must be a whole number from 1 to 100"),
            ("asOf", "must be a whole number from 1 to 9007199254740991"),
        ] {
            if bad == "0" && ["after", "offset"].contains(&name) {
                continue;
            }
            let company = if name == "asOf" { "&after=0" } else { "" };
            let path = format!("/v1/customers/1/trades?{name}={bad}{company}");
            let problem = refused(&service.client.get(&path).await, 400, "invalid-parameter", &path);
            assert_eq!(problem["errors"][0]["parameter"], name, "{path}: {problem}");
            let detail = problem["errors"][0]["detail"].as_str().expect("a text");
            assert!(detail.starts_with(rule), "{path}: {detail}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries() {
    let service = Service::start().await;
    service.client.append(1, &trade(1)).await.expect(201);
    for (query, parameter) in [
        ("page", "page"),
        ("page=1&page=1", "page"),
        ("page=1&page=2", "page"),
        ("page=1;order=asc", "page"),
        ("order=", "order"),
        ("order=ASC", "order"),
        ("order=Desc", "order"),
        ("order=asc,desc", "order"),
        ("order=asc&order=desc", "order"),
        ("order=%FF", "order"),
        ("order=asc%00", "order"),
        ("Page=1", "Page"),
        ("page%00=1", "page\0"),
        ("limit=", "limit"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=256", "limit"),
        ("limit=1&limit=1", "limit"),
        ("after=1&after=2", "after"),
        ("page=1&after=0", "page"),
        ("page=1&before=9", "page"),
        ("limit=5&page=1", "page"),
        ("page=1&after=0&limit=5", "page"),
        ("after=5&before=9", "before"),
        ("before=0", "before"),
        ("asOf=1", "asOf"),
        ("asOf=1&limit=5", "asOf"),
        ("asOf=1&order=desc", "asOf"),
        ("asOf=1&after=0&asOf=1", "asOf"),
        ("asOf=1&after=0&from=2004-01-09T00:00:00Z", "asOf"),
        ("asOf=1&to=2004-01-09T00:00:00Z", "asOf"),
        ("asOf=1&page=1", "page"),
        ("offset=", "offset"),
        ("offset=0&offset=0", "offset"),
        ("offset=0&limit=0", "limit"),
        ("offset=0&limit=101", "limit"),
        ("offset=0&limit=ten", "limit"),
        ("offset=0&order=up", "order"),
        ("offset=0&asOf=0", "asOf"),
        ("offset=0&page=1", "page"),
        ("offset=0&page=1&after=0", "page"),
        ("offset=0&after=0", "offset"),
        ("offset=0&before=9", "offset"),
        ("offset=0&after=0&asOf=1", "offset"),
        ("offset=0&from=2004-01-09T00:00:00Z", "offset"),
        ("offset=0&to=2004-01-09T00:00:00Z&limit=5", "offset"),
        ("offset=0&asOf=1&from=2004-01-09T00:00:00Z", "offset"),
        ("after=1&wait=", "wait"),
        ("after=1&wait=0", "wait"),
        ("after=1&wait=61", "wait"),
        ("after=1&wait=1.5", "wait"),
        ("after=1&wait=1&wait=1", "wait"),
        ("after=1&w%61it=-1", "wait"),
        ("wait=1", "wait"),
        ("wait=1&limit=5", "wait"),
        ("wait=1&page=1", "wait"),
        ("wait=1&before=9", "wait"),
        ("wait=1&offset=0", "wait"),
        ("wait=1&after=1&asOf=1", "wait"),
        ("wait=1&after=1&from=2004-01-09T00:00:00Z", "wait"),
        ("wait=1&after=1&to=2004-01-09T00:00:00Z", "wait"),
        ("wait=1&after=1&ticker=AMD", "wait"),
        ("Offset=0", "Offset"),
        ("skip=0", "skip"),
        ("asof=1&after=0", "asof"),
        ("cursor=1", "cursor"),
        ("=", ""),
        ("%FF=1", "\u{fffd}"),
    ] {
        let path = format!("/v1/customers/1/trades?{query}");
        let problem = refused(&service.client.get(&path).await, 400, "invalid-parameter", &path);
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{path}: {problem}");
        assert_eq!(problem["errors"].as_array().map(Vec::len), Some(1), "{path}: {problem}");
    }
    // Where there are no parameters, each is unknown.
    for path in
        ["/v1/customers/1?page=1", "/v1/customers/1/trades/1?a", "/v1/customers/1/trades/pages/1?order=asc"]
    {
        refused(&service.client.get(path).await, 400, "invalid-parameter", path);
    }
    let answer = service.client.append_to("/v1/customers/1/trades?page=1").await;
    refused(&answer, 400, "invalid-parameter", "a query of an append");
    assert_eq!(super::total(&service.client, 1).await, 1);
    for query in ["", "&", "page=1&", "&&order=asc", "page=%31", "p%61ge=1"] {
        service.client.get(&format!("/v1/customers/1/trades?{query}")).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn summaries() {
    let service = Service::start().await;
    service.client.append(1, &trade(1)).await.expect(201);
    let [from, to] = ["from=2004-01-09T00:00:00Z", "to=2004-01-12T00:00:00Z"];
    for (query, parameter, detail) in [
        ("", "by", "is required"),
        ("by=", "by", "must be \"1m\""),
        ("by=1y", "by", "must be \"1m\", \"5m\", \"15m\", \"30m\", \"1h\", \"4h\", \"1d\", \"1w\" or \"1M\""),
        ("by=1D", "by", "must be"),
        ("by=1d&by=1d", "by", "must not be given more than once"),
        ("by=1d&tz=", "tz", "must be the name of an IANA time zone, such as \"Europe/Berlin\""),
        ("by=1d&tz=Mars", "tz", "must be the name of an IANA time zone"),
        ("by=1h&tz=%2B02:00", "tz", "must be the name of an IANA time zone"),
        ("by=1d&tz=..%2F..%2Fetc%2Fpasswd", "tz", "must be the name"),
        (
            "by=1d&group=",
            "group",
            "must name properties that the definition declares as groups: `ticker` and `type`",
        ),
        ("by=1d&group=qty", "group", "must name properties"),
        ("by=1d&group=ticker,", "group", "must name properties"),
        ("by=1d&group=ticker&group=ticker", "group", "must not name a property twice"),
        (&format!("by=1d&{from}&to=2004-01-08T00:00:00Z"), "to", "must not be before `from`"),
        ("by=1d&from=yesterday", "from", "must be an RFC 3339"),
        ("by=1d&fill=yes", "fill", "must be \"none\", \"zero\" or \"previous\""),
        ("by=1d&fill=zero", "fill", "must be \"none\" without `from` and `to`"),
        (&format!("by=1d&fill=zero&{to}"), "fill", "must be \"none\" without `from` and `to`"),
        ("by=1d&fill=previous&group=ticker", "fill", "must be \"none\" without `from` and `to`"),
        (
            &format!("by=1d&fill=previous&group=ticker&{from}&{to}"),
            "fill",
            "must not be \"previous\" with `group`",
        ),
        ("by=1d&asOf=0", "asOf", "must be a whole number from 1"),
        ("by=1d&limit=0", "limit", "must be a whole number from 1 to 1000"),
        ("by=1d&limit=1001", "limit", "must be a whole number from 1 to 1000"),
        ("by=1d&limit=%2B5", "limit", "must be a whole number"),
        ("by=1d&limit=05", "limit", "must be a whole number"),
        ("by=1d&ticker=mdb", "ticker", "must be"),
        ("by=1d&after=1", "after", "is not a parameter of this address"),
        ("by=1d&order=newest", "order", "must be \"asc\" or \"desc\""),
    ] {
        let path = format!("/v1/customers/1/trades/summary?{query}");
        let problem = refused(&service.client.get(&path).await, 400, "invalid-parameter", &path);
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{path}: {problem}");
        assert_eq!(problem["errors"].as_array().map(Vec::len), Some(1), "{path}: {problem}");
        let given = problem["errors"][0]["detail"].as_str().expect("a text");
        assert!(given.starts_with(detail), "{path}: {given}");
    }
    service
        .client
        .get(&format!("/v1/customers/1/trades/summary?by=1d&{from}&{to}&group=ticker,type"))
        .await
        .expect(200);
}

/// `Range` in the unit that is served: malformed, more than one, or beside parameters that select something
/// else.
#[tokio::test(flavor = "multi_thread")]
async fn ranges() {
    let service = Service::start().await;
    service.client.append(1, &trade(1)).await.expect(201);
    let with = |path: String, range: &'static str| {
        let client = service.client.clone();
        async move { client.send(Method::GET, &path, |request| request.header("range", range)).await }
    };
    for range in [
        "items=",
        "items=0",
        "items=-5",
        "items=5-",
        "items=9-0",
        "items=0-100",
        "items=0-9007199254740992",
        "items=99999999999999999999-99999999999999999999",
        "items=0-0,0-0",
        "items=0-0, items=1-1",
        "items=0-0, bytes=1-1",
        "items=00-09",
        "items=a-b",
        "items=0x0-0x9",
        "ITEMS=\t",
    ] {
        let answer = with("/v1/customers/1/trades".to_owned(), range).await;
        let problem = refused(&answer, 400, "invalid-parameter", range);
        assert_eq!(problem["errors"][0]["parameter"], "Range", "{range}: {problem}");
        let detail = problem["errors"][0]["detail"].as_str().expect("a text");
        assert!(detail.starts_with("must be `items=first-last`"), "{range}: {detail}");
        assert_eq!(problem["errors"].as_array().map(Vec::len), Some(1), "{range}: {problem}");
    }
    for other in ["page=1", "offset=0", "limit=1", "after=0", "before=1", "from=2004-01-09T00:00:00Z"] {
        let answer = with(format!("/v1/customers/1/trades?{other}"), "items=0-0").await;
        let problem = refused(&answer, 400, "invalid-parameter", other);
        assert_eq!(problem["errors"][0]["parameter"], "Range", "{other}: {problem}");
        assert_eq!(problem["errors"].as_array().map(Vec::len), Some(1), "{other}: {problem}");
        let answer = with(format!("/v1/customers/1/trades?{other}"), "bytes=0-0").await;
        assert_eq!(answer.status, 200, "{other}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_the_faults() {
    let service = Service::start().await;
    let path = "/v1/customers/0/trades?page=0&order=up&a=1&b=2";
    let problem = refused(&service.client.get(path).await, 400, "invalid-parameter", path);
    let parameters: Vec<_> =
        problem["errors"].as_array().unwrap().iter().map(|error| &error["parameter"]).collect();
    assert_eq!(parameters, ["customerId", "page", "order", "a", "b"]);
    let path = "/v1/customers/%FF/trades/%FF?x=1";
    let problem = refused(&service.client.get(path).await, 400, "invalid-parameter", path);
    let parameters: Vec<_> =
        problem["errors"].as_array().unwrap().iter().map(|error| &error["parameter"]).collect();
    assert_eq!(parameters, ["customerId", "seq", "x"]);

    let many: Vec<_> = (0..150).map(|n| format!("x{n}=")).collect();
    let path = format!("/v1/customers/1/trades?page=0&{}", many.join("&"));
    let problem = refused(&service.client.get(&path).await, 400, "invalid-parameter", "151 faults");
    assert_eq!(problem["errors"].as_array().map(Vec::len), Some(100));
    assert_eq!(problem["errorsOmitted"], 51);
    let detail = problem["detail"].as_str().expect("a sentence");
    assert!(detail.starts_with("`page` must be a whole number from 1 to 9007199254740991"), "{detail}");
    assert!(detail.ends_with("; of 150 more faults, 99 are in `errors`."), "{detail}");
    let path = format!("/v1/customers/1?{}=1", "n".repeat(10_000));
    let answer = service.client.get(&path).await;
    let problem = refused(&answer, 400, "invalid-parameter", "a long name");
    assert!(problem["errors"][0]["parameter"].as_str().is_some_and(|name| name.len() <= 64), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_here() {
    let service = Service::start().await;
    for path in [
        "/v1",
        "/v2/customers/1/trades",
        "/v1/customers/",
        "/v1/customers/1/",
        "/v1/customers/1/trades/",
        "/v1/customers/1/trades/pages/",
        "/v1/customers/1/trades/pages/1/2",
        "/v1/Customers/1",
        "/nothing%FF",
        "/docs/nothing.js",
        "/../etc/passwd",
        "//",
    ] {
        refused(&service.client.get(path).await, 404, "not-found", path);
    }
    // Routes, with something that is no number where a number should be.
    for path in ["/v1/customers//trades", "/v1/customers/1/trades/pages"] {
        refused(&service.client.get(path).await, 400, "invalid-parameter", path);
    }
    refused(&service.client.append_to("/v1/nothing").await, 404, "not-found", "POST to nothing");
}

/// What need not be percent-encoded means the same if it is.
#[tokio::test(flavor = "multi_thread")]
async fn encoded_addresses() {
    let service = Service::start().await;
    service.client.append(7, &trade(1)).await.expect(201);
    for path in [
        "/v1/cust%6Fmers/7/trades",
        "/v1/customers/%37/tr%61des?limit=1",
        "/%76%31/customers/7/trades/p%61ges/1",
        "/live%7a",
    ] {
        service.client.get(path).await.expect(200);
    }
    for path in ["/v1%2Fcustomers/7/trades", "/v1/customers%2F7/trades", "/v1/cust%256Fmers/7/trades"] {
        refused(&service.client.get(path).await, 404, "not-found", path);
    }
    service.client.append_to("/v1/cust%6Fmers/7/trades").await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn method_not_allowed() {
    let service = Service::start().await;
    for (path, allowed) in [
        ("/v1/customers/1/trades", vec!["GET", "HEAD", "POST"]),
        ("/v1/customers/1/trades/pages/1", vec!["GET", "HEAD"]),
        ("/v1/customers/1/trades/1", vec!["GET", "HEAD"]),
        ("/v1/customers/1", vec!["DELETE", "GET", "HEAD"]),
        ("/livez", vec!["GET", "HEAD"]),
        ("/readyz", vec!["GET", "HEAD"]),
        ("/openapi.json", vec!["GET", "HEAD"]),
        ("/openapi-3.0.json", vec!["GET", "HEAD"]),
        ("/", vec!["GET", "HEAD"]),
    ] {
        for method in
            ["PUT", "PATCH", "DELETE", "POST", "TRACE", "BREW"].map(|name| name.parse::<Method>().unwrap())
        {
            if allowed.contains(&method.as_str()) {
                continue;
            }
            let input = format!("{method} {path}");
            let answer = service.client.send(method, path, |request| request.json(&json!({}))).await;
            refused(&answer, 405, "method-not-allowed", &input);
            let mut allow: Vec<_> = answer.header("allow").split(',').map(str::trim).collect();
            allow.sort_unstable();
            assert_eq!(allow, allowed, "{input}");
        }
    }
}
