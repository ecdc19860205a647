//! The layer that renders what the routes answer ([`crate::answer::render`]).

use std::panic::AssertUnwindSafe;

use axum::extract::Request;
use axum::response::Response;
use futures_util::FutureExt;

use crate::admission::context::RequestContext;
use crate::answer::render::{panicked, rendered};
use crate::service::{InnerService, Middleware, ResponseFuture};

/// The layer.
#[derive(Clone, Copy)]
pub(crate) struct Render;

impl<S: InnerService> Middleware<S> for Render {
    type Response = Response;

    fn call(&self, inner: &mut S, request: Request) -> ResponseFuture<Response> {
        let uri = request.uri().clone();
        let RequestContext { id, connection, .. } = RequestContext::of(request.extensions());
        let (id, account) = (id.clone(), connection.account.clone());
        let is_safe = request.method().is_safe();
        let answer = AssertUnwindSafe(inner.call(request)).catch_unwind();
        Box::pin(async move {
            let answer = answer.await.unwrap_or_else(|panic| Ok(panicked(&*panic)))?;
            Ok(rendered(answer, &uri, &id, &account, is_safe))
        })
    }
}
