//! What is measured of requests, and the answer to `GET /metrics`.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, Method, header};
use axum::middleware::Next;
use axum::response::Response;

use super::Api;

/// Requests answered, by method, route and status.
pub const REQUESTS: &str = "pagebucket_http_requests_total";
/// Seconds until the head of the answer, by method and route.
pub const REQUEST_SECONDS: &str = "pagebucket_http_request_duration_seconds";

/// Pages asked of the page cache, by whether they were there.
pub const PAGE_LOOKUPS: &str = "pagebucket_page_cache_lookups_total";
/// What the pages remembered take.
pub const PAGE_BYTES: &str = "pagebucket_page_cache_bytes";
/// How many they are.
pub const PAGES_CACHED: &str = "pagebucket_page_cache_pages";

/// Exports that are over, by how they ended.
pub const EXPORTS: &str = "pagebucket_exports_total";
/// Trades in them.
pub const EXPORTED: &str = "pagebucket_exported_trades_total";

/// The media type of Prometheus' text format, version 0.0.4.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Renders all that this process has measured, in Prometheus' text format.
#[derive(Clone)]
pub struct Metrics(Arc<dyn Fn() -> String + Send + Sync>);

impl Metrics {
    /// `render` is called for every `GET /metrics`.
    pub fn new(render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(render))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// What has been measured
///
/// In Prometheus' text format.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "getMetrics",
    tag = "Probes",
    responses(
        (
            status = 200, description = "The measurements.", body = String, content_type = "text/plain",
            example = json!("pagebucket_http_requests_total{method=\"GET\",route=\"/livez\",status=\"200\"} 1\n")
        ),
    ),
)]
pub async fn expose(State(api): State<Api>) -> ([(HeaderName, &'static str); 1], String) {
    api.pages.measure().await;
    ([(header::CONTENT_TYPE, TEXT)], (api.metrics.0)())
}

/// Leaves the route on the answer, where [`count`], outside of the routes, finds it.
pub(super) async fn tell_route(route: MatchedPath, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.extensions_mut().insert(route);
    response
}

/// Counts the request. Routes and methods are of a fixed number, whatever a client sends.
pub(super) async fn count(request: Request, next: Next) -> Response {
    let method = match *request.method() {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    };
    let started = Instant::now();
    let response = next.run(request).await;
    let route = response.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let status = response.status().as_u16().to_string();
    metrics::histogram!(REQUEST_SECONDS, "method" => method, "route" => route.clone())
        .record(started.elapsed().as_secs_f64());
    metrics::counter!(REQUESTS, "method" => method, "route" => route, "status" => status).increment(1);
    response
}
