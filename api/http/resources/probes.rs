//! Probes for operators: whether the service is alive and ready, and what it has measured.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, header};
use pagebucket_model::metric::UPLOAD_BYTES;
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::{ProbeProblems, Problem, ProblemKind, ReadyProblems};
use crate::state::Api;

/// The media type of Prometheus' text format, version 0.0.4.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Time within which the database must answer for the service to be ready.
const PING: Duration = Duration::from_secs(2);

/// The answer of a probe that succeeds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    #[schema(pattern = "^ok$", max_length = 2)]
    status: &'static str,
}

const OK: Json<Health> = Json(Health { status: "ok" });

/// Check that the process is alive
///
/// Does not access the database.
#[utoipa::path(
    get,
    path = "/livez",
    operation_id = "livez",
    responses(
        (status = 200, description = "The process is alive.", body = Health, example = json!({ "status": "ok" })),
        ProbeProblems,
    ),
)]
pub(crate) async fn livez() -> Json<Health> {
    OK
}

/// Check that the service is ready
///
/// The service is ready if it is not stopping, all of its tasks run, and its database answers.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "readyz",
    responses(
        (status = 200, description = "The service is ready.", body = Health, example = json!({ "status": "ok" })),
        ReadyProblems,
    ),
)]
pub(crate) async fn readyz(State(api): State<Arc<Api>>) -> Result<Json<Health>, Problem> {
    if api.leaving.load(Ordering::Relaxed) {
        return Err(Problem::stopping());
    }
    if let Some(task) = api.store.tasks().down() {
        return Err(Problem::new(
            ProblemKind::Internal,
            format!("The task {task} has failed. It is started again."),
        ));
    }
    api.store.ping(PING).await?;
    Ok(OK)
}

/// Read the metrics
///
/// Returns the metrics of this process in Prometheus' text format.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "getMetrics",
    responses(
        (
            status = 200, description = "The metrics.", body = String, content_type = "text/plain",
            example = json!("pagebucket_http_requests_total{method=\"GET\",route=\"/livez\",status=\"200\"} 1\n")
        ),
        ProbeProblems,
    ),
)]
pub(crate) async fn metrics(State(api): State<Arc<Api>>) -> ([(HeaderName, &'static str); 1], String) {
    api.pages.measure().await;
    if let Some(rates) = &api.clients.rates {
        rates.measure();
    }
    ::metrics::gauge!(UPLOAD_BYTES).set(api.uploads.budget.held() as f64);
    ([(header::CONTENT_TYPE, TEXT)], (api.metrics)())
}
