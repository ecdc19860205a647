//! A fault in one owner's history does not affect other owners.

use mongodb::bson::{Bson, DateTime, Decimal128, Document, doc};
use pagebucket_engine::Error;
use pagebucket_engine::appends::AppendCause;

use super::rig::{LONG, Rig, Told};
use crate::harness::{Harm, History, Proxy, Way, shared, test_over};

/// A bucket as no shell of ours writes it.
fn corrupt(history: &History, owner: u64, field: &str, value: impl Into<Bson>) -> Document {
    let mut bucket = history.bucket(owner, 1, 1, &[(1, DateTime::from_millis(0))]);
    bucket.insert(field, value);
    bucket
}

/// The owner of a corrupt bucket.
const CORRUPT: u64 = 40;

test_over!(a_corrupt_tail_concerns_its_owner_alone, SMALL);
async fn a_corrupt_tail_concerns_its_owner_alone(history: &'static History) {
    let rig = Rig::on(history, shared().await).await;
    let buckets = rig.database.collection::<Document>(history.name);
    let date = DateTime::from_millis(0);
    let mut all: Vec<Told> = Vec::new();
    let id = history.id(CORRUPT);
    let mut damages = vec![
        ("_id", Bson::from(format!("{id}_abcdefghij"))),
        ("_id", Bson::from(format!("{}_0000000001", history.id(CORRUPT + 1)))),
        ("_id", Bson::from(date)),
        ("page", Bson::from(1_i32)),
        ("page", Bson::from("1")),
        ("page", Bson::from(0_i64)),
        ("count", Bson::from(history.page_size as i32 + 1)),
        ("count", Bson::from(0_i32)),
        ("count", Bson::from(1_i64)),
        ("count", Bson::Null),
    ];
    if history.owner(CORRUPT).is_number() {
        // Equal to the owner for the server, and of another type.
        damages.extend([
            (history.owner_field, Bson::from(CORRUPT as i32)),
            (history.owner_field, Bson::from(CORRUPT as f64)),
            (history.owner_field, Bson::from(id.parse::<Decimal128>().expect("a number"))),
        ]);
    }
    for (turn, (field, value)) in (1..).zip(damages) {
        let bucket = corrupt(history, CORRUPT, field, value.clone());
        buckets.insert_one(&bucket).bypass_document_validation(true).await.expect("a corrupt bucket");
        let mut merged = false;
        for attempt in 0..20 {
            // Known to nobody, and the corrupt one the last in the queue, so that it is merged with others
            // unless the first are very quick.
            let cold = rig.sibling(shared().await).await;
            let told = cold.append_to_all(1..=CORRUPT, turn * 100 + attempt, 1, LONG).await;
            let (last, others) = told.split_last().expect("some");
            others.iter().for_each(Told::stored);
            let Err(error) = &last.outcome else { panic!("{field} {value}: {last:?}") };
            assert!(
                matches!(error.cause, AppendCause::Database(Error::Corrupt(_))),
                "{field} {value}: {last:?}"
            );
            assert_eq!((error.progress.ranges().len(), error.unknown), (0, 0));
            let updates = cold.sent.updates();
            assert!(updates.iter().all(|update| !update.owners().contains(&CORRUPT)), "not written to");
            all.extend(told.into_iter().filter(|told| told.owner != CORRUPT));
            merged = cold.sent.tail_reads().iter().any(|read| read.contains(&CORRUPT) && read.len() > 1);
            if merged {
                break;
            }
        }
        assert!(merged, "it was read with others");
        buckets.delete_one(doc! { "_id": bucket.get("_id") }).await.expect("to remove it");
    }
    // Mended, it goes on.
    all.push(rig.append(CORRUPT, 1, 1, LONG).await);
    all.iter().for_each(Told::stored);
    rig.check(&all).await;
}

test_over!(a_commit_that_takes_long_keeps_nobody_else_waiting, NOTES);
async fn a_commit_that_takes_long_keeps_nobody_else_waiting(history: &'static History) {
    let mongod = shared().await;
    let proxy = Proxy::before(mongod).await;
    let rig = Rig::through(history, &proxy, mongod).await;
    const MANY: std::ops::RangeInclusive<u64> = 1..=40;
    let mut told = rig.append_to_all(MANY, 1, 1, LONG).await;
    proxy.harm("write", Way::Back, Harm::Hold, 1);
    let held = rig.append(1, 11, 1, LONG);
    let others = async {
        proxy.struck(1).await;
        let others = rig.append_to_all(2..=40, 11, 1, LONG).await;
        // Owner 1 is still being waited for, and only now not any more.
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
