//! A running server: bind, serve, drain. What it serves is a tower service ([`ConnectionService`]).
//!
//! It never names the engine, the API and clap. It uses hyper, because `axum::serve` has no timeout for the
//! head of a request and no deadline for draining. Its errors name flags of the program, because its users
//! read them.
//!
//! | Module | What it knows |
//! |---|---|
//! | [`acceptor`], [`addresses`] | which connections are taken, and how many |
//! | [`connection`] | one connection: HTTP/1.1 or HTTP/2, with or without TLS |
//! | [`http1_answer`], [`http2`], [`write_timeout`] | answers, as fast as their clients take them |
//! | [`tls`] | the certificate, which is read again when its files change |
//! | [`deadlines`] | what a client must do in time |

mod acceptor;
mod addresses;
mod config;
mod connection;
mod deadlines;
mod http1_answer;
mod http2;
mod service;
mod tls;
mod write_timeout;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::OptionFuture;
use pagebucket_model::domain::Peer;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

pub use self::config::ServerConfig;
pub use self::service::ConnectionService;
pub use self::tls::{CertificateError, CertificateFiles};

use self::acceptor::{Accepted, Acceptor};
use self::connection::Connections;
use self::deadlines::{Deadlines, FIRST_REQUEST};
use self::tls::Certificate;

/// Maximum time from the signal to stop until the last request has ended.
pub const DRAIN: Duration = Duration::from_secs(40);

/// Connections that the system holds until they are accepted.
const BACKLOG: u32 = 1024;

/// A server that is bound, and not yet serving.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    config: ServerConfig,
    certificate: Option<Arc<Certificate>>,
    stopping: Stopping,
}

/// How far a server is on the way to its end. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Stopping {
    /// Set when it is told to stop: everything is still served for the drain delay.
    pub leaving: Arc<AtomicBool>,
    /// Cancelled when it accepts no more connections, and answers that have no end are to end.
    pub stop: CancellationToken,
}

/// Why a server cannot be bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Its address is in use, or not of this machine.
    #[error("cannot listen on {address}: {error}; name another address with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// Its certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// Reads the certificate and its key once, to find mistakes before anything else is started.
///
/// # Errors
/// They cannot be used.
pub async fn check(config: &ServerConfig) -> Result<(), CertificateError> {
    Certificate::read(config.certificate.as_ref()).await.map(drop)
}

/// Takes an address; of port 0 a free one. Until a [`Server`] is on it, clients are refused there.
///
/// # Errors
/// It is in use, or not of this machine.
pub fn reserve(address: SocketAddr) -> Result<TcpSocket, BindError> {
    let bind = || -> std::io::Result<TcpSocket> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Otherwise a restarted server would wait for the last connections of the one before.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(socket)
    };
    bind().map_err(|error| BindError::Listen { address, error })
}

impl Server {
    /// Listens on an address that is [reserved](reserve).
    ///
    /// # Errors
    /// Another process listens there by now, or the certificate cannot be used.
    pub async fn on(socket: TcpSocket, config: ServerConfig) -> Result<Self, BindError> {
        let failed = |error: std::io::Error| BindError::Listen { address: config.listen, error };
        let certificate = Certificate::read(config.certificate.as_ref()).await?;
        let listener = socket.listen(BACKLOG).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, config, certificate, stopping: Stopping::default() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https`, or `http`.
    pub fn scheme(&self) -> &'static str {
        if self.certificate.is_some() { "https" } else { "http" }
    }

    /// What tells that it is stopping.
    pub fn stopping(&self) -> Stopping {
        self.stopping.clone()
    }

    /// Serves until `stop` completes, and for the drain delay after it. Then it accepts no more connections,
    /// closes idle ones, waits for running requests, and does what comes `afterwards`, all for at most
    /// [`DRAIN`]. Returns whether all of that has ended.
    pub async fn serve<S: ConnectionService>(
        self,
        connect: impl Fn(Peer) -> S + Send + Sync + 'static,
        stop: impl Future<Output = ()>,
        afterwards: impl Future<Output = ()>,
    ) -> bool {
        let certificate = self.certificate.clone();
        tokio::select! {
            Some(never) = OptionFuture::from(certificate.as_ref().map(|it| it.keep_current())) => match never {},
            drained = self.serve_and_drain(connect, stop, afterwards) => drained,
        }
    }

    async fn serve_and_drain<S: ConnectionService>(
        self,
        connect: impl Fn(Peer) -> S + Send + Sync + 'static,
        stop: impl Future<Output = ()>,
        afterwards: impl Future<Output = ()>,
    ) -> bool {
        let Stopping { leaving, stop: stopped } = self.stopping;
        let tls = self.certificate.as_ref().map(Certificate::acceptor);
        let deadlines = Deadlines::new(&self.config);
        let connections = Connections::new(Box::new(connect), tls, deadlines, Arc::clone(&leaving));
        let acceptor =
            Acceptor { listener: self.listener, accepted: Accepted::new(connections, &self.config) };
        tokio::select! {
            never = acceptor.accept() => match never {},
            () = stop => {}
        }
        leaving.store(true, Ordering::Relaxed);
        tokio::select! {
            never = acceptor.accept() => match never {},
            () = tokio::time::sleep(self.config.drain_delay) => {}
        }
        let accepted = acceptor.stop_listening();
        accepted.close();
        let drain = async {
            // Requests that were on their way are served, too.
            let _ = tokio::time::timeout(FIRST_REQUEST, accepted.closed()).await;
            stopped.cancel();
            accepted.closed().await;
            afterwards.await;
        };
        tokio::time::timeout(DRAIN, drain).await.is_ok()
    }
}
