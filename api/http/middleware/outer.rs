//! The outermost layer, for all requests: the id, the log line, the metrics, and the rest of the body.
//! One layer for all of it, because each costs every request an allocation.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use axum::http::{HeaderValue, Response, Version, header};
use tower_service::Service;
use tracing::Instrument;

use super::around::{Answer, Around};
use super::drain_body::{self, StillRead};
use super::measure::{Measured, Meters};
use super::request_id::{self, RequestId};
use crate::http::api::Limits;
use crate::http::cache::etag;

/// The layer.
#[derive(Clone)]
pub struct Outer(Arc<Shared>);

struct Shared {
    limits: Limits,
    meters: Meters,
}

impl Outer {
    /// The layer for bodies with these limits.
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared { limits, meters: Meters::default() }))
    }
}

impl<S, B> Around<S> for Outer
where
    S: Service<Request, Response = Response<B>, Error = Infallible>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;

    fn call(&self, inner: &mut S, mut request: Request) -> Answer<Response<B>> {
        let started = Instant::now();
        if request.version() < Version::HTTP_11 {
            // Compression removes the length of an answer, and HTTP/1.0 has nothing else that marks its end.
            request.headers_mut().remove(header::ACCEPT_ENCODING);
        }
        let id = RequestId::of(request.headers());
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let span = tracing::info_span!("request", id = id.as_str());
        request.extensions_mut().insert(id.clone());
        let measured = Measured::of(&request);
        let shared = Arc::clone(&self.0);
        let (request, rest) = drain_body::rest(request, shared.limits);
        let answer = span.in_scope(|| inner.call(request));
        let answer = async move {
            let response = answer.await;
            let still_read = |response: &Response<B>| response.extensions().get::<StillRead>().is_some();
            if let Some(rest) = rest
                && !response.as_ref().is_ok_and(still_read)
            {
                rest.read_and_dropped().await;
            }
            response
        };
        let answer = answer.instrument(span);
        Box::pin(async move {
            let mut response = answer.await?;
            let (status, took) = (response.status(), started.elapsed());
            let headers = response.headers_mut();
            etag::weaken(headers);
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            headers.insert(request_id::HEADER, id.header());
            shared.meters.count(&measured, status, took);
            tracing::info!(
                target: "pagebucket::access",
                id = id.as_str(),
                %method,
                path = uri.path(),
                status = status.as_u16(),
                milliseconds = took.as_secs_f64() * 1000.0,
            );
            Ok(response)
        })
    }
}
