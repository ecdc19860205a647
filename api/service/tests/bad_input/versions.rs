//! Clients of HTTP/1.0, which cannot tell an answer that breaks off from a whole one unless it has a length.

use super::total;
use crate::harness::Raw;
use crate::harness::{Service, TRADES, fill, trade};

/// Head and body of the answer to a request of HTTP/1.0.
async fn asked(service: &Service, method: &str, path: &str, headers: &str, body: &str) -> (String, Vec<u8>) {
    let mut connection = Raw::connect(service.address()).await;
    let length = body.len();
    connection
        .send(&format!("{method} {path} HTTP/1.0\r\nContent-Length: {length}\r\n{headers}\r\n{body}"))
        .await;
    let answer = connection.bytes().await;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let (head, body) = answer.split_at(end + 4);
    (String::from_utf8_lossy(head).to_ascii_lowercase(), body.to_vec())
}

/// What the head says of the body's length.
fn length(head: &str) -> Option<usize> {
    head.lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map(|length| length.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn streamed_answers_need_http_1_1() {
    let service = Service::start().await;
    fill(&service.database, TRADES, 7, 3, 10).await;
    let (ndjson, trade) = ("Content-Type: application/x-ndjson\r\n", format!("{}\n", trade(1)));
    for (method, path, headers, body) in [
        ("GET", "/v1/customers/7/trades/export.ndjson", "", ""),
        ("GET", "/v1/customers/7/trades/export.csv", "Host: localhost\r\nAccept-Encoding: gzip\r\n", ""),
        ("POST", "/v1/customers/1/trades/upload.ndjson", ndjson, &trade),
        (
            "POST",
            "/v1/trades/upload.ndjson",
            ndjson,
            "{\"customerId\":1,\"type\":\"buy\",\"ticker\":\"MDB\",\"qty\":1}\n",
        ),
    ] {
        let (head, answer) = asked(&service, method, path, headers, body).await;
        let input = format!("{method} {path} {headers}: {head}");
        assert!(head.starts_with("http/1.0 505 "), "{input}");
        assert_eq!(length(&head), Some(answer.len()), "{input}");
        let problem: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(problem["type"], "/problems#http-version-not-supported", "{input}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("HTTP/1.1")), "{problem}");
    }
    assert_eq!(total(&service.client, 1).await, 0, "what is refused is not stored");
    // An upload that is answered by one summary is as good in HTTP/1.0.
    let (head, _) = asked(&service, "POST", "/v1/customers/1/trades/upload", ndjson, &trade).await;
    assert!(head.starts_with("http/1.0 200 "), "{head}");
    assert_eq!(total(&service.client, 1).await, 1);
}

/// A proxy that speaks HTTP/1.0 to the service passes on what its clients accept.
#[tokio::test(flavor = "multi_thread")]
async fn other_answers_have_a_length() {
    let service = Service::start().await;
    fill(&service.database, TRADES, 7, 3, 10).await;
    for path in [
        "/",
        "/docs/",
        "/docs/swagger-ui.css",
        "/openapi.json",
        "/openapi-3.0.json",
        "/problems",
        "/livez",
        "/metrics",
        "/v1/customers",
        "/v1/customers/7",
        "/v1/customers/7/trades",
        "/v1/customers/7/trades?after=0&limit=30",
        "/v1/customers/7/trades/pages/1",
        "/v1/customers/7/trades/1",
        "/v1/customers/0",
        "/v1/page-views?path=/&from=2014-01-01T00:00:00Z&to=2014-01-02T00:00:00Z",
        "/nothing",
    ] {
        for accepted in ["identity", "gzip", "zstd"] {
            let accepted = format!("Accept-Encoding: {accepted}\r\n");
            let (head, body) = asked(&service, "GET", path, &accepted, "").await;
            assert_eq!(length(&head), Some(body.len()), "{path} {accepted}: {head}");
            assert!(!body.is_empty(), "{path}");
        }
    }
}
