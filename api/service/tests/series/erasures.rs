//! Erased owners leave no measurements, whatever a feeder brings late.

use std::num::NonZero;
use std::time::Duration;

use mongodb::bson::{DateTime, Document, doc};
use pagebucket_engine::erasures::Reopening;
use pagebucket_engine::internal::Retention;
use pagebucket_engine::{Deadline, Engine, Store};
use tokio_util::task::AbortOnDropHandle;

use super::{SHORT, append, count, each_once, erase, generations, measurements, raw, sibling};
use crate::harness::{Harm, NOTES, PATIENCE, Proxy, SERIES, Setup, Way, engine, eventually, shared, spawn};

fn soon() -> Deadline {
    Deadline::within(Duration::from_secs(25))
}

fn trades(store: &Store) -> &Engine {
    engine::histories(store, SERIES)
}

async fn reopen(engine: &Engine, owner: u64) {
    eventually("the reopening", PATIENCE, async || {
        matches!(
            engine.erasures().reopen(&engine::owner(SERIES, owner), soon()).await,
            Ok(Reopening::Reopened)
        )
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_owner_has_no_measurements_and_a_reopened_one_has_its_new_ones() {
    let service = Setup::on(shared().await).of(SERIES).aging(SHORT).start().await;
    let (client, database) = (&service.client, &service.database);
    append(client, 1, 1..=25).await;
    append(client, 2, 1..=5).await;
    each_once(client, database, [1, 2]).await;
    let store = sibling(shared().await.uri(), database).aging(SHORT).store().await;
    erase(trades(&store), 1).await;
    each_once(client, database, [2]).await;
    assert_eq!(count(client).await, 5);
    reopen(trades(&store), 1).await;
    append(client, 1, 100..=104).await;
    eventually("what came after is measured", PATIENCE, async || {
        let all = measurements(database).await;
        let quantities = all.get(&1).into_iter().flatten().map(|(.., quantity)| *quantity);
        quantities.eq(100..=104)
    })
    .await;
    assert_eq!(count(client).await, 10);
}

/// An erasure is looked behind again and again. Each raise makes readers read again.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_forgotten_once() {
    let service = Setup::on(shared().await).of(SERIES).aging(SHORT).start().await;
    let (client, database) = (&service.client, &service.database);
    append(client, 1, 1..=5).await;
    append(client, 2, 1..=5).await;
    each_once(client, database, [1, 2]).await;
    let store = sibling(shared().await.uri(), database).aging(SHORT).store().await;
    erase(trades(&store), 1).await;
    let before = generations(database).await;
    assert_eq!(before.keys().collect::<Vec<_>>(), [&1]);
    for _ in 0..3 {
        erase(trades(&store), 1).await;
    }
    assert_eq!(generations(database).await, before);
    each_once(client, database, [2]).await;
}

/// The definition is not known here, or has no time series any more: it is there all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_without_the_definition_deletes_measurements_too() {
    let service = Setup::on(shared().await).of(SERIES).aging(SHORT).start().await;
    append(&service.client, 1, 1..=5).await;
    append(&service.client, 2, 1..=5).await;
    each_once(&service.client, &service.database, [1, 2]).await;
    let other = Setup::on(shared().await).of(NOTES).in_database(&service.database).aging(SHORT).store().await;
    let undefined = other.histories_of("customers", soon()).await.expect("an answer").remove(0);
    erase(&undefined, 1).await;
    each_once(&service.client, &service.database, [2]).await;
}

/// A feeder has read the pages of an owner, and stands still until the owner is erased and swept.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_feeder_brings_back_nothing_of_an_erased_owner() {
    let proxy = Proxy::before(shared().await).await;
    let setup = Setup::at(&proxy.uri()).of(SERIES).aging(SHORT);
    let late = setup.store().await;
    let database = shared().await.client().await.database(&setup.connection.database);
    let feeding = late.feed_series();
    let service = sibling(shared().await.uri(), &database).aging(SHORT).start().await;
    append(&service.client, 1, 1..=5).await;
    append(&service.client, 2, 1..=5).await;
    each_once(&service.client, &database, [1, 2]).await;
    proxy.harm(format!("insert {}", raw(&database).await), Way::There, Harm::Hold, 1);
    append(&service.client, 1, 6..=9).await;
    // Whichever of the two feeds.
    eventually("it is fed, or held", PATIENCE, async || {
        proxy.strikes() > 0 || measurements(&database).await[&1].len() == 9
    })
    .await;
    let store = sibling(shared().await.uri(), &database).aging(SHORT).store().await;
    erase(trades(&store), 1).await;
    assert!(generations(&database).await[&1] > 0);
    assert!(!measurements(&database).await.contains_key(&1), "nothing is left");
    proxy.relent();
    eventually("what comes late is deleted", PATIENCE, async || {
        assert_eq!(count(&service.client).await, 5, "it never counts");
        !measurements(&database).await.contains_key(&1)
    })
    .await;
    append(&service.client, 2, 6..=9).await;
    each_once(&service.client, &database, [2]).await;
    drop(feeding);
}

/// A feeder that always has something to feed deletes what has come late, too.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_late_is_deleted_while_others_append() {
    let service = Setup::on(shared().await).of(SERIES).aging(SHORT).start().await;
    let (client, database) = (service.client.clone(), service.database.clone());
    append(&client, 1, 1..=5).await;
    each_once(&client, &database, [1]).await;
    let store = sibling(shared().await.uri(), &database).aging(SHORT).store().await;
    erase(trades(&store), 1).await;
    let appending = AbortOnDropHandle::new(spawn(async move {
        for number in 1.. {
            append(&client, 2, number..=number).await;
        }
    }));
    let late = doc! { "date": DateTime::from_millis(1_706_800_000_000), "meta": { "owner": 1_i64, "ticker": "AMD" }, "seq": 1_i64 };
    database.collection::<Document>(&raw(&database).await).insert_one(late).await.expect("a measurement");
    eventually("it is deleted", PATIENCE, async || !measurements(&database).await.contains_key(&1)).await;
    assert!(!appending.is_finished(), "there was something to feed");
}

#[tokio::test(flavor = "multi_thread")]
async fn retired_pages_stay_measured() {
    let service = Setup::on(shared().await).of(SERIES).aging(SHORT).start().await;
    append(&service.client, 1, 1..=95).await;
    each_once(&service.client, &service.database, [1]).await;
    let store = sibling(shared().await.uri(), &service.database).aging(SHORT).store().await;
    let keep = Retention { pages: NonZero::new(2), ..Retention::default() };
    let buckets = service.database.collection::<Document>("trades");
    eventually("the pages are deleted", PATIENCE, async || {
        trades(&store).retirement().retire(keep, soon()).await.expect("it may be repeated");
        buckets.count_documents(doc! { "page": { "$gt": 1, "$lt": 8 } }).await.expect("an answer") == 0
    })
    .await;
    append(&service.client, 1, 96..=120).await;
    each_once(&service.client, &service.database, [1]).await;
    assert_eq!(count(&service.client).await, 120);
}
