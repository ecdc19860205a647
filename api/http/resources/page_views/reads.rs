//! Reading page views.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::Response;
use axum::{Extension, Json};
use futures_util::stream;
use pagebucket_engine as engine;
use pagebucket_model::domain::Instant;
use pagebucket_page_views::{MinuteBucket, PagePath, Resolution, SeriesSpan};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::params::{BucketParams, SeriesParams, TopParams};
use crate::admission::accept::JSON;
use crate::admission::client::Client;
use crate::admission::permits::Permit;
use crate::admission::rate::of_search;
use crate::answer::notes::AnswerNotes;
use crate::caching::reading::Reading;
use crate::problem::ProblemKind::{self, BucketNotFound};
use crate::problem::{COMMON, Problem, problems};
use crate::schemas::document::{Documented, RouteDocument};
use crate::schemas::names::Names;
use crate::schemas::{instant, page_path, resolution, schema};
use crate::state::Api;

pub(crate) fn document_of_series(names: &Names<'_>) -> Documented {
    let example = json!({
        "path": "/index.htm", "resolution": "minute", "from": "2014-01-01T10:01:00.000Z", "to": "2014-01-01T10:03:00.000Z",
        "totalViews": 17, "busiest": { "at": "2014-01-01T10:01:00.000Z", "views": 17 },
        "points": [{ "at": "2014-01-01T10:01:00.000Z", "views": 17 }, { "at": "2014-01-01T10:02:00.000Z", "views": 0 }]
    });
    RouteDocument::of(
        names,
        "getPageViews",
        "Show the views of a page over time",
        "Returns one point for each second, minute, hour or day of UTC, from `from` until before `to`, \
        including points without views. Both ends are rounded outward to whole units, and the answer \
        states them. At most 10,000 points. Only a few series of more than 10,000 minutes and lists of \
        the most viewed pages may run at the same time; further ones get 503.",
    )
    .parameters(SeriesParams::documented())
    .reads("The series, its total and its busiest point.")
    .shows::<SeriesView>(JSON, example)
    .problems(problems(names, &[COMMON]))
}

pub(crate) async fn series(
    State(api): State<Arc<Api>>,
    SeriesParams { path, span }: SeriesParams,
    client: Client,
    mut reading: Reading,
) -> Result<Response, Problem> {
    reading.quota.charge(units(span.from(), span.to()))?;
    let permit = span.is_long().then(|| api.scans.take(client)).transpose()?;
    let (views, page, deadline) = (api.page_views.clone(), path.clone(), reading.deadline);
    let work = async move { views.series(&page, span, deadline).await };
    let views = reading.database(scan(permit, work)).await?;
    // `max_by_key` returns the last of equals: in reverse order, that is the first.
    let busiest =
        views.iter().enumerate().rev().max_by_key(|(_, views)| **views).filter(|(_, views)| **views > 0);
    let busiest = busiest.map(|(point, &views)| PointView { at: span.beginning(point), views });
    let series = SeriesView {
        path,
        resolution: span.resolution(),
        from: span.from(),
        to: span.to(),
        total_views: views.iter().sum(),
        busiest,
        points: Vec::new(),
    };
    let body = Body::from_stream(stream::iter(pieces(series, span, views)));
    let notes = AnswerNotes { at_once: true, ..AnswerNotes::default() };
    Ok(reading.untagged(([(header::CONTENT_TYPE, JSON)], Extension(notes), body)))
}

/// The JSON of a series with these points, piece by piece: all of it is many times as long as the counters.
fn pieces(
    series: SeriesView,
    span: SeriesSpan,
    views: Vec<u64>,
) -> impl Iterator<Item = serde_json::Result<Vec<u8>>> {
    const POINTS: usize = 256;
    let end = b"]}";
    let begin = serde_json::to_vec(&series).map(|mut json| {
        // The points come last.
        json.truncate(json.len() - end.len());
        json
    });
    let points = move |first: usize| {
        let mut json = Vec::with_capacity(POINTS * 64);
        for (point, &views) in views.iter().enumerate().skip(first).take(POINTS) {
            if point > 0 {
                json.push(b',');
            }
            serde_json::to_writer(&mut json, &PointView { at: span.beginning(point), views })?;
        }
        Ok(json)
    };
    let firsts = (0..span.points() as usize).step_by(POINTS);
    iter::once(begin).chain(firsts.map(points)).chain([Ok(end.to_vec())])
}

/// The views of a page over a span of time.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PageViewSeries)]
struct SeriesView {
    #[schema(schema_with = page_path)]
    path: PagePath,
    #[schema(schema_with = resolution)]
    resolution: Resolution,
    /// The beginning of the first point.
    #[schema(schema_with = instant)]
    from: Instant,
    /// The end of the last point.
    #[schema(schema_with = instant)]
    to: Instant,
    /// Sum of the views of all points.
    #[schema(minimum = 0)]
    total_views: u64,
    /// The point with the most views, the first of equals. Absent if there are no views.
    busiest: Option<PointView>,
    /// One point for each unit of `resolution`, in order, including points without views.
    #[schema(max_items = 10000)]
    points: Vec<PointView>,
}

/// The views of one unit of time.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = PageViewPoint)]
pub(crate) struct PointView {
    /// When it begins.
    #[schema(schema_with = instant)]
    at: Instant,
    #[schema(minimum = 0)]
    views: u64,
}

pub(crate) fn document_of_bucket(names: &Names<'_>) -> Documented {
    let example = json!({
        "path": "/index.htm", "timestamp": "2014-01-01T10:01:00.000Z", "totalViews": 17, "seconds": { "2": 14, "14": 3 }
    });
    RouteDocument::of(
        names,
        "getPageViewBucket",
        "Read the bucket of a minute",
        "Returns the bucket as it is stored: the views of one page in one minute of UTC, by second. \
        Seconds without views are absent, or 0 if the minute was preallocated.",
    )
    .parameters(BucketParams::documented())
    .reads("The bucket.")
    .shows::<BucketView>(JSON, example)
    .problems(problems(names, &[COMMON, &[BucketNotFound]]))
}

pub(crate) async fn bucket(
    State(api): State<Arc<Api>>,
    BucketParams { path, minute }: BucketParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let bucket = api.page_views.bucket(&path, minute, reading.deadline);
    let missing =
        || Problem::new(ProblemKind::BucketNotFound, "There is no bucket for this page and minute.");
    let MinuteBucket { path, minute, total, seconds } =
        reading.database(bucket).await?.ok_or_else(missing)?;
    let timestamp = minute.start();
    Ok(reading.untagged(Json(BucketView { path, timestamp, total_views: total, seconds })))
}

/// The views of a page in one minute.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PageViewBucket)]
struct BucketView {
    #[schema(schema_with = page_path)]
    path: PagePath,
    /// When the minute begins.
    #[schema(schema_with = instant)]
    timestamp: Instant,
    /// The sum of `seconds`.
    #[schema(minimum = 0)]
    total_views: u64,
    #[schema(schema_with = seconds)]
    seconds: BTreeMap<u8, u64>,
}

fn seconds() -> RefOr<Schema> {
    schema(json!({
        "type": "object",
        "description": "Views by the second of the minute, 0 to 59.",
        "propertyNames": { "type": "string", "maxLength": 2, "pattern": "^([0-9]|[1-5][0-9])$" },
        "additionalProperties": { "type": "integer", "minimum": 0 },
        "maxProperties": 60
    }))
}

pub(crate) fn document_of_top(names: &Names<'_>) -> Documented {
    let example = json!({
        "from": "2014-01-01T10:00:00.000Z", "to": "2014-01-01T11:00:00.000Z",
        "items": [{ "path": "/index.htm", "totalViews": 17 }, { "path": "/shop", "totalViews": 1 }]
    });
    RouteDocument::of(
        names,
        "listTopPages",
        "List the pages with the most views",
        "Lists pages by their views from `from` until before `to`, both rounded outward to whole minutes \
        of UTC. Pages with equal views are in byte order of their paths. The cost grows with the number \
        of pages and minutes with views in the span. Only a few of these lists and series of more than \
        10,000 minutes may run at the same time; further ones get 503.",
    )
    .parameters(TopParams::documented())
    .reads("The pages, with the most views first.")
    .shows::<TopView>(JSON, example)
    .problems(problems(names, &[COMMON]))
}

pub(crate) async fn top(
    State(api): State<Arc<Api>>,
    TopParams { from, to, limit }: TopParams,
    client: Client,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let (views, deadline) = (api.page_views.clone(), reading.deadline);
    reading.quota.charge(units(from, to))?;
    let permit = api.scans.take(client)?;
    let work = async move { views.top(from, to, limit, deadline).await };
    let pages = reading.database(scan(Some(permit), work)).await?;
    let item = |(path, total_views)| PageTotalView { path, total_views };
    let items = pages.into_iter().map(item).collect();
    Ok(reading.untagged(Json(TopView { from, to, items })))
}

/// The pages with the most views in a span of time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TopPages)]
struct TopView {
    /// When the span begins.
    #[schema(schema_with = instant)]
    from: Instant,
    /// When it ends.
    #[schema(schema_with = instant)]
    to: Instant,
    /// With the most views first.
    #[schema(max_items = 100)]
    items: Vec<PageTotalView>,
}

/// A page and its number of views.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PageViewTotal)]
pub(crate) struct PageTotalView {
    #[schema(schema_with = page_path)]
    path: PagePath,
    #[schema(minimum = 1)]
    total_views: u64,
}

/// What a read of this span costs: as if the database examined a document for each minute.
fn units(from: Instant, to: Instant) -> usize {
    1 + of_search(0, (to.millis() - from.millis()) as usize / 60_000)
}

/// Runs a read. If it may take long it has a permit, which stays taken until the database has answered, even
/// if the client disconnects, because the database works on.
async fn scan<T: Send + 'static>(
    permit: Option<Permit>,
    work: impl Future<Output = Result<T, engine::Error>> + Send + 'static,
) -> Result<T, Problem> {
    let work = tokio::spawn(async move {
        let _permit = permit;
        work.await
    });
    match work.await {
        Ok(found) => Ok(found?),
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}
