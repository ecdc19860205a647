//! A service that gives the clients of its answers less time.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Extensions, Request};
use h2::client::Builder;
use pagebucket_server::{ConnectionService, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::eventually;
use crate::toy::{Toy, routes, usual};
use crate::wire::{Http2, closed, plain};

/// Gives them a thousandth of it.
#[derive(Clone)]
struct Hasty(Router);

impl ConnectionService for Hasty {
    type Answer = <Router as ConnectionService>::Answer;

    fn answer(&self, request: Request<Body>) -> Self::Answer {
        self.0.answer(request)
    }

    fn patience(&self, limit: Duration) -> Duration {
        limit / 1_000
    }

    fn patience_for(&self, answer: &Extensions, limit: Duration) -> Duration {
        assert!(!answer.is_empty(), "the extensions of the answer");
        limit / 1_000
    }
}

async fn hasty() -> Toy {
    let write_timeout = Duration::from_secs(2_000);
    Toy::serving(ServerConfig { write_timeout, ..usual() }, Hasty(routes())).await
}

#[tokio::test]
async fn a_connection_that_is_not_read_ends_sooner() {
    let toy = hasty().await;
    let mut wire = plain(toy.address).await;
    wire.write_all(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("to send");
    let mut status = [0; b"HTTP/1.1 200".len()];
    wire.read_exact(&mut status).await.expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 200");
    assert!(!toy.has_place().await);
    eventually("it is cut off", || toy.has_place()).await;
    closed(wire).await;
}

#[tokio::test]
async fn a_stream_that_is_not_read_ends_sooner() {
    let toy = hasty().await;
    let mut builder = Builder::new();
    builder.initial_window_size(0);
    let client = Http2::with(&builder, plain(toy.address).await).await.expect("to begin");
    let mut endless = client.get("/endless").await;
    assert!(!toy.has_place().await);
    eventually("its place is free", || toy.has_place()).await;
    assert!(endless.piece().await.is_some_and(|piece| piece.is_err()), "it sees no end of the answer");
    assert_eq!(client.get("/").await.status, 200, "the connection goes on");
}
