//! `verify`: damage that is made by hand on a live system is found and nothing else, and repaired only without loss.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc};
use mongodb::{Collection, Database};

use super::program::{Ended, Place, run};
use crate::harness::{Client, History, NOTES, TRADES, fill, stored, tests, tests_over};

tests_over![&[TRADES, NOTES], "commands": each_damage_is_found_beside_writers_and_nothing_else];
tests!["commands":
    a_repair_gives_back_what_was_appended,
    verify_finds_a_lost_tail_by_what_was_answered,
    verify_tells_usage,
];

/// Pages of each history that is damaged.
const PAGES: u64 = 5;

/// Items on the last page of such a history.
fn on_last(history: &History) -> u64 {
    3.min(history.page_size - 1)
}

/// One damage, which is done to the history of an owner of its own.
struct Damage {
    what: &'static str,
    /// The page whose bucket the finding names.
    page: u64,
    /// What the line about it holds.
    line: &'static str,
    /// Whether it can be repaired.
    mends: bool,
}

const fn damage(what: &'static str, page: u64, line: &'static str, mends: bool) -> Damage {
    Damage { what, page, line, mends }
}

const DAMAGES: [Damage; 19] = [
    damage("count too low", 2, "invariant 2: count is ", true),
    damage("count of the last page too high", 5, "invariant 2: count is ", true),
    damage("count of another type", 3, "invariant 2: count is ", true),
    damage("first", 2, "data model: first is ", true),
    damage("last is missing", 4, "data model: last is missing", true),
    damage("no page", 3, "invariant 1: page is missing", true),
    damage("no page on the first page", 1, "invariant 1: page is missing", true),
    damage("no page on the last page", 5, "invariant 1: page is missing", false),
    damage("a page is gone", 4, "invariant 1: page 3 is missing before it", false),
    damage("the first page is gone", 2, "invariant 1: page 1 is missing before it", false),
    damage("an item is gone", 2, "invariant 2: holds ", false),
    damage("an item too many", 3, "invariant 2: holds ", false),
    damage("no items", 5, "invariant 2: holds 0 items", false),
    damage("two pages have changed places", 3, "invariant 3: is page 2, after page 3", false),
    damage("an item stands twice", 4, "invariant 6: its item ", false),
    damage("another owner's", 2, "data model: ", false),
    damage("the last page is another owner's", 5, "data model: ", false),
    damage("an item without its date", 2, "data model: history.1.", false),
    damage("a value of a type that no item has", 3, "data model: history.0.", false),
];

/// Does a damage to a history, past all guards.
async fn harm(history: &History, buckets: &Collection<Document>, owner: u64, damage: &Damage) {
    let of = |page: u64| doc! { history.owner_field: history.owner_bson(owner), "page": page as i64 };
    let this = of(damage.page);
    let set = async |query: Document, update: Document| {
        let update = buckets.update_one(query, update).bypass_document_validation(true);
        assert_eq!(update.await.expect("an answer").modified_count, 1, "{}", damage.what);
    };
    let key = || Bson::from(Binary { subtype: BinarySubtype::Generic, bytes: vec![7; 12] });
    match damage.what {
        "count too low" => set(this, doc! { "$inc": { "count": -1 } }).await,
        "count of the last page too high" => set(this, doc! { "$inc": { "count": 2 } }).await,
        "count of another type" => set(this, doc! { "$set": { "count": history.page_size as f64 } }).await,
        "first" => set(this, doc! { "$set": { "first": DateTime::from_millis(1) } }).await,
        "last is missing" => set(this, doc! { "$unset": { "last": 1 } }).await,
        "no page" | "no page on the first page" | "no page on the last page" => {
            set(this, doc! { "$unset": { "page": 1 } }).await;
        }
        "a page is gone" => drop(buckets.delete_one(of(3)).await.expect("an answer")),
        "the first page is gone" => drop(buckets.delete_one(of(1)).await.expect("an answer")),
        "an item is gone" => {
            let whole = buckets.find_one(this.clone()).await.expect("an answer").expect("a bucket");
            let items = whole.get_array("history").expect("items");
            let before = items[items.len() - 2].as_document().expect("an item");
            let last = before.get_datetime(history.date).expect("a date");
            let pop = doc! { "$pop": { "history": 1 }, "$inc": { "count": -1 }, "$set": { "last": last } };
            set(this, pop).await;
        }
        "an item too many" => {
            let whole = buckets.find_one(this.clone()).await.expect("an answer").expect("a bucket");
            let first = whole.get_array("history").expect("items")[0].clone();
            set(this, doc! { "$push": { "history": first }, "$inc": { "count": 1 } }).await;
        }
        "no items" => set(this, doc! { "$set": { "history": [], "count": 0 } }).await,
        "two pages have changed places" => {
            set(of(2), doc! { "$set": { "page": 1_000_i64 } }).await;
            set(of(3), doc! { "$set": { "page": 2_i64 } }).await;
            set(of(1_000), doc! { "$set": { "page": 3_i64 } }).await;
        }
        "an item stands twice" => {
            set(of(2), doc! { "$set": { format!("history.1.{}", history.key): key() } }).await;
            set(this, doc! { "$set": { format!("history.0.{}", history.key): key() } }).await;
        }
        "another owner's" | "the last page is another owner's" => {
            set(this, doc! { "$set": { history.owner_field: history.owner_bson(9_999) } }).await;
        }
        "an item without its date" => {
            set(this, doc! { "$unset": { format!("history.1.{}", history.date): 1 } }).await;
        }
        "a value of a type that no item has" => {
            set(this, doc! { "$set": { "history.0.more": Bson::MaxKey } }).await;
        }
        other => panic!("no such damage: {other}"),
    }
}

/// Appends to these owners until it is told to stop; returns how many items were acknowledged.
async fn write(place: &Place, client: &Client, owner: u64, stop: &AtomicBool) -> u64 {
    let mut stored = 0;
    while !stop.load(Ordering::Relaxed) {
        let items: Vec<_> = (1..=7).map(|n| place.history.item(stored + n)).collect();
        client.append(owner, &serde_json::json!(items)).await.expect(201);
        stored += 7;
    }
    stored
}

async fn verify(place: &Place, arguments: &[&str]) -> Ended {
    run(&mut place.pagebucket("verify", &[&["--pages-per-second", "1000000"], arguments].concat())).await
}

/// The `_id` of each page.
async fn ids(history: &History, database: &Database, owner: u64) -> BTreeMap<u64, String> {
    (1..).zip(stored(database, history, owner).await.ids).collect()
}

async fn each_damage_is_found_beside_writers_and_nothing_else(history: &'static History) {
    let place = Place::of(history).await;
    let serving = place.serve(&["--page-cache", "0"]).await;
    let database = place.database().await;
    let buckets = database.collection::<Document>(history.name);
    let damaged: Vec<(u64, &Damage)> = (1..).zip(&DAMAGES).collect();
    let mut expected: Vec<(String, &Damage, u64)> = Vec::new();
    for &(owner, damage) in &damaged {
        fill(&database, history, owner, PAGES, on_last(history)).await;
        let ids = ids(history, &database, owner).await;
        expected.push((format!("{} {}: {}", history.name, ids[&damage.page], damage.line), damage, owner));
    }
    let healthy = verify(&place, &[]).await;
    assert_eq!((healthy.status, healthy.out.as_str()), (Some(0), ""), "{healthy:?}");

    let stop = AtomicBool::new(false);
    let writers: Vec<u64> = (1_000..1_008).collect();
    let writing = join_all(writers.iter().map(|owner| write(&place, &serving.client, *owner, &stop)));
    let verifying = async {
        for _ in 0..3 {
            let healthy = verify(&place, &[]).await;
            assert_eq!((healthy.status, healthy.out.as_str()), (Some(0), ""), "{healthy:?}");
        }
        for &(owner, damage) in &damaged {
            harm(history, &buckets, owner, damage).await;
        }
        let found = verify(&place, &[]).await;
        stop.store(true, Ordering::Relaxed);
        found
    };
    let (written, found) = tokio::join!(writing, verifying);
    assert_eq!(found.status, Some(1), "{found:?}");
    let lines: Vec<&str> = found.out.lines().collect();
    for (line, Damage { what, .. }, _) in &expected {
        assert!(lines.iter().any(|found| found.starts_with(line)), "{what}: no {line:?} in {lines:#?}");
    }
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, damage, owner) in &expected {
        let line = lines.iter().find(|found| found.starts_with(line)).expect("it was found above");
        is_what_a_reader_gets(history, &serving.client, *owner, line, damage).await;
    }

    let repaired = verify(&place, &["--repair"]).await;
    assert_eq!(repaired.status, Some(1), "{repaired:?}");
    let lines: Vec<&str> = repaired.out.lines().collect();
    for (line, Damage { what, mends, .. }, _) in &expected {
        let at = lines.iter().position(|found| found.starts_with(line)).expect(what);
        let told = if *mends { "  repaired: " } else { "  not repaired: " };
        assert!(lines[at + 1].starts_with(told), "{what}: {}", lines[at + 1]);
    }
    let left = verify(&place, &[]).await;
    assert_eq!(left.out.lines().count(), DAMAGES.iter().filter(|damage| !damage.mends).count(), "{left:?}");
    for &(owner, damage) in damaged.iter().filter(|(_, damage)| damage.mends) {
        let whole = stored(&database, history, owner).await;
        assert_eq!(
            whole.numbers.len() as u64,
            (PAGES - 1) * history.page_size + on_last(history),
            "{}",
            damage.what
        );
        let one = verify(&place, &["--history", history.name, "--owner", &history.id(owner)]).await;
        assert_eq!((one.status, one.out.as_str()), (Some(0), ""), "{}: {one:?}", damage.what);
    }
    for (owner, written) in writers.into_iter().zip(written) {
        stored(&database, history, owner).await.holds_exactly(1..=written as i64);
    }
    serving.stop().await;
}

/// Compares what a line promises a reader with what a reader gets.
async fn is_what_a_reader_gets(history: &History, client: &Client, owner: u64, line: &str, damage: &Damage) {
    let (_, gets) = line.rsplit_once("; a reader gets ").expect("what a reader gets");
    let words: Vec<&str> = gets.split(' ').collect();
    match words[..] {
        ["page", page, "with", "its", items, "items"] => {
            let answer = client.get(&history.at(owner, &format!("/pages/{page}"))).await;
            let shown = answer.expect(200)["items"].as_array().expect("items").len();
            assert_eq!(shown.to_string(), items, "{}: {line}", damage.what);
        }
        [status, "for", "page", page, ..] => {
            let page = page.trim_end_matches(';');
            let answer = client.get(&history.at(owner, &format!("/pages/{page}"))).await;
            assert_eq!(answer.status.as_str(), status, "{}: {line}", damage.what);
        }
        _ => panic!("{}: {line}", damage.what),
    }
}

/// The bytes that readers may have kept for a year are those that they get after the repair.
async fn a_repair_gives_back_what_was_appended() {
    let place = Place::new().await;
    let serving = place.serve(&["--page-cache", "0"]).await;
    let database = place.database().await;
    let buckets = database.collection::<Document>("trades");
    for (owner, damage) in (1..).zip(DAMAGES.iter().filter(|damage| damage.mends)) {
        let items: Vec<_> = (1..=43).map(|n| TRADES.item(n)).collect();
        serving.client.append(owner, &serde_json::json!(items)).await.expect(201);
        let path = format!("/v1/customers/{owner}/trades/pages/{}", damage.page);
        let before = serving.client.get(&path).await;
        before.expect(200);
        let documents: Vec<Document> = sorted(&buckets, owner).await;
        harm(TRADES, &buckets, owner, damage).await;
        let repaired = verify(&place, &["--customer", &owner.to_string(), "--repair"]).await;
        assert_eq!(repaired.status, Some(0), "{}: {repaired:?}", damage.what);
        let after = serving.client.get(&path).await;
        after.expect(200);
        assert_eq!((&before.body, before.header("etag")), (&after.body, after.header("etag")));
        let by_name = |document: &Document| document.clone().into_iter().collect::<BTreeMap<String, Bson>>();
        let mended: Vec<_> = sorted(&buckets, owner).await.iter().map(by_name).collect();
        assert_eq!(mended, documents.iter().map(by_name).collect::<Vec<_>>(), "{}", damage.what);
        serving.client.append(owner, &TRADES.item(44)).await.expect(201);
        stored(&database, TRADES, owner).await.holds_exactly(1..=44);
    }
    serving.stop().await;
}

async fn sorted(buckets: &Collection<Document>, owner: u64) -> Vec<Document> {
    let found = buckets.find(doc! { "customerId": owner as i64 }).sort(doc! { "_id": 1 });
    futures_util::TryStreamExt::try_collect(found.await.expect("an answer")).await.expect("buckets")
}

/// The database alone does not show that the last page is gone, but the answers that it remembers do.
async fn verify_finds_a_lost_tail_by_what_was_answered() {
    let place = Place::new().await;
    let serving = place.serve(&[]).await;
    let items: Vec<_> = (1..=13).map(|n| TRADES.item(n)).collect();
    for _ in 0..2 {
        let sent = serving.client.append_once(7, "one", &serde_json::json!(items)).await;
        assert!(sent.status.is_success());
    }
    let healthy = verify(&place, &[]).await;
    assert_eq!((healthy.status, healthy.out.as_str()), (Some(0), ""), "{healthy:?}");
    let buckets = place.database().await.collection::<Document>("trades");
    buckets.delete_one(doc! { "customerId": 7_i64, "page": 2_i64 }).await.expect("an answer");
    let found = verify(&place, &[]).await;
    assert_eq!(found.status, Some(1), "{found:?}");
    assert!(found.out.starts_with("idempotency_keys "), "{found:?}");
    let line = "invariant 6: an append of 7 was answered with items up to 13, which no history has";
    assert!(found.out.contains(line), "{found:?}");
    serving.stop().await;
}

async fn verify_tells_usage() {
    let place = Place::new().await;
    for (arguments, part) in [
        (&["--owner", "x"][..], "--owner must be"),
        (&["--history", "notes"], "--history notes: there is no such history (there are trades)"),
        (&["--pages-per-second", "0"], "--pages-per-second"),
    ] {
        let ended = run(&mut place.pagebucket("verify", arguments)).await;
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.err.contains(part), "{arguments:?}: {ended:?}");
    }
    let pending = run(&mut place.pagebucket("verify", &[])).await;
    assert!(pending.sentence(3).contains("0001_trades"), "{pending:?}");
    let migrated = run(&mut place.pagebucket("migrate", &[])).await;
    assert_eq!(migrated.status, Some(0));
    let index = doc! { "dropIndexes": "trades", "index": { "customerId": 1, "page": 1 } };
    place.database().await.run_command(index).await.expect("an index that is gone");
    let found = verify(&place, &[]).await;
    assert_eq!(found.status, Some(1), "{found:?}");
    assert!(found.out.contains("unique index on customerId and page"), "{found:?}");
}
