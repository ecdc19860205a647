//! Instances and members of the database are killed, frozen and told to hand over, places in the changes are
//! lost, and owners are erased, while many clients append. In the end each item is measured once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mongodb::bson::doc;
use pagebucket_model::domain::Clock;
use tokio::task::JoinSet;

use super::{SHORT, append, change_build, count, each_once, generations, measurements, raw, term, up_to};
use crate::exactly_once::ApiProcess;
use crate::harness::rig::of_streams;
use crate::harness::rig::{fail, heal};
use crate::harness::signal;
use crate::harness::{
    Client, Mongod, PATIENCE, ReplicaSet, SERIES, Service, Setup, Wires, amount, engine, eventually, shared,
    trade_at,
};

const OWNERS: u64 = 12;

/// Clients that append until they are told to stop. What is not acknowledged may be stored.
struct Writers {
    stop: Arc<AtomicBool>,
    stored: Arc<AtomicU64>,
    tasks: JoinSet<()>,
}

impl Writers {
    fn start(clients: &[Client]) -> Self {
        let (stop, stored) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for owner in 1..=OWNERS {
            let client = clients[owner as usize % clients.len()].clone();
            let (stop, stored) = (Arc::clone(&stop), Arc::clone(&stored));
            tasks.spawn(async move {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    let (day, hour) = (1 + number % 28, number % 24);
                    let trade = trade_at(number, &format!("2024-02-{day:02}T{hour:02}:30:00Z"));
                    let path = client.history.path(owner);
                    let body = trade.to_string();
                    let sent = client.try_send(reqwest::Method::POST, &path, |request| {
                        request.header("content-type", "application/json").body(body)
                    });
                    if sent.await.is_ok_and(|answer| answer.status == 201) {
                        stored.fetch_add(1, Ordering::Relaxed);
                    } else {
                        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    }
                }
            });
        }
        Self { stop, stored, tasks }
    }

    /// Waits until so many more items are stored.
    async fn go_on(&self, items: u64) {
        let wanted = self.stored.load(Ordering::Relaxed) + items;
        eventually("clients append", PATIENCE, async || self.stored.load(Ordering::Relaxed) >= wanted).await;
    }

    async fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        while self.tasks.join_next().await.is_some() {}
    }
}

/// In the end: each once, nothing else, the service counts as many, and it says that nothing is behind.
async fn is_exact(client: &Client, database: &mongodb::Database, owners: u64) {
    let ended = Clock::system().now().to_string();
    each_once(client, database, 1..=owners).await;
    let mut total = 0;
    for owner in 1..=owners {
        total += client.total(owner).await;
    }
    assert_eq!(count(client).await, total);
    eventually("it has caught up", PATIENCE, async || up_to(client).await.is_some_and(|up_to| up_to > ended))
        .await;
}

/// Erases an owner, whatever becomes of the database meanwhile.
async fn erase(client: Client, owner: u64) {
    let path = format!("/v1/customers/{owner}");
    eventually("an owner is erased", PATIENCE, async || {
        let answer = client.try_send(reqwest::Method::DELETE, &path, |request| request).await;
        answer.is_ok_and(|answer| answer.status == 200)
    })
    .await;
}

async fn two(uri: &str) -> [Service; 2] {
    let one = Setup::at(uri).of(SERIES).aging(SHORT).start().await;
    let other = Setup::at(uri).of(SERIES).aging(SHORT).in_database(&one.database).start().await;
    [one, other]
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_killed_and_stopped() {
    let mongod = Mongod::own().await;
    let lasting = Setup::on(&mongod).of(SERIES).start().await;
    let mut killed = ApiProcess::start(SERIES, mongod.uri(), lasting.database.name()).await;
    let clients = [lasting.client.clone(), killed.client()];
    let database = lasting.database.clone();
    lasting.stop().await;
    let writers = Writers::start(&clients[1..]);
    for _ in 0..amount(3, 12) {
        writers.go_on(60).await;
        killed.kill().await;
        killed.restart().await;
    }
    // Stopped for longer than a lease, while another instance feeds.
    let other = Setup::on(&mongod).of(SERIES).aging(SHORT).in_database(&database).start().await;
    writers.go_on(60).await;
    signal("STOP", killed.pid());
    append(&other.client, OWNERS + 1, 1..=5).await;
    eventually("the other one feeds", PATIENCE, async || {
        measurements(&database).await.get(&(OWNERS + 1)).is_some_and(|of_one| of_one.len() == 5)
    })
    .await;
    signal("CONT", killed.pid());
    writers.go_on(60).await;
    writers.end().await;
    is_exact(&other.client, &database, OWNERS + 1).await;
    killed.kill().await;
    drop(other);
    mongod.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mongod_is_killed() {
    let mongod = Mongod::own().await;
    let [one, other] = two(mongod.uri()).await;
    let writers = Writers::start(&[one.client.clone(), other.client.clone()]);
    let mut erasures = JoinSet::new();
    for round in 1..=amount(2, 12) {
        let erased = OWNERS + round;
        append(&one.client, erased, 1..=30).await;
        writers.go_on(60).await;
        erasures.spawn(erase(other.client.clone(), erased));
        mongod.kill().await;
        mongod.start().await;
        // An append that is sent earlier may be told that the database is away.
        writers.go_on(1).await;
    }
    writers.go_on(60).await;
    erasures.join_all().await;
    writers.end().await;
    is_exact(&one.client, &one.database, OWNERS).await;
    drop((one, other));
    mongod.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_primary_is_killed_frozen_and_told_to_hand_over() {
    let set = ReplicaSet::start(Wires::Straight).await;
    let [one, other] = two(set.uri()).await;
    let writers = Writers::start(&[one.client.clone(), other.client.clone()]);
    for _ in 0..amount(1, 8) {
        writers.go_on(60).await;
        let killed = set.kill_primary().await;
        writers.go_on(60).await;
        set.mongod(killed).start().await;
        set.until_well().await;
        let frozen = set.freeze_primary().await;
        writers.go_on(60).await;
        set.mongod(frozen).thaw().await;
        set.until_well().await;
        set.step_down().await;
        writers.go_on(60).await;
    }
    writers.end().await;
    is_exact(&one.client, &one.database, OWNERS).await;
    drop((one, other));
    set.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inserts_fail_in_every_way() {
    let mongod = Mongod::failing().await;
    let [one, other] = two(mongod.uri()).await;
    let writers = Writers::start(&[one.client.clone(), other.client.clone()]);
    let namespace = format!("{}.{}", one.database.name(), raw(&one.database).await);
    for round in 0..amount(4, 20) {
        writers.go_on(50).await;
        let how = match round % 4 {
            // Before it runs, and after.
            0 => doc! { "failCommands": ["insert"], "namespace": &namespace, "errorCode": 10107 },
            1 => doc! { "failCommands": ["insert"], "namespace": &namespace, "closeConnection": true },
            2 => doc! {
                "failCommands": ["insert"], "namespace": &namespace,
                "writeConcernError": { "code": 64, "errmsg": "waiting for replication timed out" },
            },
            // The place in the changes is lost.
            _ => doc! { "failCommands": ["getMore", "aggregate"], "errorCode": 286 },
        };
        fail(&mongod, if round % 4 == 3 { "getMore" } else { "insert" }, doc! { "times": 2 }, how).await;
        writers.go_on(50).await;
        heal(&mongod).await;
    }
    writers.end().await;
    is_exact(&one.client, &one.database, OWNERS).await;
    drop((one, other));
    mongod.remove().await;
}

/// As from a place that is far behind, from which the server reads its oplog for longer than an answer may
/// take at first.
#[tokio::test(flavor = "multi_thread")]
async fn a_feeder_waits_for_an_answer_that_takes_long() {
    let mongod = Mongod::failing().await;
    let service = Setup::on(&mongod).of(SERIES).start().await;
    let database = service.database.clone();
    append(&service.client, 1, 1..=3).await;
    each_once(&service.client, &database, [1]).await;
    service.stop().await;
    let slow = doc! { "blockConnection": true, "blockTimeMS": 12_000 };
    let how = of_streams(&database, &["aggregate", "getMore"], slow);
    fail(&mongod, "getMore", "alwaysOn", how).await;
    let service = Setup::on(&mongod).of(SERIES).in_database(&database).start().await;
    append(&service.client, 2, 1..=3).await;
    each_once(&service.client, &database, 1..=2).await;
    mongod.remove().await;
}

/// The place that is remembered is too old, or was never one: all owners are looked at, and nothing is
/// measured twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_place_loses_and_doubles_nothing() {
    let service = Setup::on(shared().await).of(SERIES).start().await;
    let database = service.database.clone();
    for owner in 1..=OWNERS {
        append(&service.client, owner, 1..=owner * 7).await;
    }
    is_exact(&service.client, &database, OWNERS).await;
    service.stop().await;
    let store = Setup::on(shared().await).of(SERIES).in_database(&database).store().await;
    for owner in 1..=OWNERS {
        let items = vec![engine::dated(SERIES, 1_000, 1_708_000_000_000)];
        let trades = engine::histories(&store, SERIES);
        let owner = engine::owner(SERIES, owner);
        let append = engine::append(owner, items, pagebucket_engine::Deadline::within(PATIENCE));
        trades.appends().append(append).await.expect("stored");
    }
    // A time in 1970, which no log has any more.
    change_build(&database, doc! { "place": "8200000001000000012B0229296E04" }).await;
    let service = Setup::on(shared().await).of(SERIES).in_database(&database).start().await;
    is_exact(&service.client, &database, OWNERS).await;
    assert!(generations(&database).await.values().all(|generation| *generation == 0));
    assert_eq!(measurements(&database).await.len() as u64, OWNERS);
}

/// It is not known then what an owner has.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_read_is_not_taken_for_nothing() {
    let mongod = Mongod::failing().await;
    let service = Setup::on(&mongod).of(SERIES).aging(SHORT).start().await;
    append(&service.client, 1, 1..=3).await;
    each_once(&service.client, &service.database, [1]).await;
    let before = term(&service.database).await;
    // OperationFailed, of the commands that read tails, but not of that of the append.
    let namespace = format!("{}.trades", service.database.name());
    fail(&mongod, "aggregate", doc! { "skip": 1 }, doc! { "namespace": namespace, "errorCode": 96 }).await;
    append(&service.client, 2, 1..=3).await;
    eventually("the feeder begins again", PATIENCE, async || term(&service.database).await > before).await;
    heal(&mongod).await;
    each_once(&service.client, &service.database, [1, 2]).await;
    mongod.remove().await;
}

/// A lease lasts ten seconds, and an instance that reads for longer keeps it.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_read_loses_no_lease() {
    let mongod = Mongod::failing().await;
    let [one, _other] = two(mongod.uri()).await;
    append(&one.client, 1, 1..=3).await;
    each_once(&one.client, &one.database, [1]).await;
    let before = term(&one.database).await;
    // The position of an owner is not known yet.
    let namespace = format!("{}.{}", one.database.name(), raw(&one.database).await);
    let how = doc! { "namespace": namespace, "blockConnection": true, "blockTimeMS": 13_000 };
    fail(&mongod, "aggregate", doc! { "times": 1 }, how).await;
    append(&one.client, 2, 1..=3).await;
    each_once(&one.client, &one.database, [1, 2]).await;
    assert_eq!(term(&one.database).await, before);
    mongod.remove().await;
}

/// A feeder whose change stream breaks, or loses its place, goes on with another stream. It needs no other
/// lease for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_feeder_outlasts_its_change_stream() {
    let mongod = Mongod::failing().await;
    let service = Setup::on(&mongod).of(SERIES).start().await;
    append(&service.client, 1, 1..=3).await;
    each_once(&service.client, &service.database, [1]).await;
    let before = term(&service.database).await;
    let mut owners = 1;
    // FailedToSatisfyReadPreference, ChangeStreamHistoryLost.
    for code in [133, 286] {
        let how = of_streams(&service.database, &["getMore"], doc! { "errorCode": code });
        fail(&mongod, "getMore", doc! { "times": 2 }, how).await;
        for _ in 0..3 {
            owners += 1;
            append(&service.client, owners, 1..=3).await;
            each_once(&service.client, &service.database, 1..=owners).await;
        }
        heal(&mongod).await;
    }
    assert_eq!(term(&service.database).await, before);
    mongod.remove().await;
}
