//! Clients that are slow, too many, or do not speak HTTP; and a database that is away.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{refused, total};
use crate::harness::{Mongod, Service, Setup, eventually, shared, spawn, trade};

/// Longer than any of the short deadlines here, much shorter than the usual ones.
const SOON: Duration = Duration::from_secs(8);

/// The head of an append with a body of `length` bytes.
fn head(length: usize) -> String {
    format!(
        "POST /v1/customers/1/trades HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// All that comes until the other side closes, which it must do soon.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(SOON, stream.read_to_end(&mut bytes)).await;
    read.expect("the connection to be closed in time").expect("to read");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_body() {
    let mut setup = Setup::on(shared().await);
    setup.config.api.body_timeout = Duration::from_secs(1);
    let service = setup.start().await;
    let body = trade(1).to_string();
    let mut stream = TcpStream::connect(service.address()).await.expect("a connection");
    let started = Instant::now();
    stream.write_all(head(body.len()).as_bytes()).await.expect("to write");
    stream.write_all(&body.as_bytes()[..body.len() - 1]).await.expect("to write");
    let answer = until_closed(&mut stream).await;
    assert!(started.elapsed() >= Duration::from_secs(1), "{answer}");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(
        answer.contains("application/problem+json") && answer.contains("/problems#body-timeout"),
        "{answer}"
    );
    assert!(answer.contains("The body must arrive within 1 s."), "{answer}");

    // A byte now and then does not help.
    let mut stream = TcpStream::connect(service.address()).await.expect("a connection");
    stream.write_all(head(1000).as_bytes()).await.expect("to write");
    let (mut read, mut write) = stream.into_split();
    let drip = spawn(async move {
        while write.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let mut answer = [0; 12];
    tokio::time::timeout(SOON, read.read_exact(&mut answer))
        .await
        .expect("an answer in time")
        .expect("to read");
    assert_eq!(answer, *b"HTTP/1.1 408");
    drip.abort();
    assert_eq!(total(&service.client, 1).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_head() {
    let mut setup = Setup::on(shared().await);
    setup.config.server.header_timeout = Duration::from_secs(1);
    let service = setup.start().await;
    for sent in ["", "GET /livez HTTP/1.1\r\nHost: localhost\r\n", "GET /li"] {
        let mut stream = TcpStream::connect(service.address()).await.expect("a connection");
        stream.write_all(sent.as_bytes()).await.expect("to write");
        let answer = until_closed(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{sent:?}: {answer}");
    }
    // A whole head in time is answered; then the idle connection is closed too.
    let mut stream = TcpStream::connect(service.address()).await.expect("a connection");
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("to write");
    assert!(until_closed(&mut stream).await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test(flavor = "multi_thread")]
async fn body_cut_off() {
    let service = Service::start().await;
    let body = trade(1).to_string();
    let mut stream = TcpStream::connect(service.address()).await.expect("a connection");
    // All of the trade, and not all that was announced.
    stream.write_all(head(body.len() + 1).as_bytes()).await.expect("to write");
    stream.write_all(body.as_bytes()).await.expect("to write");
    stream.shutdown().await.expect("to say that nothing more comes");
    let answer = until_closed(&mut stream).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(total(&service.client, 1).await, 0);
    service.client.append(1, &trade(1)).await.expect(201);
}

/// Many clients read nothing before they have sent all, and a connection that is closed meanwhile is
/// reset: they would never see what is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn still_sending() {
    let service = Service::start().await;
    let body = " ".repeat(10_000_000);
    let chunked = head(0).replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (head, body, status) in [
        (head(body.len()), &body, "413"),
        (chunked, &chunks, "413"),
        (head(body.len()).replace("application/json", "text/plain"), &body, "415"),
        (head(body.len()).replace("/customers/1/", "/customers/0/"), &body, "400"),
        (head(body.len()).replace("POST", "PUT"), &body, "405"),
        (head(body.len()).replace("/trades", "/nothing"), &body, "404"),
    ] {
        let mut stream = TcpStream::connect(service.address()).await.expect("a connection");
        stream.write_all(head.as_bytes()).await.expect("to write");
        stream.write_all(body.as_bytes()).await.unwrap_or_else(|error| panic!("{status}: {error}"));
        let mut answer = [0; 12];
        let read = tokio::time::timeout(SOON, stream.read_exact(&mut answer)).await;
        read.expect("an answer in time").expect("to read");
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"));
    }
    assert_eq!(total(&service.client, 1).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_to_send() {
    let service = Service::start().await;
    let ask = async |head: String| {
        let mut stream = TcpStream::connect(service.address()).await.expect("a connection");
        let head = head.replace("Host: localhost", "Host: localhost\r\nExpect: 100-continue");
        stream.write_all(head.as_bytes()).await.expect("to write");
        let mut answer = [0; 12];
        let read = tokio::time::timeout(SOON, stream.read_exact(&mut answer)).await;
        read.expect("an answer in time").expect("to read");
        String::from_utf8_lossy(&answer).into_owned()
    };
    // Told at once, before a byte of the body.
    assert_eq!(ask(head(10_000_000)).await, "HTTP/1.1 413");
    assert_eq!(ask(head(10).replace("json", "xml")).await, "HTTP/1.1 415");
    assert_eq!(ask(head(10).replace("/customers/1/", "/customers/0/")).await, "HTTP/1.1 400");
    assert_eq!(ask(head(10)).await, "HTTP/1.1 100");
}

/// What is no request has no answer of ours: hyper says 4xx without a body, and closes.
#[tokio::test(flavor = "multi_thread")]
async fn not_http() {
    let service = Service::start().await;
    let (long_path, long_header) = ("a".repeat(70_000), "b".repeat(500_000));
    let long_path = format!("GET /{long_path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let long_header = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {long_header}\r\n\r\n");
    for sent in [
        "\0\0\0\0\r\n\r\n",
        "hello\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        "POST /v1/customers/1/trades HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        "POST /v1/customers/1/trades HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "POST /v1/customers/1/trades HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: x\r\n\r\n",
        &long_path,
        &long_header,
    ] {
        let mut stream = TcpStream::connect(service.address()).await.expect("a connection");
        // The server may close before it has read all.
        let _ = stream.write_all(sent.as_bytes()).await;
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(SOON, stream.read_to_end(&mut bytes)).await;
        assert!(read.is_ok(), "left open: {}", sent.escape_debug().take(80).collect::<String>());
        let answer = String::from_utf8_lossy(&bytes);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    service.client.get("/livez").await.expect(200);
    assert_eq!(total(&service.client, 1).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests() {
    let mut setup = Setup::on(shared().await);
    setup.config.api.max_requests = 1;
    let service = setup.start().await;
    let body = trade(1).to_string();
    let mut stream = TcpStream::connect(service.address()).await.expect("a connection");
    // It has the one place when the server asks for its body.
    let head = head(body.len()).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("to write");
    let mut asked = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    tokio::time::timeout(SOON, stream.read_exact(&mut asked)).await.expect("in time").expect("to read");
    assert_eq!(asked, *b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(&body.as_bytes()[..1]).await.expect("to write");
    for (method, path) in [
        (Method::GET, "/v1/customers/1"),
        (Method::GET, "/v1/customers/1/trades"),
        (Method::POST, "/v1/customers/1/trades"),
        (Method::GET, "/docs/swagger-ui-bundle.js"),
    ] {
        let input = format!("{method} {path}");
        let answer = service.client.send(method, path, |request| request.json(&trade(2))).await;
        refused(&answer, 503, "overloaded", &input);
        assert_eq!(answer.header("retry-after"), "1");
    }
    // Whoever runs the service must still be able to ask how it is.
    service.client.get("/livez").await.expect(200);
    service.client.get("/readyz").await.expect(200);
    stream.write_all(&body.as_bytes()[1..]).await.expect("to write");
    let mut answer = [0; 12];
    tokio::time::timeout(SOON, stream.read_exact(&mut answer))
        .await
        .expect("an answer in time")
        .expect("to read");
    assert_eq!(answer, *b"HTTP/1.1 201");
    eventually("the place to be free", SOON, || async {
        service.client.get("/v1/customers/1").await.status == 200
    })
    .await;
    assert_eq!(total(&service.client, 1).await, 1, "the refused append is not stored");
}

/// A driver's error names hosts, ports and options: a client sees none of it.
#[tokio::test(flavor = "multi_thread")]
async fn no_database() {
    let mongod = Mongod::own().await;
    let service = Setup::on(&mongod).start().await;
    service.client.append(1, &trade(1)).await.expect(201);
    mongod.stop().await;
    let port =
        mongod.uri().rsplit_once(':').map(|(_, rest)| rest.split('/').next().unwrap_or_default().to_owned());
    let port = port.expect("a port");
    // All at once: each waits for a primary for as long as it may.
    let paths = ["/v1/customers/1", "/v1/customers/1/trades", "/v1/customers/1/trades/1", "/readyz"];
    let trade = trade(1);
    let (reads, append) =
        tokio::join!(join_all(paths.map(|path| service.client.get(path))), service.client.append(1, &trade));
    for (path, answer) in paths.into_iter().zip(reads) {
        refused(&answer, 503, "database-unavailable", path);
        assert_eq!(answer.header("retry-after"), "2");
        assert!(!String::from_utf8_lossy(&answer.body).contains(&port));
    }
    let problem = append.json();
    let kind = problem["type"].as_str().and_then(|kind| kind.strip_prefix("/problems#")).expect("a kind");
    assert!(["database-unavailable", "outcome-unknown"].contains(&kind), "{problem}");
    refused(&append, 503, kind, "an append");
    assert_eq!(append.headers.contains_key("retry-after"), kind == "database-unavailable");
    // What needs no database is answered as ever.
    service.client.get("/livez").await.expect(200);
    refused(&service.client.get("/v1/customers/0").await, 400, "invalid-parameter", "customer 0");
    service.stop().await;
    mongod.remove().await;
}
