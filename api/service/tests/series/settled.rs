//! What a settlement and an erasure owe to readers that have begun, and to the settlement after them.

use std::sync::Arc;

use mongodb::Database;
use mongodb::bson::{DateTime, doc};
use pagebucket_engine::series::SeriesQuery;
use pagebucket_engine::{Deadline, Store};
use pagebucket_model::domain::Order;
use pagebucket_model::summary::{Aggregate, Fill, SpanLength, Spans, SummaryShape, Zone};
use tokio::task::JoinHandle;

use super::{
    SHORT, append, change_build, count, counting, each_once, erase, generations, measurements, raw, sibling,
};
use crate::harness::{
    Client, Harm, PATIENCE, Proxy, SERIES, Service, Setup, TRADES, Way, engine, eventually, shared, spawn,
};

/// An instance that feeds or reads through a proxy.
struct Through {
    proxy: Proxy,
    store: Arc<Store>,
}

impl Through {
    async fn new(database: &Database) -> Self {
        let proxy = Proxy::before(shared().await).await;
        let store = sibling(&proxy.uri(), database).aging(SHORT).store().await;
        Self { proxy, store: Arc::new(store) }
    }

    /// Begins to read what all owners have, and stands still when the first measurements are asked for, or
    /// when they are there.
    async fn begin(&self, database: &Database, way: Way) -> JoinHandle<u64> {
        self.proxy.harm(format!("aggregate {}", raw(database).await), way, Harm::Hold, 1);
        let (store, struck) = (Arc::clone(&self.store), self.proxy.strikes() + 1);
        let reading = spawn(async move {
            let spans = Spans { length: SpanLength::parse("1d").expect("a length"), zone: Zone::UTC };
            let shape = Arc::new(SummaryShape { spans, groups: Vec::new(), values: Vec::new() });
            // February.
            let ends = [1_706_745_600_000, 1_709_251_200_000];
            let (fill, order) = (Fill::None, Order::Ascending);
            let query = SeriesQuery { shape, ends, fill, order, filters: Vec::new(), limit: 1_000 };
            let trades = engine::histories(&store, SERIES);
            let read =
                trades.series().summarise(&query, Deadline::within(PATIENCE)).await.expect("a summary");
            read.page.points.iter().filter_map(|point| point.aggregate.as_ref()).map(Aggregate::count).sum()
        });
        self.proxy.struck(struck).await;
        reading
    }
}

/// The lease of a feeder that has ended is free.
async fn free_lease(database: &Database) {
    change_build(database, doc! { "until": DateTime::from_millis(0) }).await;
}

/// An instance that feeds has announced a batch, and the insert is under way. It feeds no more.
async fn announced(database: &Database, appender: &Client) -> Through {
    let late = Through::new(database).await;
    let feeding = late.store.feed_series();
    append(appender, 1, 1..=12).await;
    each_once(appender, database, [1]).await;
    late.proxy.harm(format!("insert {}", raw(database).await), Way::There, Harm::Hold, 1);
    append(appender, 1, 13..=25).await;
    late.proxy.struck(1).await;
    drop(feeding);
    free_lease(database).await;
    late
}

/// A service that appends and does not feed: it knows the history without its time series.
async fn appender() -> Service {
    let setup = Setup::on(shared().await).of(SERIES);
    setup.store().await;
    let database = shared().await.client().await.database(&setup.connection.database);
    Setup::on(shared().await).of(TRADES).in_database(&database).aging(SHORT).start().await
}

/// The first settlement has copied a part and ends. By the second one all that was announced has come: the
/// copy stays without an owner unless it is made again.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_begun_is_made_again() {
    let service = appender().await;
    let (appender, database) = (&service.client, &service.database);
    let late = announced(database, appender).await;
    let copying = Through::new(database).await;
    copying.proxy.harm(format!("insert {}", raw(database).await), Way::Back, Harm::Hold, 1);
    let feeding = copying.store.feed_series();
    copying.proxy.struck(1).await;
    drop(feeding);
    late.proxy.relent();
    eventually("the late ones come, beside the copy", PATIENCE, async || {
        measurements(database).await[&1].len() == 25 + 12
    })
    .await;
    free_lease(database).await;
    let last = sibling(shared().await.uri(), database).aging(SHORT).store().await;
    let _feeding = last.feed_series();
    each_once(appender, database, [1]).await;
    assert_eq!(generations(database).await[&1], 2, "the number of the copy that was begun is not used");
}

/// A reader knows the generation before the copy, and asks when its measurements are deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_reads_again_after_a_copy() {
    let service = appender().await;
    let (appender, database) = (&service.client, &service.database);
    let _late = announced(database, appender).await;
    let reader = Through::new(database).await;
    let reading = reader.begin(database, Way::There).await;
    let last = sibling(shared().await.uri(), database).aging(SHORT).store().await;
    let _feeding = last.feed_series();
    each_once(appender, database, [1]).await;
    assert_eq!(generations(database).await[&1], 1);
    reader.proxy.relent();
    assert_eq!(reading.await.expect("no panic"), 25);
}

/// The settlement that has let the copy count ends before it has told that. The next one tells.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_reads_again_after_a_copy_that_another_one_has_made() {
    let service = appender().await;
    let (appender, database) = (&service.client, &service.database);
    let _late = announced(database, appender).await;
    let reader = Through::new(database).await;
    let reading = reader.begin(database, Way::There).await;
    let copying = Through::new(database).await;
    copying.proxy.harm(format!("insert {}", raw(database).await), Way::Back, Harm::Hold, 1);
    let feeding = copying.store.feed_series();
    copying.proxy.struck(1).await;
    copying.proxy.relent_but("update series_generations", Way::Back, Harm::Hold, 1);
    copying.proxy.struck(2).await;
    drop(feeding);
    assert_eq!(generations(database).await[&1], 1, "it counts");
    free_lease(database).await;
    let last = sibling(shared().await.uri(), database).aging(SHORT).store().await;
    let _feeding = last.feed_series();
    each_once(appender, database, [1]).await;
    reader.proxy.relent();
    assert_eq!(reading.await.expect("no panic"), 25);
}

/// A feeder has read pages when their owner is erased. What it inserts then has the generation from before.
#[tokio::test(flavor = "multi_thread")]
async fn pages_that_were_read_before_an_erasure_do_not_count() {
    let service = appender().await;
    let (appender, database) = (&service.client, &service.database);
    let late = Through::new(database).await;
    let _feeding = late.store.feed_series();
    append(appender, 1, 1..=5).await;
    append(appender, 2, 1..=5).await;
    each_once(appender, database, [1, 2]).await;
    late.proxy.harm("find trades", Way::Back, Harm::Hold, 1);
    append(appender, 1, 6..=9).await;
    late.proxy.struck(1).await;
    let store = sibling(shared().await.uri(), database).aging(SHORT).store().await;
    erase(engine::histories(&store, SERIES), 1).await;
    late.proxy.relent();
    // The feeder has gone on when what comes after this is measured.
    append(appender, 2, 6..=9).await;
    eventually("it goes on", PATIENCE, async || measurements(database).await[&2].len() == 9).await;
    assert!(!counting(database).await.contains_key(&1));
    each_once(appender, database, [2]).await;
}

/// A reader has read a part of what the owner had.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_reads_again_after_an_erasure() {
    let service = Setup::on(shared().await).of(SERIES).aging(SHORT).start().await;
    let (client, database) = (&service.client, &service.database);
    append(client, 1, 1..=56).await;
    append(client, 2, 1..=5).await;
    each_once(client, database, [1, 2]).await;
    let reader = Through::new(database).await;
    let reading = reader.begin(database, Way::Back).await;
    let store = sibling(shared().await.uri(), database).aging(SHORT).store().await;
    erase(engine::histories(&store, SERIES), 1).await;
    each_once(client, database, [2]).await;
    reader.proxy.relent();
    assert_eq!(reading.await.expect("no panic"), 5, "all of the owner, or nothing");
    assert_eq!(count(client).await, 5);
}
