//! The layers around the routes: one file for each, composed in [`surround`].

pub(crate) mod cors;
pub(crate) mod drain_body;
pub(crate) mod hosts;
mod observe;
mod render;

use std::sync::Arc;

use axum::Router;
use tower_http::validate_request::ValidateRequestHeaderLayer;

use crate::admission::client::Proxies;
use crate::admission::limits::Limits;
use crate::answer::compression;
use crate::answer::log::{RefusalCounts, Traces};
use crate::answer::measures::Meters;
use crate::service::MiddlewareLayer;
use hosts::Hosts;
use observe::Observe;
use render::Render;

/// Puts the layers of every request around `routes`. The first layer is the outermost.
pub(crate) fn surround<S: Clone + Send + Sync + 'static>(
    routes: Router<S>,
    limits: Limits,
    origins: Vec<String>,
    hosts: Hosts,
    proxies: Arc<Proxies>,
    traces: Option<Traces>,
) -> Router<S> {
    // In one call, because each call of `layer` makes every request copy what is inside it.
    routes.layer((
        // The request's id, its line in the log, its place in the measurements, the rest of its body.
        MiddlewareLayer(Observe {
            limits,
            meters: Meters::default(),
            proxies,
            refusals: RefusalCounts::default(),
            traces,
        }),
        cors::layer(origins),
        compression::layer(),
        // Problems and panics become bodies.
        MiddlewareLayer(Render),
        ValidateRequestHeaderLayer::custom(hosts),
    ))
}
