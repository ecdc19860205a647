//! Which pages had the most views in a span of time.
//!
//! The query uses the index on the minute: its keys in the span point to exactly the documents to add up. The
//! index on page and minute would be scanned completely, all pages and all times, because the span bounds only
//! its second field. Neither index holds the totals: such an index would be written by every count and not once
//! for each bucket.

use mongodb::bson::doc;

use super::document::{self, COLLECTION};
use super::engine::PageViews;
use super::query::LATER;
use super::series;
use crate::domain::{Instant, Limit, PagePath};
use crate::store::{Deadline, Error};

/// A page and its number of views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageTotal {
    /// The page.
    pub path: PagePath,
    /// The number of views.
    pub total: u64,
}

impl PageViews {
    /// The pages with the most views in the minutes that begin at or after `from` and before `to`. Pages with
    /// equal views are ordered by the bytes of their paths. Pages without views are left out.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn top(
        &self,
        from: Instant,
        to: Instant,
        limit: Limit,
        deadline: Deadline,
    ) -> Result<Vec<PageTotal>, Error> {
        let minutes = doc! { "$gte": document::date(from), "$lt": document::date(to) };
        let command = doc! {
            "aggregate": COLLECTION,
            "pipeline": [
                { "$match": { "timestamp": minutes } },
                { "$group": series::group("$page".into()) },
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
            let total = series::total_of(found)?;
            let path = found.get_str("_id").ok().and_then(|page| PagePath::parse(page).ok());
            let path =
                path.ok_or_else(|| document::corrupt(found, "page", "is not a path of 1 to 512 bytes"))?;
            // Preallocated buckets may have no views.
            if total > 0 {
                pages.push(PageTotal { path, total });
            }
        }
        Ok(pages)
    }
}
