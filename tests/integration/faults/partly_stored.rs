//! An append that another writer cuts in two, and a database that goes away before its second half.

use std::time::Duration;

use mongodb::bson::{DateTime, Document, doc};

use super::rig::{LONG, Rig, Told};
use super::updates::{fail, heal};
use crate::harness::{Mongod, tests};

tests!["faults": partly_stored, partly_stored_and_then_unknown, another_writer_between_two_buckets];

/// Longer than a read waits for the database to come back.
const ENOUGH: Duration = Duration::from_secs(2);

/// A history of five, which the store knows, and another's page 2 with one trade in its way: whoever
/// fills page 1 makes it a good history again.
async fn obstructed(rig: &Rig) -> Told {
    let before = rig.append(7, 1, 5, LONG).await;
    before.stored();
    let trades = rig.database.collection::<Document>("trades");
    let date = DateTime::from_millis(1_698_349_623_000);
    let trade = doc! { "type": "buy", "ticker": "MDB", "qty": 900_i64, "date": date };
    let bucket = doc! {
        "_id": "7_1698349700", "customerId": 7_i64, "page": 2_i64, "count": 1, "first": date, "last": date,
        "history": [trade],
    };
    trades.insert_one(bucket).await.expect("a valid bucket");
    rig.sent.forget();
    before
}

async fn check(rig: &Rig, told: &Told, more: &[i64]) {
    let stored = crate::harness::history(&rig.database, 7).await.quantities;
    // The five before, the five that found room, the one of the other writer.
    let expected: Vec<i64> = (1..=5).chain(101..=105).chain([900]).chain(more.iter().copied()).collect();
    assert_eq!(stored, expected);
    assert_eq!(told.seqs()[..5], [6, 7, 8, 9, 10]);
    rig.sent.replays_are_identical();
}

async fn another_writer_between_two_buckets() {
    let mongod = Mongod::failing().await;
    let rig = Rig::on(&mongod).await;
    obstructed(&rig).await;
    let told = rig.append(7, 101, 25, LONG).await;
    told.stored();
    assert_eq!(told.seqs(), (6..=10).chain(12..=31).collect::<Vec<_>>(), "around the other's trade");
    check(&rig, &told, &(106..=125).collect::<Vec<_>>()).await;
    assert_eq!(rig.sent.updates().len(), 2, "one refusal, one retry");
    mongod.remove().await;
}

async fn partly_stored() {
    let mongod = Mongod::failing().await;
    let rig = Rig::on(&mongod).await;
    obstructed(&rig).await;
    fail(&mongod, "aggregate", "alwaysOn", doc! { "closeConnection": true }).await;
    let told = rig.append(7, 101, 25, ENOUGH).await;
    heal(&mongod).await;
    told.unavailable_after(5);
    check(&rig, &told, &[]).await;
    let after = rig.append(7, 201, 2, LONG).await;
    assert_eq!(after.seqs(), [12, 13]);
    check(&rig, &told, &[201, 202]).await;
    mongod.remove().await;
}

async fn partly_stored_and_then_unknown() {
    let mongod = Mongod::failing().await;
    let rig = Rig::on(&mongod).await;
    obstructed(&rig).await;
    // The first update is refused in its second statement; of the second one nothing is heard.
    fail(&mongod, "update", doc! { "skip": 1 }, doc! { "closeConnection": true }).await;
    let told = rig.append(7, 101, 25, ENOUGH).await;
    heal(&mongod).await;
    told.unknown_after(5);
    let after = rig.append(7, 201, 2, LONG).await;
    after.stored();
    let late =
        rig.database.collection::<Document>("trades").count_documents(doc! { "customerId": 7_i64 }).await;
    // The last attempt may have come after the end of the fault: all of it then, in its place.
    if late.expect("a count") == 2 {
        check(&rig, &told, &[201, 202]).await;
    } else {
        check(&rig, &told, &(106..=125).chain([201, 202]).collect::<Vec<_>>()).await;
    }
    mongod.remove().await;
}
