//! Items that cannot be adopted as they are.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, doc};
use pagebucket_engine::Deadline;
use pagebucket_engine::internal::{Ages, Retention};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::{Moving, trade};
use crate::commands::program::run;
use crate::harness::{Mongod, PATIENCE, Setup, TRADES, engine, eventually, shared};

fn file(name: &str) -> PathBuf {
    let name = format!("adopt-{}-{name}-{}", std::process::id(), ObjectId::new());
    std::env::temp_dir().join(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_items_are_mended_and_adopted() {
    let moving = Moving::new().await;
    let mut rows: Vec<_> = (1..=5).map(|n| trade(7, n, n)).collect();
    rows[1].insert("quantity", 1.5);
    rows[2].remove("type");
    rows[3].insert("note", "x");
    rows[4].insert("customerId", "7");
    for (index, row) in rows.iter_mut().enumerate() {
        row.insert("_id", index as i32 + 1);
    }
    moving.old().insert_many(rows).await.unwrap();
    let (rejects, path) = (file("rejects"), |file: &PathBuf| file.to_str().unwrap().to_owned());
    let planned = moving.adopted(&["--dry-run"], 1).await;
    assert!(planned.out.contains("would refuse 4 trades\n"), "{planned:?}");
    assert!(planned.out.contains("  1: \"quantity\" must be a whole number"), "{planned:?}");
    let adopted = moving.adopted(&["--rejects", &path(&rejects)], 1).await;
    assert!(adopted.out.contains(&format!("refused 4 trades: {}", rejects.display())), "{adopted:?}");
    assert_eq!(moving.stored(7).await.numbers, [1]);
    let text = std::fs::read_to_string(&rejects).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reasons: Vec<_> = lines.iter().map(|line| line["reason"].as_str().unwrap()).collect();
    assert!(reasons[0].starts_with("\"quantity\" must be a whole number from 1 to"), "{reasons:#?}");
    assert_eq!(reasons[1], "has no field \"type\"");
    assert!(
        reasons[2].starts_with("\"note\" would be lost, because it is no property of a trade"),
        "{reasons:#?}"
    );
    assert_eq!(reasons[3], "\"customerId\" must be a whole number");
    assert_eq!(lines[0]["document"]["quantity"], serde_json::json!({ "$numberDouble": "1.5" }));
    let clean = run(&mut moving.adopt(&["--check"])).await;
    assert_eq!(clean.status, Some(1), "{clean:?}");
    assert!(
        clean.out.contains("\n4 differences\n") && clean.err.contains("customer 7: _id 2: is not stored"),
        "{clean:?}"
    );

    // Mended by hand, as far as it can be.
    let mended = text
        .replace(r#"{"$numberDouble":"1.5"}"#, "2")
        .replace(
            r#""customerId":{"$numberLong":"7"},"quantity""#,
            r#""customerId":7,"type":"buy","quantity""#,
        )
        .replace(
            r#""ticker":"MDB","customerId":{"$numberLong":"7"},"quantity":{"$numberLong":"3"}"#,
            r#""ticker":"MDB","customerId":7,"type":"buy","quantity":3"#,
        )
        .replace(r#","note":"x""#, "");
    std::fs::write(&rejects, mended).unwrap();
    let again = file("again");
    for (turn, stored) in [(1, "stored 3 trades, 0 were"), (2, "stored 0 trades, 3 were")] {
        let flags = ["--from-rejects", &path(&rejects), "--rejects", &path(&again)];
        let adopted = moving.adopted(&flags, 1).await;
        assert!(adopted.out.contains(stored), "{turn}: {adopted:?}");
    }
    moving.stored(7).await.holds_exactly([1, 2, 3, 4]);
    assert_eq!(std::fs::read_to_string(&again).unwrap().lines().count(), 2, "once for each turn");
    let checked = run(&mut moving.adopt(&["--check"])).await;
    assert!(
        checked.out.contains("\n1 difference\n") && checked.out.contains("stored as mended: 3 trades"),
        "{checked:?}"
    );
    for file in [rejects, again] {
        std::fs::remove_file(file).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_refused_items_is_fed_to_its_source_alone() {
    let moving = Moving::new().await;
    let mut wrong = trade(7, 2, 2);
    wrong.insert("quantity", "2 units");
    moving.old().insert_many([trade(7, 1, 1), wrong]).await.unwrap();
    moving.database.collection("other").insert_one(trade(8, 1, 1)).await.unwrap();
    let rejects = file("source");
    let path = rejects.to_str().unwrap();
    moving.adopted(&["--rejects", path], 1).await;
    let line = std::fs::read_to_string(&rejects).unwrap();
    let name = format!("{}.old", moving.place.name);
    assert!(line.contains(&format!(r#""source":"{name}""#)), "{line}");
    let mended = line.replace("2 units", "2");
    let unnamed = mended.replace(&format!(r#""source":"{name}","#), "");
    assert_ne!(mended, unnamed);
    let feed = async |collection: &str, lines: &str| {
        std::fs::write(&rejects, lines).unwrap();
        let from = ["--from-database", &moving.place.name, "--collection", collection, "--into", "trades"];
        let flags = [&from[..], &["--from-rejects", path]].concat();
        run(&mut moving.place.pagebucket("adopt", &flags)).await
    };
    let uri = format!("{}&appName=other", moving.place.uri);
    for lines in [&mended, &unnamed] {
        for collection in ["odl", "other"] {
            let typed = feed(collection, lines).await;
            let sentence = format!("nothing was ever adopted from {}.{collection}", moving.place.name);
            assert!(typed.sentence(2).contains(&sentence), "{typed:?}");
        }
    }
    let from = ["--from", &uri, "--from-database", &moving.place.name, "--collection", "other"];
    let adopted = run(&mut moving.place.pagebucket("adopt", &from)).await;
    assert_eq!(adopted.status, Some(0), "{adopted:?}");
    let typed = feed("other", &mended).await;
    assert!(typed.out.contains(&format!("stopped: line 1: is of {name}, and not of")), "{typed:?}");
    assert_eq!((typed.status, moving.stored(7).await.numbers), (Some(3), vec![1]));
    let nameless = feed("old", &unnamed).await;
    assert!(nameless.out.contains("stopped: line 1: must name its `source`"), "{nameless:?}");
    assert_eq!((nameless.status, moving.stored(7).await.numbers), (Some(3), vec![1]));
    let fed = feed("old", &mended).await;
    assert!(fed.status == Some(0) && fed.out.contains("stored 1 trade, 0 were"), "{fed:?}");
    moving.stored(7).await.holds_exactly([1, 2]);
    std::fs::remove_file(rejects).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_finds_each_difference() {
    let moving = Moving::new().await;
    moving
        .old()
        .insert_many((1..=40).map(|n| {
            let mut row = trade(n % 2 + 1, n, n);
            row.insert("_id", n);
            row
        }))
        .await
        .unwrap();
    moving.adopted(&[], 0).await;
    moving.is_clean(&[]).await;
    moving
        .old()
        .insert_one({
            let mut row = trade(1, 99, 5);
            row.insert("_id", 99);
            row
        })
        .await
        .unwrap();
    moving.old().update_one(doc! { "_id": 8 }, doc! { "$set": { "quantity": 80 } }).await.unwrap();
    moving.old().delete_one(doc! { "_id": 10 }).await.unwrap();
    // Two items of one bucket change places, which only damage can do.
    let trades = moving.database.collection::<mongodb::bson::Document>("trades");
    let mut bucket = trades.find_one(doc! { "customerId": 2 }).await.unwrap().unwrap();
    bucket.get_array_mut("history").unwrap().swap(0, 1);
    trades.replace_one(doc! { "_id": bucket.get_str("_id").unwrap() }, &bucket).await.unwrap();
    let found = moving.adopted(&["--check"], 1).await;
    for line in [
        "customer 1: _id 99: is missing",
        "customer 1: _id 8: differs from item 4",
        "customer 2: _id 1: is item 2, after later ones",
    ] {
        assert!(found.err.contains(line), "{line}: {found:?}");
    }
    assert!(
        found.out.contains("\n3 differences\n") && found.out.contains("1 trade that others have appended"),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_owner_stops_nobody_else() {
    let moving = Moving::new().await;
    moving.old().insert_many((1..=20).map(|n| trade(n % 2 + 7, n, n))).await.unwrap();
    moving.adopted(&[], 0).await;
    let mut erasing = moving.place.pagebucket("erase", &["--owner", "7"]).spawn().expect("to run");
    let mut out = BufReader::new(erasing.stdout.take().unwrap()).lines();
    while !out.next_line().await.unwrap().expect("a line").contains("all pages and keys are deleted") {}
    erasing.kill().await.unwrap();
    moving.old().insert_many([trade(7, 21, 21), trade(8, 22, 22)]).await.unwrap();
    let rejects = file("erased");
    let adopted = moving.adopted(&["--rejects", rejects.to_str().unwrap()], 1).await;
    assert!(adopted.out.contains("in all: stored 1 trade, 10 were stored before"), "{adopted:?}");
    let lines = std::fs::read_to_string(&rejects).unwrap();
    assert_eq!(lines.matches(r#""reason":"the owner is erased""#).count(), 11, "{lines}");
    assert!(lines.contains(r#""quantity":{"$numberLong":"21"}"#), "as it is in the source: {lines}");
    let checked = moving.adopted(&["--check"], 1).await;
    assert!(checked.err.contains("customer 7: the owner is erased"), "{checked:?}");
    assert!(checked.out.contains("\n1 difference\n"), "{checked:?}");
    std::fs::remove_file(rejects).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_retired_is_not_adopted_again() {
    let moving = Moving::new().await;
    moving.old().insert_many((1..=60).map(|n| trade(n % 2 + 7, n, n))).await.unwrap();
    moving.adopted(&[], 0).await;
    let ages = Ages {
        poll: Duration::from_millis(50),
        tail: Duration::from_millis(300),
        command: Duration::from_secs(1),
        marker: Duration::from_secs(2),
        late: Duration::from_millis(200),
    };
    let store = Setup::on(shared().await).in_database(&moving.database).aging(ages).store().await;
    let retention = Retention { pages: NonZero::new(1), ..Default::default() };
    eventually("both first pages are retired", PATIENCE, async || {
        let soon = Deadline::within(PATIENCE);
        engine::histories(&store, TRADES)
            .retirement()
            .retire(retention, soon)
            .await
            .expect("it may be repeated");
        moving.stored(7).await.numbers.len() == 20 && moving.stored(8).await.numbers.len() == 20
    })
    .await;
    moving.old().insert_one(trade(9, 61, 61)).await.unwrap();
    let rejects = file("retired");
    let adopted = moving.adopted(&["--rejects", rejects.to_str().unwrap()], 1).await;
    assert!(adopted.out.contains("in all: stored 1 trade, 40 were stored before"), "{adopted:?}");
    let lines = std::fs::read_to_string(&rejects).unwrap();
    assert_eq!(lines.matches(r#""reason":"the pages before page 2 are retired""#).count(), 20, "{lines}");
    assert_eq!(moving.stored(8).await.numbers.len(), 20);
    std::fs::remove_file(rejects).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_with_an_owner_of_its_own() {
    let moving = Moving::new().await;
    let item =
        doc! { "customerId": 8, "type": "buy", "ticker": "MDB", "qty": 1, "date": DateTime::from_millis(1) };
    moving
        .old()
        .insert_one(doc! { "customerId": 7, "count": 2, "history": [item, Bson::Null] })
        .await
        .unwrap();
    let rejects = file("own");
    let path = rejects.to_str().unwrap();
    moving.adopted(&["--rejects", path], 1).await;
    let line = std::fs::read_to_string(&rejects).unwrap();
    let mended = line.replace(
        r#""history":null"#,
        r#""type":"buy","ticker":"MDB","qty":2,"date":{"$date":{"$numberLong":"2"}}"#,
    );
    assert!(line.contains(r#""document":{"customerId":{"$numberInt":"7"},"type":"#), "{line}");
    assert!(line.contains("has \\\"customerId\\\" itself"), "{line}");
    let same = moving.adopted(&["--from-rejects", path, "--rejects", path], 2).await;
    assert!(same.sentence(2).contains("the same file"), "{same:?}");
    // A run that ended in the middle of a line.
    std::fs::write(&rejects, mended + r#"{"_id"#).unwrap();
    moving.adopted(&["--rejects", path], 1).await;
    let lines = std::fs::read_to_string(&rejects).unwrap();
    assert_eq!((lines.lines().count(), lines.lines().nth(2)), (5, Some(r#"{"_id"#)), "{lines}");
    let fed = moving.adopted(&["--from-rejects", path], 3).await;
    assert!(fed.out.contains("stopped: line 3: "), "{fed:?}");
    moving.stored(7).await.holds_exactly([1, 2]);
    moving.is_clean(&[]).await;
    std::fs::remove_file(rejects).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_says_of_mistakes() {
    let moving = Moving::new().await;
    let empty = moving.adopted(&[], 2).await;
    assert!(
        empty.sentence(2).contains("has no documents") && empty.sentence(2).contains("--shape"),
        "{empty:?}"
    );
    moving.old().insert_one(trade(1, 1, 1)).await.unwrap();
    moving
        .old()
        .insert_one(doc! { "customerId": 1, "history": [], "d": Bson::DateTime(DateTime::now()) })
        .await
        .unwrap();
    let mixed = moving.adopted(&[], 2).await;
    assert!(mixed.sentence(2).contains("name the shape with --shape"), "{mixed:?}");
    let other = moving.adopted(&["--into", "nothing"], 2).await;
    assert!(other.err.contains("--into"), "{other:?}");

    let alone = Mongod::standalone().await;
    let old = alone.client().await.database("shop").collection("old");
    old.insert_one(trade(1, 1, 1)).await.unwrap();
    let from = ["--from", alone.uri(), "--from-database", "shop", "--collection", "old"];
    let command = |flags: &[&str]| moving.place.pagebucket("adopt", &[&from[..], flags].concat());
    let followed = run(&mut command(&["--follow"])).await;
    assert!(followed.sentence(2).contains("is not a member of a replica set"), "{followed:?}");
    let copied = run(&mut command(&[])).await;
    assert_eq!(copied.status, Some(0), "{copied:?}");
    moving.stored(1).await.holds_exactly([1]);
    let uri = format!("{}&appName=another", moving.place.uri);
    let from = ["--from", &uri, "--from-database", &moving.place.name, "--collection", "trades"];
    let itself = run(&mut moving.place.pagebucket("adopt", &from)).await;
    assert!(itself.sentence(2).contains("is the collection of the history itself"), "{itself:?}");
    alone.remove().await;
}
