//! Counting page views, and creating their buckets before they are needed.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use pagebucket_model::domain::{DraftError, Instant};
use pagebucket_page_views::{
    Minute, PagePath, PageView, Preallocated, parse_preallocation, parse_view_batch, parse_views,
    parse_views_by_line,
};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::schema::ObjectBuilder;

use crate::admission::accept::{JSON, NDJSON};
use crate::admission::context::Granted;
use crate::problem::ProblemKind::{self, BodyTooLarge, InvalidPageView, PartlyStored};
use crate::problem::{BODY, COMMON, Problem, problems};
use crate::request::body::{expect, read, upload_below, upload_beside};
use crate::request::params::{IDEMPOTENCY_KEY, ParameterReader};
use crate::schemas::document::{Documented, RouteDocument, content, titled};
use crate::schemas::names::Names;
use crate::schemas::{date_time, instant, many, new_date, page_path, whole};
use crate::state::Api;

/// The most page views in an array.
const MOST_VIEWS: usize = 1_000;

/// Buckets of a preallocated hour.
const MINUTES: usize = 60;

/// The problems of counting.
const COUNTING: &[&[ProblemKind]] = &[COMMON, &[PartlyStored], BODY, &[BodyTooLarge, InvalidPageView]];

pub(crate) fn document_of_count(names: &Names<'_>) -> Documented {
    let view = json!({ "path": "/index.htm" });
    RouteDocument::of(
        names,
        "countPageViews",
        "Count page views",
        "Counts one or more views of one page. The answer is 204 when they are counted durably, on a \
        majority of the database's nodes. If the body has a fault, nothing is counted, and the answer \
        lists its faults.\n\n\
        An array is taken here, too, as `countPageViewBatch` takes it.\n\n\
        An `Idempotency-Key` is refused (400): a counter keeps nothing that identifies a repeat. If \
        the answer is lost, or does not say that nothing was counted, do not send the request again: its \
        views are then counted at most once.",
    )
    .takes::<PageViewInput>(JSON, "The views of a page at one moment.", |one| {
        titled(one, ("one", "One view, now"), Some(view))
    })
    .answers(204, "The views are counted durably.")
    .problems(problems(names, COUNTING))
}

pub(crate) async fn count(State(api): State<Arc<Api>>, request: Request) -> Result<StatusCode, Problem> {
    let parse = |body: &[u8], now| parse_views(body, MOST_VIEWS, now).map_err(invalid);
    count_body(&api, request, JSON, upload_below, parse).await
}

pub(crate) fn document_of_batch(names: &Names<'_>) -> Documented {
    let views = json!([
        { "path": "/index.htm", "views": 3 }, { "path": "/shop", "at": "2014-01-01T10:01:15.250Z" }
    ]);
    RouteDocument::of(
        names,
        "countPageViewBatch",
        "Count an array of page views",
        "Counts views as `countPageViews` does, of one or more pages.",
    )
    .takes::<PageViewInput>(JSON, "An array of 1 to 1,000 page views.", |one| {
        titled(many(one, MOST_VIEWS), ("many", "Views of two pages, now and dated"), Some(views))
    })
    .answers(204, "The views are counted durably.")
    .problems(problems(names, COUNTING))
}

pub(crate) async fn count_batch(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<StatusCode, Problem> {
    let parse = |body: &[u8], now| parse_view_batch(body, MOST_VIEWS, now).map_err(invalid);
    count_body(&api, request, JSON, upload_beside, parse).await
}

fn invalid(error: DraftError) -> Problem {
    Problem::of_draft(ProblemKind::InvalidPageView, error)
}

pub(crate) fn document_of_upload(names: &Names<'_>) -> Documented {
    let line = json!({ "path": "/index.htm", "at": "2014-01-01T10:01:14.000Z", "views": 3 });
    RouteDocument::of(
        names,
        "uploadPageViews",
        "Upload page views",
        "Counts views as `countPageViews` does, one a line: as many as fit into the longest body.",
    )
    .takes::<PageViewInput>(NDJSON, "One JSON object a line. Blank lines are ignored.", |view| {
        content(view, line)
    })
    .answers(204, "The views are counted durably.")
    .problems(problems(names, COUNTING))
}

pub(crate) async fn upload(State(api): State<Arc<Api>>, request: Request) -> Result<StatusCode, Problem> {
    let parse = |body: &[u8], now| {
        parse_views_by_line(body, now)
            .map_err(|faults| Problem::invalid_body(ProblemKind::InvalidPageView, &faults))
    };
    count_body(&api, request, NDJSON, |_| String::new(), parse).await
}

/// Counts the views of a body of this media type. `advice` may say where to send others.
async fn count_body(
    api: &Api,
    request: Request,
    media_type: &str,
    advice: fn(&Uri) -> String,
    parse: impl FnOnce(&[u8], Instant) -> Result<Vec<PageView>, Problem>,
) -> Result<StatusCode, Problem> {
    let Granted { deadline, quota } = Granted::of(request.extensions());
    let (parts, body) = request.into_parts();
    let mut reader = ParameterReader::of(&parts);
    if parts.headers.contains_key(IDEMPOTENCY_KEY) {
        reader.refuse(
            "Idempotency-Key",
            "is not supported here: a counter keeps nothing that identifies a repeat, so a request that is sent \
             again is counted again",
        );
    }
    reader.finish()?;
    expect(&parts.headers, media_type, || advice(&parts.uri))?;
    let bytes = read(body, api.limits).await?;
    // The clock is read after the body, so that views in a slow body are dated when it has ended.
    let views = parse(&bytes, api.clock.now())?;
    if quota.is_limited() {
        // The documents that are written.
        let buckets: HashSet<_> = views.iter().map(|view| (&view.path, Minute::of(view.at))).collect();
        quota.charge(buckets.len())?;
    }
    let all = views.iter().map(|view| u64::from(view.views)).sum();
    let counted = api.page_views.count(views, deadline).await;
    counted.map(|()| StatusCode::NO_CONTENT).map_err(|error| Problem::of_count(error, all))
}

pub(crate) fn document_of_preallocation(names: &Names<'_>) -> Documented {
    let hour = json!({ "path": "/index.htm", "hour": "2014-01-01T10:00:00.000Z" });
    let result = |created: u32, existing: u32| json!({ "path": "/index.htm", "hour": "2014-01-01T10:00:00.000Z", "created": created, "existing": existing });
    RouteDocument::of(
        names,
        "preallocatePageViews",
        "Preallocate an hour of a page",
        "Creates the sixty minute buckets of an hour of UTC, without views, so that counting finds them. \
        Existing buckets stay as they are: a repeat, or a count at the same time, loses no views. The \
        answer is 201 if any bucket was created, and 200 if all existed.",
    )
    .takes::<PreallocationInput>(JSON, "", |one| content(one, hour))
    .answers(201, "At least one bucket was created, durably.")
    .shows::<PreallocatedView>(JSON, result(60, 0))
    .answers(200, "All buckets existed.")
    .shows::<PreallocatedView>(JSON, result(0, 60))
    .problems(problems(names, &[COMMON, BODY, &[BodyTooLarge, InvalidPageView]]))
}

pub(crate) async fn preallocate(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<(StatusCode, Json<PreallocatedView>), Problem> {
    let Granted { deadline, quota } = Granted::of(request.extensions());
    let (parts, body) = request.into_parts();
    ParameterReader::of(&parts).finish()?;
    expect(&parts.headers, JSON, String::new)?;
    let bytes = read(body, api.limits).await?;
    let wanted = parse_preallocation(&bytes, api.clock.now());
    let wanted = wanted.map_err(invalid)?;
    quota.charge(MINUTES)?;
    let done = api.page_views.preallocate(&wanted, deadline).await;
    let Preallocated { created, existing } = done.map_err(Problem::of_preallocation)?;
    let status = if created > 0 { StatusCode::CREATED } else { StatusCode::OK };
    let (path, hour) = (wanted.path, wanted.hour.start());
    Ok((status, Json(PreallocatedView { path, hour, created, existing })))
}

/// Result of a preallocation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Preallocation)]
pub(crate) struct PreallocatedView {
    #[schema(schema_with = page_path)]
    path: PagePath,
    /// When the hour begins.
    #[schema(schema_with = instant)]
    hour: Instant,
    /// Number of buckets that were created.
    #[schema(minimum = 0, maximum = 60)]
    created: u32,
    /// Number of buckets that existed, and were not changed.
    #[schema(minimum = 0, maximum = 60)]
    existing: u32,
}

/// Views of a page at one moment. `at` may be at most 24 hours ahead of the server's clock; `views` is 1 by
/// default.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({ "path": "/index.htm", "at": "2014-01-01T10:01:14.000Z", "views": 3 })))]
#[expect(dead_code, reason = "only the schema of a body that is checked by hand")]
struct PageViewInput {
    #[schema(schema_with = page_path)]
    path: (),
    #[schema(schema_with = new_date, required = false)]
    at: (),
    #[schema(schema_with = views, required = false)]
    views: (),
}

fn views() -> ObjectBuilder {
    whole(1, u64::from(PageView::MOST_VIEWS)).default(Some(1.into()))
}

/// A page, and the hour to preallocate: a whole hour of UTC, at most 366 days ahead.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({ "path": "/index.htm", "hour": "2014-01-01T10:00:00.000Z" })))]
#[expect(dead_code, reason = "only the schema of a body that is checked by hand")]
struct PreallocationInput {
    #[schema(schema_with = page_path)]
    path: (),
    #[schema(schema_with = date_time)]
    hour: (),
}
