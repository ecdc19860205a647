//! The JSON of answers about page views, and its documentation.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::domain::{Instant, PagePath, Preallocation, Resolution};
use crate::http::schemas::{instant, page_path, resolution, schema};
use crate::store::page_views::{MinuteBucket, PageTotal, Preallocated, Series};

/// The views of a page over a span of time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PageViewSeries)]
pub struct SeriesView {
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
    /// The point with the most views, the first of equals; `null` if there are no views.
    busiest: Option<PointView>,
    /// One point for each unit of `resolution`, in order, including points without views.
    #[schema(max_items = 10000)]
    points: Vec<PointView>,
}

/// The views of one unit of time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PageViewPoint)]
pub struct PointView {
    /// When it begins.
    #[schema(schema_with = instant)]
    at: Instant,
    #[schema(minimum = 0)]
    views: u64,
}

impl SeriesView {
    /// The series of this page.
    pub fn new(path: PagePath, series: &Series) -> Self {
        let point = |(at, views)| PointView { at, views };
        let span = series.span();
        Self {
            path,
            resolution: span.resolution(),
            from: span.from(),
            to: span.to(),
            total_views: series.total(),
            busiest: series.busiest().map(point),
            points: series.points().map(point).collect(),
        }
    }
}

/// The views of a page in one minute.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PageViewBucket)]
pub struct BucketView {
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

impl BucketView {
    /// The view of `bucket`.
    pub fn new(bucket: MinuteBucket) -> Self {
        let MinuteBucket { path, minute, total, seconds } = bucket;
        Self { path, timestamp: minute.start(), total_views: total, seconds }
    }
}

fn seconds() -> RefOr<Schema> {
    schema(
        r#"{
            "type": "object",
            "description": "Views by the second of the minute, 0 to 59.",
            "propertyNames": { "type": "string", "pattern": "^([0-9]|[1-5][0-9])$" },
            "additionalProperties": { "type": "integer", "minimum": 0 }
        }"#,
    )
}

/// The pages with the most views in a span of time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TopPages)]
pub struct TopView {
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
#[schema(as = PageTotal)]
pub struct PageTotalView {
    #[schema(schema_with = page_path)]
    path: PagePath,
    #[schema(minimum = 1)]
    total_views: u64,
}

impl TopView {
    /// The pages of this span.
    pub fn new(from: Instant, to: Instant, pages: Vec<PageTotal>) -> Self {
        let item = |PageTotal { path, total }| PageTotalView { path, total_views: total };
        Self { from, to, items: pages.into_iter().map(item).collect() }
    }
}

/// Result of a preallocation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Preallocated)]
pub struct PreallocatedView {
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

impl PreallocatedView {
    /// The result of the preallocation `wanted`.
    pub fn new(wanted: Preallocation, done: Preallocated) -> Self {
        let Preallocated { created, existing } = done;
        Self { path: wanted.path, hour: wanted.hour.start(), created, existing }
    }
}
