//! Preallocation: creating the buckets of minutes before they are needed.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;

use super::new_views::NewPreallocation;
use super::params::NoParams;
use super::views::PreallocatedView;
use crate::domain::parse_preallocation;
use crate::http::api::Api;
use crate::http::body::{JSON, expect, read};
use crate::http::deadline::RequestDeadline;
use crate::http::problem::{Kind, PreallocationProblems, Problem};

/// Preallocate an hour of a page
///
/// Creates the sixty minute buckets of an hour of UTC, without views, so that counting finds them. Existing buckets
/// stay as they are: a repeat, or a count at the same time, loses no views. The answer is 201 if any bucket was
/// created, and 200 if all existed.
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
            status = 201, description = "At least one bucket was created, durably.", body = PreallocatedView,
            example = json!({ "path": "/index.htm", "hour": "2014-01-01T10:00:00.000Z", "created": 60, "existing": 0 })
        ),
        (
            status = 200, description = "All buckets existed.", body = PreallocatedView,
            example = json!({ "path": "/index.htm", "hour": "2014-01-01T10:00:00.000Z", "created": 0, "existing": 60 })
        ),
        PreallocationProblems,
    ),
)]
pub async fn preallocate(
    State(api): State<Arc<Api>>,
    _: NoParams,
    RequestDeadline(deadline): RequestDeadline,
    request: Request,
) -> Result<(StatusCode, Json<PreallocatedView>), Problem> {
    expect(request.headers(), &[JSON])?;
    let bytes = read(request.into_body(), api.limits).await?;
    let wanted = parse_preallocation(&bytes, api.clock.now());
    let wanted = wanted.map_err(|error| Problem::of_draft(Kind::InvalidPageView, error))?;
    let done = api.store.page_views().preallocate(&wanted, deadline).await;
    let done = done.map_err(Problem::of_preallocation)?;
    let status = if done.created > 0 { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(PreallocatedView::new(wanted, done))))
}
