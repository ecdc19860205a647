//! A feeder that ends at any of its commands, as if its process was killed there: also between announcing and
//! inserting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mongodb::bson::{DateTime, doc};
use pagebucket_engine::{Deadline, Store};
use tokio::sync::Notify;

use super::{SHORT, change_build, count, each_once, generations, sibling};
use crate::harness::{PATIENCE, SERIES, Setup, engine, shared};

/// 2024-02-15.
const DATE: i64 = 1_708_000_000_000;

/// More commands than a feeder sends until it has fed what there is.
const COMMANDS: u64 = 24;

const OWNERS: u64 = 3;

async fn append(store: &Store, first: u64) {
    let trades = engine::histories(store, SERIES);
    for owner in 1..=OWNERS {
        let items = (first..first + owner).map(|number| engine::dated(SERIES, number, DATE)).collect();
        let stored = trades.appends().append(engine::append(
            engine::owner(SERIES, owner),
            items,
            Deadline::within(PATIENCE),
        ));
        stored.await.expect("stored");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feeder_ends_at_any_command() {
    let mongod = shared().await;
    let setup = Setup::on(mongod).of(SERIES).aging(SHORT);
    let database = mongod.client().await.database(&setup.connection.database);
    let store = setup.store().await;
    for fatal in 1..=COMMANDS {
        append(&store, fatal * 100).await;
        // The lease of the one that has ended.
        change_build(&database, doc! { "until": DateTime::from_millis(0) }).await;
        let (sent, begun, reached) =
            (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
        let (count, counts, kill) = (Arc::clone(&sent), Arc::clone(&begun), Arc::clone(&reached));
        let observed = sibling(mongod.uri(), &database).aging(SHORT).observed(move |name, command| {
            // What asks for the time and for markers comes whenever it wants.
            let is_ours =
                !["hello", "getMore"].contains(&name) && command.get_str(name).ok() != Some("histories");
            let is_counted = is_ours && counts.load(Ordering::Relaxed) == 1;
            if is_counted && count.fetch_add(1, Ordering::Relaxed) + 1 == fatal {
                kill.notify_one();
            }
        });
        let killed = observed.store().await;
        begun.store(1, Ordering::Relaxed);
        let feeding = killed.feed_series();
        tokio::time::timeout(PATIENCE, reached.notified()).await.expect("it sends as many commands");
        drop(feeding);
    }
    let service = sibling(mongod.uri(), &database).aging(SHORT).start().await;
    each_once(&service.client, &database, 1..=OWNERS).await;
    assert_eq!(count(&service.client).await, COMMANDS * (1..=OWNERS).sum::<u64>());
    assert!(
        generations(&database).await.values().any(|generation| *generation > 0),
        "some inserts were not sent"
    );
}
