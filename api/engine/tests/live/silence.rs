//! Change streams that are silent, fail each time they are asked for more, or cannot be opened: readers get
//! what is appended meanwhile, not only afterwards.

use std::time::{Duration, Instant};

use mongodb::bson::doc;
use pagebucket_engine::live::LiveReader;

use super::engine::{Pair, Sent};
use crate::harness::engine::read_to;
use crate::harness::rig::{fail, heal, of_streams};
use crate::harness::{Harm, Mongod, PATIENCE, Proxy, TRADES, Way, eventually, shared};

/// The least time between two openings, less what a command may wait in a queue of the driver.
const BETWEEN_OPENINGS: Duration = Duration::from_millis(900);

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
