//! Views over spans of time: of one page, point by point, and of the pages with the most views.
//!
//! Every resolution is one scan of the index on page and minute. For seconds the whole buckets are sent, for
//! minutes only their totals. Hours and days are added up in the database: for an hour one number is sent
//! instead of sixty.
//!
//! The pages with the most views are found by the index on the minute: its keys in the span point to exactly
//! the documents to add up. The index on page and minute would be scanned completely, all pages and all
//! times, because the span bounds only its second field. Neither index holds the totals: such an index would
//! be written by every count and not once for each bucket.

use std::time::Duration;

use bson::raw::RawDocument;
use bson::{Bson, Document, doc};
use pagebucket_engine::internal::PAGE_VIEWS;
use pagebucket_engine::internal::documents::{date, instant};
use pagebucket_engine::{Corruption, Deadline, Error, Result};
use pagebucket_model::domain::{Instant, Limit};

use crate::document::{self, MinuteBucket};
use crate::engine::PageViews;
use crate::page_path::PagePath;
use crate::resolution::{Resolution, SeriesSpan};

/// How long a preferred member may take for a read of as many documents as a span of time has.
const LATER: Duration = Duration::from_secs(10);

impl PageViews {
    /// The views of a page: a number for each point, including points without views. They are not a snapshot:
    /// each bucket is shown as it was when it was read.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn series(&self, path: &PagePath, span: SeriesSpan, deadline: Deadline) -> Result<Vec<u64>> {
        let mut views = vec![0_u64; span.points() as usize];
        if views.is_empty() {
            return Ok(views);
        }
        let mut add = |moment: Instant, more: u64| {
            // With seconds, the first and the last minute may contain seconds outside the span.
            if let Some(point) = span.point(moment) {
                views[point] = views[point].saturating_add(more);
            }
        };
        let found = self.query(command(path, span)?, LATER, deadline).await?;
        for found in &found {
            match span.resolution() {
                Resolution::Second => {
                    let bucket = MinuteBucket::read(found)?;
                    let start = bucket.minute.start().millis();
                    for (second, views) in &bucket.seconds {
                        let second = Instant::from_millis(start + i64::from(*second) * 1000);
                        second.into_iter().for_each(|second| add(second, *views));
                    }
                }
                Resolution::Minute => add(document::minute(found)?.start(), document::total(found)?),
                Resolution::Hour | Resolution::Day => {
                    let corrupt =
                        || Corruption::of(found, "timestamp", "is not a date of the years 0000 to 9999");
                    let start = found.get_datetime("_id").ok().and_then(instant);
                    add(start.ok_or_else(corrupt)?, total_of(found)?);
                }
            }
        }
        Ok(views)
    }

    /// The pages with the most views in the minutes that begin at or after `from` and before `to`, and how
    /// many views each has. Pages with equal views are ordered by the bytes of their paths. Pages without
    /// views are left out.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn top(
        &self,
        from: Instant,
        to: Instant,
        limit: Limit,
        deadline: Deadline,
    ) -> Result<Vec<(PagePath, u64)>> {
        let minutes = doc! { "$gte": date(from), "$lt": date(to) };
        let command = doc! {
            "aggregate": PAGE_VIEWS,
            "pipeline": [
                { "$match": { "timestamp": minutes } },
                { "$group": group("$page".into()) },
                // Corrupt groups come first, so that the limit never hides them.
                { "$sort": { "corrupt": -1, "totalViews": -1, "_id": 1 } },
                { "$limit": limit.get() as i64 },
            ],
            "hint": { "timestamp": 1 },
            "cursor": { "batchSize": limit.get() as i64 + 1 },
        };
        let found = self.query(command, LATER, deadline).await?;
        let mut pages = Vec::with_capacity(found.len());
        for found in &found {
            let (total, path) = (total_of(found)?, document::path(found, "_id")?);
            // Preallocated buckets may have no views.
            if total > 0 {
                pages.push((path, total));
            }
        }
        Ok(pages)
    }
}

fn command(path: &PagePath, span: SeriesSpan) -> Result<Document> {
    let (first, end) = Resolution::Minute
        .around(span.from(), span.to())
        .map_err(|invalid| Error::internal(format!("a span {invalid}")))?;
    let filter = doc! {
        "page": path.as_str(),
        "timestamp": { "$gte": date(first), "$lt": date(end) },
    };
    let hint = doc! { "page": 1, "timestamp": 1 };
    // The first batch holds all points, if they fit into 16 MB.
    let batch = span.points() as i64 + 1;
    if let Resolution::Hour | Resolution::Day = span.resolution() {
        let unit = doc! { "$dateTrunc": { "date": "$timestamp", "unit": span.resolution().to_string() } };
        return Ok(doc! {
            "aggregate": PAGE_VIEWS,
            "pipeline": [{ "$match": filter }, { "$group": group(unit.into()) }],
            "hint": hint,
            "cursor": { "batchSize": batch },
        });
    }
    let mut command = doc! {
        "find": PAGE_VIEWS,
        "filter": filter,
        "sort": { "page": 1, "timestamp": 1 },
        "batchSize": batch,
        "hint": hint,
    };
    if span.resolution() == Resolution::Minute {
        command.insert("projection", doc! { "timestamp": 1, "totalViews": 1 });
    }
    Ok(command)
}

/// A `$group` stage that adds up totals by `by`. `$sum` skips values that are not numbers, so `corrupt`
/// reports the least `_id` with such a value.
fn group(by: Bson) -> Document {
    let valid = doc! {
        "$and": [{ "$in": [{ "$type": "$totalViews" }, ["int", "long"]] }, { "$gte": ["$totalViews", 0] }],
    };
    doc! {
        "_id": by,
        "totalViews": { "$sum": "$totalViews" },
        // `$min` skips nulls.
        "corrupt": { "$min": { "$cond": [valid, Bson::Null, "$_id"] } },
    }
}

/// The views of a group.
///
/// # Errors
/// A bucket of the group has a total that is not a number of views.
fn total_of(group: &RawDocument) -> Result<u64, Corruption> {
    if let Ok(id) = group.get_object_id("corrupt") {
        return Err(Corruption::new(id.to_hex(), "totalViews", "is not a whole number, 0 or more"));
    }
    document::total(group)
}
