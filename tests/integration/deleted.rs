//! What is answered about pages that are retired, and about owners that are erased.

use mongodb::bson::{Document, doc};
use pagebucket_engine::internal::Ages;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::commands::program::{Place, run};
use crate::harness::deleted::{delete, keeping, retired, setup};
use crate::harness::{History, PATIENCE, TRADES, eventually, fill, shared, test_over};

/// The export waits for its reader, and meanwhile the rest of one history is retired and the next owner is
/// erased.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_of_all_goes_on_past_what_is_deleted() {
    const PAGES: u64 = 4_000;
    let service = setup(shared().await, TRADES).start().await;
    fill(&service.database, TRADES, 1, PAGES, 10).await;
    service.client.append_all(2, 1..=3).await;
    service.client.append_all(3, 1..=3).await;
    let mut export =
        Place::of_service(&service).await.pagebucket("export", &["--all"]).spawn().expect("to run");
    let mut rows = BufReader::new(export.stdout.take().expect("a pipe")).lines();
    let first = rows.next_line().await.expect("a line").expect("a row");
    // Pages are deleted when the export, too, has asked for markers.
    let mut keeping = keeping(shared().await, TRADES, 1).in_database(&service.database);
    keeping.capacity.ages.marker = 3 * Ages::default().poll;
    let keeping = keeping.start().await;
    eventually("the pages are deleted", PATIENCE, async || {
        let left = service
            .database
            .collection::<Document>("trades")
            .count_documents(doc! { "customerId": 1_i64 })
            .await;
        left.expect("a number") <= 3
    })
    .await;
    eventually("it is erased", PATIENCE, async || delete(&service, 2).await.json()["status"] == "erased")
        .await;
    let mut found = vec![first];
    while let Some(row) = rows.next_line().await.expect("a line") {
        found.push(row);
    }
    let ended = export.wait_with_output().await.expect("an end");
    let err = String::from_utf8(ended.stderr).expect("UTF-8");
    assert!(ended.status.success() && err.contains("1 customer erased meanwhile"), "{err}");
    drop(keeping);
    let rows: Vec<Value> = found.iter().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    let of = |owner: u64| rows.iter().filter(move |row| row["customerId"] == owner);
    let seqs: Vec<u64> = of(1).map(|row| row["seq"].as_u64().expect("a seq")).collect();
    assert!(seqs.is_sorted() && seqs.len() < PAGES as usize * 10, "{} rows", seqs.len());
    assert_eq!((seqs[0], seqs[seqs.len() - 20]), (1, (PAGES - 2) * 10 + 1), "what is there is exported");
    assert_eq!((of(2).count(), of(3).count()), (0, 3));
}

test_over!(what_is_deleted_is_no_damage, TRADES, NOTES);
/// `verify` knows what retirement and erasure leave, and finds a page that is left behind.
async fn what_is_deleted_is_no_damage(history: &'static History) {
    let service = retired(history).await;
    let place = Place::of_service(&service).await;
    let verify = async || run(&mut place.pagebucket("verify", &[])).await;
    assert_eq!(run(&mut place.pagebucket("migrate", &[])).await.status, Some(0), "old records are deleted");
    service.client.append_all(2, 1..=history.pages(2.5)).await;
    delete(&service, 2).await;
    let found = verify().await;
    assert_eq!((found.status, found.out.as_str()), (Some(0), ""), "{found:?}");

    let buckets = service.database.collection::<Document>(history.name);
    let tombstone = doc! { history.owner_field: history.owner_bson(2), "swept": true };
    eventually("the tombstone is swept", PATIENCE, async || {
        delete(&service, 2).await;
        buckets.find_one(tombstone.clone()).await.expect("an answer").is_some()
    })
    .await;
    let found = verify().await;
    assert_eq!((found.status, found.out.as_str()), (Some(0), ""), "{found:?}");

    // Its housekeeping may still be at the erasure, and would delete what comes.
    service.stop().await;
    let left = history.bucket(2, 1_700_000_000, 4, &[(1, mongodb::bson::DateTime::from_millis(0))]);
    buckets.insert_one(left).await.expect("a valid bucket");
    let found = verify().await;
    let line = format!(
        "{} {}_1700000000: data model: is left, though its owner is erased; a reader gets",
        history.name,
        history.id(2)
    );
    assert_eq!((found.status, found.out.lines().count()), (Some(1), 1), "{found:?}");
    assert!(found.out.starts_with(&line), "{found:?}");
    let found = run(&mut place.pagebucket("verify", &["--repair"])).await;
    assert!(found.out.ends_with("\n  not repaired: erase the owner again\n"), "{found:?}");
    let unused = doc! { history.owner_field: history.owner_bson(2), "page": 4_i64 };
    buckets.delete_one(unused).await.expect("an answer");

    // The first page has lost its number: its place says which it is.
    let first = doc! { history.owner_field: history.owner_bson(1), "page": 4_i64 };
    let unset = doc! { "$unset": { "page": 1 } };
    let unset = buckets.update_one(first, unset).bypass_document_validation(true).await;
    assert_eq!(unset.expect("an answer").modified_count, 1);
    let found = run(&mut place.pagebucket("verify", &["--repair"])).await;
    assert_eq!(found.out.lines().count(), 2, "{found:?}");
    assert!(found.out.contains("invariant 1: page is missing"), "{found:?}");
    let found = verify().await;
    assert_eq!((found.status, found.out.as_str()), (Some(0), ""), "{found:?}");

    // A page that is gone after those that were retired is no retired one.
    let gone = doc! { history.owner_field: history.owner_bson(1), "page": 4_i64 };
    buckets.delete_one(gone).await.expect("an answer");
    let found = verify().await;
    assert_eq!((found.status, found.out.lines().count()), (Some(1), 1), "{found:?}");
    assert!(found.out.contains("invariant 1: page 4 is missing before it"), "{found:?}");
}
