//! A service that stops while clients of HTTP/2 are connected.

use std::time::Duration;

use axum::http::Method;
use h2::client::Builder;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::wire::{Http2, closed, plain};
use crate::harness::{PATIENCE, Setup, TRADES, eventually, shared, spawn};

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_http2_end_before_the_service_does() {
    let mut setup = Setup::on(shared().await);
    setup.config.server.drain_delay = Duration::from_secs(1);
    // One client has a quarter: one request.
    setup.config.api.max_requests = 4;
    let service = setup.start().await;
    let address = service.address();
    let (busy, idle) = (Http2::over(plain(address).await).await, Http2::over(plain(address).await).await);
    assert_eq!(idle.get("/livez").await.status, 200);
    // One that has begun and says nothing more.
    let mut silent = plain(address).await;
    silent.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("to send");
    let half = plain(address).await;
    let item = TRADES.item(1).to_string();
    let (first, second) = item.split_at(5);
    let (mut send, answer) = loop {
        let begun = busy.begin(Method::POST, &TRADES.path(7), Some("application/json")).await;
        let (mut send, answer) = begun.expect("to send");
        send.send_data(first.to_owned().into(), false).expect("to send");
        // It is under way when its client may have no other, unless another one was faster.
        let is_decided = async || answer.is_finished() || busy.get(&TRADES.path(7)).await.status == 503;
        eventually("the request is under way", PATIENCE, is_decided).await;
        if !answer.is_finished() {
            break (send, answer);
        }
    };

    let stored = service.database.clone();
    let stopping = spawn(service.stop());
    // New connections learn that it is stopping.
    let refused = || async {
        // A connection from before that has no request yet is closed without an answer.
        let Ok(late) = Http2::with(&Builder::new(), plain(address).await).await else { return false };
        let Ok(mut answer) = late.try_get("/readyz").await else { return false };
        answer.status == 503 && answer.json().await["type"] == "/problems#shutting-down"
    };
    eventually("it is stopping", PATIENCE, refused).await;
    idle.ended().await.expect("an end in order");
    closed(half).await;
    assert!(!stopping.is_finished(), "it waits for the request");
    send.send_data(second.to_owned().into(), true).expect("to send");
    let mut appended = answer.await.expect("no panic").expect("an answer");
    assert_eq!(appended.status, 201);
    assert_eq!(appended.json().await["ranges"], json!([{ "firstSeq": 1, "lastSeq": 1 }]));
    busy.ended().await.expect("an end in order");
    closed(silent).await;
    assert!(stopping.await.expect("no panic"), "every request has ended");
    assert_eq!(crate::harness::stored(&stored, TRADES, 7).await.numbers, [1]);
}
