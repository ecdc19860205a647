//! The numbered invariants, checked on what the database holds, with nothing of the store's own.

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Document, doc};

/// What a customer's buckets hold, in order.
pub struct History {
    pub ids: Vec<String>,
    /// Quantity of each trade, which tests use to tell trades apart, in order of `seq`.
    pub quantities: Vec<i64>,
    /// Date of each trade, in milliseconds, in order of `seq`.
    pub dates: Vec<i64>,
}

/// Reads a customer's buckets in order of `_id`, and checks invariants 1 to 3 and 5: pages without
/// gaps, none ragged, `_id` order, a trade for every sequence number.
#[track_caller]
pub fn history(database: &Database, customer: u64) -> impl Future<Output = History> {
    let read = try_history(database, customer);
    async move { read.await.unwrap_or_else(|broken| panic!("{broken}")) }
}

/// The same, or which invariant is broken.
pub fn try_history(database: &Database, customer: u64) -> impl Future<Output = Result<History, String>> {
    let collection = database.collection::<Document>("trades");
    async move {
        let buckets = collection.find(doc! { "customerId": customer as i64 }).sort(doc! { "_id": 1 });
        let buckets: Vec<Document> = buckets.await.expect("buckets").try_collect().await.expect("buckets");
        let mut history = History { ids: Vec::new(), quantities: Vec::new(), dates: Vec::new() };
        for (index, bucket) in buckets.iter().enumerate() {
            let (page, count) =
                (bucket.get_i64("page").expect("page"), bucket.get_i32("count").expect("count"));
            let trades = bucket.get_array("history").expect("history");
            let id = bucket.get_str("_id").expect("_id");
            if page != index as i64 + 1 {
                return Err(format!("invariants 1 and 3: {id} is page {page} at place {}", index + 1));
            }
            assert_eq!(count as usize, trades.len(), "{id}");
            let last = index + 1 == buckets.len();
            if !(if last { (1..=10).contains(&count) } else { count == 10 }) {
                return Err(format!("invariant 2: {id} of {} buckets holds {count}", buckets.len()));
            }
            let second = id.strip_prefix(&format!("{customer}_")).expect("the customer's _id");
            assert!(second.len() == 10 && second.bytes().all(|byte| byte.is_ascii_digit()), "{id}");
            history.ids.push(id.to_owned());
            for trade in trades {
                let trade = trade.as_document().expect("a trade");
                history.quantities.push(trade.get_i64("qty").expect("qty"));
                history.dates.push(trade.get_datetime("date").expect("date").timestamp_millis());
            }
        }
        Ok(history)
    }
}

impl History {
    /// Checks invariant 6 for appends that were all acknowledged: each trade once, and no other.
    #[track_caller]
    pub fn holds_exactly(&self, quantities: impl IntoIterator<Item = i64>) {
        let mut expected: Vec<_> = quantities.into_iter().collect();
        let mut found = self.quantities.clone();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found.len(), expected.len());
        assert_eq!(found, expected);
    }
}
