//! Writes a fixture: a database with all kinds of collections and markers, by the service and its commands.
//!
//! `WRITE_FIXTURE=0.2.0`, with definitions in `tests/fixtures/0.2.0/histories`, writes the rest of that
//! directory; then `RELEASED` gets the version. A fixture that is released is never written again.

use std::num::NonZeroU64;
use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{DateTime, Document, doc};
use pagebucket_engine::Deadline;
use pagebucket_engine::erasures::Reopening;
use pagebucket_engine::internal::{Ages, Retention};
use reqwest::Method;
use serde_json::{Value, json};

use super::fixture::Fixture;
use super::{KEY, command, setup};
use crate::harness::{Client, PATIENCE, SERIES, Setup, engine, eventually, shared};

/// The database of the adopted collection, whose name is part of what identifies its documents.
pub const OLD: &str = "pagebucket_upgrade_old";

/// Trades of customers 1 and 4, and of the old collection.
pub const TRADES_IN_ALL: u64 = 655 + 5 + 12;

/// The flags of `adopt` that name the adopted collection.
pub fn source(uri: &str) -> [&str; 8] {
    ["--from", uri, "--from-database", OLD, "--collection", "old", "--into", "trades"]
}

/// A trade every twenty seconds: a tile of them is shorter than its pages.
fn trade(number: u64) -> Value {
    let date = 1_700_000_040_000 + number as i64 * 20_000;
    let date = DateTime::from_millis(date).try_to_rfc3339_string().expect("a date");
    let ticker = ["AMD", "MDB", "GOOG"][(number % 3) as usize];
    let mut trade = json!({ "type": "buy", "ticker": ticker, "qty": number, "date": date });
    if !number.is_multiple_of(4) {
        trade["price"] = json!(format!("{}.{:02}", 10 + number % 7, number % 100));
    }
    trade
}

fn note(number: u64) -> Value {
    let date = DateTime::from_millis(1_700_000_040_000 + number as i64 * 60_000);
    let date = date.try_to_rfc3339_string().expect("a date");
    let author = if number.is_multiple_of(3) { "Bob" } else { "Ada" };
    json!({ "author": author, "number": number, "text": "A note that is longer than its sum.", "writtenAt": date })
}

fn some(item: fn(u64) -> Value, numbers: std::ops::RangeInclusive<u64>) -> Value {
    numbers.map(item).collect()
}

/// How many trades of all customers the service counts in the time series.
pub async fn counted(client: &Client) -> u64 {
    let path = "/v1/trades/summary?by=1M&from=2023-01-01T00:00:00Z&to=2025-01-01T00:00:00Z";
    let points = client.get(path).await.expect(200)["points"].clone();
    points.as_array().expect("points").iter().map(|point| point["count"].as_u64().expect("a count")).sum()
}

async fn delete(client: &Client, owner: u64) -> Value {
    client.send(Method::DELETE, &SERIES.owner_path(owner), |request| request).await.expect(200)
}

async fn post(client: &Client, path: &str, key: Option<&str>, items: &Value) {
    let with = |request: reqwest::RequestBuilder| {
        let request = request.header("content-type", "application/json").body(items.to_string());
        key.into_iter().fold(request, |request, key| request.header("idempotency-key", key))
    };
    client.send(Method::POST, path, with).await.expect(201);
}

/// What is asked of the database, and answered the same by all versions.
fn requests() -> Vec<(&'static str, Value)> {
    let mut requests: Vec<_> = [
        "/v1/customers",
        "/v1/customers/1",
        "/v1/customers/2",
        "/v1/customers/3",
        "/v1/customers/4",
        "/v1/customers/1/trades/export.ndjson",
        "/v1/customers/1/trades/pages/66",
        "/v1/customers/1/trades/pages/7",
        "/v1/customers/1/trades/655",
        "/v1/customers/1/trades?order=desc&limit=7",
        "/v1/customers/1/trades?from=2023-11-14T23:00:00Z&to=2023-11-14T23:30:00Z&ticker=AMD",
        // The first learns of the tiles, which the second reads.
        "/v1/customers/1/trades/summary?by=15m&group=ticker,type&limit=1000",
        "/v1/customers/1/trades/summary?by=1M",
        "/v1/customers/2/trades",
        "/v1/customers/3/trades",
        "/v1/customers/4/trades",
        "/v1/customers/8/trades",
        "/v1/customers/9/trades/export.ndjson",
        "/v1/rooms",
        "/v1/rooms/room-1",
        "/v1/rooms/room-1/notes?limit=100",
        "/v1/rooms/room-1/notes/1",
        "/v1/rooms/room-1/notes/summary?by=15m&group=author&limit=1000",
        "/v1/rooms/room-3/notes/export.ndjson",
        "/v1/rooms/room-3/notes/summary?by=15m&group=author&limit=1000",
        "/v1/page-views?path=/index.htm&from=2024-01-01T10:00:00Z&to=2024-01-01T10:05:00Z&resolution=second",
        "/v1/page-views/buckets?path=/index.htm&timestamp=2024-01-01T10:01:00Z",
    ]
    .into_iter()
    .map(|path| (path, Value::Null))
    .collect();
    requests.extend([
        ("/v1/customers/1/trades", json!({ "key": "one", "items": some(trade, 646..=654) })),
        ("/v1/customers/1/trades", json!({ "key": "one", "items": some(trade, 646..=655) })),
        ("/v1/customers/1/trades", json!({ "key": "two", "items": trade(655) })),
        ("/v1/rooms/room-3/notes", json!({ "key": "one", "items": some(note, 155..=160) })),
    ]);
    requests
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fixture_is_written_if_one_is_named() {
    let Ok(version) = std::env::var("WRITE_FIXTURE") else { return };
    let fixture = Fixture::of(&version);
    let mongod = shared().await;
    let database = mongod.client().await.database(&Setup::on(mongod).connection.database);
    fill(&fixture, mongod.uri(), &database).await;
    let service = setup(&fixture, mongod.uri(), &database).start().await;
    // What is told of customer 3 is told before its sweep.
    delete(&service.client, 3).await;
    fixture.dump(&database, "database.jsonl.gz").await;
    let old = database.client().database(OLD);
    fixture.dump(&old, "old.jsonl.gz").await;
    old.drop().await.expect("to drop");
    let requests: Vec<_> = requests()
        .into_iter()
        .map(|(path, body)| (format!("{} {path}", if body.is_null() { "GET" } else { "POST" }), body))
        .collect();
    fixture.note(&service.client, &requests).await;
    assert!(service.stop().await);
}

async fn fill(fixture: &Fixture, uri: &str, database: &Database) {
    let migrated = command(fixture, database, &["migrate"]).await;
    assert_eq!(migrated.status, Some(0), "{migrated:?}");
    let old = (1..=12_i64).map(|number| {
        let date = DateTime::from_millis(1_700_000_000_000 + number * 3_600_000);
        doc! { "ticker": "MDB", "customerId": 8 + number % 2, "type": "sell", "quantity": number, "date": date }
    });
    let source_database = database.client().database(OLD);
    source_database.drop().await.expect("to drop");
    source_database
        .collection::<Document>("old")
        .insert_many(old)
        .await
        .expect("the collection that is adopted");
    let adopted = command(fixture, database, &[&["adopt"], &source(uri)[..]].concat()).await;
    assert_eq!(adopted.status, Some(0), "{adopted:?}");
    let key =
        command(fixture, database, &["keys", "create", "--name", KEY.0, "--scope", "read,metrics"]).await;
    std::fs::write(fixture.definitions().with_file_name(KEY.1), &key.out).expect("to write");

    let mut retiring = setup(fixture, uri, database);
    let [poll, tail, command, marker, late] = [20, 100, 500, 800, 3_600_000].map(Duration::from_millis);
    retiring = retiring.aging(Ages { poll, tail, command, marker, late });
    retiring.config.house_every = Duration::from_millis(100);
    let most = NonZeroU64::new(20).expect("pages");
    let kept = Retention { pages: Some(most), days: None, keep_summaries: true };
    retiring.config.retained = [("notes".into(), kept)].into();
    let store = retiring.store().await;
    let service = retiring.start().await;
    let client = &service.client;
    client.append(1, &some(trade, 1..=645)).await.expect(201);
    client.append_once(1, "one", &some(trade, 646..=654)).await.expect(201);
    client.append_once(1, "two", &trade(655)).await.expect(201);
    for owner in 2..=4 {
        client.append(owner, &some(trade, 1..=25)).await.expect(201);
    }
    for owner in [2, 4] {
        eventually("the sweep", PATIENCE, async || delete(client, owner).await["swept"] == true).await;
    }
    let (owner, deadline) = (engine::owner(SERIES, 4), Deadline::within(PATIENCE));
    let reopened = engine::histories(&store, SERIES).erasures().reopen(&owner, deadline).await;
    assert_eq!(reopened.expect("an answer"), Reopening::Reopened);
    eventually("it is reopened", PATIENCE, async || client.get(&SERIES.path(4)).await.status == 200).await;
    client.append(4, &some(trade, 26..=30)).await.expect(201);

    // Of room-1 the pages 1 to 128 are retired, and their summaries kept; room-3 keeps its pages.
    post(client, "/v1/rooms/room-1/notes", None, &some(note, 1..=301)).await;
    post(client, "/v1/rooms/room-3/notes", None, &some(note, 1..=154)).await;
    post(client, "/v1/rooms/room-3/notes", Some("one"), &some(note, 155..=160)).await;
    let retired = async || client.get("/v1/rooms/room-1/notes/pages/128").await.status == 410;
    eventually("the first pages are retired", PATIENCE, retired).await;
    // Tiles are made for those who ask.
    for path in ["/v1/customers/1/trades/summary?by=1M", "/v1/rooms/room-3/notes/summary?by=15m"] {
        let tiles = database.collection::<Document>("summary_tiles");
        let history = path.split('/').nth(4).expect("a history");
        eventually("a tile", PATIENCE, async || {
            client.get(path).await.expect(200);
            let of = doc! { "_id": { "$regex": format!("^{history}/") } };
            tiles.find_one(of).await.expect("an answer").is_some()
        })
        .await;
    }
    let views = json!([
        { "path": "/index.htm", "at": "2024-01-01T10:01:00Z", "views": 2 },
        { "path": "/index.htm", "at": "2024-01-01T10:01:59Z", "views": 3 },
        { "path": "/other.htm", "at": "2024-01-01T10:02:00Z", "views": 1 },
    ]);
    assert_eq!(client.post_text("/v1/page-views", views.to_string()).await.status, 204);
    // With those of customer 3, who is erased later.
    eventually("the time series", PATIENCE, async || counted(client).await == TRADES_IN_ALL + 25).await;
    assert!(service.stop().await);
}
