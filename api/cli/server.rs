//! One running service: bind, serve, drain.
//!
//! It uses hyper, because `axum::serve` has no timeout for the head of a request and no deadline for
//! draining.

mod acceptor;
mod addresses;
mod connection;
mod deadlines;
mod housekeeping;
mod http1_answer;
mod http2;
mod tls;
mod write_timeout;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::HeaderName;
use futures_util::future::OptionFuture;
use pagebucket_engine::internal::{COMMAND, NUMBERED};
use pagebucket_engine::{Deadline, Store};
use pagebucket_http::{
    Api, Gate, Hosts, KeptBy, Limits, Pages, Permits, Proxies, RateLimits, ReadTerms, Unsent, Uploads,
};
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::Clock;
use pagebucket_model::metric::{self, Collections};
use pagebucket_page_views::PageViews;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::acceptor::{Accepted, Acceptor};
use self::addresses::ConnectionCounts;
use self::connection::Connections;
use self::deadlines::{Deadlines, FIRST_REQUEST};
use self::housekeeping::{RetentionError, Retentions};
use self::tls::{Certificate, CertificateError};
use crate::config::{ForwardedHeader, Rate, RateArgs, ServerConfig};
use crate::telemetry;

/// Maximum time from the signal to stop until the last request has ended.
pub const DRAIN: Duration = Duration::from_secs(40);

// A request that begins right before the signal may end.
const _: () = assert!(pagebucket_http::REQUEST.as_secs() < DRAIN.as_secs());

/// Connections that the system holds until they are accepted.
const BACKLOG: u32 = 1024;

/// A service that is bound, and not yet serving.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    store: Store,
    page_views: PageViews,
    leaving: Arc<AtomicBool>,
    stop: CancellationToken,
    config: ServerConfig,
    certificate: Option<Arc<Certificate>>,
    permits: Arc<Semaphore>,
    unsent: Unsent,
    addresses: Arc<ConnectionCounts>,
    retentions: Retentions,
    house_every: Duration,
}

/// Why a server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
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
    /// Flags of retention make no sense.
    #[error(transparent)]
    Retention(#[from] RetentionError),
    /// The database does not answer, or is not migrated.
    #[error(transparent)]
    Database(#[from] pagebucket_engine::Error),
}

/// Reads the certificate and its key once, and the flags of retention, of which each names one of these
/// histories, to find mistakes before the database is opened.
///
/// # Errors
/// They cannot be used.
pub async fn check(config: &ServerConfig, definitions: &Definitions) -> Result<(), ServeError> {
    housekeeping::retentions(&config.retain, definitions)?;
    Certificate::read(&config.tls).await?;
    Ok(())
}

/// Takes an address; of port 0 a free one. Until a [`Server`] is on it, clients are refused there.
///
/// # Errors
/// It is in use, or not of this machine.
pub fn reserve(address: SocketAddr) -> Result<TcpSocket, ServeError> {
    let bind = || -> std::io::Result<TcpSocket> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Otherwise a restarted server would wait for the last connections of the one before.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(socket)
    };
    bind().map_err(|error| ServeError::Listen { address, error })
}

impl Server {
    /// Binds. Port 0 takes a free one. The gate decides who may use which route.
    ///
    /// # Errors
    /// The address cannot be bound, the certificate cannot be used, or the database is not migrated.
    pub async fn bind(
        config: &ServerConfig,
        store: Store,
        clock: Clock,
        gate: Gate,
    ) -> Result<Self, ServeError> {
        Self::on(reserve(config.listen)?, config, store, clock, gate).await
    }

    /// The same on an address that is [reserved](reserve).
    ///
    /// # Errors
    /// Another process listens there by now, the certificate cannot be used, or the database is not migrated.
    pub async fn on(
        socket: TcpSocket,
        config: &ServerConfig,
        store: Store,
        clock: Clock,
        gate: Gate,
    ) -> Result<Self, ServeError> {
        let failed = |error: std::io::Error| ServeError::Listen { address: config.listen, error };
        let certificate = Certificate::read(&config.tls).await?;
        let histories: Vec<_> = store.definitions().iter().map(|definition| &*definition.name).collect();
        let retentions = housekeeping::retentions(&config.retain, store.definitions())?;
        metric::begin(Collections { histories: &histories, others: &NUMBERED });
        // Once for all requests that read: none has to wait for it while the database is away.
        let epoch = store.epoch(Deadline::within(COMMAND)).await?;
        let listener = socket.listen(BACKLOG).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (leaving, stop) = (Arc::<AtomicBool>::default(), CancellationToken::new());
        let page_views = PageViews::of(&store);
        let api = Api {
            store: store.clone(),
            page_views: page_views.clone(),
            reads: ReadTerms {
                epoch,
                kept_by: if config.api.cache_public { KeptBy::Anybody } else { KeptBy::Client },
            },
            pages: Pages::new(config.api.page_cache, &store),
            exports: Permits::new(config.api.max_exports as usize, "exports"),
            scans: Permits::new(config.api.max_scans as usize, "long reads"),
            uploads: Uploads::new(config.api.max_uploads as usize),
            gate: gate.counting(proxies(&config.api.rate), rates(&config.api.rate)),
            clock,
            limits: Limits {
                requests: config.api.max_requests as usize,
                live: config.api.max_live as usize,
                live_age: Duration::from_secs(config.api.live_max_age),
                body: config.api.max_body as usize,
                tls: certificate.is_some(),
                body_timeout: Duration::from_secs(config.api.body_timeout),
            },
            origins: config.api.cors_origins.clone(),
            hosts: hosts(&config.api.allowed_hosts, address),
            explorer: !config.api.no_explorer,
            leaving: Arc::clone(&leaving),
            stop: stop.clone(),
            metrics: telemetry::exposition,
        };
        let (router, config) = (pagebucket_http::router(api), config.clone());
        let permits = Arc::new(Semaphore::new(config.max_connections as usize));
        let addresses = ConnectionCounts::new(config.max_connections_per_address);
        let house_every = housekeeping::EVERY;
        Ok(Self {
            listener,
            address,
            router,
            store,
            page_views,
            leaving,
            stop,
            config,
            certificate,
            permits,
            unsent: Unsent::default(),
            addresses,
            retentions,
            house_every,
        })
    }

    /// The same, keeping house at this pace. For tests.
    #[must_use]
    pub fn keeping_house_every(self, house_every: Duration) -> Self {
        Self { house_every, ..self }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https`, or `http`.
    pub fn scheme(&self) -> &'static str {
        if self.certificate.is_some() { "https" } else { "http" }
    }

    /// Serves until `stop` completes, and for the drain delay after it, in which it is not ready. Then it
    /// accepts no more connections, closes idle ones, and waits for running requests, for at most [`DRAIN`].
    /// Returns whether all requests have ended.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> bool {
        let (certificate, store) = (self.certificate.clone(), self.store.clone());
        let (retentions, house_every) = (self.retentions.clone(), self.house_every);
        let _series = store.feed_series();
        tokio::select! {
            Some(never) = OptionFuture::from(certificate.as_ref().map(|it| it.keep_current())) => match never {},
            never = housekeeping::keep(&store, &retentions, house_every) => match never {},
            drained = self.serve_and_drain(stop) => drained,
        }
    }

    async fn serve_and_drain(self, stop: impl Future<Output = ()>) -> bool {
        let tls = self.certificate.as_ref().map(Certificate::acceptor);
        let (deadlines, leaving) = (Deadlines::new(&self.config), Arc::clone(&self.leaving));
        let connections = Connections::new(self.router, tls, deadlines, self.unsent, leaving);
        let accepted = Accepted::new(connections, self.permits, self.addresses);
        let acceptor = Acceptor { listener: self.listener, accepted };
        tokio::select! {
            never = acceptor.accept() => match never {},
            () = stop => {}
        }
        self.leaving.store(true, Ordering::Relaxed);
        tokio::select! {
            never = acceptor.accept() => match never {},
            () = tokio::time::sleep(Duration::from_secs(self.config.drain_delay)) => {}
        }
        let accepted = acceptor.stop_listening();
        accepted.close();
        let drain = async {
            // Requests that were on their way are served, too.
            let _ = tokio::time::timeout(FIRST_REQUEST, accepted.closed()).await;
            self.stop.cancel();
            accepted.closed().await;
            // The queues may hold items of clients that have disconnected: these are stored, too.
            tokio::join!(self.store.drain_appends(), self.page_views.drain());
        };
        tokio::time::timeout(DRAIN, drain).await.is_ok()
    }
}

/// The rate limits, if there are any.
fn rates(args: &RateArgs) -> Option<Arc<RateLimits>> {
    let Rate { units, per } = args.rate_limit?;
    let burst = args.rate_burst.and_then(NonZeroU32::new);
    Some(Arc::new(RateLimits::new(units, per, burst)))
}

/// The proxies that are trusted.
fn proxies(args: &RateArgs) -> Proxies {
    let header = HeaderName::from_static(match args.forwarded_header {
        ForwardedHeader::XForwardedFor => "x-forwarded-for",
        ForwardedHeader::Forwarded => "forwarded",
    });
    Proxies::new(args.trusted_proxies.clone(), header)
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
