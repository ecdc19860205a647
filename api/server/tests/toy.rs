//! What is served here, and its server.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use futures_util::stream;
use pagebucket_server::{CertificateFiles, ConnectionService, Server, ServerConfig, reserve};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::certificates::Files;
use crate::harness::PATIENCE;
use crate::wire;

/// Bytes of `/long`: more than a window holds.
pub const LONG: usize = 400 * 1024;

/// The usual settings, on a free port.
pub fn usual() -> ServerConfig {
    ServerConfig { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..ServerConfig::default() }
}

/// The same with a certificate.
pub fn secured(files: &Files) -> ServerConfig {
    let certificate = CertificateFiles { certificate: files.certificate(), key: files.key() };
    ServerConfig { certificate: Some(certificate), ..usual() }
}

/// A running server, which ends with this value.
pub struct Toy {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<bool>,
}

impl Toy {
    pub async fn start(config: ServerConfig) -> Self {
        Self::serving(config, routes()).await
    }

    /// The same with another service for each connection.
    pub async fn serving(config: ServerConfig, service: impl ConnectionService) -> Self {
        let socket = reserve(config.listen).expect("a free port");
        let server = Server::on(socket, config).await.expect("a server");
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            stopped.await.ok();
        };
        let serving = tokio::spawn(server.serve(move |_| service.clone(), stopped, async {}));
        Self { address, stop: Some(stop), serving }
    }

    /// Whether it answers a new client.
    pub async fn answers(&self) -> bool {
        let answer = wire::get(wire::plain(self.address).await, "/").await;
        answer.is_ok_and(|(head, _)| head.starts_with("HTTP/1.1 200 "))
    }

    /// Whether the one place for an answer without an end is free.
    pub async fn has_place(&self) -> bool {
        let answer = wire::get(wire::plain(self.address).await, "/place").await;
        answer.expect("an answer").0.starts_with("HTTP/1.1 200 ")
    }

    /// Tells it to stop; true when every request has ended in time.
    pub async fn stop(mut self) -> bool {
        self.stop.take();
        tokio::time::timeout(PATIENCE, self.serving).await.expect("an end in time").expect("no panic")
    }
}

/// What it serves.
pub fn routes() -> Router {
    let place = Arc::new(Semaphore::new(1));
    Router::new()
        .route("/", get(async || "here"))
        .route("/long", get(async || vec![b'x'; LONG]))
        .route(
            "/place",
            get(async |Extension(place): Extension<Arc<Semaphore>>| match place.available_permits() {
                0 => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::OK,
            }),
        )
        .route("/endless", get(endless))
        .layer(Extension(place))
}

/// An answer without an end, which holds the only place as long as the server keeps it.
async fn endless(Extension(place): Extension<Arc<Semaphore>>) -> Response {
    let Ok(permit) = place.try_acquire_owned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let pieces = stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b'x'; 16 * 1024]));
    (Extension(Arc::new(permit)), Body::from_stream(pieces)).into_response()
}
