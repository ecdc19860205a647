//! Minutes that are there before they are needed.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};

use super::body::PreallocationBody;
use super::new_views::NewPreallocation;
use super::views::PreallocatedView;
use crate::http::Api;
use crate::http::params::NoParams;
use crate::http::problem::{PreallocationProblems, Problem};
use crate::store::Deadline;

/// Preallocate an hour of a page
///
/// Makes the sixty minutes of an hour of UTC, without views, so that counting in them finds them there. Those that
/// are there already stay as they are: to ask again, or while views are counted, loses none. 201 when any was made,
/// 200 when all were there.
#[utoipa::path(
    post,
    path = "/v1/page-views/preallocations",
    operation_id = "preallocatePageViews",
    tag = "Views",
    request_body(
        content = NewPreallocation, content_type = "application/json",
        example = json!({ "path": "/index.htm", "hour": "2014-01-01T10:00:00.000Z" })
    ),
    responses(
        (
            status = 201, description = "Some minutes were made, durably.", body = PreallocatedView,
            example = json!({ "path": "/index.htm", "hour": "2014-01-01T10:00:00.000Z", "created": 60, "existing": 0 })
        ),
        (
            status = 200, description = "All of them were there.", body = PreallocatedView,
            example = json!({ "path": "/index.htm", "hour": "2014-01-01T10:00:00.000Z", "created": 0, "existing": 60 })
        ),
        PreallocationProblems,
    ),
)]
pub async fn preallocate(
    State(api): State<Arc<Api>>,
    _: NoParams,
    Extension(deadline): Extension<Deadline>,
    PreallocationBody(wanted): PreallocationBody,
) -> Result<(StatusCode, Json<PreallocatedView>), Problem> {
    let done = api.store.page_views().preallocate(&wanted, deadline).await;
    let done = done.map_err(Problem::of_preallocation)?;
    let status = if done.created > 0 { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(PreallocatedView::new(wanted, done))))
}
