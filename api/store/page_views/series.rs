//! The views of one page over a span of time, point by point.
//!
//! Every resolution is one scan of the index on page and minute. For seconds the whole buckets are sent, for
//! minutes only their totals. Hours and days are added up in the database: for an hour one number is sent
//! instead of sixty.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, Document, doc};

use super::document::{self, COLLECTION, MinuteBucket};
use super::engine::PageViews;
use super::query::LATER;
use crate::domain::{Instant, PagePath, Resolution, SeriesSpan};
use crate::store::{Corruption, Deadline, Error};

/// Views over a span of time: a number for each of its points, including points without views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    span: SeriesSpan,
    views: Vec<u64>,
}

impl Series {
    /// The span and resolution of the series.
    pub fn span(&self) -> SeriesSpan {
        self.span
    }

    /// The views of all points.
    pub fn total(&self) -> u64 {
        self.views.iter().sum()
    }

    /// The first point with the most views; `None` if there are no views.
    pub fn busiest(&self) -> Option<(Instant, u64)> {
        let most = self.views.iter().copied().max().filter(|views| *views > 0)?;
        self.points().find(|(_, views)| *views == most)
    }

    /// The beginning and the views of each point.
    pub fn points(&self) -> impl ExactSizeIterator<Item = (Instant, u64)> {
        self.views.iter().enumerate().map(|(point, views)| (self.span.beginning(point), *views))
    }
}

impl PageViews {
    /// The views of a page. They are not a snapshot: each bucket is shown as it was when it was read.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn series(
        &self,
        path: &PagePath,
        span: SeriesSpan,
        deadline: Deadline,
    ) -> Result<Series, Error> {
        let mut views = vec![0_u64; span.points() as usize];
        if views.is_empty() {
            return Ok(Series { span, views });
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
                    let (unit, views) = grouped(found)?;
                    add(unit, views);
                }
            }
        }
        Ok(Series { span, views })
    }
}

fn command(path: &PagePath, span: SeriesSpan) -> Result<Document, Error> {
    let (first, end) = Resolution::Minute
        .around(span.from(), span.to())
        .map_err(|invalid| Error::Internal(format!("a span {invalid}")))?;
    let filter = doc! {
        "page": path.as_str(),
        "timestamp": { "$gte": document::date(first), "$lt": document::date(end) },
    };
    let hint = doc! { "page": 1, "timestamp": 1 };
    // The first batch holds all points, if they fit into 16 MB.
    let batch = span.points() as i64 + 1;
    let projection = match span.resolution() {
        Resolution::Second => None,
        Resolution::Minute => Some(doc! { "timestamp": 1, "totalViews": 1 }),
        Resolution::Hour | Resolution::Day => {
            let unit = doc! { "$dateTrunc": { "date": "$timestamp", "unit": span.resolution().name() } };
            return Ok(doc! {
                "aggregate": COLLECTION,
                "pipeline": [{ "$match": filter }, { "$group": group(unit.into()) }],
                "hint": hint,
                "cursor": { "batchSize": batch },
            });
        }
    };
    let mut command = doc! {
        "find": COLLECTION,
        "filter": filter,
        "sort": { "page": 1, "timestamp": 1 },
        "batchSize": batch,
        "hint": hint,
    };
    command.extend(projection.map(|projection| ("projection".to_owned(), Bson::from(projection))));
    Ok(command)
}

/// A `$group` stage that adds up totals by `by`. `$sum` skips values that are not numbers, so `corrupt` reports
/// the least `_id` with such a value.
pub(super) fn group(by: Bson) -> Document {
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
pub(super) fn total_of(group: &RawDocument) -> Result<u64, Corruption> {
    if let Ok(id) = group.get_object_id("corrupt") {
        let (field, detail) = ("totalViews".to_owned(), "is not a whole number, 0 or more".to_owned());
        return Err(Corruption { id: id.to_hex(), field, detail });
    }
    document::total(group)
}

/// The beginning of an hour or a day, and its views.
fn grouped(group: &RawDocument) -> Result<(Instant, u64), Corruption> {
    let unit =
        group.get_datetime("_id").ok().and_then(|date| Instant::from_millis(date.timestamp_millis()).ok());
    let unit =
        unit.ok_or_else(|| document::corrupt(group, "timestamp", "is not a date of the years 0000 to 9999"))?;
    Ok((unit, total_of(group)?))
}
