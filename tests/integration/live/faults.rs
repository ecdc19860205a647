//! Live streams under faults: 64 writers to 16 owners over two instances, and 64 readers that are
//! disconnected at random ([`crowd`](mod@super::crowd)); beside them clients that append on a condition
//! ([`race`](mod@crate::harness::race)).

use std::num::NonZero;
use std::time::Duration;

use mongodb::bson::{Document, Timestamp, doc};
use pagebucket_engine::Deadline;
use pagebucket_engine::internal::{Ages, COMMAND, Retention};
use reqwest::Method;

use super::crowd::{self, Crowd, OWNERS};
use crate::exactly_once::ApiProcess;
use crate::harness::race::Race;
use crate::harness::rig::{fail, heal};
use crate::harness::{
    Mongod, PATIENCE, ReplicaSet, Service, Setup, TRADES, Wires, amount, engine, eventually, shared,
};

/// How often each fault strikes.
fn rounds() -> u64 {
    amount(1, 8)
}

async fn two(mongod_uri: &str) -> [Service; 2] {
    let one = Setup::at(mongod_uri).start().await;
    let other = Setup::at(mongod_uri).in_database(&one.database).start().await;
    [one, other]
}

/// Killed, frozen past an election, and told to hand over.
#[tokio::test(flavor = "multi_thread")]
async fn readers_lose_nothing_whatever_becomes_of_the_primary() {
    let set = ReplicaSet::start(Wires::Straight).await;
    let [one, other] = two(set.uri()).await;
    let reading = crowd::begin([&one.client, &other.client], &one.database);
    let race = Race::start([&one.client, &other.client], OWNERS + 1);
    for _ in 0..rounds() {
        let kill = async |crowd: &Crowd| {
            let killed = set.kill_primary().await;
            crowd.goes_on(50).await;
            set.mongod(killed).start().await;
            set.until_well().await;
        };
        reading.through(kill).await;
        race.goes_on(2).await;
        let freeze = async |crowd: &Crowd| {
            let frozen = set.freeze_primary().await;
            // The new primary takes writes, of which the old one knows nothing.
            crowd.goes_on(50).await;
            set.mongod(frozen).thaw().await;
            set.until_well().await;
        };
        reading.through(freeze).await;
        race.goes_on(2).await;
        reading.through(async |_| set.step_down().await).await;
        race.goes_on(2).await;
    }
    race.end(&one.database).await;
    drop((reading, one, other));
    set.remove().await;
}

/// A single mongod, which comes back on its data; and one of the two instances.
#[tokio::test(flavor = "multi_thread")]
async fn readers_lose_nothing_when_mongod_or_an_instance_is_killed() {
    let mongod = Mongod::own().await;
    let one = Setup::on(&mongod).start().await;
    let mut killed = ApiProcess::start(TRADES, mongod.uri(), one.database.name()).await;
    let clients = [&one.client, &killed.client()];
    let reading = crowd::begin(clients, &one.database);
    let race = Race::start(clients, OWNERS + 1);
    for _ in 0..rounds() {
        let kill_mongod = async |_: &Crowd| {
            mongod.kill().await;
            mongod.start().await;
        };
        reading.through(kill_mongod).await;
        race.goes_on(2).await;
        let kill_instance = async |crowd: &Crowd| {
            killed.kill().await;
            crowd.goes_on(50).await;
            killed.restart().await;
        };
        reading.through(kill_instance).await;
        race.goes_on(2).await;
    }
    race.end(&one.database).await;
    killed.kill().await;
    drop((reading, one));
    mongod.remove().await;
}

/// The stream is cut, and now and then it cannot be resumed.
#[tokio::test(flavor = "multi_thread")]
async fn readers_lose_nothing_when_the_change_stream_is_cut() {
    let mongod = Mongod::failing().await;
    let [one, other] = two(mongod.uri()).await;
    let reading = crowd::begin([&one.client, &other.client], &one.database);
    let race = Race::start([&one.client, &other.client], OWNERS + 1);
    for _ in 0..rounds() {
        let harm = async |crowd: &Crowd| {
            for times in [1, 2, 3, 6] {
                // ChangeStreamHistoryLost.
                let how = doc! { "failCommands": ["getMore", "aggregate"], "errorCode": 286 };
                fail(&mongod, "getMore", doc! { "times": times }, how).await;
                crowd.goes_on(100).await;
            }
            heal(&mongod).await;
        };
        reading.through(harm).await;
        race.goes_on(2).await;
    }
    race.end(&one.database).await;
    drop((reading, one, other));
    mongod.remove().await;
}

/// The place in the oplog that the instances have, and that followers of all owners have, is really gone.
#[tokio::test(flavor = "multi_thread")]
async fn readers_lose_nothing_when_the_oplog_rolls() {
    let mongod = Mongod::with_small_oplog().await;
    let [one, other] = two(mongod.uri()).await;
    let (_followed, place) = crate::harness::events::begin_owners(&one.client).await;
    let reading = crowd::begin([&one.client, &other.client], &one.database);
    let race = Race::start([&one.client, &other.client], OWNERS + 1);
    let harm = async |crowd: &Crowd| {
        // Only change streams are aggregates on the database.
        let namespace = format!("{}.$cmd.aggregate", one.database.name());
        let how =
            doc! { "failCommands": ["getMore", "aggregate"], "namespace": namespace, "errorCode": 11600 };
        fail(&mongod, "getMore", "alwaysOn", how).await;
        crowd.goes_on(50).await;
        roll(&mongod).await;
        heal(&mongod).await;
    };
    reading.through(harm).await;
    race.goes_on(2).await;
    race.end(&one.database).await;
    let with = |request: reqwest::RequestBuilder| request.header("Last-Event-ID", &place);
    // As long as mongod is busy with what was rolled, the place cannot be looked for: 503.
    let ask = || one.client.send(Method::GET, "/v1/trades/live", with);
    eventually("an answer about the place", PATIENCE, async || ask().await.status != 503).await;
    ask().await.problem(410, "position-too-old");
    drop((reading, one, other));
    mongod.remove().await;
}

/// Writes until the oplog has nothing of before.
async fn roll(mongod: &Mongod) {
    let client = mongod.client().await;
    let entry = async |direction: i32| {
        let oplog = client.database("local").collection::<Document>("oplog.rs");
        let found = oplog.find_one(doc! {}).sort(doc! { "$natural": direction }).await.expect("the oplog");
        let at: Timestamp = found.and_then(|entry| entry.get_timestamp("ts").ok()).expect("an entry");
        at
    };
    let now = entry(-1).await;
    let other = client.database("other").collection::<Document>("other");
    eventually("the oplog rolls", PATIENCE, async || {
        let filler = (0..4).map(|_| doc! { "filler": "x".repeat(500_000) });
        other.insert_many(filler).await.expect("to write");
        other.delete_many(doc! {}).await.expect("to delete");
        entry(1).await > now
    })
    .await;
}

/// One owner is erased. Readers of another one, who are away meanwhile, are told that what they would get
/// next was retired, and go on with what is there.
#[tokio::test(flavor = "multi_thread")]
async fn readers_are_told_when_owners_are_retired_and_erased() {
    const RETIRED: u64 = 1;
    const ERASED: u64 = 2;
    // Safe, though short: commands may come late on a busy machine.
    let ages = Ages {
        poll: Duration::from_millis(50),
        tail: Duration::from_millis(300),
        command: Duration::from_secs(1),
        marker: Duration::from_secs(5),
        late: Duration::from_millis(200),
    };
    let mongod = shared().await;
    let setup = || Setup::on(mongod).aging(ages);
    let one = setup().start().await;
    let other = setup().in_database(&one.database).start().await;
    let store = setup().in_database(&one.database).store().await;
    let reading = crowd::begin([&one.client, &other.client], &one.database);
    let race = Race::start([&one.client, &other.client], OWNERS + 1);
    let harm = async |crowd: &Crowd| {
        crowd.have_begun().await;
        crowd.offline(RETIRED).await;
        crowd.goes_on(400).await;
        let before = one.client.total(RETIRED).await;
        let (trades, keep) =
            (engine::histories(&store, TRADES), Retention { pages: NonZero::new(2), ..Default::default() });
        eventually("pages are retired", PATIENCE, async || {
            // What takes too long is done again.
            trades.retirement().retire(keep, Deadline::within(COMMAND)).await.ok();
            let listed = one.client.get(&TRADES.at(RETIRED, "?after=0&limit=1")).await.expect(200);
            listed["items"][0]["seq"].as_u64() > Some(before - 40)
        })
        .await;
        crowd.online();
        eventually("an owner is erased", PATIENCE, async || {
            let path = TRADES.owner_path(ERASED);
            one.client.send(Method::DELETE, &path, |request| request).await.status.is_success()
        })
        .await;
    };
    reading.through(harm).await;
    assert!(reading.retired(RETIRED) >= 4, "each of its readers is told");
    race.goes_on(2).await;
    race.end(&one.database).await;
    drop((reading, one, other));
}
