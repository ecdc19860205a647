//! One client takes at most a quarter of the places of each kind, and others are served.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use pagebucket_http::OpenParts;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{TRADE, overloaded, trades};
use crate::harness::tokens::{Issuer, claims};
use crate::harness::uploads::{lines, upload};
use crate::harness::{
    Harm, PATIENCE, Proxy, Service, Setup, TRADES, Way, eventually, fill, shared, spawn, trade,
};

/// Places of each kind, and how many of them one client may take.
const PLACES: usize = 8;
const SHARE: usize = 2;

/// Requests that keep their place for as long as their clients want, and what they are called.
fn kinds() -> [(&'static str, String); 4] {
    [
        ("uploads", format!("POST {}", TRADES.outcomes(1))),
        ("exports", format!("GET {}", TRADES.at(7, "/export.ndjson"))),
        ("live streams and long polls", format!("GET {}", TRADES.at(7, "/live"))),
        ("requests", format!("POST {}", TRADES.path(1))),
    ]
}

/// A client: where it connects from, and a line of its head.
#[derive(Clone)]
struct Who(Ipv4Addr, String);

fn setup(setup: Setup) -> Setup {
    let mut setup = setup;
    // More requests, because an export is one of them until its answer begins.
    setup.config.api.max_requests = 2 * PLACES;
    (setup.config.api.max_uploads, setup.config.api.max_exports, setup.config.api.max_live) =
        (PLACES, PLACES, PLACES);
    // What has begun is slow for longer than the test lasts.
    setup.config.api.body_timeout = Duration::from_secs(20);
    setup
}

/// Begins a request whose body does not come, and whose answer is not taken: the connection, if the request
/// has a place, else the problem.
async fn begin(server: SocketAddr, Who(from, line): &Who, request: &str) -> Result<TcpStream, Value> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::new(IpAddr::V4(*from), 0)).expect("an address of this machine");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let mut stream = socket.connect(server).await.expect("a connection");
    let body = match request.starts_with("GET") {
        true => "",
        false if request.contains("/upload") => {
            "Transfer-Encoding: chunked\r\nContent-Type: application/x-ndjson\r\n"
        }
        false => "Content-Length: 100\r\nContent-Type: application/json\r\n",
    };
    // "Continue" says that the body is read.
    let head = format!(
        "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\n{body}{line}\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("to send");
    let mut answer = vec![0; "HTTP/1.1 200".len()];
    timeout(PATIENCE, stream.read_exact(&mut answer)).await.expect("in time").expect("an answer");
    if answer != b"HTTP/1.1 503" {
        assert!([&b"HTTP/1.1 200"[..], b"HTTP/1.1 100"].contains(&&*answer), "{answer:?}");
        return Ok(stream);
    }
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("in time").expect("all of it");
    let answer = String::from_utf8(answer).expect("UTF-8");
    let (_, problem) = answer.split_once("\r\n\r\n").expect("a body");
    Err(serde_json::from_str(problem).expect("JSON"))
}

/// The first client takes what it can; the others are served.
async fn others_are_served(service: &Service, greedy: &Who, others: &[Who]) {
    fill(&service.database, TRADES, 7, 8_000, 10).await;
    for (what, request) in kinds() {
        let most = if what == "requests" { 2 * SHARE } else { SHARE };
        let mut held = Vec::new();
        let problem = loop {
            match begin(service.address(), greedy, &request).await {
                Ok(stream) => held.push(stream),
                Err(problem) => break problem,
            }
        };
        assert_eq!(held.len(), most, "{what}: {problem}");
        assert_eq!(problem["type"], "/problems#overloaded");
        let expected = format!("Too many {what} of this client are under way: it may have {most} at once.");
        assert_eq!(problem["detail"], expected);
        for other in others {
            begin(service.address(), other, &request).await.expect("a place of another client");
        }
        drop(held);
        let again = async || begin(service.address(), greedy, &request).await.is_ok();
        eventually("its places are free again", PATIENCE, again).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_address() {
    let service = setup(Setup::on(shared().await)).start().await;
    let at = |last| Who(Ipv4Addr::new(127, 0, 0, last), String::new());
    others_are_served(&service, &at(1), &[at(2), at(3)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_principal() {
    let issuer = Issuer::start().await;
    let mut setup = setup(Setup::on(shared().await));
    setup.gate = issuer.gate(OpenParts::default()).await;
    let service = setup.start().await;
    let who = |name: &str| {
        let token = issuer.signer.sign(&claims(name, "append read", json!("*")));
        Who(Ipv4Addr::LOCALHOST, format!("Authorization: Bearer {token}\r\n"))
    };
    others_are_served(&service, &who("ann"), &[who("bob")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_the_client_of_a_proxy() {
    let mut setup = setup(Setup::on(shared().await));
    setup.config.api.trusted_proxies = vec!["127.0.0.1/32".parse().expect("a network")];
    let service = setup.start().await;
    let who = |address: &str| Who(Ipv4Addr::LOCALHOST, format!("X-Forwarded-For: {address}\r\n"));
    // A network of IPv6 is one client.
    others_are_served(&service, &who("2001:db8::1"), &[who("2001:db8:0:1::1"), who("192.0.2.1")]).await;
    let upload = &kinds()[0].1;
    let (mut held, mut hosts) = (Vec::new(), 1..);
    let problem = loop {
        let who = who(&format!("2001:db8:0:2::{}", hosts.next().expect("a number")));
        match begin(service.address(), &who, upload).await {
            Ok(stream) => held.push(stream),
            Err(problem) => break problem,
        }
    };
    assert_eq!(held.len(), SHARE, "{problem}");
}

/// A quarter of the queue, whatever the number of owners.
#[tokio::test(flavor = "multi_thread")]
async fn of_the_queue() {
    const OWNERS: u64 = 5;
    const EACH: u64 = 5;
    let issuer = Issuer::start().await;
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::on(shared().await);
    setup.connection.uri = proxy.uri();
    setup.capacity.queued_bytes = (4 * OWNERS * EACH) as usize * TRADE;
    setup.gate = issuer.gate(OpenParts::default()).await;
    let service = setup.start().await;
    let client =
        |name| service.client.with_token(issuer.signer.sign(&claims(name, "append read", json!("*"))));
    let (ann, bob) = (client("ann"), client("bob"));
    // Each in a command of its own, whose answer does not come.
    proxy.harm("write trades", Way::There, Harm::Hold, OWNERS as u32);
    let mut held = JoinSet::new();
    for (customer, commands) in (1..=OWNERS).zip(1..) {
        let ann = ann.clone();
        held.spawn(async move { ann.append(customer, &trades(1, EACH)).await });
        proxy.struck(commands).await;
    }
    for refused in [ann.append(6, &trade(1)).await, ann.append_once(6, "key", &trade(1)).await] {
        overloaded(&refused);
        let detail = refused.json()["detail"].to_string();
        assert!(detail.contains("Too many appends of this client are waiting."), "{detail}");
    }
    let waiting = ann.clone();
    let waiting = spawn(async move { upload(&waiting, &TRADES.uploads(6), lines(1..=30)).await });
    for customer in [1 + OWNERS, 2 + OWNERS] {
        bob.append(customer, &trade(101)).await.expect(201);
        assert_eq!(upload(&bob, &TRADES.uploads(customer), lines(102..=140)).await.expect(200)["stored"], 39);
    }
    assert!(!waiting.is_finished() && held.try_join_next().is_none(), "they wait");
    assert_eq!(proxy.strikes(), OWNERS as u32);
    proxy.relent();
    for answer in held.join_all().await {
        answer.expect(201);
    }
    assert_eq!(waiting.await.expect("no panic").expect(200)["stored"], 30);
    ann.append(6, &trade(31)).await.expect(201);
    service.stored(6).await.holds_exactly((1..=31).chain(101..=140));
}
