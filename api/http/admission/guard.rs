//! The layer of routes that have no admission: only the gate decides on them.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use super::clients::Clients;
use super::context::RequestContext;
use super::gate::{Access, AccessRequest, Gate, answer_to};
use crate::service::{InnerService, Middleware, MiddlewareLayer, ResponseFuture, ready};

/// Decides on the requests to a route.
#[derive(Clone)]
pub(crate) struct Guard {
    gate: Gate,
    clients: Clients,
    access: Access,
}

impl Guard {
    /// The layer for routes with this access.
    pub(crate) fn layer(gate: &Gate, clients: &Clients, access: Access) -> MiddlewareLayer<Self> {
        MiddlewareLayer(Self { gate: gate.clone(), clients: clients.clone(), access })
    }
}

impl<S: InnerService> Middleware<S> for Guard {
    type Response = Response;

    fn call(&self, inner: &mut S, request: Request) -> ResponseFuture<Response> {
        if self.gate.is_open(self.access) {
            return inner.call(request).boxed();
        }
        let (Self { gate, clients, access }, mut inner) = (self.clone(), ready(inner));
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let asked = AccessRequest { access, collection: None, owner: None, watched: &[] };
            match gate.decide(&clients, &parts, &asked).await {
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
