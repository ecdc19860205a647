//! Long histories, written at once, as appends would have left them.

use std::ops::RangeInclusive;

use mongodb::Database;
use mongodb::bson::{DateTime, Document, doc};

/// Midnight of 2004-01-09.
const FIRST_DATE: i64 = 1_073_606_400_000;
const HOUR: i64 = 3_600_000;

/// Writes a history of so many pages, `on_last` trades on the last. The quantity of each trade is its `seq`;
/// one follows the other by an hour.
pub async fn fill(database: &Database, customer: u64, pages: i64, on_last: i64) {
    fill_pages(database, customer, 1..=pages, on_last).await;
}

/// Writes these pages of such a history.
pub async fn fill_pages(database: &Database, customer: u64, pages: RangeInclusive<i64>, on_last: i64) {
    let (begin, end) = pages.into_inner();
    let date = |seq: i64| DateTime::from_millis(FIRST_DATE + (seq - 1) * HOUR);
    let bucket = |page: i64| {
        let count = if page == end { on_last } else { 10 };
        let (first, last) = ((page - 1) * 10 + 1, (page - 1) * 10 + count);
        let history: Vec<Document> = (first..=last)
            .map(|seq| doc! { "type": "buy", "ticker": "MDB", "qty": seq, "date": date(seq) })
            .collect();
        doc! {
            "_id": format!("{customer}_{:010}", FIRST_DATE / 1000 + page), "customerId": customer as i64,
            "page": page, "count": count as i32, "first": date(first), "last": date(last), "history": history,
        }
    };
    let trades = database.collection::<Document>("trades");
    for from in (begin..=end).step_by(1000) {
        trades.insert_many((from..=end.min(from + 999)).map(bucket)).await.expect("valid buckets");
    }
}
