//! One running service: the API of a store, its server, and what it does beside its requests.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Extensions, HeaderName, Request};
use pagebucket_engine::internal::{COMMAND, NUMBERED};
use pagebucket_engine::{Deadline, Store};
use pagebucket_http::{
    Api, Clients, Gate, Hosts, KeptBy, Limits, Pages, Permits, Proxies, RateLimits, ReadTerms,
    RequestConnection, Unsent, Uploads, decode_unreserved, patience_for,
};
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::Clock;
use pagebucket_model::metric::{self, Collections};
use pagebucket_page_views::PageViews;
use pagebucket_server::{BindError, ConnectionService, DRAIN, Server, Stopping, reserve};
use tokio::net::TcpSocket;
use tower_service::Service as _;

use super::housekeeping::{self, RetentionError, Retentions};
use crate::config::{ForwardedHeader, Rate, RateArgs, ServerArgs};
use crate::telemetry;

// A request that begins right before the signal may end.
const _: () = assert!(pagebucket_http::REQUEST.as_secs() < DRAIN.as_secs());

/// A service that is bound, and not yet serving.
pub struct Service {
    server: Server,
    router: Router,
    store: Store,
    page_views: PageViews,
    retentions: Retentions,
    house_every: Duration,
}

/// Why a service cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Its address or its certificate cannot be used.
    #[error(transparent)]
    Bind(#[from] BindError),
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
pub(crate) async fn check(args: &ServerArgs, definitions: &Definitions) -> Result<(), ServeError> {
    housekeeping::retentions(&args.retain, definitions)?;
    pagebucket_server::check(&args.into()).await.map_err(BindError::from)?;
    Ok(())
}

impl Service {
    /// Binds. Port 0 takes a free one. The gate decides who may use which route.
    ///
    /// # Errors
    /// The address cannot be bound, the certificate cannot be used, or the database is not migrated.
    pub async fn bind(args: &ServerArgs, store: Store, clock: Clock, gate: Gate) -> Result<Self, ServeError> {
        Self::on(reserve(args.listen)?, args, store, clock, gate).await
    }

    /// The same on an address that is [reserved](reserve).
    ///
    /// # Errors
    /// Another process listens there by now, the certificate cannot be used, or the database is not migrated.
    pub async fn on(
        socket: TcpSocket,
        args: &ServerArgs,
        store: Store,
        clock: Clock,
        gate: Gate,
    ) -> Result<Self, ServeError> {
        let histories: Vec<_> = store.definitions().iter().map(|definition| &*definition.name).collect();
        let retentions = housekeeping::retentions(&args.retain, store.definitions())?;
        metric::begin(Collections { histories: &histories, others: &NUMBERED });
        // Once for all requests that read: none has to wait for it while the database is away.
        let epoch = store.epoch(Deadline::within(COMMAND)).await?;
        let server = Server::on(socket, args.into()).await?;
        let Stopping { leaving, stop } = server.stopping();
        let page_views = PageViews::of(&store);
        let router = pagebucket_http::router(Api {
            store: store.clone(),
            page_views: page_views.clone(),
            reads: ReadTerms {
                epoch,
                kept_by: if args.api.cache_public { KeptBy::Anybody } else { KeptBy::Client },
            },
            pages: Pages::new(args.api.page_cache, &store),
            exports: Permits::new(args.api.max_exports as usize, "exports"),
            scans: Permits::new(args.api.max_scans as usize, "long reads"),
            uploads: Uploads::new(args.api.max_uploads as usize),
            gate,
            clients: Clients::new(proxies(&args.api.rate), rates(&args.api.rate)),
            clock,
            limits: Limits {
                requests: args.api.max_requests as usize,
                live: args.api.max_live as usize,
                live_age: Duration::from_secs(args.api.live_max_age),
                body: args.api.max_body as usize,
                tls: server.scheme() == "https",
                body_timeout: Duration::from_secs(args.api.body_timeout),
            },
            origins: args.api.cors_origins.clone(),
            hosts: hosts(&args.api.allowed_hosts, server.address()),
            explorer: !args.api.no_explorer,
            leaving,
            stop,
            metrics: telemetry::exposition,
        });
        Ok(Self { server, router, store, page_views, retentions, house_every: housekeeping::EVERY })
    }

    /// The same, keeping house at this pace. For tests.
    #[must_use]
    pub fn keeping_house_every(self, house_every: Duration) -> Self {
        Self { house_every, ..self }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// `https`, or `http`.
    pub fn scheme(&self) -> &'static str {
        self.server.scheme()
    }

    /// Serves until `stop` completes, and for the drain delay after it, in which it is not ready; then it
    /// drains. Returns whether all requests have ended, and all that they have appended is stored.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> bool {
        let Self { server, router, store, page_views, retentions, house_every } = self;
        let unsent = Unsent::default();
        let connect = move |peer| Connection {
            router: router.clone(),
            request: RequestConnection { peer, account: unsent.open() },
        };
        // The queues may hold items of clients that have disconnected: these are stored, too.
        let drain_queues = async {
            tokio::join!(store.drain_appends(), page_views.drain());
        };
        let _series = store.feed_series();
        tokio::select! {
            never = housekeeping::keep(&store, &retentions, house_every) => match never {},
            drained = server.serve(connect, stop, drain_queues) => drained,
        }
    }
}

/// The API for one connection.
#[derive(Clone)]
struct Connection {
    router: Router,
    request: RequestConnection,
}

impl ConnectionService for Connection {
    type Answer = <Router as tower_service::Service<Request<Body>>>::Future;

    fn answer(&self, mut request: Request<Body>) -> Self::Answer {
        request.extensions_mut().insert(self.request.clone());
        decode_unreserved(request.uri_mut());
        self.router.clone().call(request)
    }

    fn patience(&self, limit: Duration) -> Duration {
        self.request.account.patience(limit)
    }

    fn patience_for(&self, answer: &Extensions, limit: Duration) -> Duration {
        patience_for(answer, limit)
    }
}

/// The rate limits, if there are any.
fn rates(args: &RateArgs) -> Option<RateLimits> {
    let Rate { units, per } = args.rate_limit?;
    let burst = args.rate_burst.and_then(NonZeroU32::new);
    Some(RateLimits::new(units, per, burst))
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
