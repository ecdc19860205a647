//! Clients that connect and do not go on.

use std::time::Duration;

use pagebucket_server::ServerConfig;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::certificates::{self, Files, trusting};
use crate::harness::PATIENCE;
use crate::toy::{Toy, secured, usual};
use crate::wire::{closed, plain, secure};

/// The preface and empty settings.
const BEGUN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A head has three seconds, as a handshake has.
async fn hurried(config: ServerConfig) -> Toy {
    Toy::start(ServerConfig { header_timeout: Duration::from_secs(3), ..config }).await
}

#[tokio::test]
async fn silent_connections_are_closed() {
    let pair = certificates::new();
    let files = Files::of(&pair);
    let (without, with) = (hurried(usual()).await, hurried(secured(&files)).await);
    let mut silent = JoinSet::new();
    let sent = async |toy: &Toy, bytes: &[u8]| -> TcpStream {
        let mut wire = plain(toy.address).await;
        wire.write_all(bytes).await.expect("to send");
        wire
    };
    for bytes in
        [&b""[..], b"P", b"PRI * HT", &BEGUN[..24], BEGUN, b"G", b"GET / HTTP/1.1\r\nHost: localhost\r\n"]
    {
        silent.spawn(closed(sent(&without, bytes).await));
    }
    // The head of a record of a handshake, and no record.
    for bytes in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01"] {
        silent.spawn(closed(sent(&with, bytes).await));
    }
    for (protocol, bytes) in [
        (&b"h2"[..], &b""[..]),
        (b"h2", &BEGUN[..10]),
        (b"h2", BEGUN),
        (b"http/1.1", b""),
        (b"http/1.1", b"GET / HTTP/1.1\r\n"),
    ] {
        let config = trusting(&[pair.cert.der()], true, &[protocol]);
        let mut wire = secure(with.address, &config).await.expect("a handshake");
        wire.write_all(bytes).await.expect("to send");
        wire.flush().await.expect("to send");
        silent.spawn(closed(wire));
    }
    while !silent.is_empty() {
        assert!(without.answers().await);
        if let Ok(closed) = tokio::time::timeout(Duration::from_millis(50), silent.join_next()).await {
            closed.expect("some").expect("it is closed");
        }
    }
}

#[tokio::test]
async fn slow_heads_are_cut_off() {
    let toy = hurried(usual()).await;
    let mut slow = JoinSet::new();
    for _ in 0..200 {
        let mut wire = plain(toy.address).await;
        slow.spawn(async move {
            wire.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n").await.expect("to send");
            // A line of the head at a time, never all of it.
            let lines = async {
                while wire.write_all(b"x-more: 1\r\n").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            };
            tokio::time::timeout(PATIENCE, lines).await.expect("an end in time");
        });
    }
    while !slow.is_empty() {
        assert!(toy.answers().await);
        if let Ok(ended) = tokio::time::timeout(Duration::from_millis(50), slow.join_next()).await {
            ended.expect("some").expect("it is cut off");
        }
    }
}
