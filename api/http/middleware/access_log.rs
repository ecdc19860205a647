//! One event a request, with its id, in target `pagebucket::access`.

use std::time::Duration;

use axum::extract::Request;
use axum::http::{Method, StatusCode, Uri};
use tracing::Span;

use super::request_id::RequestId;

/// What the log says of a request, except its answer.
pub struct Line {
    id: RequestId,
    method: Method,
    uri: Uri,
}

impl Line {
    /// The line of a request that is not answered yet.
    pub fn of(id: RequestId, request: &Request) -> Self {
        Self { id, method: request.method().clone(), uri: request.uri().clone() }
    }

    /// The span of everything that is done for the request.
    pub fn span(&self) -> Span {
        tracing::info_span!("request", id = self.id.as_str())
    }

    /// Writes the event.
    pub fn write(&self, status: StatusCode, took: Duration) {
        tracing::info!(
            target: "pagebucket::access",
            id = self.id.as_str(),
            method = %self.method,
            path = self.uri.path(),
            status = status.as_u16(),
            milliseconds = took.as_secs_f64() * 1000.0,
        );
    }
}
