//! Answers over HTTP/2 whose clients take little of them at a time, or nothing.

use std::time::Duration;

use h2::client::Builder;
use pagebucket_server::ServerConfig;

use crate::harness::eventually;
use crate::toy::{LONG, Toy, usual};
use crate::wire::{Http2, plain};

#[tokio::test]
async fn a_stream_without_a_window_loses_its_place() {
    let (write_timeout, header_timeout) = (Duration::from_secs(2), Duration::from_secs(3));
    let toy = Toy::start(ServerConfig { write_timeout, header_timeout, ..usual() }).await;
    // A client that takes no more of a body than the head of the answer.
    let mut builder = Builder::new();
    builder.initial_window_size(0);
    let client = Http2::with(&builder, plain(toy.address).await).await.expect("to begin");
    let mut endless = client.get("/endless").await;
    assert_eq!(endless.status, 200);
    assert!(!toy.has_place().await);
    let freed = || async {
        // The connection goes on: only one of its streams is slow.
        assert_eq!(client.get("/").await.status, 200);
        toy.has_place().await
    };
    eventually("its place is free", freed).await;
    // Streams that were given up keep no connection open.
    client.ended().await.ok();
    assert!(endless.piece().await.is_some_and(|piece| piece.is_err()), "it sees no end of the answer");
}

/// 64 KiB in a third of the time that it may take, for longer than it may stand still.
#[tokio::test]
async fn a_slow_but_steady_stream_gets_everything() {
    let (write_timeout, header_timeout) = (Duration::from_secs(2), Duration::from_secs(1));
    let toy = Toy::start(ServerConfig { write_timeout, header_timeout, ..usual() }).await;
    let client = Http2::over(plain(toy.address).await).await;
    let mut answer = client.get("/long").await;
    let (mut taken, mut unread) = (0, 0);
    while let Some(piece) = answer.body.data().await {
        let piece = piece.expect("all of it");
        taken += piece.len();
        unread += piece.len();
        if unread >= 48 * 1024 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            answer.body.flow_control().release_capacity(unread).expect("what was there");
            unread = 0;
        }
    }
    assert_eq!(taken, LONG);
}
