//! Damage keeps no owner from being erased.

use std::time::Duration;

use futures_util::future::join_all;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_engine::erasures::{Erasure, Reopening};
use pagebucket_engine::internal::Ages;
use pagebucket_engine::{Error, Store};

use super::{Place, SHORT, append, damage, engine_of, erase, is_erased_by_id, page, seqs, soon};
use crate::harness::{
    Harm, History, PATIENCE, Proxy, Setup, TRADES, Way, eventually, fill, shared, test_over,
};

const TOMBSTONE: i64 = 9_007_199_254_740_991;

/// Writes a bucket as no writer of ours would.
async fn add(place: &Place, bucket: Document) {
    let buckets = place.database.collection::<Document>(place.history.name);
    buckets.insert_one(bucket).bypass_document_validation(true).await.expect("a bucket");
}

/// Erases these owners at once, in less time than one after the other.
async fn erase_all(place: &Place, store: &Store, owners: &[u64]) {
    join_all(owners.iter().map(|owner| erase(place, store, *owner))).await;
    for owner in owners {
        is_erased_by_id(place, *owner).await;
    }
}

test_over!(damaged_buckets_are_erased, SMALL);
async fn damaged_buckets_are_erased(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    let (field, now) = (history.owner_field, DateTime::now());
    let empty = doc! { "count": 0, "history": [] };
    let since = doc! { "count": 0, "history": [], "since": now };
    let changes = [
        // A damaged marker of the beginning, page 1 without items, an empty last bucket.
        (1, doc! { "$set": since }),
        (1, doc! { "$set": empty.clone() }),
        (3, doc! { "$set": empty }),
        (2, doc! { "$set": { "since": now } }),
        (2, doc! { "$unset": { field: 1 } }),
        (3, doc! { "$set": { field: true } }),
        (2, doc! { "$set": { "page": 0_i64 } }),
        (2, doc! { "$set": { "page": -7_i64, "since": "today" } }),
        (3, doc! { "$set": { "page": TOMBSTONE } }),
        (3, doc! { "$set": { "page": TOMBSTONE + 9 } }),
        (1, doc! { "$set": { "page": "one" } }),
    ];
    let owners: Vec<u64> = (1..).take(changes.len()).collect();
    for (owner, (number, change)) in owners.iter().zip(changes) {
        fill(&place.database, history, *owner, 3, 1).await;
        let filter = doc! { field: history.owner_bson(*owner), "page": number };
        damage(&place, filter, change).await;
    }
    erase_all(&place, &store, &owners).await;
    // One without an owner and with a short second has used its number.
    let owner = place.owner(100);
    let mut bucket = history.bucket(100, 0, 7, &[(1, now)]);
    bucket.insert("_id", format!("{}_123456789", history.id(100)));
    bucket.remove(field);
    add(&place, bucket).await;
    erase_all(&place, &store, &[100]).await;
    let items = engine_of(&store, &place);
    assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::Reopened);
    assert_eq!(items.reads().history(owner, soon()).await.expect("a history").first_page(), page(8));
}

test_over!(a_damaged_tombstone_is_put_right, SMALL);
async fn a_damaged_tombstone_is_put_right(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    let field = history.owner_field;
    let owners: Vec<u64> = (1..=6).collect();
    for owner in &owners {
        fill(&place.database, history, *owner, 3, 1).await;
    }
    erase_all(&place, &store, &owners).await;
    let changes = [
        doc! { "$unset": { "second": 1 }, "$set": { "swept": false } },
        doc! { "$set": { "count": 1, "swept": false } },
        doc! { "$set": { "swept": "no", "more": 1 } },
        doc! { "$set": { "page": 12_i64 } },
        doc! { "$unset": { field: 1 } },
    ];
    let id = |owner: u64| format!("{}_:", history.id(owner));
    for (owner, change) in owners.iter().zip(changes) {
        damage(&place, doc! { "_id": id(*owner) }, change).await;
    }
    for owner in [1, 2] {
        let step = engine_of(&store, &place).erasures().go_on(&place.owner(owner), soon()).await;
        assert!(matches!(step, Err(Error::Corrupt(_))), "housekeeping says that it cannot go on: {step:?}");
    }
    // The last has another `_id`.
    let buckets = place.database.collection::<Document>(history.name);
    let moved = buckets.find_one_and_delete(doc! { "_id": id(6) }).await.expect("an answer");
    let mut moved = moved.expect("a tombstone");
    moved.insert("_id", format!("{}_x", history.id(6)));
    add(&place, moved).await;
    erase_all(&place, &store, &owners).await;
    // The numbers of before are not used again.
    for owner in owners {
        let (items, id) = (engine_of(&store, &place), place.owner(owner));
        assert_eq!(items.erasures().reopen(&id, soon()).await.expect("an answer"), Reopening::Reopened);
        let told = append(&place, &store, owner, 1, 1).await.expect("stored");
        assert!(seqs(&told)[0] > 3 * history.page_size, "owner {owner}: {told:?}");
    }
}

/// The marker of the reopened history has the `_id` that the delete names.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_erasure_of_a_damaged_bucket_deletes_nothing_later() {
    let (place, proxy) = (Place::new(TRADES).await, Proxy::before(shared().await).await);
    let late = Setup::at(&proxy.uri()).of(TRADES).in_database(&place.database).aging(super::SHORT);
    let (store, late) = (place.store().await, late.store().await);
    fill(&place.database, TRADES, 1, 1, 1).await;
    let first = doc! { "customerId": 1_i64, "page": 1_i64 };
    damage(&place, first, doc! { "$set": { "since": DateTime::from_millis(0) } }).await;
    let owner = place.owner(1);
    let (late_items, items) = (engine_of(&late, &place), engine_of(&store, &place));
    assert_eq!(late_items.erasures().erase(&owner, soon()).await.expect("an answer"), Erasure::Erasing);
    proxy.harm("delete trades", Way::There, Harm::Hold, 1);
    let meanwhile = async {
        proxy.struck(1).await;
        erase(&place, &store, 1).await;
        assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::Reopened);
        append(&place, &store, 1, 1, 15).await.expect("stored");
        let before = place.left(1).await;
        proxy.relent();
        before
    };
    let (step, before) = tokio::join!(late_items.erasures().go_on(&owner, soon()), meanwhile);
    step.ok();
    assert_eq!(place.left(1).await, before);
    assert_eq!(items.reads().history(owner, soon()).await.expect("a history").first_page(), page(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_after_the_sweep_is_erased_by_another_request() {
    let place = Place::new(TRADES).await;
    let store = place.store().await;
    fill(&place.database, TRADES, 1, 3, 1).await;
    erase(&place, &store, 1).await;
    // As an earlier version left it, and as a late append would.
    let (owner, now) = (place.owner(1), DateTime::now());
    let mut ownerless = TRADES.bucket(1, 1_700_000_000, 2, &[(1, now)]);
    ownerless.remove("customerId");
    add(&place, ownerless).await;
    add(&place, TRADES.bucket(1, 1_700_000_001, 9, &[(2, now)])).await;
    let items = engine_of(&store, &place);
    assert_eq!(items.erasures().erase(&owner, soon()).await.expect("an answer"), Erasure::Erasing);
    erase(&place, &store, 1).await;
    is_erased_by_id(&place, 1).await;
    eventually("it is reopened after that page", PATIENCE, async || {
        items.erasures().reopen(&owner, soon()).await.expect("an answer") == Reopening::Reopened
    })
    .await;
    assert_eq!(items.reads().history(owner, soon()).await.expect("a history").first_page(), page(10));
}

/// Zero would have instances go on with pages that are deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_number_of_markers_counts_as_unknown() {
    let place = Place::new(TRADES).await;
    let histories = place.database.collection::<Document>("histories");
    for (markers, may) in
        [(Bson::Null, true), ("2".into(), true), (Bson::Int64(-1), true), (0_i64.into(), false)]
    {
        let set = doc! { "$set": { "markers": &markers } };
        histories.update_one(doc! { "_id": "trades" }, set).await.expect("an answer");
        let hour = Duration::from_secs(3_600);
        let store = place.store_with(Ages { poll: hour, tail: hour, ..SHORT }).await;
        assert_eq!(engine_of(&store, &place).reads().may_have_lost_pages(), may, "{markers}");
    }
}
