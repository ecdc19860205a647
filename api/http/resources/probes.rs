//! Probes for operators: whether the service is alive and ready, and what it has measured.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, header};
use pagebucket_model::metric::UPLOAD_BYTES;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::admission::accept::JSON;
use crate::problem::ProblemKind::{self, DatabaseUnavailable, Internal, ShuttingDown};
use crate::problem::{Problem, problems};
use crate::schemas::document::{Documented, RouteDocument};
use crate::schemas::names::Names;
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

pub(crate) fn document_of_livez(names: &Names<'_>) -> Documented {
    RouteDocument::of(names, "livez", "Check that the process is alive", "Does not access the database.")
        .answers(200, "The process is alive.")
        .shows::<Health>(JSON, json!({ "status": "ok" }))
        .problems(problems(names, &[&[Internal]]))
}

pub(crate) async fn livez() -> Json<Health> {
    OK
}

pub(crate) fn document_of_readyz(names: &Names<'_>) -> Documented {
    RouteDocument::of(
        names,
        "readyz",
        "Check that the service is ready",
        "The service is ready if it is not stopping, all of its tasks run, and its database answers.",
    )
    .answers(200, "The service is ready.")
    .shows::<Health>(JSON, json!({ "status": "ok" }))
    .problems(problems(names, &[&[Internal, DatabaseUnavailable, ShuttingDown]]))
}

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

pub(crate) fn document_of_metrics(names: &Names<'_>) -> Documented {
    let line = "pagebucket_http_requests_total{method=\"GET\",route=\"/livez\",status=\"200\"} 1\n";
    RouteDocument::of(
        names,
        "getMetrics",
        "Read the metrics",
        "Returns the metrics of this process in Prometheus' text format.",
    )
    .answers(200, "The metrics.")
    .text("text/plain", json!(line))
    .problems(problems(names, &[&[Internal]]))
}

pub(crate) async fn metrics(State(api): State<Arc<Api>>) -> ([(HeaderName, &'static str); 1], String) {
    api.pages.measure().await;
    if let Some(rates) = &api.clients.rates {
        rates.measure();
    }
    ::metrics::gauge!(UPLOAD_BYTES).set(api.uploads.budget.held() as f64);
    ([(header::CONTENT_TYPE, TEXT)], (api.metrics)())
}
