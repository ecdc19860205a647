//! The layer of routes that have no admission: only the gate decides on them.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use super::context::RequestContext;
use super::gate::{Access, AccessRequest, Gate, answer_to};
use crate::service::{InnerService, Middleware, MiddlewareLayer, ResponseFuture, ready};

/// Decides on the requests to a route.
#[derive(Clone)]
pub(crate) struct Guard(Gate, Access);

impl Guard {
    /// The layer for routes with this access.
    pub(crate) fn layer(gate: &Gate, access: Access) -> MiddlewareLayer<Self> {
        MiddlewareLayer(Self(gate.clone(), access))
    }
}

impl<S: InnerService> Middleware<S> for Guard {
    type Response = Response;

    fn call(&self, inner: &mut S, request: Request) -> ResponseFuture<Response> {
        if self.0.is_open(self.1) {
            return inner.call(request).boxed();
        }
        let (Self(gate, access), mut inner) = (self.clone(), ready(inner));
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let asked = AccessRequest { access, collection: None, owner: None, watched: &[] };
            match gate.decide(&parts, &asked).await {
                Ok(principal) => {
                    RequestContext::of_mut(&mut parts.extensions).principal.clone_from(&principal);
                    let answer = inner.call(Request::from_parts(parts, body)).await?;
                    Ok(answer_to(principal, answer))
                }
                Err(refused) => Ok(refused.into_response()),
            }
        })
    }
}
