//! The API of a store and its server, bound and served.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Extensions, HeaderName, Request};
use pagebucket_engine::internal::{COMMAND, NUMBERED, Retention};
use pagebucket_engine::{Deadline, Store};
use pagebucket_http::{
    Api, ApiAnswer, ApiService, Clients, Gate, Hosts, Limits, Pages, Permits, Proxies, RateLimits, ReadTerms,
    RequestConnection, Traces, Unsent, Uploads, patience_for,
};
use pagebucket_model::domain::Clock;
use pagebucket_model::metric::{self, Collections};
use pagebucket_page_views::PageViews;
use pagebucket_server::{BindError, ConnectionService, DRAIN, Server, Stopping, reserve};
use tokio::net::TcpSocket;

use crate::config::{ApiConfig, ForwardedHeader, Rate, ServiceConfig};
use crate::{exposition, housekeeping};

// A request that begins right before the signal may end.
const _: () = assert!(pagebucket_http::REQUEST.as_secs() < DRAIN.as_secs());

/// A service that is bound, and not yet serving.
pub struct Service {
    server: Server,
    api: ApiService,
    store: Store,
    page_views: PageViews,
    retained: BTreeMap<Box<str>, Retention>,
    house_every: Duration,
}

/// Why a service cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Its address or its certificate cannot be used.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The database does not answer, or is not migrated.
    #[error(transparent)]
    Database(#[from] pagebucket_engine::Error),
}

impl Service {
    /// Binds. Port 0 takes a free one. The gate decides who may use which route.
    ///
    /// # Errors
    /// The address cannot be bound, the certificate cannot be used, or the database is not migrated.
    pub async fn bind(
        config: ServiceConfig,
        store: Store,
        clock: Clock,
        gate: Gate,
    ) -> Result<Self, ServeError> {
        Self::on(reserve(config.server.listen)?, config, store, clock, gate, None).await
    }

    /// The same on an address that is [reserved](reserve).
    ///
    /// # Errors
    /// Another process listens there by now, the certificate cannot be used, or the database is not migrated.
    pub async fn on(
        socket: TcpSocket,
        config: ServiceConfig,
        store: Store,
        clock: Clock,
        gate: Gate,
        traces: Option<Traces>,
    ) -> Result<Self, ServeError> {
        let ServiceConfig { server, api, retained, house_every } = config;
        let histories: Vec<_> = store.definitions().iter().map(|definition| &*definition.name).collect();
        metric::begin(Collections { histories: &histories, others: &NUMBERED });
        // Once for all requests that read: none has to wait for it while the database is away.
        let epoch = store.epoch(Deadline::within(COMMAND)).await?;
        let server = Server::on(socket, server).await?;
        let Stopping { leaving, stop } = server.stopping();
        let page_views = PageViews::of(&store);
        let api = pagebucket_http::service(Api {
            store: store.clone(),
            page_views: page_views.clone(),
            reads: ReadTerms { epoch, kept_by: api.kept_by },
            pages: Pages::new(api.page_cache, &store),
            exports: Permits::new(api.max_exports, "exports"),
            scans: Permits::new(api.max_scans, "long reads"),
            uploads: Uploads::new(api.max_uploads),
            gate,
            clients: clients(&api),
            clock,
            limits: Limits {
                requests: api.max_requests,
                live: api.max_live,
                live_age: api.live_max_age,
                body: api.max_body,
                tls: server.scheme() == "https",
                body_timeout: api.body_timeout,
            },
            origins: api.cors_origins,
            hosts: hosts(api.allowed_hosts, server.address()),
            explorer: api.explorer,
            leaving,
            stop,
            metrics: exposition::render,
            traces,
        });
        Ok(Self { server, api, store, page_views, retained, house_every })
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
        let Self { server, api, store, page_views, retained, house_every } = self;
        let unsent = Unsent::default();
        let connect = move |peer| Connection {
            api: api.clone(),
            request: RequestConnection { peer, account: unsent.open() },
        };
        // The queues may hold items of clients that have disconnected: these are stored, too.
        let drain_queues = async {
            tokio::join!(store.drain_appends(), page_views.drain());
        };
        let _series = store.feed_series();
        tokio::select! {
            never = housekeeping::keep(&store, &retained, house_every) => match never {},
            drained = server.serve(connect, stop, drain_queues) => drained,
        }
    }
}

/// The API for one connection.
#[derive(Clone)]
struct Connection {
    api: ApiService,
    request: RequestConnection,
}

impl ConnectionService for Connection {
    type Answer = ApiAnswer;

    fn answer(&self, request: Request<Body>) -> ApiAnswer {
        self.api.answer(request, &self.request)
    }

    fn patience(&self, limit: Duration) -> Duration {
        self.request.account.patience(limit)
    }

    fn patience_for(&self, answer: &Extensions, limit: Duration) -> Duration {
        patience_for(answer, limit)
    }
}

/// Tells clients apart, and limits each.
fn clients(api: &ApiConfig) -> Clients {
    let header = HeaderName::from_static(match api.forwarded_header {
        ForwardedHeader::XForwardedFor => "x-forwarded-for",
        ForwardedHeader::Forwarded => "forwarded",
    });
    let rates = api.rate.map(|Rate { units, per, burst }| RateLimits::new(units, per, burst));
    Clients::new(Proxies::new(api.trusted_proxies.clone(), header), rates)
}

/// Only a loopback listener refuses unknown hosts by default: it is the target of DNS rebinding.
fn hosts(given: Vec<String>, address: SocketAddr) -> Hosts {
    let ip = address.ip().to_canonical();
    if given.is_empty() && !ip.is_loopback() {
        return Hosts::any();
    }
    // A loopback address need not be 127.0.0.1.
    let own = ip.is_loopback().then(|| ip.to_string());
    Hosts::only(given.into_iter().chain(own))
}
