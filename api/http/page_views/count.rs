//! Counting.

use std::sync::Arc;

use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;

use super::new_views::{MOST_VIEWS, NewPageView, NewPageViews};
use super::params::CountParams;
use crate::domain::{PageView, parse_views, parse_views_by_line};
use crate::http::api::Api;
use crate::http::body::{JSON, NDJSON, expect, read};
use crate::http::deadline::RequestDeadline;
use crate::http::problem::{CountProblems, Kind, Problem};

/// What is to be counted: at least one view.
pub struct ViewsBody(pub Vec<PageView>);

impl FromRequest<Arc<Api>> for ViewsBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        let media_type = expect(request.headers(), &[JSON, NDJSON])?;
        let bytes = read(request.into_body(), api.limits).await?;
        // When all of it is here: a slow body is of the moment at which it ended.
        let now = api.clock.now();
        if media_type == NDJSON {
            let views = parse_views_by_line(&bytes, now);
            return views.map(Self).map_err(|faults| Problem::invalid_body(Kind::InvalidPageView, &faults));
        }
        parse_views(&bytes, MOST_VIEWS, now)
            .map(Self)
            .map_err(|error| Problem::of_draft(Kind::InvalidPageView, error))
    }
}

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
    RequestDeadline(deadline): RequestDeadline,
    ViewsBody(views): ViewsBody,
) -> Result<StatusCode, Problem> {
    let all = views.iter().map(|view| u64::from(view.views)).sum();
    let counted = api.store.page_views().count(views, deadline).await;
    counted.map(|()| StatusCode::NO_CONTENT).map_err(|error| Problem::of_count(error, all))
}
