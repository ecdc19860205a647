//! The layers around the routes: one file for each, composed in [`surround`].

pub mod accept;
pub mod access_log;
pub mod admission;
pub mod compression;
pub mod cors;
pub mod drain_body;
pub mod gate;
pub mod guard;
pub mod hosts;
pub mod measure;
mod observe;
mod render;
pub mod service;

use std::sync::Arc;

use axum::Router;
use tower_http::validate_request::ValidateRequestHeaderLayer;

use super::client::Proxies;
use super::limits::requests::Limits;
use access_log::RefusalCounts;
use hosts::Hosts;
use measure::Meters;
use observe::Observe;
use render::Render;
use service::MiddlewareLayer;

/// Puts the layers of every request around `routes`. The first layer is the outermost.
pub fn surround<S: Clone + Send + Sync + 'static>(
    routes: Router<S>,
    limits: Limits,
    origins: Vec<String>,
    hosts: Hosts,
    proxies: Arc<Proxies>,
) -> Router<S> {
    // In one call, because each call of `layer` makes every request copy what is inside it.
    routes.layer((
        // The request's id, its line in the log, its place in the measurements, the rest of its body.
        MiddlewareLayer(Observe {
            limits,
            meters: Meters::default(),
            proxies,
            refusals: RefusalCounts::default(),
        }),
        cors::layer(origins),
        compression::layer(),
        // Problems and panics become bodies.
        MiddlewareLayer(Render),
        ValidateRequestHeaderLayer::custom(hosts),
    ))
}
