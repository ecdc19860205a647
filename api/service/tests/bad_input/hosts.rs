//! A page whose name is made to lead to this machine (DNS rebinding): the request names another host.

use reqwest::Method;

use super::{refused, total};
use crate::harness::Raw;
use crate::harness::{Answer, Service, Setup, shared, trade};

const EVIL: &str = "evil.example";

async fn named(service: &Service, method: Method, path: &str, host: &str) -> Answer {
    service.client.send(method, path, |request| request.header("host", host).json(&trade(1))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebound_name_is_refused_everywhere() {
    let service = Service::start().await;
    for (method, path) in [
        (Method::GET, "/v1/customers/1/trades"),
        (Method::POST, "/v1/customers/1/trades"),
        (Method::GET, "/v1/customers/1/trades/export.ndjson"),
        (Method::GET, "/livez"),
        (Method::GET, "/readyz"),
        (Method::GET, "/metrics"),
        (Method::GET, "/"),
        (Method::GET, "/docs"),
        (Method::GET, "/docs/"),
        (Method::GET, "/openapi.json"),
        (Method::GET, "/openapi-3.0.json"),
        (Method::GET, "/nothing"),
        (Method::DELETE, "/v1/customers/1"),
    ] {
        for host in
            [EVIL, "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "192.0.2.1"]
        {
            let answer = named(&service, method.clone(), path, host).await;
            // Its words name the addresses of this machine.
            answer.problem(421, "misdirected-request");
        }
    }
    assert_eq!(total(&service.client, 1).await, 0, "nothing is stored");
    let port = service.address().port();
    for host in ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "[::1]"] {
        for host in [host.to_owned(), format!("{host}:{port}"), format!("{host}:1")] {
            assert_eq!(named(&service, Method::GET, "/livez", &host).await.status, 200, "{host}");
        }
    }
    named(&service, Method::POST, "/v1/customers/1/trades", "localhost").await.expect(201);
}

/// The first line of the answer to a request with this head.
async fn answered(service: &Service, head: &str) -> String {
    let mut connection = Raw::connect(service.address()).await;
    connection.send(&format!("{head}Connection: close\r\n\r\n")).await;
    connection.rest().await.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_target_names_the_host_before_the_header() {
    let service = Service::start().await;
    for (head, status) in [
        ("GET http://localhost/livez HTTP/1.1\r\nHost: evil.example\r\n", "200"),
        ("GET http://evil.example/livez HTTP/1.1\r\nHost: localhost\r\n", "421"),
        ("GET http://evil.example/livez HTTP/1.0\r\n", "421"),
        ("GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", "421"),
        ("GET /livez HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n", "421"),
        ("GET /livez HTTP/1.1\r\nHost:\r\n", "421"),
        ("GET /livez HTTP/1.1\r\n", "421"),
        // As a simple probe asks. A browser names its host always.
        ("GET /livez HTTP/1.0\r\n", "200"),
        ("GET /livez HTTP/1.0\r\nHost: evil.example\r\n", "421"),
    ] {
        let line = answered(&service, head).await;
        assert_eq!(line.split(' ').nth(1), Some(status), "{head:?}: {line}");
    }
}

async fn on(listen: &str, allowed: &[&str]) -> Service {
    let mut setup = Setup::on(shared().await);
    setup.config.server.listen = listen.parse().expect("an address");
    setup.config.api.allowed_hosts = allowed.iter().map(|&host| host.to_owned()).collect();
    setup.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn allowed_hosts_are_answered_for() {
    let service = on("127.0.0.2:0", &["api.example", "[2001:db8::1]"]).await;
    for (host, status) in [
        ("api.example", 200),
        ("API.example.:80", 200),
        ("[2001:db8::1]:80", 200),
        ("localhost", 200),
        ("127.0.0.1", 200),
        // Where it listens.
        ("127.0.0.2", 200),
        ("127.0.0.3", 421),
        ("sub.api.example", 421),
        (EVIL, 421),
    ] {
        assert_eq!(named(&service, Method::GET, "/livez", host).await.status, status, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn elsewhere_any_host_unless_some_are_allowed() {
    let service = on("0.0.0.0:0", &[]).await;
    assert_eq!(named(&service, Method::GET, "/livez", EVIL).await.status, 200);
    let service = on("0.0.0.0:0", &["api.example"]).await;
    for (host, status) in [("api.example:8080", 200), ("localhost", 200), ("0.0.0.0", 421), (EVIL, 421)] {
        assert_eq!(named(&service, Method::GET, "/livez", host).await.status, status, "{host}");
    }
    let answer = named(&service, Method::GET, "/v1/customers/0", "api.example").await;
    refused(&answer, 400, "invalid-parameter", "customer 0");
}
