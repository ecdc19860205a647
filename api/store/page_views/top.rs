//! Which pages had the most views in a span of time.
//!
//! By the index on the minute alone: its keys of the span, and the documents behind them, are just what is to be
//! added up. The index on page and minute would be walked through from end to end, all pages and all times,
//! since the span bounds its second field only. Neither holds the totals: an index that did would be written to
//! by every count, and not once a minute.

use mongodb::bson::doc;

use super::document::{self, COLLECTION};
use super::engine::PageViews;
use super::query::Work;
use super::series;
use crate::domain::{Instant, Limit, PagePath};
use crate::store::{Deadline, Error};

/// A page, and how many views it had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageTotal {
    /// Which page.
    pub path: PagePath,
    /// How many.
    pub total: u64,
}

impl PageViews {
    /// The pages with the most views in the minutes that begin from `from` on and before `to`; of equals those
    /// first whose paths are, byte by byte. Pages without views are none of them.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
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
                // What is corrupt comes first, however little it is.
                { "$sort": { "corrupt": -1, "totalViews": -1, "_id": 1 } },
                { "$limit": limit.get() as i64 },
            ],
            "hint": { "timestamp": 1 },
            "cursor": { "batchSize": limit.get() as i64 + 1 },
        };
        let found = self.query(command, Work::Much, deadline).await?;
        let mut pages = Vec::with_capacity(found.len());
        for found in &found {
            let total = series::total_of(found)?;
            let path = found.get_str("_id").ok().and_then(|page| PagePath::parse(page).ok());
            let path =
                path.ok_or_else(|| document::corrupt(found, "page", "is not a path of 1 to 512 bytes"))?;
            // What is preallocated has none.
            if total > 0 {
                pages.push(PageTotal { path, total });
            }
        }
        Ok(pages)
    }
}
