//! Admission of requests under `/v1`: how many at once, what their clients accept, and how long they may take. The
//! [`Policy`] of each route decides.
//!
//! Uploads have places of their own. However many there are, and however slow their clients are, they keep no other
//! requests out. (An export has one of `--max-requests` until its answer begins, and one of `--max-exports` until it
//! ends.)

use std::convert::Infallible;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use super::accept;
use super::around::{Answer, Around, AroundLayer};
use crate::http::body;
use crate::http::deadline::{self, REQUEST};
use crate::http::places::{LongPlace, Place, Places};
use crate::http::problem::{Kind, Problem};

/// What a route answers, and how long that may take. It is given where the route is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// JSON, within the time of a request.
    Json,
    /// The same, unless the request is a POST of lines. That is an upload: it takes as long as its client keeps its
    /// pace, and is answered line by line if `Accept` asks for lines.
    JsonOrUpload,
    /// Rows that are streamed, in a media type that the handler chooses. The answer begins within the time of a
    /// request.
    Rows,
}

impl Policy {
    fn is_upload(self, request: &Request) -> bool {
        self == Self::JsonOrUpload && request.method() == Method::POST && body::is_lines(request.headers())
    }

    fn is_streamed(self, request: &Request, upload: bool) -> bool {
        self == Self::Rows || upload && accept::takes_lines(request.headers())
    }
}

/// Answers 503 at once if the limit of concurrent requests is reached.
pub async fn under_way(State(places): State<Places>, request: Request, next: Next) -> Response {
    match places.take() {
        Ok(_place) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Admits requests. Answers 503 at once if the service is stopping (earlier requests continue) or has no free place,
/// and 406 or 505 if the client cannot take the answer. Gives every request its deadline, which handlers pass to the
/// store.
#[derive(Clone)]
pub struct Admission {
    /// Cancelled when the service stops.
    pub stop: CancellationToken,
    /// The places of requests, uploads aside.
    pub requests: Places,
    pub uploads: Places,
    /// Of the routes inside: [`Admission::layer`] sets it.
    pub policy: Policy,
}

impl Admission {
    /// The layer for routes with this policy.
    pub fn layer(&self, policy: Policy) -> AroundLayer<Self> {
        AroundLayer(Self { policy, ..self.clone() })
    }

    fn admit(&self, request: &Request, upload: bool) -> Result<Place, Problem> {
        if self.stop.is_cancelled() {
            return Err(Problem::stopping());
        }
        let place = if upload { &self.uploads } else { &self.requests }.take()?;
        accept::takes_answer(request, self.policy.is_streamed(request, upload))?;
        Ok(place)
    }
}

impl<S> Around<S> for Admission
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send + 'static>,
{
    type Response = Response;

    fn call(&self, inner: &mut S, mut request: Request) -> Answer<Response> {
        let upload = self.policy.is_upload(&request);
        let place = match self.admit(&request, upload) {
            Ok(place) => place,
            Err(problem) => return std::future::ready(Ok(problem.into_response())).boxed(),
        };
        request.extensions_mut().insert(deadline::from_now());
        if upload {
            request.extensions_mut().insert(LongPlace::new(place));
            return inner.call(request).boxed();
        }
        let answer = tokio::time::timeout(REQUEST, inner.call(request));
        Box::pin(async move {
            let _place = place;
            answer.await.unwrap_or_else(|_elapsed| {
                let late = "The request took longer than the time limit.";
                Ok(Problem::new(Kind::TimedOut, late).into_response())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::header;

    use super::*;

    #[test]
    fn an_upload_is_a_post_of_lines_to_a_route_that_takes_uploads() {
        for (policy, method, media_type, upload) in [
            (Policy::JsonOrUpload, Method::POST, "application/x-ndjson", true),
            (Policy::JsonOrUpload, Method::POST, " Application/X-NDJSON ; charset=utf-8", true),
            (Policy::JsonOrUpload, Method::POST, "application/json", false),
            (Policy::JsonOrUpload, Method::GET, "application/x-ndjson", false),
            (Policy::Json, Method::POST, "application/x-ndjson", false),
            (Policy::Rows, Method::POST, "application/x-ndjson", false),
        ] {
            let request = Request::builder().method(&method).header(header::CONTENT_TYPE, media_type);
            let request = request.body(Body::empty()).unwrap();
            assert_eq!(policy.is_upload(&request), upload, "{policy:?} {method} {media_type}");
        }
    }

    #[test]
    fn an_upload_is_streamed_where_its_client_asks_for_lines() {
        for (policy, upload, accept, streamed) in [
            (Policy::Json, false, "application/x-ndjson", false),
            (Policy::JsonOrUpload, false, "application/x-ndjson", false),
            (Policy::JsonOrUpload, true, "application/json", false),
            (Policy::JsonOrUpload, true, "application/x-ndjson", true),
            (Policy::Rows, false, "*/*", true),
        ] {
            let request = Request::builder().header(header::ACCEPT, accept).body(Body::empty()).unwrap();
            assert_eq!(policy.is_streamed(&request, upload), streamed, "{policy:?} {upload} {accept}");
        }
    }
}
