//! HTTP/2: by ALPN, and without TLS by prior knowledge.

use std::future::poll_fn;
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::certificates::{self, Files, trusting};
use super::wire::{Http2, plain, secure};
use crate::harness::uploads::NDJSON;
use crate::harness::{Harm, PATIENCE, Proxy, Setup, TRADES, Way, shared, spawn};

const JSON: &str = "application/json";

#[tokio::test(flavor = "multi_thread")]
async fn appends_and_uploads_over_http2() {
    let pair = certificates::new();
    let files = Files::of(&pair);
    for tls in [true, false] {
        let mut setup = Setup::on(shared().await);
        if tls {
            setup.config.server.certificate = super::certificate(&files);
        }
        let service = setup.start().await;
        let client = if tls {
            let config = trusting(&[pair.cert.der()], true, &[b"h2"]);
            Http2::over(secure(service.address(), &config).await.expect("a handshake")).await
        } else {
            Http2::over(plain(service.address()).await).await
        };
        let path = TRADES.path(7);
        let items = TRADES.items(1..=25).to_string();
        let mut appended = client.post(&path, JSON, items).await;
        assert_eq!(
            (appended.status.as_u16(), appended.header("location")),
            (201, Some(&*format!("{path}/1")))
        );
        assert_eq!(appended.json().await["ranges"], json!([{ "firstSeq": 1, "lastSeq": 25 }]));
        let mut listed = client.get(&format!("{path}?page=2")).await;
        let listed = listed.json().await;
        assert_eq!(listed["links"]["next"], format!("{path}?page=3"), "{listed}");
        let mut nothing = client.get(&format!("{path}/26")).await;
        assert_eq!(
            (nothing.status.as_u16(), nothing.header("content-type")),
            (404, Some("application/problem+json"))
        );
        assert_eq!(nothing.json().await["instance"], format!("{path}/26"));

        // Streamed both ways: each outcome is read before the next line is sent.
        let begun = client.begin(Method::POST, &TRADES.outcomes(7), Some(NDJSON)).await;
        let (mut send, answer) = begun.expect("to send");
        let mut outcomes = None;
        let mut answer = Some(answer);
        for number in 26..=28_u64 {
            send.send_data(TRADES.lines([number]).into(), false).expect("to send");
            if let Some(answer) = answer.take() {
                outcomes = Some(answer.await.expect("no panic").expect("an answer"));
            }
            let outcomes = outcomes.as_mut().expect("an answer that has begun");
            let line: Value =
                serde_json::from_slice(&outcomes.piece().await.expect("a line").expect("a line"))
                    .expect("one line");
            assert_eq!(line, json!({ "line": number - 25, "seq": number }));
        }
        send.send_data(Default::default(), true).expect("to send");
        let rest = outcomes.expect("an answer").rest().await;
        assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
        // More than every window, in one piece.
        let lines = TRADES.lines(29..=30_000);
        assert!(lines.len() > 1024 * 1024);
        let mut summary = client.post(&TRADES.uploads(7), NDJSON, lines).await;
        assert_eq!(summary.status, 200);
        assert_eq!(summary.json().await["stored"], 29_972);
        assert_eq!(service.stored(7).await.numbers, (1..=30_000).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_http2_must_come_in_time() {
    let mut setup = Setup::on(shared().await);
    setup.config.api.body_timeout = Duration::from_secs(1);
    let service = setup.start().await;
    let client = Http2::over(plain(service.address()).await).await;
    let begun = client.begin(Method::POST, &TRADES.path(7), Some(JSON)).await;
    let (mut send, answer) = begun.expect("to send");
    send.send_data("[".into(), false).expect("to send");
    let trickle = spawn(async move {
        // Until the server says that it wants no more.
        while send.send_data(" ".into(), false).is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    assert_eq!(client.get("/livez").await.status, 200, "other streams are answered");
    let mut answer = answer.await.expect("no panic").expect("an answer");
    assert_eq!(answer.status, 408);
    assert_eq!(answer.json().await["type"], "/problems#body-timeout");
    trickle.await.expect("no panic");
    assert_eq!(client.get("/livez").await.status, 200, "the connection goes on");
}

/// Each line in a frame of its own, for as long as the client has a window while nothing is stored.
#[tokio::test(flavor = "multi_thread")]
async fn small_frames_wait_for_the_database() {
    const LINES: u64 = 20_000;
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::on(shared().await);
    setup.connection.uri = proxy.uri();
    let service = setup.start().await;
    let client = Http2::over(plain(service.address()).await).await;
    proxy.harm("write trades", Way::There, Harm::Hold, u32::MAX);
    let begun = client.begin(Method::POST, &TRADES.uploads(7), Some(NDJSON)).await;
    let (mut send, answer) = begun.expect("to send");
    let (mut sent, mut paused) = (0, false);
    while sent < LINES {
        let line = TRADES.lines([sent + 1]);
        send.reserve_capacity(line.len());
        while send.capacity() < line.len() {
            let more = poll_fn(|context| send.poll_capacity(context));
            match timeout(Duration::from_secs(1), more).await {
                Ok(more) => drop(more.expect("a stream").expect("a connection")),
                // Nothing more is taken before the database goes on.
                Err(_elapsed) if !paused => {
                    assert_eq!(client.get("/livez").await.status, 200);
                    assert_eq!(client.get("/v1/customers/8").await.status, 200);
                    proxy.relent();
                    paused = true;
                }
                Err(_elapsed) => {}
            }
        }
        send.send_data(line.into(), false).expect("to send");
        sent += 1;
    }
    assert!(paused, "the window bounds what waits");
    send.send_data(Default::default(), true).expect("to send");
    let mut summary =
        timeout(PATIENCE, answer).await.expect("in time").expect("no panic").expect("an answer");
    assert_eq!(summary.json().await["stored"], LINES);
    assert_eq!(client.get("/livez").await.status, 200);
}
