//! What retirement, erasure and reopening leave of a history.

use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::{Collection, Database};

use super::{PAGES, on_last};
use crate::harness::{History, fill, fill_pages};

/// The number of a tombstone's page.
pub const TOMBSTONE: i64 = 9_007_199_254_740_991;

/// Writes what a retirement leaves: the marker of the beginning, and no page before `first` if that is swept.
pub async fn retire(history: &History, buckets: &Collection<Document>, owner: u64, first: u64, swept: bool) {
    let of = |page: Bson| doc! { history.owner_field: history.owner_bson(owner), "page": page };
    let set = doc! {
        "count": 0, "history": [], "firstPage": first as i64, "second": 5_000_000_000_i64, "since": DateTime::now(),
    };
    let marked = buckets.update_one(of(1_i64.into()), doc! { "$set": set }).await;
    assert_eq!(marked.expect("an answer").modified_count, 1);
    if swept {
        buckets.delete_many(of(doc! { "$gt": 1_i64, "$lt": first as i64 }.into())).await.expect("an answer");
        let done = buckets.update_one(of(1_i64.into()), doc! { "$set": { "swept": true } }).await;
        done.expect("an answer");
    }
}

/// Writes the tombstone of an owner, and deletes the pages if that is swept.
pub async fn bury(history: &History, buckets: &Collection<Document>, owner: u64, swept: bool) {
    if swept {
        let of = doc! { history.owner_field: history.owner_bson(owner) };
        buckets.delete_many(of).await.expect("an answer");
    }
    // Of long ago, so that no housekeeping looks for what comes late.
    let (nothing, long_ago) = (DateTime::from_millis(0), DateTime::from_millis(1_073_606_400_000));
    let tombstone = doc! {
        "_id": format!("{}_:", history.id(owner)), history.owner_field: history.owner_bson(owner),
        "page": TOMBSTONE, "count": 0, "first": nothing, "last": nothing, "history": [], "firstPage": 6_i64,
        "second": 1_073_606_405_i64, "since": if swept { long_ago } else { DateTime::now() }, "erased": long_ago,
        "swept": swept,
    };
    buckets.insert_one(tombstone).await.expect("a tombstone");
}

/// Writes what a reopening leaves: a marker of the beginning, which says that page 6 is the next.
async fn reopen(history: &History, buckets: &Collection<Document>, owner: u64) {
    let (nothing, now) = (DateTime::from_millis(0), DateTime::now());
    let marker = doc! {
        "_id": format!("{}_1073606405", history.id(owner)), history.owner_field: history.owner_bson(owner),
        "page": 1_i64, "count": 0, "first": nothing, "last": nothing, "history": [], "firstPage": 6_i64,
        "second": 1_073_606_405_i64, "since": now, "swept": true,
    };
    buckets.insert_one(marker).await.expect("a marker");
}

/// Every state in which retirement, erasure and reopening may leave a history, each of an owner of its own.
pub async fn deleted_in_all_ways(history: &History, database: &Database) {
    let buckets = &database.collection::<Document>(history.name);
    for owner in 501..=509 {
        fill(database, history, owner, PAGES, on_last(history)).await;
    }
    retire(history, buckets, 501, 3, false).await;
    retire(history, buckets, 502, 4, false).await;
    let gone = doc! { history.owner_field: history.owner_bson(502), "page": 2_i64 };
    buckets.delete_one(gone).await.expect("an answer");
    retire(history, buckets, 503, 5, true).await;
    bury(history, buckets, 504, false).await;
    retire(history, buckets, 505, 3, true).await;
    bury(history, buckets, 505, false).await;
    bury(history, buckets, 506, true).await;
    // Its tombstone is lifted next.
    bury(history, buckets, 507, true).await;
    reopen(history, buckets, 507).await;
    for owner in [508, 509] {
        let of = doc! { history.owner_field: history.owner_bson(owner) };
        buckets.delete_many(of).await.expect("an answer");
        reopen(history, buckets, owner).await;
    }
    fill_pages(database, history, 509, 6..=8, on_last(history)).await;
    // The number was raised before.
    let raised = doc! { "$set": { "markers": 9_i64 } };
    let histories = database.collection::<Document>("histories");
    histories.update_one(doc! { "_id": history.name }, raised).await.expect("an answer");
}
