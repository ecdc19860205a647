//! Layers of our own. Functions given to `middleware::from_fn` are shorter, but each costs every request a
//! copy of everything inside it and several allocations: for a page from memory, most of the cost.

use std::convert::Infallible;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::Response;
use futures_util::future::BoxFuture;
use tower_layer::Layer;
use tower_service::Service;

/// The answer of a service that cannot fail.
pub(crate) type ResponseFuture<R> = BoxFuture<'static, Result<R, Infallible>>;

/// What stands inside a layer.
pub(crate) trait InnerService:
    Service<Request, Response = Response, Error = Infallible, Future: Send + 'static> + Clone + Send + 'static
{
}

impl<S> InnerService for S where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + 'static
{
}

/// The service that is ready, to be called later. Its clone, which is not ready, takes its place.
pub(crate) fn ready<S: Clone>(inner: &mut S) -> S {
    let clone = inner.clone();
    std::mem::replace(inner, clone)
}

/// What a layer does with each request around the service `S`.
pub(crate) trait Middleware<S>: Clone {
    /// The answer of the layer.
    type Response;

    /// Answers a request, usually by `inner`.
    fn call(&self, inner: &mut S, request: Request) -> ResponseFuture<Self::Response>;
}

/// A layer that does this around each request.
#[derive(Clone)]
pub(crate) struct MiddlewareLayer<A>(pub A);

impl<A: Clone, S> Layer<S> for MiddlewareLayer<A> {
    type Service = MiddlewareService<A, S>;

    fn layer(&self, inner: S) -> Self::Service {
        MiddlewareService { around: self.0.clone(), inner }
    }
}

/// The service of [`MiddlewareLayer`].
#[derive(Clone)]
pub(crate) struct MiddlewareService<A, S> {
    around: A,
    inner: S,
}

impl<A: Middleware<S>, S: Service<Request, Error = Infallible>> Service<Request> for MiddlewareService<A, S> {
    type Response = A::Response;
    type Error = Infallible;
    type Future = ResponseFuture<A::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.around.call(&mut self.inner, request)
    }
}
