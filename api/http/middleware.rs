//! The layers around the routes: one file for each, composed in [`surround`].

pub(crate) mod cors;
pub(crate) mod drain_body;
pub(crate) mod hosts;
pub(crate) mod observe;
pub(crate) mod render;

use std::sync::Arc;

use axum::Router;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::Predicate;
use tower_http::cors::CorsLayer;
use tower_http::validate_request::ValidateRequestHeaderLayer;

use crate::answer::compression;
use crate::service::MiddlewareLayer;
use hosts::Hosts;
use observe::Observe;
use render::Render;

/// Puts the layers of every request around `routes`. The first layer is the outermost.
pub(crate) fn surround<S: Clone + Send + Sync + 'static>(
    routes: Router<S>,
    observe: Arc<Observe>,
    origins: Vec<String>,
    hosts: Hosts,
) -> Router<S> {
    // In one call, because each call of `layer` makes every request copy what is inside it.
    routes.layer((
        // The request's id, its line in the log, its place in the measurements, the rest of its body.
        MiddlewareLayer(observe),
        inside(origins, hosts),
    ))
}

/// The layers inside the outermost one. What they add to the head of an answer depends on the head of its
/// request alone.
pub(crate) fn inside(
    origins: Vec<String>,
    hosts: Hosts,
) -> (CorsLayer, CompressionLayer<impl Predicate>, MiddlewareLayer<Render>, ValidateRequestHeaderLayer<Hosts>)
{
    (
        cors::layer(origins),
        compression::layer(),
        // Problems and panics become bodies.
        MiddlewareLayer(Render),
        ValidateRequestHeaderLayer::custom(hosts),
    )
}
