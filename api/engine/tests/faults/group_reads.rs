//! Readers share commands: what each one is answered, and by how many commands.

use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};
use futures_util::poll;
use mongodb::Database;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_engine::{Deadline, Error, Gone};
use pagebucket_model::domain::PageNumber;

use super::rig::{LONG, Rig};
use crate::harness::{Harm, History, Proxy, Way, engine, shared, spawn, test_over};

/// As many reads as are under way at once.
const UNDER_WAY: u32 = 2;

/// What a read shows: the total of a history, or the number of items on a page.
type Read = BoxFuture<'static, Result<u64, Error>>;

/// Reads the last page of a history, or one of its pages.
fn read(rig: &Rig, owner: u64, page: Option<u64>, within: Duration) -> Read {
    let (reader, owner) =
        (engine::histories(&rig.store, rig.history).reads().clone(), engine::owner(rig.history, owner));
    Box::pin(async move {
        let deadline = Deadline::within(within);
        match page {
            None => Ok(reader.history(owner, deadline).await?.totals().items()),
            Some(page) => {
                let page = PageNumber::new(page).expect("a page number");
                let found = reader.page(&owner, page, deadline).await?;
                Ok(found.map_or(0, |page| page.count() as u64))
            }
        }
    })
}

/// Begins as many reads as may be under way, whose answers the proxy holds.
async fn held(rig: &Rig, proxy: &Proxy) -> Vec<tokio::task::JoinHandle<Result<u64, Error>>> {
    let before = proxy.strikes();
    proxy.harm("find", Way::Back, Harm::Hold, UNDER_WAY);
    let held = (0..u64::from(UNDER_WAY)).map(|place| spawn(read(rig, 901 + place, None, LONG))).collect();
    proxy.struck(before + UNDER_WAY).await;
    rig.sent.forget();
    held
}

/// Begins to wait: each read is asked before the next.
async fn waiting(mut reads: Vec<Read>) -> Vec<Read> {
    for read in &mut reads {
        assert!(poll!(Pin::new(read)).is_pending());
    }
    reads
}

test_over!(readers_who_wait_share_commands, SMALL);
async fn readers_who_wait_share_commands(history: &'static History) {
    let proxy = Proxy::before(shared().await).await;
    let rig = Rig::through(history, &proxy, shared().await).await;
    let total = history.pages(2.5);
    for told in rig.append_to_all(1..=40, 1, total, LONG).await {
        told.stored();
    }
    let began = Instant::now();
    let held = held(&rig, &proxy).await;
    let last = (1..=40).map(|owner| (owner, None, total));
    let pages = (1..=40).map(|owner| (owner, Some(1 + owner % 2), history.page_size));
    let other =
        [(1, Some(3), total - 2 * history.page_size), (2, Some(4), 0), (902, None, 0), (1, None, total)];
    let asked: Vec<_> = last.chain(pages).chain(other).collect();
    let reads = waiting(asked.iter().map(|&(owner, page, _)| read(&rig, owner, page, LONG)).collect()).await;
    let sent_before = rig.sent.all();
    proxy.relent();
    // Those that hang give way after a second.
    let in_time = began.elapsed() < Duration::from_millis(900);
    assert!(sent_before.is_empty() || !in_time, "{sent_before:?}");
    for ((owner, page, expected), answer) in asked.iter().zip(join_all(reads).await) {
        assert_eq!(answer.expect("an answer"), *expected, "{owner} {page:?}");
    }
    for held in held {
        assert_eq!(held.await.expect("no panic").expect("an answer"), 0);
    }
    // 84 requests, at most 64 at once: a group has one command for last buckets and one for pages.
    let commands = rig.sent.all();
    assert!(commands.len() <= 4 || !in_time, "{commands:?}");
    for (name, command) in commands {
        // Each bucket is one document, however many pages its history has.
        let found = found_by(&rig.database, &name, command).await;
        let [returned, documents, keys] = found.map(|found| found.expect("statistics"));
        assert!(documents <= returned && keys <= 3 * returned + 3, "{name}: {found:?}");
    }
}

/// How many documents a command returns, and how many documents and keys it examines for them.
async fn found_by(database: &Database, name: &str, command: Document) -> [Option<i64>; 3] {
    let mut explained = doc! { name: command.get(name) };
    for (field, value) in command {
        if ["filter", "limit", "hint", "sort", "skip", "pipeline", "cursor"].contains(&&*field) {
            explained.insert(field, value);
        }
    }
    let explained = database.run_command(doc! { "explain": explained, "verbosity": "executionStats" });
    let explained = explained.await.expect("a plan");
    ["nReturned", "totalDocsExamined", "totalKeysExamined"].map(|field| first(&explained, field))
}

/// The first number with this name, wherever it is.
fn first(document: &Document, field: &str) -> Option<i64> {
    let inside = |value: &Bson| match value {
        Bson::Document(document) => first(document, field),
        Bson::Array(values) => {
            values.iter().filter_map(Bson::as_document).find_map(|value| first(value, field))
        }
        _ => None,
    };
    let here = document.get_i32(field).map(i64::from).or_else(|_| document.get_i64(field));
    here.ok().or_else(|| document.values().find_map(inside))
}

test_over!(what_one_bucket_lacks_concerns_its_readers_alone, NOTES);
async fn what_one_bucket_lacks_concerns_its_readers_alone(history: &'static History) {
    let proxy = Proxy::before(shared().await).await;
    let rig = Rig::through(history, &proxy, shared().await).await;
    let total = history.pages(1.5);
    for told in rig.append_to_all(1..=20, 1, total, LONG).await {
        told.stored();
    }
    let buckets = rig.database.collection::<Document>(history.name);
    let (corrupt, nameless, erased, late) = (31, 32, 33, 34);
    for (owner, change) in [(corrupt, doc! { "count": 99 }), (nameless, doc! { "page": "1" })] {
        let mut bucket = history.bucket(owner, 1, 1, &[(1, DateTime::from_millis(0))]);
        bucket.extend(change);
        buckets.insert_one(&bucket).bypass_document_validation(true).await.expect("a corrupt bucket");
    }
    let tombstone = doc! {
        "_id": format!("{}_:", history.id(erased)), history.owner_field: history.owner_bson(erased),
        "page": (1_i64 << 53) - 1, "count": 0, "history": [], "firstPage": 1_i64, "second": 0_i64,
        "erased": DateTime::from_millis(0),
    };
    buckets.insert_one(&tombstone).bypass_document_validation(true).await.expect("a tombstone");
    let held = held(&rig, &proxy).await;
    let owners: Vec<_> = (1..=20).chain([corrupt, nameless, erased]).collect();
    let mut reads: Vec<_> = owners.iter().map(|&owner| read(&rig, owner, None, LONG)).collect();
    reads.extend(owners.iter().map(|&owner| read(&rig, owner, Some(1), LONG)));
    let reads = waiting(reads).await;
    // One that has little time is answered when that is over.
    assert!(matches!(read(&rig, late, None, Duration::from_millis(1)).await, Err(Error::Unavailable(_))));
    proxy.relent();
    for (place, answer) in join_all(reads).await.into_iter().enumerate() {
        let (owner, is_page) = (owners[place % owners.len()], place >= owners.len());
        match answer {
            Ok(found) if owner <= 20 => {
                assert_eq!(found, if is_page { history.page_size } else { total }, "{owner}");
            }
            Err(Error::Corrupt(_)) if owner == corrupt || owner == nameless => (),
            // No bucket has this number; it was asked before a marker was met.
            Ok(0) if (owner == nameless || owner == erased) && is_page => (),
            Err(Error::Gone(Gone::Erased { .. })) if owner == erased => (),
            other => panic!("{owner} {is_page}: {other:?}"),
        }
    }
    join_all(held).await;
}

test_over!(who_hangs_or_goes_keeps_nobody, NOTES);
/// Neither a command that hangs nor a reader that goes keeps those who wait.
async fn who_hangs_or_goes_keeps_nobody(history: &'static History) {
    let proxy = Proxy::before(shared().await).await;
    let rig = Rig::through(history, &proxy, shared().await).await;
    for told in rig.append_to_all(1..=10, 1, 1, LONG).await {
        told.stored();
    }
    for goes in [false, true] {
        let held = held(&rig, &proxy).await;
        let reads = waiting((1..=10).map(|owner| read(&rig, owner, None, LONG)).collect()).await;
        if goes {
            held.iter().for_each(tokio::task::JoinHandle::abort);
        }
        // The first answers are held all the time.
        for answer in join_all(reads).await {
            assert_eq!(answer.expect("an answer"), 1);
        }
        assert!(goes || held.iter().all(|held| !held.is_finished()));
        proxy.relent();
    }
}
