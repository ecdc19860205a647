//! Change streams that are silent, fail each time they are asked for more, or cannot be opened: readers get
//! what is appended meanwhile, not only afterwards.

use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use pagebucket_engine::live::LiveReader;
use reqwest::Method;
use serde_json::json;

use super::client::Events;
use super::engine::{Pair, Sent, read_to};
use crate::commands::program::Place;
use crate::faults::{fail, heal};
use crate::harness::{Harm, Mongod, PATIENCE, Proxy, Setup, TRADES, Way, eventually, shared};

/// The least time between two openings, less what a command may wait in a queue of the driver.
const BETWEEN_OPENINGS: Duration = Duration::from_millis(900);

/// A failure of the change streams of a database alone: tails are read by other commands.
pub fn of_streams(database: &mongodb::Database, commands: &[&str], how: Document) -> Document {
    let mut failure = doc! { "failCommands": commands.to_vec(), "namespace": format!("{}.$cmd.aggregate", database.name()) };
    failure.extend(how);
    failure
}

/// Reads to an item that was just appended, and prints how late it came: `cargo nextest run --no-capture
/// no_reader`.
async fn read_late(how: &str, reader: &mut LiveReader, last: u64) {
    let appended = Instant::now();
    read_to(TRADES, reader, last).await;
    println!("{how}: item {last} after {} ms", appended.elapsed().as_millis());
}

/// Two streams are not opened soon after each other.
fn opens_seldom(sent: &Sent) {
    let opened = sent.opened_at();
    let gaps = opened.windows(2).map(|two| two[1] - two[0]);
    assert!(gaps.min().is_none_or(|gap| gap >= BETWEEN_OPENINGS), "{opened:?}");
}

/// The connection on which the stream waits swallows what the server sends, as a firewall does that has
/// forgotten it.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_connection_deafens_no_reader() {
    let mongod = shared().await;
    let wire = Proxy::before(mongod).await;
    let pair = Pair::at([&wire.uri(), mongod.uri()], TRADES).await;
    let mut reader = pair.watch(0, 7, None).await;
    pair.append(1, 7, 1..=3).await;
    read_to(TRADES, &mut reader, 3).await;
    wire.harm("getMore", Way::Back, Harm::Hold, 1);
    wire.struck(1).await;
    pair.append(1, 7, 4..=15).await;
    read_late("a dead connection", &mut reader, 15).await;
    eventually("the stream goes on by another connection", PATIENCE, async || pair.sent[0].streams() > 1)
        .await;
    pair.append(1, 7, 16..=16).await;
    read_to(TRADES, &mut reader, 16).await;
    opens_seldom(&pair.sent[0]);
    wire.relent();
}

/// The server takes questions for more, and answers none.
#[tokio::test(flavor = "multi_thread")]
async fn questions_that_hang_deafen_no_reader() {
    let mongod = Mongod::failing().await;
    let pair = Pair::on(&mongod, TRADES).await;
    let mut readers = [pair.watch(0, 7, None).await, pair.watch(1, 7, Some(0)).await];
    let how = doc! { "blockConnection": true, "blockTimeMS": 600_000 };
    fail(&mongod, "getMore", "alwaysOn", of_streams(&pair.database, &["getMore"], how)).await;
    for (store, last) in [(0, 4), (1, 8), (0, 30)] {
        let first = readers[0].position().get() + 1;
        pair.append(store, 7, first..=last).await;
        for reader in &mut readers {
            read_late("questions that hang", reader, last).await;
        }
    }
    let mut late = pair.watch(0, 7, Some(0)).await;
    read_to(TRADES, &mut late, 30).await;
    pair.sent.iter().for_each(opens_seldom);
    mongod.remove().await;
}

/// Whatever the streams are refused with: as soon as they are opened, or only when they are asked for more.
#[tokio::test(flavor = "multi_thread")]
async fn streams_that_always_fail_deafen_no_reader() {
    let mongod = Mongod::failing().await;
    let pair = Pair::on(&mongod, TRADES).await;
    let mut readers = [pair.watch(0, 7, None).await, pair.watch(1, 7, Some(0)).await];
    let mut last = 0;
    // UnknownError, MaxTimeMSExpired, FailedToSatisfyReadPreference, PrimarySteppedDown,
    // ChangeStreamFatalError, ChangeStreamHistoryLost.
    for code in [8, 50, 133, 189, 280, 286] {
        for commands in [&["getMore"][..], &["getMore", "aggregate"]] {
            let how = of_streams(&pair.database, commands, doc! { "errorCode": code });
            fail(&mongod, "getMore", "alwaysOn", how).await;
            for store in [0, 1] {
                pair.append(store, 7, last + 1..=last + 3).await;
                last += 3;
                for reader in &mut readers {
                    read_late(&format!("{commands:?} failing with {code}"), reader, last).await;
                }
            }
            let mut late = pair.watch(1, 7, Some(last - 3)).await;
            read_to(TRADES, &mut late, last).await;
        }
    }
    heal(&mongod).await;
    pair.sent.iter().for_each(opens_seldom);
    mongod.remove().await;
}

/// Readers of one owner begin and go on; those of all owners are told to come back.
#[tokio::test(flavor = "multi_thread")]
async fn what_begins_while_no_stream_can_be_opened() {
    let mongod = Mongod::failing().await;
    let service = Setup::on(&mongod).start().await;
    let how = of_streams(&service.database, &["getMore", "aggregate"], doc! { "errorCode": 8 });
    fail(&mongod, "getMore", "alwaysOn", how).await;
    let mut events = Events::of(&service.client, 1, "?after=0", &[]).await;
    let polled = service.client.get(&TRADES.at(1, "?after=0&wait=1")).await.expect(200);
    assert_eq!(polled["items"], json!([]));
    service.client.append_all(1, 1..=12).await;
    events.read(TRADES, 1, 12).await;
    let refused = service.client.send(Method::GET, "/v1/trades/live", |request| request).await;
    assert!(!refused.header("retry-after").is_empty(), "{refused:?}");
    refused.problem(503, "database-unavailable");
    heal(&mongod).await;
    let begins =
        async || service.client.send(Method::HEAD, "/v1/trades/live", |request| request).await.status == 200;
    eventually("a stream of all owners begins", PATIENCE, begins).await;
    mongod.remove().await;
}

/// However long it lasts, and however often the stream is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn silence_is_warned_of_once_and_measured() {
    let mongod = Mongod::failing().await;
    let place = Place::on(&mongod, TRADES);
    let serving = place.serve(&[]).await;
    let measured = async || {
        let metrics = String::from_utf8(serving.client.get("/metrics").await.body).expect("text");
        let line =
            |line: &str| line.strip_prefix("pagebucket_live_change_stream_silent_seconds ")?.parse().ok();
        metrics.lines().find_map(line).unwrap_or(0.0_f64)
    };
    let warned = || serving.err().matches("the change stream of live readers is interrupted").count();
    let mut events = Events::of(&serving.client, 1, "?after=0", &[]).await;
    assert_eq!(measured().await, 0.0);
    let how = of_streams(&place.database().await, &["getMore"], doc! { "errorCode": 133 });
    fail(&mongod, "getMore", "alwaysOn", how).await;
    let tries = async || {
        let metrics = String::from_utf8(serving.client.get("/metrics").await.body).expect("text");
        let of = "pagebucket_live_change_streams_total{start=\"resumed\"} ";
        metrics.lines().find_map(|line| line.strip_prefix(of)?.parse().ok()).unwrap_or(0.0_f64)
    };
    eventually("it is measured and tried again", PATIENCE, async || {
        measured().await > 10.0 && tries().await >= 3.0
    })
    .await;
    serving.client.append_all(1, 1..=2).await;
    events.read(TRADES, 1, 2).await;
    assert_eq!(warned(), 1, "{}", serving.err());
    heal(&mongod).await;
    eventually("it answers again", PATIENCE, async || measured().await == 0.0).await;
    assert_eq!(warned(), 1, "{}", serving.err());
    drop(events);
    serving.stop().await;
    mongod.remove().await;
}
