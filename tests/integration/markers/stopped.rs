//! Deleted pages at the scale of real time: an instance that is stopped for longer than a marker ages, as
//! `serve` has it. It takes minutes, so only a long run has it (`make test-long`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::Database;
use mongodb::bson::{Document, doc};
use reqwest::Method;
use tokio::time::sleep;

use crate::commands::program::{Place, Serving, run};
use crate::harness::signal;
use crate::harness::{Client, Harm, Proxy, TRADES, Way, amount, eventually, fill, leave_out, shared, stored};

/// An instance is stopped for longer than the two minutes after which a marker is aged.
const STOPPED: Duration = Duration::from_secs(125);

/// Longer than anything here takes on a slow machine.
const LONGEST: Duration = Duration::from_secs(600);

/// Owners that have appends under way when the instance is stopped.
const OWNERS: std::ops::RangeInclusive<u64> = 1..=20;

/// Appends a page at a time: every append opens one. Returns how many were stored.
async fn write(client: &Client, owner: u64, done: &AtomicBool, stored: &AtomicU64) {
    while !done.load(Ordering::Relaxed) {
        let items = TRADES.items(1..=TRADES.page_size).to_string();
        let with =
            |request: reqwest::RequestBuilder| request.header("content-type", "application/json").body(items);
        let sent = client.try_send(Method::POST, &TRADES.path(owner), with).await;
        if sent.is_ok_and(|answer| answer.status == 201) {
            stored.fetch_add(1, Ordering::Relaxed);
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Erases an owner, until nothing can come any more.
async fn erase(client: &Client, owner: u64) {
    eventually("the last sweep", LONGEST, async || {
        sleep(Duration::from_millis(500)).await;
        let erased = client.send(Method::DELETE, &TRADES.owner_path(owner), |request| request).await;
        erased.status == 200 && erased.json()["swept"] == true
    })
    .await;
}

/// Waits until pages of an owner are retired and deleted: what is left is a marker, the two full pages that
/// are kept, and the last.
async fn is_retired(database: &Database, owner: u64) {
    let trades = database.collection::<Document>("trades");
    eventually("pages are retired and deleted", LONGEST, async || {
        sleep(Duration::from_millis(500)).await;
        let left = trades.count_documents(doc! { "customerId": owner as i64 }).await.expect("a number");
        left <= 4 && stored(database, TRADES, owner).await.first_page > 1
    })
    .await;
}

/// An instance that is stopped under load, at least until `meanwhile` has ended. Then it goes on, is asked by
/// `asked`, and appends until that has ended.
async fn stop(stopped: &Serving, meanwhile: impl Future<Output = ()>, asked: impl AsyncFnOnce(&AtomicU64)) {
    let (done, appended) = (AtomicBool::new(false), AtomicU64::new(0));
    let load = join_all(OWNERS.map(|owner| write(&stopped.client, owner, &done, &appended)));
    let stopping = async {
        eventually("it is under load", LONGEST, async || appended.load(Ordering::Relaxed) > 300).await;
        signal("STOP", stopped.pid());
        tokio::join!(meanwhile, sleep(STOPPED));
        signal("CONT", stopped.pid());
        asked(&appended).await;
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(load, stopping);
}

/// Whether this is a long run.
fn is_long() -> bool {
    let is_long = amount(0, 1) > 0;
    if !is_long {
        leave_out("an instance that is stopped for 125 s", "it is part of long runs (make test-long)");
    }
    is_long
}

async fn is_sound(place: &Place) {
    let verified = run(&mut place.pagebucket("verify", &[])).await;
    assert_eq!((verified.status, verified.out.as_str()), (Some(0), ""), "{verified:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_was_stopped_brings_nothing_of_erased_owners_back() {
    if !is_long() {
        return;
    }
    let place = Place::new().await;
    let database = place.database().await;
    let (stopped, other) = (place.serve(&[]).await, place.serve(&["--allow-erase"]).await);
    let erase_all = async {
        join_all(OWNERS.map(|owner| erase(&other.client, owner))).await;
    };
    let refuses = async |_: &AtomicU64| {
        for owner in OWNERS {
            stopped.client.append(owner, &TRADES.items(1..=25)).await.problem(410, "erased");
        }
    };
    stop(&stopped, erase_all, refuses).await;
    let trades = database.collection::<Document>("trades");
    for owner in OWNERS {
        let left = trades.count_documents(doc! { "customerId": owner as i64 }).await.expect("a number");
        assert_eq!(left, 1, "owner {owner} has a tombstone, and nothing else");
    }
    let reopened = join_all(OWNERS.map(async |owner| {
        let id = owner.to_string();
        run(&mut place.pagebucket("erase", &["--owner", &id, "--reopen"])).await
    }));
    for reopened in reopened.await {
        assert_eq!(reopened.status, Some(0), "{reopened:?}");
    }
    for owner in OWNERS {
        assert!(stored(&database, TRADES, owner).await.numbers.is_empty(), "owner {owner} is empty");
    }
    is_sound(&place).await;
    stopped.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_was_stopped_opens_no_retired_page_again() {
    if !is_long() {
        return;
    }
    let place = Place::new().await;
    let database = place.database().await;
    let (stopped, other) = (place.serve(&[]).await, place.serve(&["--retain-pages", "trades=2"]).await);
    let retire = async {
        for owner in OWNERS {
            other.client.append_all(owner, 1..=5 * TRADES.page_size).await;
        }
        join_all(OWNERS.map(|owner| is_retired(&database, owner))).await;
    };
    let appends = async |appended: &AtomicU64| {
        let before = appended.load(Ordering::Relaxed);
        let goes_on = async || appended.load(Ordering::Relaxed) > before + 100;
        eventually("it appends again", LONGEST, goes_on).await;
    };
    stop(&stopped, retire, appends).await;
    for owner in OWNERS {
        let whole = stored(&database, TRADES, owner).await;
        assert!(whole.first_page > 1, "owner {owner} has all its pages, in order");
    }
    is_sound(&place).await;
    stopped.stop().await;
    other.stop().await;
}

/// The command that stores a tile is under way when its maker is stopped, and the tiles of other owners wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_maker_of_tiles_that_was_stopped_brings_nothing_of_erased_owners_back() {
    const ERASED: std::ops::RangeInclusive<u64> = 1..=3;
    const ANOTHER: u64 = 4;
    if !is_long() {
        return;
    }
    let place = Place::new().await;
    let proxy = Proxy::before(shared().await).await;
    let delayed = Place { history: place.history, uri: proxy.uri(), name: place.name.clone() };
    let (stopped, other) = (delayed.serve(&[]).await, place.serve(&["--allow-erase"]).await);
    let database = place.database().await;
    let tiles = database.collection::<Document>("summary_tiles");
    let summary = |owner: u64| TRADES.at(owner, "/summary?by=1M&limit=1000");
    proxy.harm("update summary_tiles", Way::There, Harm::Hold, 1);
    for owner in ERASED {
        fill(&database, TRADES, owner, 200, 1).await;
        stopped.client.get(&summary(owner)).await.expect(200);
    }
    proxy.struck(1).await;
    signal("STOP", stopped.pid());
    join_all(ERASED.map(|owner| erase(&other.client, owner))).await;
    proxy.relent();
    signal("CONT", stopped.pid());
    for owner in ERASED {
        stopped.client.get(&summary(owner)).await.problem(410, "erased");
    }
    // When it makes tiles again, it has made those that waited, or has given them up.
    fill(&database, TRADES, ANOTHER, 200, 1).await;
    eventually("it makes tiles again", LONGEST, async || {
        sleep(Duration::from_millis(100)).await;
        stopped.client.get(&summary(ANOTHER)).await.expect(200);
        let made = doc! { "customerId": ANOTHER as i64 };
        tiles.count_documents(made).await.expect("a number") == 3
    })
    .await;
    let left = tiles.count_documents(doc! { "customerId": { "$ne": ANOTHER as i64 } }).await;
    assert_eq!(left.expect("a number"), 0, "no tile of an erased owner");
    let trades = database.collection::<Document>("trades");
    for owner in ERASED {
        let left = trades.count_documents(doc! { "customerId": owner as i64 }).await.expect("a number");
        assert_eq!(left, 1, "owner {owner} has a tombstone, and nothing else");
    }
    is_sound(&place).await;
    stopped.stop().await;
    other.stop().await;
}
