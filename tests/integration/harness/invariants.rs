//! The numbered invariants, checked on what the database holds, with nothing of the store's own.

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Document, doc};

/// What a customer's buckets hold, in order.
pub struct History {
    pub ids: Vec<String>,
    /// Quantity of each trade, which tests use to tell trades apart, in order of `seq`.
    pub quantities: Vec<i64>,
}

/// Reads a customer's buckets in order of `_id`, and checks invariants 1 to 3 and 5: pages without
/// gaps, none ragged, `_id` order, a trade for every sequence number.
#[track_caller]
pub fn history(database: &Database, customer: u64) -> impl Future<Output = History> {
    let collection = database.collection::<Document>("trades");
    async move {
        let buckets = collection.find(doc! { "customerId": customer as i64 }).sort(doc! { "_id": 1 });
        let buckets: Vec<Document> = buckets.await.expect("buckets").try_collect().await.expect("buckets");
        let mut history = History { ids: Vec::new(), quantities: Vec::new() };
        for (index, bucket) in buckets.iter().enumerate() {
            let (page, count) =
                (bucket.get_i64("page").expect("page"), bucket.get_i32("count").expect("count"));
            let trades = bucket.get_array("history").expect("history");
            let id = bucket.get_str("_id").expect("_id");
            assert_eq!(page, index as i64 + 1, "invariants 1 and 3: {id} of {}", buckets.len());
            assert_eq!(count as usize, trades.len(), "{id}");
            let last = index + 1 == buckets.len();
            assert!(
                if last { (1..=10).contains(&count) } else { count == 10 },
                "invariant 2: {id} holds {count}"
            );
            let second = id.strip_prefix(&format!("{customer}_")).expect("the customer's _id");
            assert!(second.len() == 10 && second.bytes().all(|byte| byte.is_ascii_digit()), "{id}");
            history.ids.push(id.to_owned());
            for trade in trades {
                history.quantities.push(trade.as_document().expect("a trade").get_i64("qty").expect("qty"));
            }
        }
        history
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
