//! What is wrong with one customer costs nobody else anything.

use mongodb::bson::{Bson, DateTime, Decimal128, Document, doc};
use pagebucket::store::Error;
use pagebucket::store::history::Cause;

use super::rig::{LONG, Rig, Told};
use crate::harness::{Harm, Proxy, Way, shared, tests};

tests!["faults":
    a_corrupt_tail_concerns_its_customer_alone,
    a_commit_that_takes_long_keeps_nobody_else_waiting,
];

/// A bucket as no shell of ours writes it.
fn corrupt(customer: u64, field: &str, value: impl Into<Bson>) -> Document {
    let date = DateTime::from_millis(0);
    let trade = doc! { "type": "buy", "ticker": "MDB", "qty": 1_i64, "date": date };
    let mut bucket = doc! {
        "_id": format!("{customer}_0000000001"), "customerId": customer as i64, "page": 1_i64, "count": 1,
        "first": date, "last": date, "history": [trade],
    };
    bucket.insert(field, value);
    bucket
}

async fn a_corrupt_tail_concerns_its_customer_alone() {
    let rig = Rig::on(shared().await).await;
    let trades = rig.database.collection::<Document>("trades");
    let date = DateTime::from_millis(0);
    let mut all: Vec<Told> = Vec::new();
    for (turn, (field, value)) in (1..).zip([
        ("_id", Bson::from("40_abcdefghij")),
        ("_id", Bson::from("41_0000000001")),
        ("_id", Bson::from(date)),
        ("page", Bson::from(1_i32)),
        ("page", Bson::from("1")),
        ("page", Bson::from(0_i64)),
        ("count", Bson::from(11_i32)),
        ("count", Bson::from(0_i32)),
        ("count", Bson::from(1_i64)),
        ("count", Bson::Null),
        ("customerId", Bson::from(40_i32)),
        ("customerId", Bson::from(40.0)),
        ("customerId", Bson::from("40".parse::<Decimal128>().expect("a number"))),
    ]) {
        let bucket = corrupt(40, field, value.clone());
        trades.insert_one(&bucket).bypass_document_validation(true).await.expect("a corrupt bucket");
        let mut merged = false;
        for attempt in 0..20 {
            // Known to nobody, and the corrupt one the last in the queue, so that it is merged with others
            // unless the first are very quick.
            let cold = rig.sibling(shared().await).await;
            let told = cold.append_to_all(1..=40, turn * 100 + attempt, 1, LONG).await;
            let (last, others) = told.split_last().expect("some");
            others.iter().for_each(Told::stored);
            let Err(error) = &last.outcome else { panic!("{field} {value}: {last:?}") };
            assert!(matches!(error.cause, Cause::Database(Error::Corrupt(_))), "{field} {value}: {last:?}");
            assert_eq!((error.progress.ranges().len(), error.unknown), (0, 0));
            let updates = cold.sent.updates();
            assert!(updates.iter().all(|update| !update.customers().contains(&40)), "not written to");
            all.extend(told.into_iter().filter(|told| told.customer != 40));
            merged = cold.sent.tail_reads().iter().any(|read| read.contains(&40) && read.len() > 1);
            if merged {
                break;
            }
        }
        assert!(merged, "it was read with others");
        trades.delete_one(doc! { "_id": bucket.get("_id") }).await.expect("to remove it");
    }
    // Mended, it goes on.
    all.push(rig.append(40, 1, 1, LONG).await);
    all.iter().for_each(Told::stored);
    rig.check(&all).await;
}

async fn a_commit_that_takes_long_keeps_nobody_else_waiting() {
    let mongod = shared().await;
    let proxy = Proxy::before(mongod).await;
    let rig = Rig::through(&proxy, mongod).await;
    const MANY: std::ops::RangeInclusive<u64> = 1..=40;
    let mut told = rig.append_to_all(MANY, 1, 1, LONG).await;
    proxy.harm("update", Way::Back, Harm::Hold, 1);
    let held = rig.append(1, 11, 1, LONG);
    let others = async {
        proxy.struck(1).await;
        let others = rig.append_to_all(2..=40, 11, 1, LONG).await;
        // Customer 1 is still being waited for, and only now not any more.
        assert_eq!(proxy.strikes(), 1);
        proxy.relent();
        others
    };
    let (held, others) = tokio::join!(held, others);
    told.extend(others);
    told.push(held);
    told.iter().for_each(Told::stored);
    assert_eq!(rig.check(&told).await.len(), 80);
}
