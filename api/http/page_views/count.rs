//! Counting.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;

use super::body::ViewsBody;
use super::new_views::{NewPageView, NewPageViews};
use crate::http::Api;
use crate::http::params::CountParams;
use crate::http::problem::{CountProblems, Problem};
use crate::store::Deadline;

/// Count page views
///
/// Counts one view, or several, of one page or many. 204 is sent once they are counted durably, on a majority of
/// the database's nodes. Of a body with one fault nothing is counted, and all its faults are told. As
/// `application/x-ndjson` there are as many lines as fit into the longest body.
///
/// An `Idempotency-Key` is refused (400): a counter keeps nothing by which a repeat could be recognised. A count that
/// was not acknowledged, and of which it is not said that nothing was counted, is counted at most once if it is not
/// sent again.
#[utoipa::path(
    post,
    path = "/v1/page-views",
    operation_id = "countPageViews",
    tag = "Views",
    request_body(
        description = "One page view, or an array of 1 to 1,000; or one JSON object a line, where blank lines are passed over.",
        content(
            (NewPageViews = "application/json", examples(
                ("one" = (summary = "One view, now", value = json!({ "path": "/index.htm" }))),
                ("many" = (summary = "Views of two pages, at their time", value = json!([
                    { "path": "/index.htm", "at": "2014-01-01T10:01:14.000Z", "views": 3 },
                    { "path": "/shop", "at": "2014-01-01T10:01:15.250Z" }
                ])))
            )),
            (NewPageView = "application/x-ndjson", example = json!({ "path": "/index.htm", "views": 3 }))
        )
    ),
    responses(
        (status = 204, description = "Counted, durably."),
        CountProblems,
    ),
)]
pub async fn count(
    State(api): State<Arc<Api>>,
    CountParams: CountParams,
    Extension(deadline): Extension<Deadline>,
    ViewsBody(views): ViewsBody,
) -> Result<StatusCode, Problem> {
    let all = views.iter().map(|view| u64::from(view.views)).sum();
    let counted = api.store.page_views().count(views, deadline).await;
    counted.map(|()| StatusCode::NO_CONTENT).map_err(|error| Problem::of_count(error, all))
}
