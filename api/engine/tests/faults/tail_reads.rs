//! Faults of the read that finds a tail: nothing has been sent, so nothing is unknown.

use mongodb::bson::{Document, doc};

use super::rig::{LONG, Rig, SHORT, Told};
use crate::harness::rig::{fail, heal};
use crate::harness::{History, Mongod, test_over};

fn faults() -> Vec<Document> {
    let codes = [10107, 189, 11602, 91].map(|code| doc! { "errorCode": code });
    [doc! { "closeConnection": true }].into_iter().chain(codes).collect()
}

const MANY: std::ops::RangeInclusive<u64> = 101..=140;

test_over!(a_tail_read_that_fails_now_and_then, NOTES);
async fn a_tail_read_that_fails_now_and_then(history: &'static History) {
    let mongod = Mongod::failing().await;
    let mut rig = Rig::on(history, &mongod).await;
    let several = history.pages(2.5);
    let mut told = rig.append_to_all([7, 8].into_iter().chain(MANY), 1, 5, LONG).await;
    let mut next = 11;
    for how in faults() {
        for times in [1, 3] {
            // An instance that knows no tail.
            rig = rig.sibling(&mongod).await;
            fail(&mongod, "aggregate", doc! { "times": times }, how.clone()).await;
            let (one, some, many) = tokio::join!(
                rig.append(7, next, 1, LONG),
                rig.append(8, next, several, LONG),
                rig.append_to_all(MANY, next, 1, LONG),
            );
            let all: Vec<Told> = [one, some].into_iter().chain(many).collect();
            all.iter().for_each(Told::stored);
            told.extend(all);
            next += several;
            assert!(rig.sent.nothing_is_placed_anew().iter().all(|&times| times == 1), "{how}");
        }
    }
    let stored = rig.check(&told).await;
    assert_eq!(stored.len(), told.iter().map(|told| told.seqs().len()).sum::<usize>());
    mongod.remove().await;
}

test_over!(a_tail_read_that_always_fails, NOTES);
async fn a_tail_read_that_always_fails(history: &'static History) {
    let mongod = Mongod::failing().await;
    let mut rig = Rig::on(history, &mongod).await;
    let several = history.pages(2.5);
    let mut told = rig.append_to_all([7, 8].into_iter().chain(MANY), 1, 5, LONG).await;
    let blocked = doc! { "blockConnection": true, "blockTimeMS": 4000 };
    for how in faults().into_iter().chain([blocked]) {
        rig = rig.sibling(&mongod).await;
        fail(&mongod, "aggregate", "alwaysOn", how.clone()).await;
        let (one, some, many) = tokio::join!(
            rig.append(7, 1001, 1, SHORT),
            rig.append(8, 1001, several, SHORT),
            rig.append_to_all(MANY, 1001, 1, SHORT),
        );
        heal(&mongod).await;
        let all: Vec<Told> = [one, some].into_iter().chain(many).collect();
        for told in &all {
            // An append that did not come to its turn says so.
            if !matches!(told.outcome, Err(ref error) if matches!(error.cause, pagebucket_engine::appends::AppendCause::Late))
            {
                told.unavailable_after(0);
            }
        }
        assert!(rig.sent.updates().is_empty(), "nothing was sent: {how}");
        told.extend(all);
    }
    told.extend(rig.append_to_all([7, 8].into_iter().chain(MANY), 11, 1, LONG).await);
    let stored = rig.check(&told).await;
    assert_eq!(stored.len(), 42 * 6);

    // Not "not now", but "never": at once, and no retry.
    let cold = rig.sibling(&mongod).await;
    fail(&mongod, "aggregate", "alwaysOn", doc! { "errorCode": 8 }).await;
    let refused = cold.append(7, 2001, 1, LONG).await;
    heal(&mongod).await;
    let Err(error) = &refused.outcome else { panic!("{refused:?}") };
    assert!(error.progress.ranges().is_empty() && error.unknown == 0, "{refused:?}");
    assert_eq!(cold.sent.tail_reads().len(), 1);
    mongod.remove().await;
}
