//! Clients that come in great numbers, or open and reset great numbers of streams.

use std::time::Duration;

use axum::http::Request;
use futures_util::future::join_all;
use pagebucket_server::ServerConfig;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::certificates::{self, Files, trusting};
use crate::harness::PATIENCE;
use crate::toy::{Toy, secured, usual};
use crate::wire::{Http2, closed, get, plain, secure};

#[tokio::test]
async fn a_thousand_half_open_handshakes() {
    const HALF_OPEN: usize = 1_000;
    let pair = certificates::new();
    let files = Files::of(&pair);
    let toy = Toy::start(ServerConfig { header_timeout: Duration::from_secs(5), ..secured(&files) }).await;
    let config = trusting(&[pair.cert.der()], true, &[b"http/1.1"]);
    let asked = async || {
        let wire = secure(toy.address, &config).await.expect("a handshake");
        let (head, _) = get(wire, "/").await.expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    };
    let mut half_open = Vec::new();
    for number in 0..HALF_OPEN {
        let mut wire = plain(toy.address).await;
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
    assert!(toy.stop().await);
}

#[tokio::test]
async fn rapid_resets_end_the_connection() {
    /// Only a failure gets there.
    const MOST: u32 = 20_000;
    let toy = Toy::start(usual()).await;
    let request = || Request::get("http://localhost/long").body(()).expect("a request");
    for _ in 0..4 {
        let flood = Http2::over(plain(toy.address).await).await;
        let mut opened = 0_u32;
        while opened < MOST {
            let Ok(mut send) = flood.send.clone().ready().await else { break };
            let Ok((answer, mut body)) = send.send_request(request(), true) else { break };
            body.send_reset(h2::Reason::CANCEL);
            drop(answer);
            opened += 1;
            if opened.is_multiple_of(64) {
                tokio::task::yield_now().await;
            }
            if opened.is_multiple_of(1_024) {
                assert!(toy.answers().await);
            }
        }
        assert!(opened < MOST, "nothing ended the flood");
        println!("a flood was ended after {opened} streams");
        assert!(toy.answers().await);
        let error = flood.ended().await.expect_err("not in order");
        assert!(error.is_io() || error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM), "{error}");
    }
    // A client that resets now and then is no attack.
    let client = Http2::over(plain(toy.address).await).await;
    for _ in 0..200 {
        let mut send = client.send.clone().ready().await.expect("a connection");
        let (answer, mut body) = send.send_request(request(), true).expect("to send");
        body.send_reset(h2::Reason::CANCEL);
        drop(answer);
        assert_eq!(client.get("/").await.status, 200);
    }
}

/// Streams that the server resets are a way around the limit on streams that the client resets.
#[tokio::test]
async fn mistakes_end_the_connection() {
    const MOST: u32 = 256;
    let toy = Toy::start(usual()).await;
    let client = Http2::over(plain(toy.address).await).await;
    // A body that is not as long as its head says.
    let request = || Request::post("http://localhost/").header("content-length", 5).body(());
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
    assert!(toy.answers().await);
}
