//! Routes, extractors, problems, links, caching, OpenAPI. Never names the mongodb crate.
//!
//! [`routes`] mounts and documents every route. Every request passes the layers of [`middleware`]. Under
//! `/v1` it also passes [`middleware::admission`]: the decision of [`middleware::gate`] on its client, the
//! rate limit, the limit of concurrent requests, what the client accepts, and its deadline. [`problem`]
//! renders every error.
//!
//! | Module | What it knows |
//! |---|---|
//! | [`routes`] | each route with its handler, its documentation, its policy and its access |
//! | [`resources`] | the handlers, by resource |
//! | [`request`] | what a handler asks of a request, and what is known of it |
//! | [`middleware`] | the layers, a file for each |
//! | [`auth`], [`client`] | who a client is, and who is counted |
//! | [`limits`] | permits, rates, and the memory of answers and uploads |
//! | [`caching`], [`pages`] | tags and cache headers; the JSON of pages, and the page cache |
//! | [`problem`] | everything that goes wrong |
//! | [`openapi`] | the OpenAPI document |
//! | [`site`] | pages for people: the explorer, the problems |

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
pub use caching::reading::ReadTerms;
pub use client::{Peer, Proxies};
pub use limits::answer_memory::{Account, AnswerMemory, Unsent};
pub use limits::permits::Permits;
pub use limits::rate::RateLimits;
pub use limits::requests::Limits;
pub use limits::uploads::Uploads;
pub use middleware::gate::{ExplorerClient, Gate, OpenParts};
pub use middleware::hosts::Hosts;
pub use openapi::{Version, document};
pub use pages::cache::Pages;
pub use problem::{MEDIA_TYPE as PROBLEM_JSON, ProblemKind};
pub use request::context::RequestConnection;
pub use request::deadline::REQUEST;
pub use request::unreserved::decode_unreserved;
pub use site::origin_of;
pub use state::Api;

#[cfg(feature = "bench")]
use middleware::admission::Policy;
use middleware::admission::{self, Admission};
use middleware::gate::Access;
use middleware::guard::Guard;
use middleware::measure::Gauges;
use request::deadline::Times;

/// The whole API, ready to be served.
pub fn router(api: Api) -> Router {
    let admission = Arc::new(Admission {
        stop: api.stop.clone(),
        requests: Permits::new(api.limits.requests, "requests"),
        uploads: api.uploads.permits.clone(),
        live: Permits::new(api.limits.live, "live streams and long polls"),
        gate: api.gate.clone(),
        times: Times::default(),
        under_way: Gauges::default(),
    });
    let counted = (admission.requests.clone(), api.gate.clone());
    let documentation = if api.gate.open.docs { Access::Everyone } else { Access::Authenticated };
    let site = site::router(api.store.definitions(), &api.gate, api.explorer)
        .layer(Guard::layer(&api.gate, documentation));
    let explorer = if api.explorer { site::explorer(&api.gate) } else { Router::new() };
    let all = routes::v1(&api.store, &admission)
        .merge(routes::operators(&api.gate))
        .merge(
            site.merge(site::metadata(&api.gate))
                .merge(site::icons())
                .merge(explorer)
                .layer(from_fn_with_state(counted, admission::under_way)),
        )
        .fallback(site::nothing_here);
    let (origins, hosts, proxies) = (api.origins.clone(), api.hosts.clone(), Arc::clone(&api.gate.proxies));
    middleware::surround(all, api.limits, origins, hosts, proxies).with_state(Arc::new(api))
}

/// Puts the layers of the routes under `/v1` around other routes, so that benchmarks compare only what is
/// inside.
#[cfg(feature = "bench")]
pub fn as_ours(routes: Router, limits: Limits, origins: Vec<String>) -> Router {
    let requests = Permits::new(limits.requests, "requests");
    let admission = Arc::new(Admission {
        stop: Default::default(),
        uploads: requests.clone(),
        live: requests.clone(),
        requests,
        gate: Gate::unguarded(),
        times: Times::default(),
        under_way: Gauges::default(),
    });
    let proxies = Arc::clone(&admission.gate.proxies);
    middleware::surround(
        routes.layer(admission.layer(Policy::Json, Access::Everyone, None)),
        limits,
        origins,
        Hosts::only([]),
        proxies,
    )
}
