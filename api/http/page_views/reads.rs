//! Reading page views.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;

use super::params::{BucketParams, SeriesParams, TopParams};
use super::views::{BucketView, SeriesView, TopView};
use crate::http::api::Api;
use crate::http::cache::reading::Reading;
use crate::http::places::Places;
use crate::http::problem::{BucketProblems, Kind, Problem, ReadProblems};
use crate::store;

/// Show the views of a page over time
///
/// Returns one point for each second, minute, hour or day of UTC, from `from` until before `to`, including points
/// without views. Both ends are rounded outward to whole units, and the answer states them. At most 10,000 points. Only
/// a few series of more than 10,000 minutes and lists of the most viewed pages may run at the same time; further ones
/// get 503.
#[utoipa::path(
    get,
    path = "/v1/page-views",
    operation_id = "getPageViews",
    tag = "Views",
    params(SeriesParams),
    responses(
        (
            status = 200, description = "The series, its total and its busiest point.", body = SeriesView,
            headers(("Server-Timing" = String, description = "`db`: milliseconds spent waiting for the database.")),
            example = json!({
                "path": "/index.htm", "resolution": "minute", "from": "2014-01-01T10:01:00.000Z", "to": "2014-01-01T10:03:00.000Z",
                "totalViews": 17, "busiest": { "at": "2014-01-01T10:01:00.000Z", "views": 17 },
                "points": [{ "at": "2014-01-01T10:01:00.000Z", "views": 17 }, { "at": "2014-01-01T10:02:00.000Z", "views": 0 }]
            })
        ),
        ReadProblems,
    ),
)]
pub async fn series(
    State(api): State<Arc<Api>>,
    SeriesParams { path, span }: SeriesParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let (views, deadline) = (api.store.page_views().clone(), reading.deadline);
    let series = if span.is_long() {
        let path = path.clone();
        let work = async move { views.series(&path, span, deadline).await };
        reading.database(scan(&api.scans, work)).await?
    } else {
        reading.database(views.series(&path, span, deadline)).await?
    };
    Ok(reading.untagged(Json(SeriesView::new(path, &series))))
}

/// Read the bucket of a minute
///
/// Returns the bucket as it is stored: the views of one page in one minute of UTC, by second. Seconds without views are
/// absent, or 0 if the minute was preallocated.
#[utoipa::path(
    get,
    path = "/v1/page-views/buckets",
    operation_id = "getPageViewBucket",
    tag = "Views",
    params(BucketParams),
    responses(
        (
            status = 200, description = "The bucket.", body = BucketView,
            headers(("Server-Timing" = String, description = "`db`: milliseconds spent waiting for the database.")),
            example = json!({
                "path": "/index.htm", "timestamp": "2014-01-01T10:01:00.000Z", "totalViews": 17, "seconds": { "2": 14, "14": 3 }
            })
        ),
        BucketProblems,
    ),
)]
pub async fn bucket(
    State(api): State<Arc<Api>>,
    BucketParams { path, minute }: BucketParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let bucket = api.store.page_views().bucket(&path, minute, reading.deadline);
    let bucket = reading.database(bucket).await?;
    let missing = || Problem::new(Kind::BucketNotFound, "There is no bucket for this page and minute.");
    Ok(reading.untagged(Json(BucketView::new(bucket.ok_or_else(missing)?))))
}

/// List the pages with the most views
///
/// Lists pages by their views from `from` until before `to`, both rounded outward to whole minutes of UTC. Pages with
/// equal views are in byte order of their paths. The cost grows with the number of pages and minutes with views in the
/// span. Only a few of these lists and series of more than 10,000 minutes may run at the same time; further ones get
/// 503.
#[utoipa::path(
    get,
    path = "/v1/page-views/top",
    operation_id = "listTopPages",
    tag = "Views",
    params(TopParams),
    responses(
        (
            status = 200, description = "The pages, with the most views first.", body = TopView,
            headers(("Server-Timing" = String, description = "`db`: milliseconds spent waiting for the database.")),
            example = json!({
                "from": "2014-01-01T10:00:00.000Z", "to": "2014-01-01T11:00:00.000Z",
                "items": [{ "path": "/index.htm", "totalViews": 17 }, { "path": "/shop", "totalViews": 1 }]
            })
        ),
        ReadProblems,
    ),
)]
pub async fn top(
    State(api): State<Arc<Api>>,
    TopParams { from, to, limit }: TopParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let (views, deadline) = (api.store.page_views().clone(), reading.deadline);
    let work = async move { views.top(from, to, limit, deadline).await };
    let pages = reading.database(scan(&api.scans, work)).await?;
    Ok(reading.untagged(Json(TopView::new(from, to, pages))))
}

/// Runs a read that may take long, if a place is free. The place stays taken until the database has answered, even if
/// the client disconnects, because the database works on.
async fn scan<T: Send + 'static>(
    places: &Places,
    work: impl Future<Output = Result<T, store::Error>> + Send + 'static,
) -> Result<T, Problem> {
    let place = places.take()?;
    let work = tokio::spawn(async move {
        let _place = place;
        work.await
    });
    match work.await {
        Ok(found) => Ok(found?),
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}
