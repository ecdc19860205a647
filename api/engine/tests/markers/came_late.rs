//! Pages that came behind a tombstone, past the fence: housekeeping and reopenings look for them.

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, DateTime, Document, doc};
use pagebucket_engine::Deadline;
use pagebucket_engine::erasures::{Erasure, Reopening};

use super::fence::delayed;
use super::{Place, SHORT, append, engine_of, erase, int, pages_left, seqs, soon};
use crate::harness::{Harm, History, PATIENCE, Way, engine, eventually, test_over};

/// A page that came behind a swept tombstone, past the fence.
async fn come_late(place: &Place, owner: u64, page: i64) {
    let history = place.history;
    let item = Document::try_from(engine::dated(history, 7, super::DATE).document()).expect("BSON");
    let bucket = doc! {
        "_id": format!("{}_{:010}", history.id(owner), 1_700_000_000 + page),
        history.owner_field: history.owner_bson(owner), "page": page, "count": 1, "first": DateTime::from_millis(super::DATE),
        "last": DateTime::from_millis(super::DATE), "history": [item],
    };
    place.database.collection::<Document>(history.name).insert_one(bucket).await.expect("a page");
}

test_over!(what_came_late_is_deleted, TRADES, NOTES);
async fn what_came_late_is_deleted(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    append(&place, &store, 1, 1, 2 * history.page_size).await.expect("stored");
    erase(&place, &store, 1).await;
    // One that had been deleted, and the next that was never opened.
    for page in [2, 3] {
        come_late(&place, 1, page).await;
    }
    let (items, owner) = (engine_of(&store, &place), place.owner(1));
    assert_eq!(items.erasures().erase(&owner, soon()).await.expect("an answer"), Erasure::Erasing, "again");
    erase(&place, &store, 1).await;
    place.is_erased(1).await;
    // A reopening has written its marker, and has not lifted the tombstone.
    let buckets = place.database.collection::<Document>(history.name);
    let tombstone =
        buckets.find_one(doc! { "_id": format!("{}_:", history.id(1)) }).await.expect("an answer");
    let (first_page, second) = tombstone.map(|it| (int(&it, "firstPage"), int(&it, "second"))).expect("it");
    let marker = doc! {
        "_id": format!("{}_{second:010}", history.id(1)), history.owner_field: history.owner_bson(1), "page": 1_i64, "count": 0,
        "first": DateTime::from_millis(0), "last": DateTime::from_millis(0), "history": [],
        "firstPage": first_page, "second": second, "since": DateTime::now(), "swept": true,
    };
    buckets.insert_one(marker).await.expect("a marker");
    come_late(&place, 1, 9).await;
    let record = |key: u8, owner: u64| {
        let id = Binary { subtype: BinarySubtype::Generic, bytes: vec![key; 32] };
        doc! { "_id": id, history.owner_field: history.owner_bson(owner), "from": 0_i64, "touched": DateTime::now() }
    };
    let records = place.database.collection::<Document>("idempotency_keys");
    let both = records.insert_many([record(1, 1), record(2, 2)]);
    both.bypass_document_validation(true).await.expect("records");
    eventually("housekeeping looks behind the tombstone", PATIENCE, async || {
        store.run_housekeeping(&Default::default()).await.expect("an answer");
        let left = records.count_documents(doc! {}).await.expect("an answer");
        !pages_left(&place, 1).await.contains(&9) && left == 1
    })
    .await;
    let other = doc! { history.owner_field: history.owner_bson(2) };
    assert!(records.find_one(other).await.expect("an answer").is_some(), "a record of another owner");
    assert_eq!(pages_left(&place, 1).await.len(), 2, "the tombstone, and the marker of the reopening");
    // The next one comes to the end of it.
    assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::Reopened);
    let told = append(&place, &place.store().await, 1, 1, 1).await.expect("stored");
    assert_eq!(seqs(&told), [9 * history.page_size + 1], "after all pages that were ever opened");
}

test_over!(a_reopening_waits_for_what_came_late, NOTES);
/// Housekeeping looks for it once an hour. A reopening shows a late page to readers, so it looks, too.
async fn a_reopening_waits_for_what_came_late(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    append(&place, &store, 1, 1, 2 * history.page_size).await.expect("stored");
    erase(&place, &store, 1).await;
    come_late(&place, 1, 3).await;
    let (items, owner) = (engine_of(&store, &place), place.owner(1));
    assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::NotSwept);
    eventually("the sweep", PATIENCE, async || {
        items.erasures().go_on(&owner, soon()).await.expect("an answer") == Erasure::Swept
    })
    .await;
    place.is_erased(1).await;
    assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::Reopened);
    let told = append(&place, &store, 1, 1, 1).await.expect("stored");
    assert_eq!(seqs(&told), [3 * history.page_size + 1], "after the page that came late");
}

test_over!(a_reopening_uses_no_number_of_a_page_that_came_late_meanwhile, NOTES);
async fn a_reopening_uses_no_number_of_a_page_that_came_late_meanwhile(history: &'static History) {
    let place = Place::new(history).await;
    let (proxy, reopening) = delayed(&place, SHORT).await;
    let store = place.store().await;
    append(&place, &store, 1, 1, 2 * history.page_size).await.expect("stored");
    erase(&place, &store, 1).await;
    let (items, owner) = (engine_of(&reopening, &place), place.owner(1));
    proxy.harm(format!("delete {}", history.name), Way::There, Harm::Hold, 1);
    let meanwhile = async {
        proxy.struck(1).await;
        come_late(&place, 1, 3).await;
        eventually("housekeeping looks behind the tombstone", PATIENCE, async || {
            store.run_housekeeping(&Default::default()).await.expect("an answer");
            !pages_left(&place, 1).await.contains(&3)
        })
        .await;
        proxy.relent();
    };
    let (reopened, ()) =
        tokio::join!(items.erasures().reopen(&owner, Deadline::within(3 * PATIENCE)), meanwhile);
    assert_eq!(reopened.expect("an answer"), Reopening::Reopened);
    let told = append(&place, &store, 1, 1, 1).await.expect("stored");
    assert_eq!(seqs(&told), [3 * history.page_size + 1], "after the page that came late");
}

test_over!(an_owner_with_a_damaged_tombstone_keeps_no_other_from_the_late_walk, TRADES, NOTES);
/// Its tombstone does not say which page follows; only another request puts it right.
async fn an_owner_with_a_damaged_tombstone_keeps_no_other_from_the_late_walk(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    for owner in [1, 2] {
        append(&place, &store, owner, 1, 2 * history.page_size).await.expect("stored");
        erase(&place, &store, owner).await;
    }
    let buckets = place.database.collection::<Document>(history.name);
    let damaged = buckets
        .update_one(doc! { "_id": format!("{}_:", history.id(1)) }, doc! { "$unset": { "firstPage": 1 } })
        .bypass_document_validation(true)
        .await;
    assert_eq!(damaged.expect("an answer").modified_count, 1);
    come_late(&place, 2, 3).await;
    let mut ownerless = history.bucket(2, 1_700_000_007, 4, &[(1, DateTime::now())]);
    ownerless.remove(history.owner_field);
    buckets.insert_one(ownerless).bypass_document_validation(true).await.expect("a bucket");
    let of_other = doc! { "_id": { "$regex": format!("^{}_", history.id(2)) } };
    eventually("what came late is deleted", PATIENCE, async || {
        store.run_housekeeping(&Default::default()).await.expect("an answer");
        buckets.count_documents(of_other.clone()).await.expect("an answer") == 1
    })
    .await;
    place.is_erased(2).await;
    let (items, owner) = (engine_of(&store, &place), place.owner(2));
    assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::Reopened);
    let told = append(&place, &store, 2, 1, 1).await.expect("stored");
    assert_eq!(seqs(&told), [4 * history.page_size + 1], "after all pages that were ever opened");
}
