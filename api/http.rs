//! Routes, extractors, problems, links, OpenAPI. Never names the mongodb crate.
//!
//! [`router`] is the map: one expression mounts a route *and* documents it. From the outside in, a
//! request passes its id, the access log and the draining of its body ([`entry`]), CORS, compression,
//! the rendering of problems and panics ([`problem`]), the check of the host that it names ([`hosts`]),
//! and, under `/v1`, the cap on requests under way, what the client accepts, and the request's deadline ([`limits`]).

mod accept;
mod access_log;
mod appends;
mod body;
mod caching;
mod cors;
mod customers;
mod entry;
mod etag;
mod export;
mod health;
mod hosts;
mod idempotency;
mod limits;
mod links;
mod listing;
mod metrics;
mod new_trades;
mod openapi;
mod page_views;
mod pages;
mod params;
mod problem;
mod reading;
mod request_id;
mod schemas;
mod site;
mod snapshot;
mod trades;
mod unread;
mod uploads;
mod views;

use std::sync::Arc;
use std::time::Duration;

use axum::{Router, middleware};
use tokio_util::sync::CancellationToken;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use caching::KeptBy;
pub use cors::Origins;
pub use hosts::Hosts;
pub use limits::Places;
pub use metrics::Metrics;
pub use openapi::document;
pub use pages::Pages;
pub use problem::{Kind as ProblemKind, MEDIA_TYPE as PROBLEM_JSON};
pub use uploads::Uploads;

use crate::domain::Clock;
use crate::store::{self, Store};
use entry::Entry;
use limits::Admission;

/// One request, its body included.
pub const REQUEST: Duration = Duration::from_secs(35);
/// What a request keeps back, to write its answer after its last database command.
pub const ANSWER: Duration = Duration::from_secs(2);

// What is inside ends before what is around it.
const _: () = assert!(store::NO_PRIMARY.as_secs() < store::COMMAND.as_secs());
const _: () = assert!(store::COMMAND.as_secs() + ANSWER.as_secs() < REQUEST.as_secs());

/// What the routes need.
pub struct Api {
    /// The database.
    pub store: Store,
    /// Full pages in memory.
    pub pages: Pages,
    /// Those of exports.
    pub exports: Places,
    /// Those of reads of page views that may take long.
    pub scans: Places,
    /// Room for uploads.
    pub uploads: Uploads,
    /// Who may keep a full page.
    pub kept_by: KeptBy,
    /// What time it is.
    pub clock: Clock,
    /// How much a request may ask for.
    pub limits: Limits,
    /// Who may call from a page elsewhere.
    pub origins: Origins,
    /// Which hosts a request may name.
    pub hosts: Hosts,
    /// Whether new requests should be sent here.
    pub ready: Ready,
    /// What `/metrics` shows.
    pub metrics: Metrics,
}

/// How much a request may ask for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most requests at once, uploads aside.
    pub requests: usize,
    /// Longest body, in bytes.
    pub body: usize,
    /// In which a body must arrive, and the least of an upload.
    pub body_timeout: Duration,
}

/// Whether new requests should be sent here: true until told otherwise. Clones are one.
#[derive(Debug, Clone, Default)]
pub struct Ready(CancellationToken);

impl Ready {
    /// From now on `/readyz` says no.
    pub fn end(&self) {
        self.0.cancel();
    }

    fn get(&self) -> bool {
        !self.0.is_cancelled()
    }

    /// Waits until it says no.
    async fn ended(&self) {
        self.0.cancelled().await;
    }
}

/// The routes, with their documentation.
fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(openapi::preamble())
        .routes(routes!(appends::append, listing::list))
        .routes(routes!(uploads::append_many))
        .routes(routes!(export::export))
        .routes(routes!(trades::page))
        .routes(routes!(trades::one))
        .routes(routes!(customers::list))
        .routes(routes!(customers::summary))
        .routes(routes!(page_views::count::count, page_views::reads::series))
        .routes(routes!(page_views::reads::bucket))
        .routes(routes!(page_views::reads::top))
        .routes(routes!(page_views::preallocate::preallocate))
}

fn probes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::default()
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::expose))
}

/// The whole API, ready to be served.
pub fn router(api: Api) -> Router {
    let (v1, _) = routes().split_for_parts();
    let (probes, _) = probes().split_for_parts();
    let requests = Places::new(api.limits.requests, "requests");
    let uploads = api.uploads.places.clone();
    let v1 = v1.layer(Admission { ready: api.ready.clone(), requests: requests.clone(), uploads });
    let all = v1
        .merge(probes)
        .merge(site::router().layer(middleware::from_fn_with_state(requests, limits::under_way)))
        .fallback(site::nothing_here);
    surrounded(all, api.limits, api.origins.clone(), api.hosts.clone()).with_state(Arc::new(api))
}

/// Puts around other routes all that is around those of `/v1`: for benchmarks, which compare what is
/// inside.
pub fn as_ours(routes: Router, limits: Limits, origins: Origins) -> Router {
    let requests = Places::new(limits.requests, "requests");
    let admission = Admission { ready: Ready::default(), uploads: requests.clone(), requests };
    surrounded(routes.layer(admission), limits, origins, Hosts::only([]))
}

/// Puts around routes what is around every request.
fn surrounded<S: Clone + Send + Sync + 'static>(
    routes: Router<S>,
    limits: Limits,
    origins: Origins,
    hosts: Hosts,
) -> Router<S> {
    // Together, because a request copies whatever one `layer` after another is wrapped around.
    routes.layer((
        Entry::new(limits),
        cors::layer(origins),
        CompressionLayer::new().compress_when(DefaultPredicate::new().and(site::may_be_compressed)),
        problem::Render,
        hosts,
    ))
}
