//! One running service: bind, serve, drain.
//!
//! It uses hyper, because `axum::serve` has no timeout for the head of a request and no deadline for draining.

mod reader;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::reader::MustRead;
use crate::config::ServerArgs;
use crate::domain::Clock;
use crate::http::{self, Api, Gate, Hosts, KeptBy, Limits, Pages, Places, Uploads};
use crate::store::Store;
use crate::telemetry;

/// Maximum time from the signal to stop until the last request has ended.
pub const DRAIN: Duration = Duration::from_secs(40);

// A request that begins right before the signal may end.
const _: () = assert!(http::REQUEST.as_secs() < DRAIN.as_secs());

/// Time that late clients get to read their 503.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Bytes of a request that a connection holds unread, and of an answer unwritten; the longest head of a request.
const BUFFER: usize = 64 * 1024;

/// Pause after an error of accept, such as too many open files.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// A service that is bound, and not yet serving.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    store: Store,
    stop: CancellationToken,
    args: ServerArgs,
    connections: Arc<Semaphore>,
}

impl Server {
    /// Binds. Port 0 takes a free one. The gate decides who may use which route.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(args: &ServerArgs, store: Store, clock: Clock, gate: Gate) -> std::io::Result<Self> {
        let listener = TcpListener::bind(args.listen).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let api = Api {
            store: store.clone(),
            pages: Pages::new(args.page_cache),
            exports: Places::new(args.max_exports as usize, "exports"),
            scans: Places::new(args.max_scans as usize, "reads of long spans of page views"),
            uploads: Uploads::new(args.max_uploads as usize),
            gate,
            kept_by: if args.cache_public { KeptBy::Anybody } else { KeptBy::Client },
            clock,
            limits: Limits {
                requests: args.max_requests as usize,
                body: args.max_body as usize,
                body_timeout: Duration::from_secs(args.body_timeout),
            },
            origins: args.cors_origins.clone(),
            hosts: hosts(&args.allowed_hosts, address),
            stop: stop.clone(),
            metrics: telemetry::exposition,
        };
        let (router, args) = (http::router(api), args.clone());
        let connections = Arc::new(Semaphore::new(args.max_connections as usize));
        Ok(Self { listener, address, router, store, stop, args, connections })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` completes. Then it is not ready, closes idle connections, and waits for running requests, for
    /// at most [`DRAIN`]. New requests get 503. Returns whether all requests have ended.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> bool {
        let (early, late) = (GracefulShutdown::new(), GracefulShutdown::new());
        tokio::select! {
            never = self.accept(&early, true) => match never {},
            () = stop => {}
        }
        self.stop.cancel();
        let ended = async {
            early.shutdown().await;
            // The queues may hold items of clients that have disconnected: these are stored, too.
            tokio::join!(self.store.drain_appends(), self.store.page_views().drain());
        };
        let delay = tokio::time::sleep(Duration::from_secs(self.args.drain_delay));
        let drain = futures_util::future::join(ended, delay);
        let drained = tokio::select! {
            never = self.accept(&late, false) => match never {},
            drained = tokio::time::timeout(DRAIN, drain) => drained.is_ok(),
        };
        drop(self.listener);
        // These connections only get a 503, which needs little time.
        let _ = tokio::time::timeout(LAST_WORDS, late.shutdown()).await;
        drained
    }

    /// Accepts connections until it is dropped. `keep_alive`: each may have more than one request.
    async fn accept(&self, watch: &GracefulShutdown, keep_alive: bool) -> Infallible {
        let mut http = http1::Builder::new();
        let header_timeout = Duration::from_secs(self.args.header_timeout);
        http.timer(TokioTimer::new()).header_read_timeout(header_timeout);
        http.max_buf_size(BUFFER).keep_alive(keep_alive);
        loop {
            // A place before the next connection: beyond the limit they wait in the backlog.
            let place = Arc::clone(&self.connections).acquire_owned().await;
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    // Answers are small and written whole: waiting to fill a segment only costs time. If it
                    // cannot be set the connection is slower, no more.
                    let _ = stream.set_nodelay(true);
                    let stream = MustRead::new(stream, Duration::from_secs(self.args.write_timeout));
                    let service = TowerToHyperService::new(self.router.clone());
                    let connection = watch.watch(http.serve_connection(stream, service));
                    tokio::spawn(async move {
                        // An error means that the client has disconnected or is too slow: it gets no answer.
                        let ended = connection.await;
                        tracing::trace!(?ended, "connection closed");
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
    }
}

/// Only a loopback listener refuses unknown hosts by default: it is the target of DNS rebinding.
fn hosts(given: &[String], address: SocketAddr) -> Hosts {
    let ip = address.ip().to_canonical();
    if given.is_empty() && !ip.is_loopback() {
        return Hosts::any();
    }
    // A loopback address need not be 127.0.0.1.
    let own = ip.is_loopback().then(|| ip.to_string());
    Hosts::only(given.iter().cloned().chain(own))
}
