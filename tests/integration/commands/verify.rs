//! `verify`: damage that is made by hand on a live system is found and nothing else, and repaired only
//! without loss.

mod damages;
mod deletions;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc};
use mongodb::{Collection, Database};

use self::damages::{DAMAGES, Damage, harm};
use self::deletions::{bury, deleted_in_all_ways};
use super::program::{Ended, Place, run};
use crate::harness::{Client, History, TRADES, eventually, fill, stored, test_over};

/// Pages of each history that is damaged.
const PAGES: u64 = 5;

/// Items on the last page of such a history.
fn on_last(history: &History) -> u64 {
    3.min(history.page_size - 1)
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

test_over!(each_damage_is_found_beside_writers_and_nothing_else, TRADES, NOTES);
async fn each_damage_is_found_beside_writers_and_nothing_else(history: &'static History) {
    let place = Place::of(history).await;
    assert_eq!(run(&mut place.pagebucket("migrate", &[])).await.status, Some(0));
    let database = place.database().await;
    let buckets = database.collection::<Document>(history.name);
    deleted_in_all_ways(history, &database).await;
    let serving = place.serve(&["--page-cache", "0"]).await;
    let damaged: Vec<(u64, &Damage)> = (1..).zip(&DAMAGES).collect();
    let mut expected: Vec<(String, &Damage, u64)> = Vec::new();
    for &(owner, damage) in &damaged {
        fill(&database, history, owner, PAGES, on_last(history)).await;
        let ids = ids(history, &database, owner).await;
        let id = damage.id(history, owner, &ids);
        expected.push((format!("{} {id}: {}", history.name, damage.line), damage, owner));
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
    let owners: Vec<String> = damaged.iter().map(|(owner, _)| history.id(*owner)).collect();
    let mut arguments = vec!["--history", history.name];
    arguments.extend(owners.iter().flat_map(|owner| ["--owner", owner]));
    let of_owners = verify(&place, &arguments).await;
    let told: Vec<&str> = of_owners.out.lines().collect();
    for (line, Damage { what, .. }, _) in &expected {
        assert!(told.iter().any(|found| found.starts_with(line)), "{what}: no {line:?} in {told:#?}");
    }
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    // The owner that the field names, whose readers meet it too.
    let other = verify(&place, &["--history", history.name, "--owner", &history.id(9_999)]).await;
    assert_eq!((other.status, other.out.lines().count()), (Some(1), 2), "{other:?}");
    assert!(other.out.lines().all(|line| line.contains("is not what _id begins with")), "{other:?}");
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
        ["nothing", "of", "it"] => {}
        _ => panic!("{}: {line}", damage.what),
    }
}

/// The bytes that readers may have kept for a year are those that they get after the repair.
#[tokio::test(flavor = "multi_thread")]
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

/// A tile is a function of its pages: whatever else is in it is found, and made again.
#[tokio::test(flavor = "multi_thread")]
async fn verify_compares_tiles_with_their_pages() {
    let place = Place::new().await;
    let serving = place.serve(&[]).await;
    let items: Vec<_> = (1..=641).map(|n| TRADES.item(n)).collect();
    serving.client.append(7, &serde_json::json!(items)).await.expect(201);
    let path = "/v1/customers/7/trades/summary?by=1M&limit=1000";
    serving.client.get(path).await.expect(200);
    let tiles = place.database().await.collection::<Document>("summary_tiles");
    eventually("the tile is made", Duration::from_secs(60), async || {
        tiles.count_documents(doc! {}).await.expect("an answer") == 1
    })
    .await;
    let before = tiles.find_one(doc! {}).await.expect("an answer").expect("a tile");
    let healthy = verify(&place, &[]).await;
    assert_eq!((healthy.status, healthy.out.as_str()), (Some(0), ""), "{healthy:?}");
    let other = Binary { subtype: BinarySubtype::Generic, bytes: vec![7; 12] };
    for damage in [
        doc! { "$set": { "points": other } },
        doc! { "$set": { "last": DateTime::from_millis(7) } },
        doc! { "$set": { "size": 7 }, "$unset": { "points": 1 } },
        doc! { "$set": { "more": 7 } },
    ] {
        tiles.update_one(doc! {}, damage.clone()).await.expect("an answer");
        let line = format!(
            "summary_tiles {}: data model: is not what its pages add up to",
            before.get_str("_id").expect("a text")
        );
        for arguments in [&[][..], &["--owner", "7"], &["--repair"]] {
            let found = verify(&place, arguments).await;
            assert!(found.out.starts_with(&line), "{damage}: {found:?}");
            let status = if arguments.contains(&"--repair") { 0 } else { 1 };
            assert_eq!(found.status, Some(status), "{damage}: {found:?}");
        }
        let after = tiles.find_one(doc! {}).await.expect("an answer").expect("a tile");
        assert_eq!(after, before, "{damage}");
    }
    let healthy = verify(&place, &["--owner", "7"]).await;
    assert_eq!((healthy.status, healthy.out.as_str()), (Some(0), ""), "{healthy:?}");
    serving.stop().await;
}

/// The database alone does not show that the last page is gone, but the answers that it remembers do.
#[tokio::test(flavor = "multi_thread")]
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

#[tokio::test(flavor = "multi_thread")]
async fn verify_compares_collections_with_what_migrations_create() {
    let place = Place::new().await;
    let migrate = async || {
        let migrated = run(&mut place.pagebucket("migrate", &[])).await;
        assert_eq!(migrated.status, Some(0), "{migrated:?}");
    };
    migrate().await;
    let database = place.database().await;
    let is_sound = async || {
        let healthy = verify(&place, &[]).await;
        assert_eq!((healthy.status, healthy.out.as_str()), (Some(0), ""), "{healthy:?}");
    };
    let finds = async |arguments: &[&str], expected: &[&str]| {
        let found = verify(&place, arguments).await;
        let lines: Vec<&str> = found.out.lines().collect();
        assert_eq!((found.status, lines.len()), (Some(1), expected.len()), "{found:?}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.starts_with(expected), "no {expected:?} in {found:?}");
        }
    };
    let command = async |command: Document| database.run_command(command).await.expect("an answer");
    let histories = database.collection::<Document>("histories");
    let this = || doc! { "_id": "trades" };
    is_sound().await;

    let listed = command(doc! { "listCollections": 1, "filter": { "name": "trades" } }).await;
    let listed = listed.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    let listed = listed.expect("a cursor")[0].as_document().expect("a collection").clone();
    let mut older = listed.get_document("options").and_then(|it| it.get_document("validator")).cloned();
    let schema = older.as_mut().expect("a validator").get_document_mut("$jsonSchema").expect("a schema");
    schema.get_document_mut("properties").expect("properties").remove("since");
    let validator = "trades: its validator is not the one that migrations create";
    for (validation, index, missing) in [
        (doc! { "validator": {} }, "swept_1", "trades: its index on swept is missing, or not as"),
        (
            doc! { "validator": older.expect("a validator") },
            "customerId_1_count_1_last_1_first_1_page_1",
            "trades: its index on customerId and count and last and first and page is missing, or not as",
        ),
    ] {
        let mut changed = doc! { "collMod": "trades" };
        changed.extend(validation);
        command(changed).await;
        command(doc! { "dropIndexes": "trades", "index": index }).await;
        finds(&["--repair"], &[validator, missing]).await;
        // As docs/how-to/recover.md says.
        histories.update_one(this(), doc! { "$unset": { "ready": "" } }).await.expect("an answer");
        migrate().await;
        is_sound().await;
    }

    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/trades.csv");
    let keyed = [example, "--customer", "9", "--key", "k"];
    let imported = run(&mut place.pagebucket("import", &keyed)).await;
    assert_eq!(imported.status, Some(0), "{imported:?}");
    command(doc! { "dropIndexes": "idempotency_keys", "index": "touched_1" }).await;
    finds(&[], &["idempotency_keys: its index on touched, which deletes old records, is missing"]).await;
    migrate().await;
    is_sound().await;

    bury(TRADES, &database.collection("trades"), 7, true).await;
    let missing = "histories trades: data model: markers is missing, not the number of its markers";
    finds(&[], &[missing]).await;
    finds(&["--customer", "7"], &[missing]).await;
    histories.update_one(this(), doc! { "$set": { "markers": "2" } }).await.expect("an answer");
    finds(&["--customer", "8"], &["histories trades: data model: markers is \"2\", not the number"]).await;
    histories.update_one(this(), doc! { "$set": { "markers": 2_i64 } }).await.expect("an answer");
    is_sound().await;

    let migrations = database.collection::<Document>("migrations");
    migrations.delete_one(doc! { "_id": "epoch" }).await.expect("an answer");
    let pending = verify(&place, &[]).await;
    assert!(pending.sentence(3).contains("epoch"), "{pending:?}");
    migrate().await;
    is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
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
