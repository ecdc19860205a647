//! Clients that come in great numbers, or send a body in the smallest pieces.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::wire::{Http2, get, plain};
use crate::commands::program::Place;
use crate::harness::{PATIENCE, Setup, eventually, leave_out, shared, trade};

#[tokio::test(flavor = "multi_thread")]
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

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_an_address_are_limited() {
    const LIMIT: usize = 5;
    let Some(own) = own_address() else {
        return leave_out("connections of one address", "this machine has no address besides loopback");
    };
    let mut setup = Setup::on(shared().await);
    setup.config.server.listen = SocketAddr::from(([0, 0, 0, 0], 0));
    setup.config.server.max_connections_per_address = LIMIT as u32;
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
