//! An append that another writer cuts in two, and a database that goes away before its second half.

use std::time::Duration;

use mongodb::bson::{DateTime, Document, doc};

use super::rig::{LONG, Rig, Told};
use crate::harness::rig::{fail, heal};
use crate::harness::{History, Mongod, test_over};

/// Longer than a read waits for the database to come back.
const ENOUGH: Duration = Duration::from_secs(2);

/// The number of the other's item.
const OTHERS: u64 = 9_000;

/// A history of half a page, which the store knows, and a page 2 with one item that another writer has put in
/// its way. An append that fills page 1 makes it a valid history again.
async fn obstructed(rig: &Rig) -> Told {
    let history = rig.history;
    let before = rig.append(7, 1, history.pages(0.5), LONG).await;
    before.stored();
    let date = DateTime::from_millis(1_698_349_623_000);
    let bucket = history.bucket(7, 1_698_349_700, 2, &[(OTHERS, date)]);
    let buckets = rig.database.collection::<Document>(history.name);
    buckets.insert_one(bucket).await.expect("a valid bucket");
    rig.sent.forget();
    before
}

/// How many items find room on page 1.
fn room(history: &History) -> u64 {
    history.page_size - history.pages(0.5)
}

async fn check(rig: &Rig, told: &Told, more: &[i64]) {
    let stored = rig.stored(7).await.numbers;
    // Those before, those that found room, the one of the other writer.
    let (half, room) = (rig.history.pages(0.5), room(rig.history));
    let found_room = 1_001..=1_000 + room as i64;
    let expected: Vec<i64> =
        (1..=half as i64).chain(found_room).chain([OTHERS as i64]).chain(more.iter().copied()).collect();
    assert_eq!(stored, expected);
    let first_page: Vec<_> = (half + 1..=rig.history.page_size).collect();
    assert_eq!(told.seqs()[..room as usize], first_page);
    rig.sent.replays_are_identical();
}

/// The items that found no room on page 1.
fn rest(history: &History) -> Vec<i64> {
    (1_001 + room(history) as i64..=1_000 + history.pages(2.5) as i64).collect()
}

test_over!(another_writer_between_two_buckets, SMALL);
async fn another_writer_between_two_buckets(history: &'static History) {
    let mongod = Mongod::failing().await;
    let rig = Rig::on(history, &mongod).await;
    obstructed(&rig).await;
    let (count, page, half) = (history.pages(2.5), history.page_size, history.pages(0.5));
    // The first item alone is judged.
    let told = rig.append_after(7, half, 1_001, count).await;
    told.stored();
    let around: Vec<_> = (half + 1..=page).chain(page + 2..=half + count + 1).collect();
    assert_eq!(told.seqs(), around, "around the other's item");
    check(&rig, &told, &rest(history)).await;
    assert_eq!(rig.sent.updates().len(), 2, "one refusal, one retry");
    mongod.remove().await;
}

test_over!(partly_stored, SMALL);
async fn partly_stored(history: &'static History) {
    let mongod = Mongod::failing().await;
    let rig = Rig::on(history, &mongod).await;
    obstructed(&rig).await;
    fail(&mongod, "aggregate", "alwaysOn", doc! { "closeConnection": true }).await;
    let told = rig.append(7, 1_001, history.pages(2.5), ENOUGH).await;
    heal(&mongod).await;
    told.unavailable_after(room(history));
    check(&rig, &told, &[]).await;
    let after = rig.append(7, 2_001, 2, LONG).await;
    assert_eq!(after.seqs(), [history.page_size + 2, history.page_size + 3]);
    check(&rig, &told, &[2_001, 2_002]).await;
    mongod.remove().await;
}

test_over!(partly_stored_and_then_unknown, SMALL);
async fn partly_stored_and_then_unknown(history: &'static History) {
    let mongod = Mongod::failing().await;
    let rig = Rig::on(history, &mongod).await;
    obstructed(&rig).await;
    // The first update is refused in its second statement; of the second one nothing is heard.
    fail(&mongod, "write", doc! { "skip": 1 }, doc! { "closeConnection": true }).await;
    let told = rig.append(7, 1_001, history.pages(2.5), ENOUGH).await;
    heal(&mongod).await;
    told.unknown_after(room(history));
    let after = rig.append(7, 2_001, 2, LONG).await;
    after.stored();
    // The last attempt may have come after the end of the fault: all of it then, in its place.
    let late = rig.stored(7).await.numbers.contains(&(1_001 + room(history) as i64));
    let rest = if late { rest(history) } else { Vec::new() };
    check(&rig, &told, &rest.into_iter().chain([2_001, 2_002]).collect::<Vec<_>>()).await;
    mongod.remove().await;
}
