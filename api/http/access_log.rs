//! One event a request, with its id, in target `pagebucket::access`.

use std::time::Instant;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use super::request_id::RequestId;

pub(super) async fn log(request: Request, next: Next) -> Response {
    let id = request.extensions().get::<RequestId>().cloned().unwrap_or_default();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let started = Instant::now();
    let span = tracing::info_span!("request", id = id.as_str());
    let response = next.run(request).instrument(span).await;
    tracing::info!(
        target: "pagebucket::access",
        id = id.as_str(),
        %method,
        path,
        status = response.status().as_u16(),
        milliseconds = started.elapsed().as_secs_f64() * 1000.0,
    );
    response
}
