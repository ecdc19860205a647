//! Faults of the `update` command that the server itself makes.

use futures_util::TryStreamExt;
use mongodb::bson::{Document, doc};

use super::rig::{LONG, Rig, SHORT, SHORT_BUT_PATIENT, Told};
use crate::harness::rig::{fail, heal};
use crate::harness::{History, Mongod, eventually, test_over};

/// What is wrong with the next updates.
fn faults() -> Vec<(&'static str, Document)> {
    // NotWritablePrimary, PrimarySteppedDown, InterruptedDueToReplStateChange, ShutdownInProgress.
    let codes = [10107, 189, 11602, 91];
    let code = codes.map(|code| ("an error code", doc! { "errorCode": code }));
    // Applied, but not known to last: ShutdownInProgress, WriteConcernFailed.
    let concern = [91, 64].map(|code| {
        ("a write concern error", doc! { "writeConcernError": { "code": code, "errmsg": "of the test" } })
    });
    let mut faults = vec![("a closed connection", doc! { "closeConnection": true })];
    faults.extend(code);
    faults.extend(concern);
    faults
}

const MANY: std::ops::RangeInclusive<u64> = 101..=140;

/// Some command spoke of several owners.
#[track_caller]
fn were_merged(rig: &Rig) {
    assert!(rig.sent.updates().iter().any(|update| update.owners().len() > 1), "commits were merged");
}

test_over!(an_update_that_fails_now_and_then_is_stored_once, TRADES);
async fn an_update_that_fails_now_and_then_is_stored_once(history: &'static History) {
    let mongod = Mongod::failing().await;
    let rig = Rig::on(history, &mongod).await;
    let mut told: Vec<Told> = Vec::new();
    let (mut next, mut total) = (1, 0);
    for (what, how) in faults() {
        for times in [1, 3] {
            // A bucket, several of them, and several owners in a commit.
            for count in [1, history.pages(2.5)] {
                rig.sent.forget();
                fail(&mongod, "write", doc! { "times": times }, how.clone()).await;
                // Also what is stored though its answer is lost is no other total than the one that it
                // expects.
                told.push(rig.append_after(7, total, next, count).await);
                told.last().expect("one").stored();
                (next, total) = (next + count, total + count);
                assert_eq!(rig.sent.nothing_is_placed_anew(), [times as usize + 1], "{what}, {count} items");
            }
            rig.sent.forget();
            fail(&mongod, "write", doc! { "times": times }, how.clone()).await;
            let all = rig.append_to_all(MANY, next, 1, LONG).await;
            all.iter().for_each(Told::stored);
            next += 1;
            were_merged(&rig);
            assert!(rig.sent.nothing_is_placed_anew().iter().any(|&times| times > 1), "{what} struck");
            told.extend(all);
        }
    }
    let stored = rig.check(&told).await;
    assert_eq!(stored.len(), told.iter().map(|told| told.seqs().len()).sum::<usize>());
    mongod.remove().await;
}

test_over!(an_update_that_always_fails_is_unknown, TRADES);
async fn an_update_that_always_fails_is_unknown(history: &'static History) {
    let mongod = Mongod::failing().await;
    let rig = Rig::on(history, &mongod).await;
    let mut told: Vec<Told> = Vec::new();
    let mut next = 1;
    // Other customers each time: what was given up may come late, and would leave them at a page's end,
    // where each has a command of its own.
    let mut others = 101..=140_u64;
    let (before, several) = (history.pages(0.3).max(1), history.pages(2.5));
    // With room for all of it on their page, so that they are merged.
    let few = history.pages(0.2).max(1);
    for how in [
        doc! { "closeConnection": true },
        doc! { "errorCode": 11602 },
        doc! { "writeConcernError": { "code": 64, "errmsg": "of the test" } },
    ] {
        let applied = how.contains_key("writeConcernError");
        // So that there is something before, and a page to fill.
        told.extend(rig.append_to_all([7, 8].into_iter().chain(others.clone()), next, before, LONG).await);
        rig.sent.forget();
        fail(&mongod, "write", "alwaysOn", how.clone()).await;
        let (one, some, many) = tokio::join!(
            rig.append(7, next + before, 1, SHORT),
            rig.append(8, next + before, several, SHORT),
            rig.append_to_all(others.clone(), next + before, few, SHORT_BUT_PATIENT),
        );
        heal(&mongod).await;
        let unknown: Vec<Told> = [one, some].into_iter().chain(many).collect();
        unknown.iter().for_each(|told| told.unknown_after(0));
        were_merged(&rig);
        next += before + several;
        // What was given up has been tried for the last time before these are acknowledged, or
        // finds them in its way: either way nothing of it comes later.
        let after = rig.append_to_all([7, 8].into_iter().chain(others.clone()), next, 1, LONG).await;
        after.iter().for_each(Told::stored);
        next += 1;
        if applied {
            for unknown in &unknown {
                let stored = rig.stored(unknown.owner).await.numbers;
                assert!(unknown.numbers().all(|number| stored.contains(&number)), "{unknown:?}");
            }
        }
        rig.sent.replays_are_identical();
        others = others.start() + 100..=others.end() + 100;
        told.extend(unknown);
        told.extend(after);
        let stored = rig.check(&told).await;
        println!("{how} throughout: {} items are stored", stored.len());
    }
    mongod.remove().await;
}

test_over!(a_stepdown_between_two_buckets, TRADES);
async fn a_stepdown_between_two_buckets(history: &'static History) {
    let mongod = Mongod::failing().await;
    let rig = Rig::on(history, &mongod).await;
    let count = history.pages(3.5);
    let mut told: Vec<Told> = Vec::new();
    let mut next = 1;
    for (owner, how) in (1..).zip([
        // InterruptedDueToReplStateChange, PrimarySteppedDown, ShutdownInProgress: nothing of the statement.
        doc! { "failBeforeCommitExceptionCode": 11602, "closeConnection": false },
        doc! { "failBeforeCommitExceptionCode": 189, "closeConnection": false },
        doc! { "failBeforeCommitExceptionCode": 91, "closeConnection": false },
        doc! { "failBeforeCommitExceptionCode": 11602, "closeConnection": true },
        // The statement is applied, and the connection is gone.
        doc! { "closeConnection": true },
    ]) {
        // The first bucket goes well, the second or the third does not.
        for skip in [1, 2] {
            rig.sent.forget();
            // A fail point has no mode for "the second time, once": it strikes until it is lifted.
            mongod.fail_point("onPrimaryTransactionalWrite", doc! { "skip": skip }, how.clone()).await;
            let (one, ()) = tokio::join!(rig.append(owner, next, count, LONG), async {
                eventually("a replay", LONG, || async { rig.sent.updates().len() > 1 }).await;
                mongod.fail_point("onPrimaryTransactionalWrite", "off", doc! {}).await;
            });
            one.stored();
            told.push(one);
            next += count;
            let sent = rig.sent.nothing_is_placed_anew();
            assert!(matches!(sent[..], [times] if times > 1), "{sent:?} {how}");
        }
    }
    let stored = rig.check(&told).await;
    assert_eq!(stored.len() as u64, told.len() as u64 * count);
    mongod.remove().await;
}

test_over!(an_update_blocked_past_its_deadline, TRADES);
async fn an_update_blocked_past_its_deadline(history: &'static History) {
    let mongod = Mongod::failing().await;
    let rig = Rig::on(history, &mongod).await;
    let block = doc! { "blockConnection": true, "blockTimeMS": 6000 };
    let (half, many) = (history.pages(0.5), history.pages(2.5));
    let before = rig.append_to_all([1, 2, 3, 4], 1, half, LONG).await;
    fail(&mongod, "write", doc! { "times": 2 }, block).await;
    rig.sent.forget();
    let (one, several) = tokio::join!(rig.append(1, 1_001, 1, SHORT), rig.append(2, 1_001, many, SHORT));
    one.unknown_after(0);
    several.unknown_after(0);
    let sessions: Vec<_> = rig.sent.updates().into_iter().map(|update| update.session).collect();
    assert_eq!(sessions.len(), 2);

    // Others, and the first owner, are not kept waiting, and have other sessions.
    rig.sent.forget();
    let after = rig.append_to_all([1, 3, 4], 2_001, 1, LONG).await;
    after.iter().for_each(Told::stored);
    assert_eq!(after[0].seqs(), [half + 1], "nothing of what is blocked is there yet");
    assert!(rig.sent.updates().iter().all(|update| !sessions.contains(&update.session)));

    // What was blocked runs at last: into the tail that it named, if that is still there.
    let mut told: Vec<Told> = before.into_iter().chain([one, several]).chain(after).collect();
    let ended = || async {
        let admin = mongod.client().await.database("admin");
        let ours = doc! { "$match": { "appName": "pagebucket", "command.update": history.name } };
        let running = admin.aggregate([doc! { "$currentOp": {} }, ours]).await.expect("operations");
        running.try_collect::<Vec<_>>().await.expect("operations").is_empty()
    };
    eventually("the end of what was blocked", LONG, ended).await;
    told.extend(rig.append_to_all([1, 2], 3_001, 1, LONG).await);
    assert_eq!(told[told.len() - 2].seqs(), [half + 2], "owner 1: refused, because another was in its place");
    assert_eq!(
        told[told.len() - 1].seqs(),
        [half + 1],
        "owner 2: its command opens pages, and ended with its time"
    );
    rig.check(&told).await;
    mongod.remove().await;
}
