//! Probes for whoever runs the service.

use std::sync::Arc;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::problem::{ProbeProblems, Problem, ReadyProblems};

/// In which the database must answer for the service to be ready.
const PING: Duration = Duration::from_secs(2);

/// All is well.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// Always `ok`.
    status: &'static str,
}

const OK: Json<Health> = Json(Health { status: "ok" });

/// Is the process alive?
///
/// Asks nothing of the database.
#[utoipa::path(
    get,
    path = "/livez",
    operation_id = "livez",
    tag = "Probes",
    responses(
        (status = 200, description = "It is.", body = Health, example = json!({ "status": "ok" })),
        ProbeProblems,
    ),
)]
pub async fn livez() -> Json<Health> {
    OK
}

/// Can it serve requests?
///
/// The process is not stopping, and its database answers.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "readyz",
    tag = "Probes",
    responses(
        (status = 200, description = "It can.", body = Health, example = json!({ "status": "ok" })),
        ReadyProblems,
    ),
)]
pub async fn readyz(State(api): State<Arc<Api>>) -> Result<Json<Health>, Problem> {
    if !api.ready.get() {
        return Err(Problem::stopping());
    }
    api.store.ping(PING).await?;
    Ok(OK)
}
