//! The numbered invariants, checked on what the database holds, with nothing of the store's own.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Document, doc};
use mongodb::{Collection, Database};
use tokio::time::timeout;

use super::History;

/// What an owner's buckets hold, in order.
pub struct Stored {
    pub ids: Vec<String>,
    /// The number of the first page that is there; of an empty history, the one that is opened next.
    pub first_page: u64,
    /// Number of each item, which tests use to tell items apart, in order of `seq`.
    pub numbers: Vec<i64>,
    /// Date of each item, in milliseconds, in order of `seq`.
    pub dates: Vec<i64>,
}

/// Reads an owner's buckets in order of `_id`, and checks invariants 1 to 3 and 5: pages without gaps, none
/// ragged, `_id` order, an item for every sequence number. If page 1 is a marker, pages before its
/// `firstPage` may be missing, the first ones first.
#[track_caller]
pub fn stored(database: &Database, history: &History, owner: u64) -> impl Future<Output = Stored> {
    let read = try_stored(database, history, owner);
    async move { read.await.unwrap_or_else(|broken| panic!("{broken}")) }
}

/// The same, or which invariant is broken.
pub fn try_stored(
    database: &Database,
    history: &History,
    owner: u64,
) -> impl Future<Output = Result<Stored, String>> {
    let collection = database.collection::<Document>(history.name);
    async move {
        let page_size = history.page_size as i32;
        let buckets = buckets(&collection, doc! { history.owner_field: history.owner_bson(owner) }).await;
        let is_marker = |bucket: &&Document| bucket.get_i64("firstPage").is_ok();
        let (marker, buckets) = match buckets.split_first().filter(|(first, _)| is_marker(first)) {
            Some((marker, buckets)) => (Some(marker), buckets),
            None => (None, &buckets[..]),
        };
        let mut first_page = 1;
        if let Some(marker) = marker {
            first_page = marker.get_i64("firstPage").expect("it is a marker");
            let (page, count) = (marker.get_i64("page").ok(), marker.get_i32("count").ok());
            let is_empty = marker.get_array("history").is_ok_and(Vec::is_empty);
            if (page, count, is_empty) != (Some(1), Some(0), true) {
                return Err(format!(
                    "a marker of the beginning has the place of page 1, and no items: {marker}"
                ));
            }
            if let Some(first) = buckets.first() {
                let first = first.get_i64("page").expect("page");
                if !(2..=first_page).contains(&first) {
                    return Err(format!("invariant 1: {first} is the first page, not {first_page}"));
                }
                first_page = first;
            }
        }
        let first_page = u64::try_from(first_page).expect("a page");
        let mut stored = Stored { ids: Vec::new(), first_page, numbers: Vec::new(), dates: Vec::new() };
        for (index, bucket) in buckets.iter().enumerate() {
            let (page, count) =
                (bucket.get_i64("page").expect("page"), bucket.get_i32("count").expect("count"));
            let items = bucket.get_array("history").expect("history");
            let id = bucket.get_str("_id").expect("_id");
            let expected = first_page + index as u64;
            if page != expected as i64 {
                return Err(format!("invariants 1 and 3: {id} is page {page}, not {expected}"));
            }
            assert_eq!(count as usize, items.len(), "{id}");
            let last = index + 1 == buckets.len();
            if !(if last { (1..=page_size).contains(&count) } else { count == page_size }) {
                return Err(format!("invariant 2: {id} of {} buckets holds {count}", buckets.len()));
            }
            let second = id.strip_prefix(&format!("{}_", history.id(owner))).expect("the owner's _id");
            assert!(second.len() == 10 && second.bytes().all(|byte| byte.is_ascii_digit()), "{id}");
            stored.ids.push(id.to_owned());
            for item in items {
                let item = item.as_document().expect("an item");
                assert!(history.is_as_sent(item), "not the item that was sent: {item}");
                stored.numbers.push(history.stored_number(item));
                stored.dates.push(item.get_datetime(history.date).expect("date").timestamp_millis());
            }
        }
        Ok(stored)
    }
}

/// The buckets that this filter finds, in the order of `_id`. A driver whose server was killed and started
/// may leave a command without an answer, for good: then it is asked again.
async fn buckets(collection: &Collection<Document>, filter: Document) -> Vec<Document> {
    for _ in 0..3 {
        let read = async {
            let found = collection.find(filter.clone()).sort(doc! { "_id": 1 }).await.expect("buckets");
            found.try_collect().await.expect("buckets")
        };
        if let Ok(buckets) = timeout(Duration::from_secs(60), read).await {
            return buckets;
        }
    }
    panic!("the buckets were not read");
}

impl Stored {
    /// Checks invariant 6 for appends that were all acknowledged: each item once, and no other.
    #[track_caller]
    pub fn holds_exactly(&self, numbers: impl IntoIterator<Item = i64>) {
        let mut expected: Vec<_> = numbers.into_iter().collect();
        let mut found = self.numbers.clone();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found.len(), expected.len());
        assert_eq!(found, expected);
    }
}
