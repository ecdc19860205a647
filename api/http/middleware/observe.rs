//! The outermost layer, for all requests: the context, the log line, the metrics, and the rest of the body.
//! One layer for all of it, because each costs every request an allocation.

use std::convert::Infallible;
use std::sync::Arc;

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Response, Version, header};
use futures_util::future::Either;
use tower_service::Service;
use tracing::Instrument;

use super::drain_body;
use crate::admission::client::Proxies;
use crate::admission::context::{RequestConnection, RequestContext};
use crate::admission::limits::Limits;
use crate::answer::compression;
use crate::answer::log::{AccessLine, RefusalCounts, Traces};
use crate::answer::measures::{Measured, Meters};
use crate::answer::notes::AnswerNotes;
use crate::answer::request_id::{self, RequestId};
use crate::answer::route_name::RouteName;
use crate::caching::etag;
use crate::service::{Middleware, ResponseFuture};

/// For a year from each answer browsers reach this host over TLS alone (RFC 6797).
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// The layer. In an `Arc`, because each request copies it.
pub(crate) struct Observe {
    pub limits: Limits,
    pub meters: Meters,
    /// Of whose clients the log has the addresses.
    pub proxies: Arc<Proxies>,
    pub refusals: RefusalCounts,
    /// Which requests are traced.
    pub traces: Option<Traces>,
}

impl Observe {
    /// With nothing counted yet.
    pub(crate) fn new(limits: Limits, proxies: Arc<Proxies>, traces: Option<Traces>) -> Arc<Self> {
        let (meters, refusals) = (Meters::default(), RefusalCounts::default());
        Arc::new(Self { limits, meters, proxies, refusals, traces })
    }

    /// Adds the headers that every answer has.
    pub(crate) fn complete(&self, headers: &mut HeaderMap, id: &RequestId) {
        etag::weaken_if_compressed(headers);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if self.limits.tls {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, HSTS);
        }
        headers.insert(request_id::HEADER, id.0.clone());
    }
}

impl<S, B> Middleware<S> for Arc<Observe>
where
    S: Service<Request, Response = Response<B>, Error = Infallible, Future: Send + 'static>,
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;

    fn call(&self, inner: &mut S, mut request: Request) -> ResponseFuture<Response<Body>> {
        // HTTP/1.0 has nothing else that marks the end of an answer.
        let needs_length = request.version() < Version::HTTP_11;
        if needs_length {
            // Compression removes it.
            request.headers_mut().remove(header::ACCEPT_ENCODING);
        }
        let id = RequestId::of(request.headers());
        let span = tracing::info_span!("request", id = id.as_str());
        let connection: RequestConnection = request.extensions_mut().remove().unwrap_or_default();
        let peer = self.proxies.address(connection.peer, request.headers());
        let route = RouteName::of(&request);
        let line =
            AccessLine::begin(&mut request, id.clone(), peer, route.clone(), &self.refusals, self.traces);
        let trace = line.trace();
        request.extensions_mut().insert(RequestContext::new(id.clone(), connection));
        let measured = Measured::of(&request, route);
        let observe = Self::clone(self);
        let (request, rest) = drain_body::rest(request, self.limits);
        let answer = span.in_scope(|| match &trace {
            None => inner.call(request),
            Some(trace) => trace.in_scope(|| inner.call(request)),
        });
        let answer = async move {
            let Ok(response) = answer.await;
            if let Some(rest) = rest
                && !AnswerNotes::of(response.extensions()).is_some_and(|notes| notes.still_read)
            {
                rest.await;
            }
            response
        };
        let answer = match trace {
            None => Either::Left(answer),
            Some(trace) => Either::Right(answer.instrument(trace)),
        };
        let answer = answer.instrument(span);
        Box::pin(async move {
            let mut response = compression::finish(answer.await, needs_length).await;
            let status = response.status();
            observe.complete(response.headers_mut(), &id);
            let notes = AnswerNotes::of_mut(response.extensions_mut());
            let took = (!notes.untimed).then(|| line.elapsed());
            observe.meters.count(&measured, status, took, notes.principal.as_deref());
            Ok(line.end_with(response))
        })
    }
}
