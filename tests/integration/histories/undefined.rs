//! Erasures on instances that lack the definition of one of the owner's histories.

use std::path::PathBuf;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use pagebucket_engine::erasures::{Erasure, Reopening};
use pagebucket_engine::internal::Ages;
use pagebucket_engine::{Deadline, Store};
use reqwest::Method;
use serde_json::{Value, json};

use crate::commands::program::{Place, run};
use crate::harness::{Answer, PATIENCE, Service, Setup, TRADES, eventually, shared};

const OWNER: &str = "/v1/customers/5";
const NOTES: &str = "/v1/customers/5/notes";
const TRADES_OF_5: &str = "/v1/customers/5/trades";

/// A directory with trades, and notes of the same customers; removed with this value.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let directory =
            std::env::temp_dir().join(format!("pagebucket-undefined-{:x}", rand::random::<u64>()));
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::copy(sources.join("api/model/definition/trades.json"), directory.join("trades.json"))
            .expect("a copy");
        let notes = std::fs::read_to_string(sources.join("tests/data/histories/notes.json"));
        let mut notes: Value = serde_json::from_str(&notes.expect("a definition")).expect("JSON");
        notes["owner"] = json!({ "collection": "customers", "field": "customerId", "type": "integer" });
        std::fs::write(directory.join("notes.json"), notes.to_string()).expect("to write");
        Self(directory)
    }

    /// An instance with both definitions, on a new database.
    async fn setup(&self) -> Setup {
        let mut setup = setup().await;
        setup.definitions = Some(self.0.clone());
        setup
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed is in the system's own directory for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An instance with trades alone.
async fn setup() -> Setup {
    let mut setup = Setup::on(shared().await).of(TRADES);
    let [poll, tail, command, marker, late] = [20, 100, 500, 800, 3_600_000].map(Duration::from_millis);
    setup.capacity.ages = Ages { poll, tail, command, marker, late };
    setup.config.house_every = Duration::from_millis(100);
    setup
}

fn note() -> Value {
    json!([{ "author": "Ada", "number": 1 }, { "author": "Ada", "number": 2 }, { "author": "Ada", "number": 3 }])
}

async fn send(service: &Service, path: &str, key: &str, items: Value) -> Answer {
    let with = |request: reqwest::RequestBuilder| request.header("idempotency-key", key).json(&items);
    service.client.send(Method::POST, path, with).await
}

/// Customer 5 has trades and notes, each with a key.
async fn append(service: &Service) {
    send(service, TRADES_OF_5, "trades", TRADES.items(1..=3)).await.expect(201);
    send(service, NOTES, "notes", note()).await.expect(201);
}

async fn count(database: &mongodb::Database, collection: &str) -> u64 {
    let of = doc! { "customerId": 5_i64 };
    database.collection::<Document>(collection).count_documents(of).await.expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_covers_what_the_database_remembers() {
    let directory = Directory::new();
    // Nothing but a poll tells it of the erasure.
    let mut both = directory.setup().await;
    both.config.house_every = PATIENCE;
    let both = both.start().await;
    append(&both).await;
    let without = setup().await.in_database(&both.database).start().await;
    let delete = async || without.client.send(Method::DELETE, OWNER, |request| request).await;
    let told = delete().await.expect(200);
    assert_eq!(told["status"], "erased", "{told}");
    eventually("the other instance answers 410", PATIENCE, async || {
        both.client.get(NOTES).await.status == 410
    })
    .await;
    both.client.get(NOTES).await.problem(410, "erased");
    // Housekeeping of an instance that does not serve notes: a repeated request would hide what it does.
    let notes = both.database.collection::<Document>("notes");
    eventually("both histories are swept", PATIENCE, async || {
        let swept = doc! { "customerId": 5_i64, "swept": true };
        notes.find_one(swept).await.expect("an answer").is_some()
    })
    .await;
    eventually("it says so", PATIENCE, async || delete().await.json()["swept"] == true).await;
    for (collection, left) in [("trades", 1), ("notes", 1), ("idempotency_keys", 0)] {
        assert_eq!(count(&both.database, collection).await, left, "{collection}");
    }
    for (path, key, items) in [(TRADES_OF_5, "trades", TRADES.items(1..=3)), (NOTES, "notes", note())] {
        send(&both, path, key, items).await.problem(410, "erased");
    }
    // The definition comes back.
    let again = directory.setup().await.in_database(&both.database).start().await;
    again.client.get(NOTES).await.problem(410, "erased");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_erases_and_reopens_what_the_database_remembers() {
    let directory = Directory::new();
    let service = directory.setup().await.start().await;
    append(&service).await;
    let place = Place::of_service(&service).await;
    drop(service);
    let mut erasing = place.pagebucket("erase", &["--owner", "5"]).spawn().expect("to run");
    let database = place.database().await;
    let since = |seconds: i64| doc! { "$subtract": ["$$NOW", seconds * 1000] };
    let young = doc! { "customerId": 5_i64, "swept": false, "$expr": { "$gt": ["$since", since(1_800)] } };
    let aging = async {
        loop {
            for collection in ["trades", "notes"] {
                let tombstones = database.collection::<Document>(collection);
                let age = vec![doc! { "$set": { "since": since(3_600) } }];
                tombstones.update_one(young.clone(), age).await.expect("an answer");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let status = tokio::select! {
        status = erasing.wait() => status.expect("an end"),
        () = aging => unreachable!("it has no end"),
    };
    assert_eq!(status.code(), Some(0));
    for (collection, left) in [("trades", 1), ("notes", 1), ("idempotency_keys", 0)] {
        assert_eq!(count(&database, collection).await, left, "{collection}");
    }
    let verified = run(&mut place.pagebucket("verify", &[])).await;
    let told = "these histories have no definition here: notes, and the records of idempotency keys";
    assert!(verified.err.contains(told), "{verified:?}");
    let reopened = run(&mut place.pagebucket("erase", &["--owner", "5", "--reopen"])).await;
    assert_eq!(reopened.status, Some(0), "{reopened:?}");
    for history in ["trades", "notes"] {
        assert!(reopened.out.contains(&format!("{history}: reopened")), "{reopened:?}");
    }
    let again = directory.setup().await.in_database(&database).start().await;
    let told = send(&again, NOTES, "notes", note()).await.expect(201);
    assert_eq!(told["ranges"], json!([{ "firstSeq": 5, "lastSeq": 7 }]), "after the pages of before");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_stay_as_long_as_a_history_keeps_its_items() {
    let directory = Directory::new();
    let mut setup = directory.setup().await;
    setup.config.house_every = PATIENCE;
    let store = setup.store().await;
    let service = setup.start().await;
    append(&service).await;
    let erase = async |history: &str| {
        let (engine, owner) = (store.history(history).expect("its definition"), engine_owner(&store));
        eventually("it is swept", PATIENCE, async || {
            engine.erasures().erase(&owner, soon()).await.expect("an answer") == Erasure::Swept
        })
        .await;
    };
    erase("trades").await;
    let again = send(&service, NOTES, "notes", note()).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    let listing = service.client.get(NOTES).await.expect(200);
    assert_eq!(listing["totalItems"], 3, "{listing}");
    erase("notes").await;
    assert_eq!(count(&service.database, "idempotency_keys").await, 0, "nothing is left for them");
    for history in ["trades", "notes"] {
        let (engine, owner) = (store.history(history).expect("its definition"), engine_owner(&store));
        assert_eq!(engine.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::Reopened);
    }
}

fn engine_owner(store: &Store) -> pagebucket_model::domain::OwnerId {
    let trades = store.definitions().get("trades").expect("its definition");
    trades.owner.kind.parse("5").expect("an owner")
}

fn soon() -> Deadline {
    Deadline::within(Duration::from_secs(25))
}

/// As after an upgrade whose migration has every history created once more.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_without_a_definition_is_completed() {
    let directory = Directory::new();
    let both = directory.setup().await.start().await;
    append(&both).await;
    let without = setup().await.in_database(&both.database);
    let store = without.store().await;
    let service = without.start().await;
    let database = both.database.clone();
    drop(both);
    let histories = database.collection::<Document>("histories");
    let before = histories.find_one(doc! { "_id": "notes" }).await.expect("an answer").expect("it");
    let unset = doc! { "$unset": { "ready": 1 } };
    histories.update_one(doc! { "_id": "notes" }, unset).await.expect("an answer");
    let empty = doc! { "collMod": "notes", "validator": {}, "index": { "name": "swept_1", "hidden": true } };
    database.run_command(empty).await.expect("an answer");
    database.run_command(doc! { "dropIndexes": "notes", "index": "swept_1" }).await.expect("an answer");
    let problem = service.client.send(Method::DELETE, OWNER, |request| request).await;
    let problem = problem.problem(503, "database-unavailable");
    assert!(
        problem["detail"].as_str().is_some_and(|detail| detail.contains("Nothing was erased")),
        "{problem}"
    );
    assert_eq!((count(&database, "trades").await, count(&database, "idempotency_keys").await), (1, 2));
    service.client.get(TRADES_OF_5).await.expect(200);

    assert_eq!(store.pending_migrations().await.expect("an answer"), ["history notes"]);
    assert_eq!(store.migrate().await.expect("migrations"), ["history notes"]);
    assert_eq!(store.pending_migrations().await.expect("an answer"), [""; 0]);
    let after = histories.find_one(doc! { "_id": "notes" }).await.expect("an answer").expect("it");
    let member = |document: &Document, name: &str| document.get(name).cloned();
    for name in ["item", "itemSha256", "owner", "pageSize", "date", "maxItemBytes", "ready"] {
        assert_eq!(member(&after, name), member(&before, name), "{name}");
    }
    eventually("it is erased", PATIENCE, async || {
        service.client.send(Method::DELETE, OWNER, |request| request).await.json()["swept"] == true
    })
    .await;
    // With the guards that its own server asks for.
    let again = directory.setup().await.in_database(&database);
    again.store().await.check_collections().await.expect("all guards are there");
}
