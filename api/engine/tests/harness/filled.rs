//! Long histories, written at once, as appends would have left them.

use std::ops::RangeInclusive;

use mongodb::Database;
use mongodb::bson::{DateTime, Document};

use super::History;

/// Midnight of 2004-01-09.
const FIRST_DATE: i64 = 1_073_606_400_000;
const HOUR: i64 = 3_600_000;

/// Writes a history of so many pages, `on_last` items on the last. The number of each item is its `seq`;
/// one follows the other by an hour.
pub async fn fill(database: &Database, history: &History, owner: u64, pages: u64, on_last: u64) {
    fill_pages(database, history, owner, 1..=pages, on_last).await;
}

/// Writes these pages of such a history.
pub async fn fill_pages(
    database: &Database,
    history: &History,
    owner: u64,
    pages: RangeInclusive<u64>,
    on_last: u64,
) {
    // An insert stays far below the 48 MB of a command.
    let at_once = (10_000 / history.page_size).max(1);
    let (begin, end) = pages.into_inner();
    let bucket = |page: u64| {
        let count = if page == end { on_last } else { history.page_size };
        let first = (page - 1) * history.page_size + 1;
        let dated = |seq: u64| (seq, DateTime::from_millis(FIRST_DATE + (seq as i64 - 1) * HOUR));
        let items: Vec<_> = (first..first + count).map(dated).collect();
        history.bucket(owner, FIRST_DATE / 1000 + page as i64, page, &items)
    };
    let buckets = database.collection::<Document>(history.name);
    for from in (begin..=end).step_by(at_once as usize) {
        buckets.insert_many((from..=end.min(from + at_once - 1)).map(bucket)).await.expect("valid buckets");
    }
}
