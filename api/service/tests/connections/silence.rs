//! Clients that connect and do not go on.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::certificates::{self, Files, trusting};
use super::wire::{Http2, closed, get, plain, secure};
use crate::harness::{Service, Setup, shared};

/// Services without and with TLS, on which a head has three seconds, as a handshake has.
async fn hurried(files: &Files) -> (Service, Service) {
    let mut setup = Setup::on(shared().await);
    setup.config.server.header_timeout = Duration::from_secs(3);
    let plain = setup.start().await;
    let mut setup = Setup::on(shared().await);
    setup.config.server.header_timeout = Duration::from_secs(3);
    setup.config.server.certificate = super::certificate(files);
    (plain, setup.start().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_of_http2_is_closed() {
    let pair = certificates::new();
    let files = Files::of(&pair);
    let (without, with) = hurried(&files).await;
    let config = trusting(&[pair.cert.der()], true, &[b"h2"]);
    for service in [&without, &with] {
        let client = if service.address() == with.address() {
            Http2::over(secure(service.address(), &config).await.expect("a handshake")).await
        } else {
            Http2::over(plain(service.address()).await).await
        };
        assert_eq!(client.get("/livez").await.status, 200);
        client.ended().await.expect("an end in order");
    }
    // As one of HTTP/1.1 is.
    let mut wire = plain(without.address()).await;
    wire.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("to send");
    closed(wire).await;
    let wire = plain(without.address()).await;
    get(wire, "/livez").await.expect("an answer");
}
