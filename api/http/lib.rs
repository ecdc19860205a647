//! Routes, extractors, problems, links, caching, OpenAPI. Never names the mongodb crate.
//!
//! [`routes`] mounts and documents every route. Every request passes the layers of [`middleware`]. Under `/v1` it also
//! passes [`middleware::admission`]: the decision of [`middleware::gate`] on its client, the rate limit, the limit
//! of concurrent requests, what the client accepts, and its deadline.
//! [`problem`] renders every error.

pub mod auth;
mod caching;
mod client;
pub mod http_client;
mod limits;
mod middleware;
mod openapi;
mod pages;
mod problem;
mod request;
mod resources;
mod routes;
mod schemas;
mod site;
mod state;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;

pub use caching::control::KeptBy;
pub use client::Proxies;
pub use client::peer::Peer;
pub use limits::answer_memory::{Account, AnswerMemory, Unsent};
pub use limits::permits::Permits;
pub use limits::rate::RateLimits;
pub use limits::requests::Limits;
pub use limits::uploads::Uploads;
pub use middleware::gate::{Gate, OpenParts};
pub use middleware::hosts::Hosts;
pub use openapi::{Version, document};
pub use pages::cache::Pages;
pub use problem::{MEDIA_TYPE as PROBLEM_JSON, ProblemKind};
pub use request::context::RequestConnection;
pub use request::deadline::REQUEST;
pub use state::Api;

use auth::access::Access;
#[cfg(feature = "bench")]
use middleware::admission::Policy;
use middleware::admission::{self, Admission};
use middleware::gate::Guard;
use middleware::measure::Gauges;

/// The whole API, ready to be served.
pub fn router(api: Api) -> Router {
    let requests = Permits::new(api.limits.requests, "requests");
    let counted = (requests.clone(), api.gate.clone());
    let (stop, uploads, gate) = (api.stop.clone(), api.uploads.permits.clone(), api.gate.clone());
    let under_way = Gauges::default();
    let admission = Arc::new(Admission { stop, requests, uploads, gate, under_way });
    let documentation = if api.gate.open.docs { Access::Everyone } else { Access::Authenticated };
    let site = site::router(api.store.definitions(), &api.gate).layer(Guard::layer(&api.gate, documentation));
    let all = routes::v1(&api.store, &admission)
        .merge(routes::operators(&api.gate))
        .merge(
            site.merge(site::metadata(&api.gate))
                .merge(site::icons())
                .layer(from_fn_with_state(counted, admission::under_way)),
        )
        .fallback(site::nothing_here);
    let (origins, hosts, proxies) = (api.origins.clone(), api.hosts.clone(), Arc::clone(&api.gate.proxies));
    middleware::surround(all, api.limits, origins, hosts, proxies).with_state(Arc::new(api))
}

/// Puts the layers of the routes under `/v1` around other routes, so that benchmarks compare only what is inside.
#[cfg(feature = "bench")]
pub fn as_ours(routes: Router, limits: Limits, origins: Vec<String>) -> Router {
    let requests = Permits::new(limits.requests, "requests");
    let (stop, gate, uploads) = (Default::default(), Gate::unguarded(), requests.clone());
    let proxies = Arc::clone(&gate.proxies);
    let under_way = Gauges::default();
    let admission = Arc::new(Admission { stop, requests, uploads, gate, under_way });
    middleware::surround(
        routes.layer(admission.layer(Policy::Json, Access::Everyone, None)),
        limits,
        origins,
        Hosts::only([]),
        proxies,
    )
}
