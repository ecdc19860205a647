//! Counting page views.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;

use super::new_views::{MOST_VIEWS, NewPageView, NewPageViews};
use super::params::CountParams;
use crate::domain::{PageView, parse_views, parse_views_by_line};
use crate::http::api::Api;
use crate::http::body::{JSON, NDJSON, expect, read};
use crate::http::deadline::RequestDeadline;
use crate::http::problem::{CountProblems, Kind, Problem};

/// Parses the body of a count: at least one view.
async fn views(request: Request, api: &Api) -> Result<Vec<PageView>, Problem> {
    let media_type = expect(request.headers(), &[JSON, NDJSON])?;
    let bytes = read(request.into_body(), api.limits).await?;
    // Read after the body, so that views in a slow body are dated when it has ended.
    let now = api.clock.now();
    if media_type == NDJSON {
        let views = parse_views_by_line(&bytes, now);
        return views.map_err(|faults| Problem::invalid_body(Kind::InvalidPageView, &faults));
    }
    let views = parse_views(&bytes, MOST_VIEWS, now);
    views.map_err(|error| Problem::of_draft(Kind::InvalidPageView, error))
}

/// Count page views
///
/// Counts one or more views, of one or more pages. The answer is 204 when they are counted durably, on a majority of
/// the database's nodes. If the body has a fault, nothing is counted, and the answer lists its faults. As
/// `application/x-ndjson` the body may have as many lines as fit into the longest body.
///
/// An `Idempotency-Key` is refused (400): a counter keeps nothing that identifies a repeat. If the answer is lost, or
/// does not say that nothing was counted, do not send the request again: its views are then counted at most once.
#[utoipa::path(
    post,
    path = "/v1/page-views",
    operation_id = "countPageViews",
    tag = "Views",
    request_body(
        description = "One page view, or an array of 1 to 1,000; or one JSON object a line. Blank lines are ignored.",
        content(
            (NewPageViews = "application/json", examples(
                ("one" = (summary = "One view, now", value = json!({ "path": "/index.htm" }))),
                ("many" = (summary = "Dated views of two pages", value = json!([
                    { "path": "/index.htm", "at": "2014-01-01T10:01:14.000Z", "views": 3 },
                    { "path": "/shop", "at": "2014-01-01T10:01:15.250Z" }
                ])))
            )),
            (NewPageView = "application/x-ndjson", example = json!({ "path": "/index.htm", "views": 3 }))
        )
    ),
    responses(
        (status = 204, description = "The views are counted durably."),
        CountProblems,
    ),
)]
pub async fn count(
    State(api): State<Arc<Api>>,
    CountParams: CountParams,
    RequestDeadline(deadline): RequestDeadline,
    request: Request,
) -> Result<StatusCode, Problem> {
    let views = views(request, &api).await?;
    let all = views.iter().map(|view| u64::from(view.views)).sum();
    let counted = api.store.page_views().count(views, deadline).await;
    counted.map(|()| StatusCode::NO_CONTENT).map_err(|error| Problem::of_count(error, all))
}
