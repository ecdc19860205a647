//! Feeders that are late: one stands still after it has announced what it inserts, and another one takes
//! over. What the first one inserts then does not count, and is deleted.

use std::time::Duration;

use pagebucket_engine::internal::Ages;
use pagebucket_engine::{Deadline, Store};

use super::{SHORT, append, build, count, each_once, generations, measurements, number, raw, sibling, term};
use crate::harness::{Harm, PATIENCE, Proxy, SERIES, Service, Setup, Way, engine, eventually, shared};

/// An instance that feeds through a proxy, and the database that it feeds.
struct Late {
    proxy: Proxy,
    store: Store,
    database: mongodb::Database,
}

async fn late() -> Late {
    let proxy = Proxy::before(shared().await).await;
    let setup = Setup::at(&proxy.uri()).of(SERIES).aging(SHORT);
    let database = shared().await.client().await.database(&setup.connection.database);
    Late { store: setup.store().await, proxy, database }
}

impl Late {
    /// A service that may take over.
    async fn other(&self) -> Service {
        sibling(shared().await.uri(), &self.database).aging(SHORT).start().await
    }

    /// The command that inserts measurements.
    async fn insert(&self) -> String {
        format!("insert {}", raw(&self.database).await)
    }
}

/// As if the process was stopped, or the packet was under way: the other one does not know what becomes of
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_insert_does_not_count() {
    let late = late().await;
    let feeding = late.store.feed_series();
    eventually("it feeds", PATIENCE, async || build(&late.database).await.get_str("place").is_ok()).await;
    let client = {
        // Appends come from an instance that does not feed yet.
        let appender = late.other().await;
        append(&appender.client, 1, 1..=12).await;
        append(&appender.client, 2, 1..=3).await;
        each_once(&appender.client, &late.database, [1, 2]).await;
        late.proxy.harm(late.insert().await, Way::There, Harm::Hold, 1);
        append(&appender.client, 1, 13..=25).await;
        appender
    };
    late.proxy.struck(1).await;
    // The lease ends: the first one waits for its answer, and announces nothing.
    drop(feeding);
    each_once(&client.client, &late.database, [1, 2]).await;
    assert_eq!(generations(&late.database).await[&1], 1, "it was not known whether more would come");
    append(&client.client, 1, 26..=30).await;
    each_once(&client.client, &late.database, [1, 2]).await;
    late.proxy.relent();
    eventually("the late ones come, or are deleted already", PATIENCE, async || {
        assert_eq!(count(&client.client).await, 33, "they do not count");
        let of_1 = &measurements(&late.database).await[&1];
        late.proxy.strikes() > 0 && of_1.len() == 30
    })
    .await;
    each_once(&client.client, &late.database, [1, 2]).await;
}

/// The control: late measurements do come, so that the test above has something to find.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_insert_comes() {
    let late = late().await;
    // It never deletes what does not count.
    let patient = Ages { tail: Duration::from_secs(3600), late: Duration::from_secs(3600), ..SHORT };
    let other = sibling(shared().await.uri(), &late.database).aging(patient).start().await;
    append(&other.client, 1, 1..=5).await;
    each_once(&other.client, &late.database, [1]).await;
    other.stop().await;
    let feeding = late.store.feed_series();
    let appender = sibling(shared().await.uri(), &late.database).aging(patient).store().await;
    eventually("the late one feeds", PATIENCE, async || term(&late.database).await >= 2).await;
    late.proxy.harm(late.insert().await, Way::There, Harm::Hold, 1);
    let trades = engine::histories(&appender, SERIES);
    let items = vec![engine::dated(SERIES, 6, 1_708_000_000_000)];
    let owner = engine::owner(SERIES, 1);
    let append = engine::append(owner, items, Deadline::within(PATIENCE));
    trades.appends().append(append).await.expect("stored");
    late.proxy.struck(1).await;
    let other = sibling(shared().await.uri(), &late.database).aging(patient).start().await;
    each_once(&other.client, &late.database, [1]).await;
    late.proxy.relent();
    eventually("the late one comes", PATIENCE, async || {
        assert_eq!(count(&other.client).await, 6, "it does not count");
        measurements(&late.database).await[&1].len() == 7
    })
    .await;
    drop(feeding);
}

/// A feeder of a time series that was dropped has the same owners, generations and terms as the first one of
/// the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_insert_of_a_dropped_time_series_does_not_count() {
    let late = late().await;
    let appender = sibling(shared().await.uri(), &late.database).aging(SHORT).store().await;
    let append = async |number: u64| {
        let items = vec![engine::dated(SERIES, number, 1_708_000_000_000)];
        let append = engine::append(engine::owner(SERIES, 1), items, Deadline::within(PATIENCE));
        engine::histories(&appender, SERIES).appends().append(append).await.expect("stored");
    };
    append(1).await;
    let feeding = late.store.feed_series();
    eventually("it feeds", PATIENCE, async || measurements(&late.database).await.contains_key(&1)).await;
    let (insert, dropped) = (late.insert().await, number(&late.database).await);
    late.proxy.harm(&insert, Way::There, Harm::Hold, 1);
    append(2).await;
    late.proxy.struck(1).await;
    assert!(engine::histories(&appender, SERIES).series().remove().await.expect("dropped"));

    let other = late.other().await;
    append(3).await;
    each_once(&other.client, &late.database, [1]).await;
    assert!(number(&late.database).await > dropped, "no number is used twice");
    // Its answer says that the insert has come.
    late.proxy.relent_but(&insert, Way::Back, Harm::Hold, 1);
    late.proxy.struck(2).await;
    each_once(&other.client, &late.database, [1]).await;
    assert_eq!(count(&other.client).await, 3);
    late.proxy.relent();
    drop(feeding);
}

/// The answer of an insert is lost: what is there counts as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_copies_nothing() {
    let late = late().await;
    let _feeding = late.store.feed_series();
    let other = late.other().await;
    append(&other.client, 1, 1..=5).await;
    each_once(&other.client, &late.database, [1]).await;
    for (way, from) in [(Way::Back, 6), (Way::There, 16)] {
        let before = late.proxy.strikes();
        late.proxy.harm(late.insert().await, way, Harm::Cut, 1);
        append(&other.client, 1, from..=from + 9).await;
        each_once(&other.client, &late.database, [1]).await;
        let generation = generations(&late.database).await.get(&1).copied().unwrap_or(0);
        if late.proxy.strikes() > before {
            assert_eq!(generation, i64::from(way == Way::There), "{way:?}");
        }
        late.proxy.relent();
    }
    assert_eq!(count(&other.client).await, 25);
}
