//! Clients that come in great numbers, or open and reset great numbers of streams.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use axum::http::{Method, Request};
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::certificates::{self, Files, trusting};
use super::wire::{Http2, closed, get, plain, secure};
use crate::commands::program::{Place, Serving};
use crate::harness::{PATIENCE, Setup, TRADES, eventually, leave_out, shared, test, trade};

#[test]
async fn a_thousand_half_open_handshakes() {
    const HALF_OPEN: usize = 1_000;
    let pair = certificates::new();
    let files = Files::of(&pair);
    let place = Place::new().await;
    let flags = files.flags();
    let mut command = place.pagebucket("serve", &["--listen", "127.0.0.1:0", "--header-timeout", "5"]);
    let serving = Serving::start(TRADES, command.args(&flags)).await;
    let config = trusting(&[pair.cert.der()], true, &[b"http/1.1"]);
    let asked = async || {
        let wire = secure(serving.address, &config).await.expect("a handshake");
        let (head, _) = get(wire, "/readyz").await.expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    };
    let mut half_open = Vec::new();
    for number in 0..HALF_OPEN {
        let mut wire = plain(serving.address).await;
        // The beginning of a record of a handshake.
        wire.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await.expect("to send");
        half_open.push(wire);
        if number % 100 == 99 {
            asked().await;
        }
    }
    asked().await;
    join_all(half_open.into_iter().map(closed)).await;
    asked().await;
    serving.stop().await;
}

#[test]
async fn rapid_resets_end_the_connection() {
    /// Only a failure gets there.
    const MOST: u32 = 20_000;
    let service = Setup::on(shared().await).start().await;
    service.client.append_all(7, 1..=10).await;
    let request = |path: &str| {
        Request::builder()
            .method(Method::GET)
            .uri(format!("http://localhost{path}"))
            .body(())
            .expect("a request")
    };
    for _ in 0..4 {
        let flood = Http2::over(plain(service.address()).await).await;
        let mut opened = 0_u32;
        while opened < MOST {
            let Ok(mut send) = flood.send.clone().ready().await else { break };
            let Ok((answer, mut body)) = send.send_request(request("/v1/customers/7/trades"), true) else {
                break;
            };
            body.send_reset(h2::Reason::CANCEL);
            drop(answer);
            opened += 1;
            if opened.is_multiple_of(64) {
                tokio::task::yield_now().await;
            }
            if opened.is_multiple_of(1_024) {
                service.client.get("/v1/customers/7/trades").await.expect(200);
            }
        }
        assert!(opened < MOST, "nothing ended the flood");
        println!("a flood was ended after {opened} streams");
        service.client.get("/v1/customers/7/trades").await.expect(200);
        let error = flood.ended().await.expect_err("not in order");
        assert!(error.is_io() || error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM), "{error}");
    }
    // A client that resets now and then is no attack.
    let client = Http2::over(plain(service.address()).await).await;
    for _ in 0..200 {
        let mut send = client.send.clone().ready().await.expect("a connection");
        let (answer, mut body) = send.send_request(request("/v1/customers/7/trades"), true).expect("to send");
        body.send_reset(h2::Reason::CANCEL);
        drop(answer);
        assert_eq!(client.get("/livez").await.status, 200);
    }
}

/// Streams that the server resets are a way around the limit on streams that the client resets.
#[test]
async fn mistakes_end_the_connection() {
    const MOST: u32 = 256;
    let service = Setup::on(shared().await).start().await;
    let client = Http2::over(plain(service.address()).await).await;
    // A body that is not as long as its head says.
    let request =
        || Request::post("http://localhost/v1/customers/7/trades").header("content-length", 5).body(());
    let mut resets = 0;
    while resets <= 2 * MOST {
        let Ok(mut send) = client.send.clone().ready().await else { break };
        let Ok((answer, _)) = send.send_request(request().expect("a request"), true) else { break };
        let error = timeout(PATIENCE, answer).await.expect("an end in time").expect_err("a mistake");
        if !error.is_reset() {
            break;
        }
        assert_eq!(error.reason(), Some(h2::Reason::PROTOCOL_ERROR), "{error}");
        resets += 1;
    }
    assert_eq!(resets, MOST, "the connection goes on for as long, and no longer");
    let error = client.ended().await.expect_err("not in order");
    assert_eq!(error.reason(), Some(h2::Reason::ENHANCE_YOUR_CALM), "{error}");
    assert_eq!(Http2::over(plain(service.address()).await).await.get("/livez").await.status, 200);
}

#[test]
async fn a_body_in_single_bytes_takes_little_memory() {
    /// Half of what a body may have. Kept as chunks it took 15 MiB and more.
    const LENGTH: usize = 512 * 1024;
    let place = Place::new().await;
    let serving = place.serve(&["--log", "error", "--body-timeout", "20"]).await;
    let most = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", serving.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line of it");
        line.trim_end_matches(" kB").trim().parse::<u64>().expect("kB") / 1024
    };
    serving.client.append(7, &trade(1)).await.expect(201);
    let before = most();
    let mut wire = plain(serving.address).await;
    let head = "POST /v1/customers/7/trades HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    wire.write_all(head.as_bytes()).await.expect("to send");
    let item = trade(2).to_string();
    let body = item.clone() + &" ".repeat(LENGTH - item.len());
    let chunks: String = body.chars().map(|byte| format!("1\r\n{byte}\r\n")).collect();
    wire.write_all(chunks.as_bytes()).await.expect("to send");
    wire.write_all(b"0\r\n\r\n").await.expect("to send");
    let mut answer = String::new();
    timeout(PATIENCE, wire.read_to_string(&mut answer)).await.expect("in time").expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let after = most();
    println!("a body of 512 KiB in chunks of a byte: at most {before} MiB before, {after} MiB after");
    assert!(after <= before + 12, "{before} MiB before, {after} MiB");
    serving.stop().await;
}

/// The address under which this machine reaches others, if it has one: its own connections to it are no
/// loopback.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: this only asks for a route to an address for documentation.
    socket.connect("198.51.100.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback())
}

#[test]
async fn connections_of_an_address_are_limited() {
    const LIMIT: usize = 5;
    let Some(own) = own_address() else {
        return leave_out("connections of one address", "this machine has no address besides loopback");
    };
    let mut setup = Setup::on(shared().await);
    setup.config.listen = SocketAddr::from(([0, 0, 0, 0], 0));
    setup.config.max_connections_per_address = LIMIT as u32;
    let service = setup.start().await;
    let address = SocketAddr::new(own, service.address().port());
    let mut open = Vec::new();
    for _ in 0..LIMIT {
        let client = Http2::over(plain(address).await).await;
        assert_eq!(client.get("/livez").await.status, 200);
        open.push(client);
    }
    for _ in 0..3 {
        get(plain(address).await, "/livez").await.expect_err("closed at once");
    }
    // Others are served, and this machine has no limit.
    let loopback = SocketAddr::from(([127, 0, 0, 1], address.port()));
    let mut local = Vec::new();
    for _ in 0..=LIMIT {
        let client = Http2::over(plain(loopback).await).await;
        assert_eq!(client.get("/livez").await.status, 200);
        local.push(client);
    }
    let mut metrics = local[0].get("/metrics").await;
    let metrics = String::from_utf8(metrics.rest().await).expect("a text");
    let refused = metrics.lines().find_map(|line| line.strip_prefix("pagebucket_refused_connections_total "));
    // Other tests in this process may have been refused, too.
    assert!(refused.is_some_and(|refused| refused.parse::<u64>().expect("a number") >= 3), "{refused:?}");
    // A connection that ends makes room.
    drop(open.pop());
    let served = || async { get(plain(address).await, "/livez").await.is_ok() };
    eventually("there is room again", PATIENCE, served).await;
}
