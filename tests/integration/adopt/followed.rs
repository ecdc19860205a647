//! What is inserted into the source after the copy, and meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mongodb::bson::{Bson, DateTime, Document, doc};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::{Moving, trade};
use crate::harness::signal;
use crate::harness::{Mongod, PATIENCE, eventually, spawn};

/// A follower, and what it says.
pub struct Following {
    child: Child,
    said: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Following {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("to run");
        let said: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
        let (mut lines, heard) = (BufReader::new(child.stderr.take().unwrap()).lines(), Arc::clone(&said));
        spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                heard.lock().unwrap().push(line);
            }
        });
        Self { child, said }
    }

    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// Waits for a line that is said from now on.
    pub async fn says(&self, part: &str) {
        let before = self.said().len();
        self.has_said(part, before).await;
    }

    /// Waits for a line after the first `before`.
    pub async fn has_said(&self, part: &str, before: usize) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let said = self.said();
            if said[before.min(said.len())..].iter().any(|line| line.contains(part)) {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "it does not say {part:?}: {said:#?}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// Waits until nothing is left to follow of what was inserted before.
    pub async fn has_no_lag(&self) {
        let now = DateTime::now();
        let is_later = |line: &String| {
            let time =
                line.split_once(" lag 0 s, 0 events;").map(|(time, _)| DateTime::parse_rfc3339_str(time));
            time.is_some_and(|time| time.unwrap() > now)
        };
        eventually("it has no lag", PATIENCE, || async { self.said().iter().any(is_later) }).await;
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Tells it to stop; what it prints.
    pub async fn stop(self, status: i32) -> String {
        signal("TERM", self.pid());
        self.ended(status).await
    }

    /// Waits for its end; what it prints.
    async fn ended(mut self, status: i32) -> String {
        let mut out = String::new();
        use tokio::io::AsyncReadExt;
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("in time").unwrap();
        self.child.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
        assert_eq!(ended.code(), Some(status), "{out}{:#?}", self.said());
        out
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inserts_are_followed_and_other_changes_told() {
    let moving = Moving::new().await;
    let row = |n: i64, at: i64| {
        let mut row = trade(7, n, at);
        row.insert("_id", n);
        row
    };
    moving.old().insert_many((1..=5).map(|n| row(n, 1_000 * n))).await.unwrap();
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    following.has_said("lag 0 s", 0).await;
    moving.old().insert_many((6..=30).map(|n| row(n, 1_000 * n))).await.unwrap();
    // Its date precedes all others: it is appended all the same.
    moving.old().insert_one(row(31, 1)).await.unwrap();
    moving
        .old()
        .insert_one({
            let mut bad = row(32, 1);
            bad.insert("type", "hold");
            bad
        })
        .await
        .unwrap();
    moving.old().update_one(doc! { "_id": 2 }, doc! { "$set": { "quantity": 9 } }).await.unwrap();
    moving.old().delete_one(doc! { "_id": 3 }).await.unwrap();
    following.has_said("not applied: delete of _id 3", 0).await;
    following.has_no_lag().await;
    // Killed now, it goes on where it was.
    following.kill().await;
    moving.old().insert_one(row(33, 33_000)).await.unwrap();
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    following.has_said("stored 1 since the copy", 0).await;
    // What was refused is stored once it is right.
    moving.old().replace_one(doc! { "_id": 32 }, row(32, 34_000)).await.unwrap();
    following.has_said("not applied: replace of _id 32", 0).await;
    following.has_said("stored 2 since the copy", 0).await;
    let said = following.said();
    assert!(!said.iter().any(|line| line.contains("_id 2")), "told once: {said:#?}");
    let out = following.stop(0).await;
    assert!(out.contains("in all: stored 2 trades, 0 were stored before"), "{out}");
    let numbers: Vec<_> = (1..=31).chain([33, 32]).collect();
    assert_eq!(moving.stored(7).await.numbers, numbers, "in the order of arrival");
    let checked = moving.adopted(&["--check"], 1).await;
    assert!(checked.err.contains("_id 2: differs from item 2"), "{checked:?}");
    assert!(
        checked.out.contains("\n1 difference\nin the order of arrival, after later ones: 1 trade"),
        "{checked:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn with_other_names_it_copies_again() {
    let moving = Moving::new().await;
    let mut renamed = trade(7, 2, 2);
    renamed.insert("units", renamed.get("quantity").cloned());
    renamed.remove("quantity");
    moving.old().insert_many([trade(7, 1, 1), renamed]).await.unwrap();
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    following.has_said("lag 0 s", 0).await;
    following.stop(1).await;
    assert_eq!(moving.stored(7).await.numbers, [1]);
    // Again once; then it goes on.
    for (stored, status) in [("stored 1 trade,", 1), ("stored 0 trades,", 0)] {
        let following = Following::start(&mut moving.adopt(&["--follow", "--map", "qty=units"]));
        following.has_said("lag 0 s", 0).await;
        let out = following.stop(status).await;
        assert!(out.contains(&format!("in all: {stored} 0 were stored before")), "{out}");
    }
    moving.stored(7).await.holds_exactly([1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_inserted_before_a_drop_is_stored() {
    let moving = Moving::new().await;
    moving.old().insert_one(trade(7, 1, 1)).await.unwrap();
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    following.has_said("lag 0 s", 0).await;
    moving.old().insert_many((2..=50).map(|n| trade(7, n, n))).await.unwrap();
    moving.old().drop().await.unwrap();
    following.has_said("was dropped or renamed", 0).await;
    moving.stored(7).await.holds_exactly(1..=50);
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_to_buckets_are_followed() {
    let moving = Moving::new().await;
    let item = |n: i64| doc! { "type": "buy", "ticker": "MDB", "qty": n, "date": DateTime::from_millis(n) };
    let bucket = |id: &str, items: Vec<Document>| doc! { "_id": id, "customerId": 7, "count": items.len() as i32, "history": items };
    moving.old().insert_one(bucket("7_1", vec![item(1), item(2)])).await.unwrap();
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    following.has_said("lag 0 s", 0).await;
    let push = async |id: &str, items: Vec<Document>| {
        let update =
            doc! { "$inc": { "count": items.len() as i32 }, "$push": { "history": { "$each": items } } };
        moving.old().update_one(doc! { "_id": id }, update).await.unwrap();
    };
    push("7_1", vec![item(3)]).await;
    push("7_1", vec![item(4), item(5)]).await;
    moving.old().insert_one(bucket("7_2", vec![item(6)])).await.unwrap();
    push("7_2", vec![item(7)]).await;
    following.has_no_lag().await;
    push("7_2", vec![item(8)]).await;
    moving.old().update_one(doc! { "_id": "7_1" }, doc! { "$set": { "history.0.qty": 10 } }).await.unwrap();
    following.has_said("not applied: update of _id \"7_1\"", 0).await;
    following.has_no_lag().await;
    let out = following.stop(0).await;
    assert!(out.contains("not applied: 1 change"), "{out}");
    assert_eq!(moving.stored(7).await.numbers, (1..=8).collect::<Vec<_>>());
    let checked = moving.adopted(&["--check"], 1).await;
    assert!(checked.err.contains("_id \"7_1\" at place 0: differs from item 1"), "{checked:?}");
    assert!(checked.out.contains("\n1 difference\n"), "{checked:?}");
}

/// A server that answers as one whose oplog was truncated: at the start, and while it is followed.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_oplog_has_lost_is_copied_again() {
    const CHANGE_STREAM_HISTORY_LOST: i32 = 286;
    let mongod = Mongod::failing().await;
    let moving = Moving::on(&mongod).await;
    moving.old().insert_many((1..=30).map(|n| trade(n % 3 + 1, n, n))).await.unwrap();
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    following.has_said("lag 0 s", 0).await;
    following.stop(0).await;
    moving.old().insert_one(trade(1, 31, 31)).await.unwrap();
    let lose = async |command: &str| {
        let data = doc! {
            "failCommands": [command], "errorCode": CHANGE_STREAM_HISTORY_LOST, "appName": "old",
        };
        mongod.fail_point("failCommand", doc! { "times": 1 }, data).await;
    };
    lose("aggregate").await;
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    following
        .has_said("no longer reaches back to where following stopped: everything is copied once more", 0)
        .await;
    following.has_said("lag 0 s", 0).await;
    let before = following.said().len();
    lose("getMore").await;
    following.has_said("no longer reaches back", before).await;
    // Then it is copied: what is inserted before would be a part of the copy.
    following.says("lag 0 s").await;
    moving.old().insert_one(trade(1, 34, 34)).await.unwrap();
    following.has_said("stored 1 since the copy", before).await;
    let out = following.stop(0).await;
    assert!(out.contains("in all: stored 2 trades, "), "{out}");
    moving.stored(1).await.holds_exactly((1..=31).filter(|n| n % 3 == 0).chain([31, 34]));
    moving.is_clean(&[]).await;
    mongod.remove().await;
}

/// The source, or the collection of the histories, fails or is slow.
#[tokio::test(flavor = "multi_thread")]
async fn while_databases_fail_nothing_is_lost() {
    const SHUTDOWN_IN_PROGRESS: i32 = 91;
    let mongod = Mongod::failing().await;
    let admin = mongod.client().await.database("admin");
    // Lets commands fail, or be slow; the count of those that were so before.
    let fail = async |mode: Bson, data: Document| {
        let configured = doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data };
        admin.run_command(configured).await.unwrap().get_i32("count").unwrap()
    };
    let have_failed = async |times: i32| {
        let wait = doc! { "waitForFailPoint": "failCommand", "timesEntered": times, "maxTimeMS": 30_000 };
        admin.run_command(wait).await.expect("so many commands fail");
    };
    let source = |commands: &[&str]| {
        // The driver does not go on by itself.
        doc! { "failCommands": commands, "errorCode": SHUTDOWN_IN_PROGRESS, "errorLabels": [], "appName": "old" }
    };
    let stores = |moving: &Moving| {
        let namespace = format!("{}.trades", moving.database.name());
        doc! { "failCommands": ["insert", "update"], "namespace": namespace }
    };
    let failing = |mut data: Document| {
        data.insert("errorCode", SHUTDOWN_IN_PROGRESS);
        data
    };

    // A signal when all of the copy is read, and nothing is stored.
    let moving = Moving::on(&mongod).await;
    moving.old().insert_one(trade(7, 1, 1)).await.unwrap();
    let before = fail("alwaysOn".into(), failing(stores(&moving))).await;
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    have_failed(before + 1).await;
    signal("TERM", following.pid());
    following
        .has_said("stopping: rows that were read are not sent any more; waiting for 1 row under way", 0)
        .await;
    fail("off".into(), doc! {}).await;
    following.ended(0).await;
    moving.stored(7).await.holds_exactly([1]);

    // The new stream gives three changes and fails, and no other is opened for a while.
    moving.old().insert_many((2..=4).map(|n| trade(7, n, n))).await.unwrap();
    let before = fail(doc! { "skip": 1 }.into(), source(&["aggregate", "getMore"])).await;
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    have_failed(before + 1).await;
    let before = fail("alwaysOn".into(), source(&["aggregate"])).await;
    have_failed(before + 3).await;
    fail("off".into(), doc! {}).await;
    following.has_no_lag().await;
    moving.stored(7).await.holds_exactly(1..=4);

    // What is inserted while something else is stored is not stored yet.
    let mut slow = stores(&moving);
    slow.extend(doc! { "blockConnection": true, "blockTimeMS": 1_000 });
    let before = fail(doc! { "times": 2 }.into(), slow).await;
    moving.old().insert_one(trade(7, 5, 5)).await.unwrap();
    have_failed(before + 1).await;
    moving.old().insert_one(trade(7, 6, 6)).await.unwrap();
    following.has_no_lag().await;
    moving.stored(7).await.holds_exactly(1..=6);

    // A signal while nothing can be stored.
    let before = fail("alwaysOn".into(), failing(stores(&moving))).await;
    moving.old().insert_one(trade(7, 7, 7)).await.unwrap();
    have_failed(before + 1).await;
    signal("TERM", following.pid());
    following.has_said("stopping: no more changes are read, and those that were read are stored", 0).await;
    following.ended(0).await;
    fail("off".into(), doc! {}).await;
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    following.has_no_lag().await;
    following.stop(0).await;
    moving.stored(7).await.holds_exactly(1..=7);
    moving.is_clean(&[]).await;
    mongod.remove().await;
}

/// The manual's own statement goes on while its buckets are adopted.
#[tokio::test(flavor = "multi_thread")]
async fn writers_of_the_manual_move_with_it() {
    let moving = Moving::new().await;
    let item = |n: i64| doc! { "type": "buy", "ticker": "MDB", "qty": n, "date": DateTime::from_millis(n) };
    let upsert = {
        let old = moving.old();
        move |customer: i64, n: i64| {
            let old = old.clone();
            async move {
                let update = doc! {
                    "$push": { "history": item(n) }, "$inc": { "count": 1 },
                    "$setOnInsert": { "_id": format!("{customer}_{n:010}"), "customerId": customer },
                };
                let filter = doc! { "_id": { "$regex": format!("^{customer}_") }, "count": { "$lt": 10 } };
                old.update_one(filter, update).upsert(true).await.unwrap();
            }
        }
    };
    for n in 1..=200 {
        upsert(n % 4 + 1, n).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writer = spawn({
        let (stop, upsert) = (Arc::clone(&stop), upsert.clone());
        async move {
            let mut n = 201;
            while !stop.load(Ordering::Relaxed) {
                upsert(n % 4 + 1, n).await;
                n += 1;
            }
            n - 1
        }
    });
    let following = Following::start(&mut moving.adopt(&["--follow"]));
    eventually("something is followed", PATIENCE, || async {
        following
            .said()
            .iter()
            .any(|line| line.contains("since the copy") && !line.contains("stored 0 since"))
    })
    .await;
    stop.store(true, Ordering::Relaxed);
    let last = writer.await.unwrap();
    following.has_no_lag().await;
    following.stop(0).await;
    for customer in 1..=4 {
        let expected: Vec<_> = (1..=last).filter(|n| n % 4 + 1 == customer).collect();
        moving.stored(customer as u64).await.holds_exactly(expected);
    }
    moving.is_clean(&[]).await;
}
