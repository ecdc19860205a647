//! Reads across elections: totals and trades that were shown or acknowledged are shown by every later
//! primary, and nothing else is.

use std::time::Duration;

use futures_util::future::join_all;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use pagebucket_engine::Deadline;
use pagebucket_model::domain::{Cursor, DateRange, Instant as Moment, Position};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::harness::events::Events;
use crate::harness::rig::{fail, heal};
use crate::harness::{
    Client, ITEM_NOT_FOUND, Mongod, PATIENCE, ReplicaSet, Service, Setup, TOTAL, TRADES, Wires, engine,
    eventually, spawn, trade,
};

/// Long enough for a read that waits for a primary to catch up.
const LONG: Duration = Duration::from_secs(25);

fn many(quantities: std::ops::RangeInclusive<u64>) -> Value {
    quantities.map(trade).collect()
}

/// A service on the set, which remembers no page.
async fn service(set: &ReplicaSet, database: Option<&Database>) -> Service {
    let mut setup = Setup::at(set.uri());
    setup.config.api.page_cache = 0;
    if let Some(database) = database {
        setup.connection.database = database.name().to_owned();
    }
    setup.start().await
}

/// How many trades of a customer a member shows, at this read concern; nothing while it shows none to
/// anybody.
async fn shown_by(mongod: &Mongod, level: &str, database: &Database, customer: i64) -> Option<i64> {
    let find = doc! {
        "find": "trades", "filter": { "customerId": customer }, "batchSize": 1_000,
        "readConcern": { "level": level },
    };
    let found = mongod.client().await.database(database.name()).run_command(find).await.ok()?;
    let buckets = found.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch")).ok()?;
    let count = |bucket: &Bson| bucket.as_document().and_then(|bucket| bucket.get_i32("count").ok());
    buckets.iter().map(|bucket| count(bucket).map(i64::from)).sum()
}

/// A secondary that takes everything in, and does not learn what a majority has.
struct Lagging<'a> {
    set: &'a ReplicaSet,
    database: &'a Database,
    member: usize,
}

impl<'a> Lagging<'a> {
    /// It knows that a majority has `shown` trades of customer 7, and learns of no more.
    async fn after(set: &'a ReplicaSet, database: &'a Database, shown: i64) -> Self {
        set.hold_elections().await;
        let member = set.others(set.primary().await).next().expect("three members");
        let mongod = set.mongod(member);
        eventually("it is replicated", PATIENCE, || async {
            shown_by(mongod, "majority", database, 7).await == Some(shown)
        })
        .await;
        mongod.fail_point("disableSnapshotting", "alwaysOn", doc! {}).await;
        Self { set, database, member }
    }

    /// Makes it the primary, as which it shows as little as before to those who do not ask for more.
    async fn elect(&self, shown: i64) {
        self.set.elect(self.member).await;
        assert_eq!(
            shown_by(self.set.mongod(self.member), "majority", self.database, 7).await,
            Some(shown),
            "it lags"
        );
    }

    /// Lets it learn what a majority has, once these reads wait for that, or one does not.
    async fn catch_up<T>(&self, reads: &[JoinHandle<T>]) {
        let mongod = self.set.mongod(self.member);
        let waiting = || async {
            let find = doc! { "command.find": "trades", "command.readConcern.afterClusterTime": { "$exists": true } };
            let ask = doc! {
                "aggregate": 1, "cursor": {}, "pipeline": [{ "$currentOp": {} }, { "$match": find }],
            };
            let found = mongod.client().await.database("admin").run_command(ask).await.expect("operations");
            let waiting = found.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
            // Each of two instances has two commands under way, and further reads wait for these.
            waiting.expect("a batch").len() >= reads.len().min(4) || reads.iter().any(JoinHandle::is_finished)
        };
        eventually("reads wait", PATIENCE, waiting).await;
        mongod.fail_point("disableSnapshotting", "off", doc! {}).await;
        let other = self.database.collection::<Document>("other");
        other.insert_one(doc! {}).await.expect("whatever moves the majority on");
    }
}

/// All that an instance shows of customer 7, who has 40 trades.
fn everything(client: &Client) -> Vec<JoinHandle<()>> {
    let total = |body: Value| assert_eq!(body[TOTAL], 40, "{body}");
    let of_owner = |body: Value| assert_eq!(TRADES.totals(&body)[TOTAL], 40, "{body}");
    type Check = (&'static str, fn(Value));
    let checks: [Check; 8] = [
        ("/v1/customers/7", of_owner),
        ("/v1/customers/7/trades?order=desc", total),
        ("/v1/customers/7/trades?page=4", total),
        ("/v1/customers/7/trades?after=25&limit=100", |body| {
            assert_eq!(TRADES.seqs(&body), (26..=40).collect::<Vec<_>>());
        }),
        ("/v1/customers/7/trades?from=2000-01-01T00:00:00Z&limit=100", |body| {
            assert_eq!(TRADES.seqs(&body), (1..=40).collect::<Vec<_>>());
        }),
        ("/v1/customers/7/trades/pages/4", |body| assert_eq!(body["items"][9]["qty"], 40, "{body}")),
        ("/v1/customers/7/trades/40", |body| assert_eq!(body["qty"], 40, "{body}")),
        ("/v1/customers", |body| assert_eq!(TRADES.totals(&body["items"][0])[TOTAL], 40, "{body}")),
    ];
    let ask = |(path, check): (&'static str, fn(Value))| {
        let client = client.clone();
        spawn(async move { check(client.get(path).await.expect(200)) })
    };
    checks.into_iter().map(ask).collect()
}

/// Neither below what an instance has acknowledged, nor below what it has shown.
#[tokio::test(flavor = "multi_thread")]
async fn totals_never_shrink_on_a_new_primary_that_lags() {
    let set = ReplicaSet::failing().await;
    let writer = service(&set, None).await;
    let reader = service(&set, Some(&writer.database)).await;
    let cold = service(&set, Some(&writer.database)).await;
    writer.client.append(8, &many(1..=5)).await.expect(201);
    writer.client.append(7, &many(1..=25)).await.expect(201);
    let lagging = Lagging::after(&set, &writer.database, 25).await;
    writer.client.append(7, &many(26..=40)).await.expect(201);
    writer.client.append(8, &many(6..=40)).await.expect(201);
    assert_eq!(reader.client.total(7).await, 40);
    lagging.elect(25).await;
    // By an instance that has shown nothing of it.
    let expected = (0..32).map(|number| {
        let (client, key) = (cold.client.clone(), format!("key-{number}"));
        let key = (number % 2 == 0).then_some(key);
        spawn(async move { client.append_after(8, 40, key.as_deref(), &trade(41)).await })
    });
    let expected: Vec<_> = expected.collect();
    let mut reads = everything(&writer.client);
    reads.extend(everything(&reader.client));
    lagging.catch_up(&reads).await;
    for read in join_all(reads).await {
        read.expect("what was shown before");
    }
    let mut stored = 0;
    for answer in join_all(expected).await {
        let answer = answer.expect("an answer");
        match answer.status.as_u16() {
            201 => stored += 1,
            _ => assert_eq!(answer.problem(412, "unexpected-seq")[TOTAL], 41),
        }
    }
    assert_eq!(
        stored, 1,
        "what a majority has is what is expected, though the new primary does not know it yet"
    );
    set.remove().await;
}

fn dated(qty: u64) -> pagebucket_model::item::Item {
    engine::dated(TRADES, qty, 1_073_606_400_000 + qty as i64)
}

/// The tail was read before the election, and the pages before it are chosen after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_span_of_dates_is_whole_on_a_new_primary_that_lags() {
    let set = ReplicaSet::failing().await;
    let setup = Setup::at(set.uri());
    let database = set.client().await.database(&setup.connection.database);
    let store = setup.store().await;
    let (trades, seven) = (engine::histories(&store, TRADES), engine::owner(TRADES, 7));
    let append = async |quantities: std::ops::RangeInclusive<u64>| {
        let items = quantities.map(dated).collect();
        let append = engine::append(seven.clone(), items, Deadline::within(LONG));
        trades.appends().append(append).await.expect("an acknowledgement");
    };
    append(1..=25).await;
    let lagging = Lagging::after(&set, &database, 25).await;
    append(26..=65).await;
    let dates = DateRange::new(Some(Moment::from_millis(0).expect("a date")), None).expect("a span");
    let before = trades.reads().history(seven.clone(), Deadline::within(LONG)).await.expect("a history");
    let mut export = trades
        .reads()
        .export(seven, Position::BEGINNING, Some(dates), Deadline::within(LONG))
        .await
        .expect("an export");
    lagging.elect(25).await;

    let listing = spawn(async move {
        let cursor = Cursor::After(Position::BEGINNING);
        before
            .dated(dates, cursor, 100, Deadline::within(LONG))
            .await
            .expect("trades")
            .items
            .iter()
            .map(|(_, seq)| seq.get())
            .collect()
    });
    let export = spawn(async move {
        let mut all = Vec::new();
        loop {
            match export.next().await.expect("trades") {
                None => return all,
                Some(more) => all.extend(more.items().map(|item| item.seq.get())),
            }
        }
    });
    let reads = [listing, export];
    lagging.catch_up(&reads).await;
    for read in reads {
        let seqs: Vec<u64> = read.await.expect("trades");
        assert_eq!(seqs, (1..=65).collect::<Vec<_>>());
    }
    set.remove().await;
}

/// Another hand's trade on the primary alone, which dies with it.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_nothing_new_is_shown_or_appended_behind() {
    let set = ReplicaSet::start(Wires::Straight).await;
    let first = service(&set, None).await;
    let cold = service(&set, Some(&first.database)).await;
    let database = &first.database;
    let store = Setup::at(set.uri()).in_database(database).store().await;
    first.client.append(7, &many(1..=15)).await.expect(201);
    for member in 0..3 {
        let everywhere = || async { shown_by(set.mongod(member), "majority", database, 7).await == Some(15) };
        eventually("it is replicated", PATIENCE, everywhere).await;
    }
    // Live readers wait at the end, at both.
    let mut live = [
        Events::of(&first.client, 7, "?after=15", &[]).await,
        Events::of(&cold.client, 7, "?after=15", &[]).await,
    ];
    set.hold_elections().await;
    let primary = set.primary().await;
    for member in set.others(primary) {
        set.mongod(member).kill().await;
    }
    let alone = set.mongod(primary).client().await.database(database.name());
    let stored = alone.collection::<Document>("trades");
    let tail = doc! { "customerId": 7_i64, "page": 2_i64 };
    let another =
        doc! { "type": "buy", "ticker": "MDB", "qty": 1_000_i64, "date": mongodb::bson::DateTime::now() };
    let push = doc! {
        "update": "trades", "writeConcern": { "w": 1 },
        "updates": [{ "q": tail.clone(), "u": { "$push": { "history": another }, "$inc": { "count": 1 } } }],
    };
    assert_eq!(alone.run_command(push).await.expect("an answer").get_i32("nModified").ok(), Some(1));

    // More than once: a read waits for nothing that an earlier one did not show.
    for _ in 0..2 {
        assert_eq!(cold.client.total(7).await, 15);
        let newest = cold.client.get("/v1/customers/7/trades?order=desc").await.expect(200);
        assert_eq!(newest[TOTAL], 15, "{newest}");
        let window = cold.client.get("/v1/customers/7/trades?after=10&limit=20").await.expect(200);
        assert_eq!(TRADES.seqs(&window), [11, 12, 13, 14, 15]);
        let page = cold.client.get("/v1/customers/7/trades/pages/2").await.expect(200);
        assert_eq!(page["items"].as_array().map(Vec::len), Some(5), "{page}");
        cold.client.get("/v1/customers/7/trades/16").await.problem(404, ITEM_NOT_FOUND);
        let customers = cold.client.get("/v1/customers").await.expect(200);
        assert_eq!(TRADES.totals(&customers["items"][0])[TOTAL], 15, "{customers}");
    }
    let seven = engine::owner(TRADES, 7);
    let append = engine::append(seven, vec![dated(2_000)], Deadline::within(LONG));
    let refused = engine::histories(&store, TRADES).appends().append(append).await;
    let refused = refused.expect_err("no majority");
    assert_eq!((refused.progress.ranges().len(), refused.unknown), (0, 1), "{refused:?}");
    let page = stored.find_one(tail).await.expect("an answer").expect("a bucket");
    assert_eq!(
        page.get_i32("count").ok(),
        Some(6),
        "nothing stands behind what a majority does not have: {page}"
    );

    set.mongod(primary).kill().await;
    for member in set.others(primary) {
        set.mongod(member).start().await;
    }
    set.elect(set.others(primary).next().expect("three members")).await;
    let appended = cold.client.append(7, &trade(16)).await.expect(201);
    assert_eq!(appended["ranges"], json!([{ "firstSeq": 16, "lastSeq": 16 }]));
    for events in &mut live {
        let items = events.next().await.data["items"].take();
        assert_eq!(
            (&items[0]["seq"], &items[0]["qty"]),
            (&json!(16), &json!(16)),
            "what a majority has: {items}"
        );
    }
    set.mongod(primary).start().await;
    set.until_well().await;
    crate::harness::stored(database, TRADES, 7).await.holds_exactly(1..=16);
    set.remove().await;
}

/// A command waits on the silent connection until the driver gives the server up, and is sent again to the
/// next primary; it is acknowledged when a majority has it, or unknown when none has it in time. Prints how
/// long both took, as docs/explanation/exactly-once.md has it.
#[tokio::test(flavor = "multi_thread")]
async fn appends_go_on_after_a_frozen_primary() {
    const ROUNDS: i64 = 4;
    let set = ReplicaSet::start(Wires::Straight).await;
    let service = service(&set, None).await;
    let database = &service.database;
    let append = async |qty: i64| loop {
        let answer = service.client.append(7, &trade(qty as u64)).await;
        match answer.status.as_u16() {
            201 => return true,
            503 if answer.json()["type"] == "/problems#outcome-unknown" => return false,
            status => assert_eq!(status, 503, "{answer:?}"),
        }
    };
    let (mut acknowledged, mut unknown) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        if round == ROUNDS / 2 {
            set.skip_catch_up().await;
            println!("from now on a new primary skips its catch-up");
        }
        let (before, after) = (2 * round + 1, 2 * round + 2);
        assert!(append(before).await, "the set is well");
        acknowledged.push(before);
        let primary = set.primary().await;
        let total = shown_by(set.mongod(primary), "local", database, 7).await.expect("a total");
        set.mongod(primary).freeze().await;
        let frozen = Instant::now();
        let there = || async {
            let shown = set.others(primary).map(|member| shown_by(set.mongod(member), "local", database, 7));
            join_all(shown).await.contains(&Some(total + 1))
        };
        let sent_again = async {
            eventually("it is at the next primary", PATIENCE, there).await;
            frozen.elapsed().as_secs_f64()
        };
        let (stored, sent_again) = tokio::join!(append(after), sent_again);
        let answered = frozen.elapsed().as_secs_f64();
        let answer = if stored { "acknowledged" } else { "unknown" };
        println!(
            "the primary frozen: at the next one after {sent_again:.1} s, {answer} after {answered:.1} s"
        );
        if stored { &mut acknowledged } else { &mut unknown }.push(after);
        set.mongod(primary).thaw().await;
        set.until_well().await;
    }
    let mut stored = crate::harness::stored(database, TRADES, 7).await.numbers;
    stored.retain(|qty| !unknown.contains(qty));
    assert_eq!(stored, acknowledged);
    set.remove().await;
}

/// By a server whose database is older than what it showed: there is nothing else to show.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_the_server_refuses_is_forgotten() {
    let mongod = Mongod::failing().await;
    let service = Setup::on(&mongod).start().await;
    service.client.append(7, &many(1..=3)).await.expect(201);
    assert_eq!(service.client.total(7).await, 3);
    // InvalidOptions: "must not be greater than the current clusterTime".
    fail(&mongod, "find", doc! { "times": 1 }, doc! { "errorCode": 72 }).await;
    assert_eq!(service.client.total(7).await, 3);
    // Without a time it is a mistake of ours.
    fail(&mongod, "find", "alwaysOn", doc! { "errorCode": 72 }).await;
    service.client.get("/v1/customers/7").await.problem(500, "internal");
    heal(&mongod).await;
    assert_eq!(service.client.total(7).await, 3);
    mongod.remove().await;
}
