//! Routes, extractors, problems, links, caching, OpenAPI. Never names the mongodb crate.
//!
//! [`routes`] mounts and documents every route. Every request passes the layers of [`middleware`]. Under
//! `/v1` it also passes [`admission`]: the decision of the gate on its client, the rate limit, the limit of
//! concurrent requests, what the client accepts, and its deadline. [`problem`] says what every error is.
//!
//! | Module | What it knows |
//! |---|---|
//! | [`routes`] | each route with its handler, its documentation, its policy and its access |
//! | [`resources`] | the handlers, by resource |
//! | [`request`] | what a handler asks of a request: its parameters and its body |
//! | [`middleware`] | the layers around all routes |
//! | [`routes::fast_path`] | a page in memory, and a 304 by its tag, before routing |
//! | [`auth`] | who a client is |
//! | [`admission`] | who comes in: the gate, permits, rates; what is known of a request |
//! | [`answer`] | what goes out: problem bodies, memory, compression, the line in the log, measures |
//! | [`caching`], [`pages`] | tags and cache headers; the JSON of pages, and the page cache |
//! | [`problem`] | everything that goes wrong |
//! | [`openapi`] | the OpenAPI document |
//! | [`schemas`] | what its parts are made of: names of a definition, schemas, headers |
//! | [`site`] | pages for people: the explorer, the problems |

mod admission;
mod answer;
pub mod auth;
mod caching;
mod middleware;
mod openapi;
mod pages;
mod problem;
mod request;
mod resources;
mod routes;
mod schemas;
mod service;
mod site;
mod state;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::future::RouteFuture;
use futures_util::future::Either;
use tower_service::Service as _;

pub use admission::client::Proxies;
pub use admission::clients::Clients;
pub use admission::context::RequestConnection;
pub use admission::deadline::REQUEST;
pub use admission::gate::{Gate, OpenParts};
pub use admission::limits::Limits;
pub use admission::permits::Permits;
pub use admission::rate::RateLimits;
pub use admission::uploads::Uploads;
pub use answer::log::Traces;
pub use answer::memory::{Account, Unsent};
pub use answer::notes::patience_for;
pub use auth::http_client;
pub use caching::control::KeptBy;
pub use caching::reading::ReadTerms;
pub use middleware::hosts::Hosts;
pub use openapi::{Version, document};
pub use pages::cache::Pages;
pub use problem::{MEDIA_TYPE as PROBLEM_JSON, ProblemKind};
pub use site::origin_of;
pub use state::Api;

use admission::deadline::Times;
use admission::gate::Access;
use admission::guard::Guard;
#[cfg(feature = "bench")]
use admission::layer::Policy;
use admission::layer::{self, Admission};
use admission::under_way::Gauges;
use middleware::observe::Observe;
use request::unreserved::decode_unreserved;
use routes::fast_path::FastPath;

/// The whole API, ready to be served. Clones share it.
#[derive(Clone)]
pub struct ApiService {
    router: Router,
    fast_path: Arc<FastPath>,
}

/// An answer of the API to come, or one that is there.
pub type ApiAnswer = Either<Ready<Result<Response, Infallible>>, RouteFuture<Infallible>>;

impl ApiService {
    /// Answers a request that came over this connection.
    pub fn answer(&self, mut request: Request, connection: &RequestConnection) -> ApiAnswer {
        decode_unreserved(request.uri_mut());
        if let Some(answer) = self.fast_path.answer(&mut request, connection) {
            return Either::Left(ready(Ok(answer)));
        }
        request.extensions_mut().insert(connection.clone());
        Either::Right(self.router.clone().call(request))
    }
}

/// The whole API of these parts.
pub fn service(api: Api) -> ApiService {
    let admission = Arc::new(Admission {
        stop: api.stop.clone(),
        requests: Permits::new(api.limits.requests, "requests"),
        uploads: api.uploads.permits.clone(),
        live: Permits::new(api.limits.live, "live streams and long polls"),
        gate: api.gate.clone(),
        clients: api.clients.clone(),
        times: Times::default(),
        under_way: Gauges::default(),
    });
    let counted = (admission.requests.clone(), api.clients.clone());
    let documentation = if api.gate.open.docs { Access::Everyone } else { Access::Authenticated };
    let site = site::router(&api).layer(Guard::layer(&api.gate, &api.clients, documentation));
    let explorer = if api.explorer { site::explorer(&api.gate) } else { Router::new() };
    let all = routes::v1(&api.store, &admission)
        .merge(routes::operators(&api.gate, &api.clients))
        .merge(
            site.merge(site::metadata(&api.gate))
                .merge(site::icons())
                .merge(explorer)
                .layer(from_fn_with_state(counted, layer::under_way)),
        )
        .fallback(site::nothing_here);
    let (origins, hosts) = (api.origins.clone(), api.hosts.clone());
    let observe = Observe::new(api.limits, Arc::clone(&api.clients.proxies), api.traces);
    let fast_path = FastPath::new(
        routes::pages(&api.store, &admission),
        Arc::clone(&observe),
        &origins,
        hosts.clone(),
        api.reads,
        api.pages.clone(),
    );
    let router = middleware::surround(all, observe, origins, hosts).with_state(Arc::new(api));
    ApiService { router, fast_path: Arc::new(fast_path) }
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
        clients: Clients::new(Proxies::none(), None),
        times: Times::default(),
        under_way: Gauges::default(),
    });
    let proxies = Arc::clone(&admission.clients.proxies);
    middleware::surround(
        routes.layer(admission.layer(Policy::Json, Access::Everyone, None)),
        Observe::new(limits, proxies, None),
        origins,
        Hosts::only([]),
    )
}
