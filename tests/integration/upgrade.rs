//! The promise of docs/how-to/upgrade.md: the database that a released version wrote is opened, migrated,
//! verified and served by every later one. `WRITE_FIXTURE=VERSION` writes another one: see [`write`].

mod fields;
mod fixture;
mod write;

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::Document;
use pagebucket_engine::Deadline;
use pagebucket_engine::erasures::Reopening;
use pagebucket_http::auth::keys::Keys;
use pagebucket_model::domain::Clock;
use serde_json::Value;

use crate::commands::program::{Ended, pagebucket, run};
use crate::harness::{PATIENCE, Setup, TRADES, engine, eventually, migrations, shared};
use fixture::Fixture;

/// The versions whose databases are in `tests/fixtures`.
const RELEASED: &[&str] = &["0.1.0"];

/// The key of the database: the name and the secret.
const KEY: (&str, &str) = ("reports", "key.txt");

/// The service on a database, which deletes nothing.
fn setup(fixture: &Fixture, uri: &str, database: &Database) -> Setup {
    // The database holds more than generated items.
    let mut setup = Setup::at(uri).of(TRADES.holding_any()).in_database(database);
    setup.definitions = Some(fixture.definitions());
    setup.config.house_every = Duration::from_secs(3_600);
    setup.config.api.page_cache = 0;
    setup
}

/// A command of the program on this database.
async fn command(fixture: &Fixture, database: &Database, arguments: &[&str]) -> Ended {
    let directory = fixture.definitions();
    let directory = directory.to_str().expect("UTF-8");
    let place = ["--mongodb-uri", shared().await.uri(), "--database", database.name()];
    let histories: &[&str] = if arguments[0] == "keys" { &[] } else { &["--histories", directory] };
    run(&mut pagebucket(&[arguments, &place, histories].concat())).await
}

/// A new database with what the fixture has.
async fn loaded(fixture: &Fixture) -> Database {
    loaded_with(fixture, |_, document| document).await
}

/// The same, with what becomes of each document of a collection.
async fn loaded_with(fixture: &Fixture, change: impl Fn(&str, Document) -> Document) -> Database {
    let mongod = shared().await;
    let database = mongod.client().await.database(&Setup::on(mongod).connection.database);
    fixture.load_with(&database, "database.jsonl.gz", change).await;
    database
}

/// What is answered otherwise than by the version that wrote the database.
async fn differences(fixture: &Fixture, database: &Database) -> Vec<String> {
    let service = setup(fixture, shared().await.uri(), database).start().await;
    let mut found = Vec::new();
    for exchange in fixture.exchanges() {
        found.extend(exchange.difference(&service.client).await);
    }
    assert!(service.stop().await);
    found
}

/// What becomes of an erased owner who is reopened.
async fn reopened(fixture: &Fixture, database: &Database, owner: u64) -> String {
    let store = setup(fixture, shared().await.uri(), database).store().await;
    let owner = engine::owner(TRADES, owner);
    let engine = engine::histories(&store, TRADES);
    match engine.erasures().reopen(&owner, Deadline::within(PATIENCE)).await.expect("an answer") {
        Reopening::Reopened => {}
        other => return format!("{other:?}"),
    }
    let items = vec![engine::dated(TRADES, 1, 1_700_000_000_000)];
    let append = engine::append(owner, items, Deadline::within(PATIENCE));
    let stored = engine.appends().append(append).await.expect("stored");
    format!("goes on with {}", stored.ranges()[0].seqs().next().expect("a number").get())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_of_each_released_version_is_served() {
    for fixture in RELEASED.iter().map(|version| Fixture::of(version)) {
        let database = loaded(&fixture).await;
        let old = database.client().database(write::OLD);
        old.drop().await.expect("to drop");
        fixture.load(&old, "old.jsonl.gz").await;
        for (arguments, said) in [
            (&["migrate"][..], None),
            (&["verify", "--pages-per-second", "1000000"], Some("")),
            (&[&["adopt", "--check"], &write::source(shared().await.uri())[..]].concat(), None),
        ] {
            let ended = command(&fixture, &database, arguments).await;
            assert_eq!(ended.status, Some(0), "{arguments:?}: {ended:?}");
            assert!(said.is_none_or(|said| ended.out == said), "{arguments:?}: {ended:?}");
        }
        old.drop().await.expect("to drop");
        let found = differences(&fixture, &database).await;
        assert!(found.is_empty(), "{}", found.join("\n"));

        let service = setup(&fixture, shared().await.uri(), &database).start().await;
        let store = setup(&fixture, shared().await.uri(), &database).store().await;
        let secret = std::fs::read_to_string(fixture.definitions().with_file_name(KEY.1)).expect("a key");
        let deadline = Deadline::within(PATIENCE);
        let principal = Keys::new(&store, Clock::system()).principal(secret.trim(), deadline).await;
        assert_eq!(&*principal.expect("a valid key").name, format!("key:{}", KEY.0));
        // The feeder has lost its place, which was that of another set, and makes the time series again.
        eventually("the time series has all trades", PATIENCE, async || {
            write::counted(&service.client).await == write::TRADES_IN_ALL
        })
        .await;
        // What goes on, goes on with the next number.
        let before = service.client.total(1).await;
        let stored = service.client.append(1, &TRADES.item(1)).await.expect(201);
        assert_eq!(stored["ranges"][0]["firstSeq"], before + 1, "{stored}");
        assert!(service.stop().await);
        assert_eq!(reopened(&fixture, &database, 2).await, "goes on with 31");
        assert_eq!(reopened(&fixture, &database, 3).await, "NotSwept");
    }
}

/// Instances are replaced one by one: a migration adds what the version before ignores.
#[test]
fn every_migration_since_the_first_release_is_compatible() {
    for name in migrations() {
        let Ok(number) = name[..4].parse::<u32>() else { continue };
        let path = format!("{}/migrations/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("a migration");
        let migration: Value = serde_json::from_str(&text).expect("JSON");
        assert!(number <= 11 || migration["compatible"] == true, "{name}: see docs/how-to/upgrade.md");
    }
}
