//! What a sharded cluster relies on. No test runs on one: what it would do follows from the commands and the
//! indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Bson, Document, doc};
use pagebucket_engine::internal::{ShardKey, shard_keys};
use pagebucket_model::definition::Definitions;

use crate::auth::routes::{ROWS, Row, status};
use crate::harness::{Service, Setup, TRADES, eventually, shared};

/// The routes whose reads go to all shards, as `docs/how-to/mongodb.md` says.
const SCATTERED: [(&str, &str); 3] =
    [("get", "/v1/customers"), ("delete", "/v1/customers/{customerId}"), ("get", "/v1/page-views/top")];

/// What else is asked of histories, each in another way.
const READS: [&str; 15] = [
    "/trades?order=desc",
    "/trades?page=2",
    "/trades?page=40",
    "/trades?after=12&limit=25",
    "/trades?before=500&limit=25&order=desc",
    "/trades?from=2004-01-09T00:00:00Z&to=2004-01-12T00:00:00Z",
    "/trades?ticker=MDB&ticker=AMD",
    "/trades?ticker=MDB&from=2004-01-09T00:00:00Z&to=2004-01-12T00:00:00Z",
    "/trades?offset=30",
    "/trades/pages/30",
    "/trades/pages/61",
    "/trades/601",
    "/trades/export.ndjson?from=2004-01-09T00:00:00Z",
    "/trades?page=1000",
    "/trades/summary?by=1M",
];

/// A command on a collection that is sharded: its collection, and the command.
type Sent = Arc<Mutex<Vec<(String, Document)>>>;

/// The queries of a command.
fn queries(command: &Document) -> Vec<&Document> {
    let name = command.keys().next().expect("a name");
    let parts = |field: &str| {
        let parts = command.get_array(field).expect("statements").iter();
        parts.map(|part| part.as_document().expect("a statement").get_document("q").expect("a query"))
    };
    match name.as_str() {
        "find" => vec![command.get_document("filter").expect("a filter")],
        "aggregate" => {
            let stages = command.get_array("pipeline").expect("a pipeline");
            vec![stages[0].as_document().expect("a stage").get_document("$match").expect("a match")]
        }
        "update" => parts("updates").collect(),
        "delete" => parts("deletes").collect(),
        "insert" => {
            let documents = command.get_array("documents").expect("documents").iter();
            documents.map(|document| document.as_document().expect("a document")).collect()
        }
        "listIndexes" | "getMore" | "killCursors" => Vec::new(),
        other => panic!("{other} is not known here"),
    }
}

/// Whether a query names the first field of the key by equality, so that it goes to the shards of these
/// values alone. The tiles of an owner are a range of `_id`, which stands on few shards.
fn is_targeted(query: &Document, key: &Document) -> bool {
    let first = key.keys().next().expect("a field");
    match query.get(first) {
        None => false,
        Some(Bson::Document(operators)) => {
            let is_of_tiles = operators.get_str("$gte").is_ok_and(|from| from.starts_with("trades/"));
            is_of_tiles && operators.contains_key("$lte")
                || operators.keys().all(|operator| operator == "$in" || operator == "$eq")
        }
        Some(_) => true,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_name_the_shard_key() {
    let keys: BTreeMap<String, Document> = shard_keys(&Definitions::built_in())
        .into_iter()
        .map(|ShardKey { collection, key }| (collection, key))
        .collect();
    let sent = Sent::default();
    let (watch, known) = (Arc::clone(&sent), keys.clone());
    let setup = Setup::on(shared().await).observed(move |name, command| {
        let Ok(collection) = command.get_str(name) else { return };
        if known.contains_key(collection) {
            watch.lock().expect("no test panics here").push((collection.to_owned(), command.clone()));
        }
    });
    let service = setup.start().await;
    let take = || std::mem::take(&mut *sent.lock().expect("no test panics here"));
    // Migrations create collections: they are not routes.
    take();
    for owner in [1, 2] {
        service.client.append_all(owner, 1..=645).await;
    }
    for _ in 0..2 {
        let answer = service.client.append_once(1, "a-key", &TRADES.items(1..=25)).await;
        assert!(answer.status.is_success(), "{answer:?}");
    }
    for path in READS {
        let answer = service.client.get(&format!("/v1/customers/1{path}")).await;
        assert!(answer.status.is_success() || path.ends_with("=1000"), "{path}: {answer:?}");
    }
    eventually("the tile of the summary is made", Duration::from_secs(60), async || {
        let sent = sent.lock().expect("no test panics here");
        sent.iter()
            .any(|(collection, command)| collection == "summary_tiles" && command.contains_key("update"))
    })
    .await;
    let (mut commands, mut scattered) = (take(), BTreeSet::new());
    for row in ROWS {
        let (method, path, ..): Row = *row;
        let status = status(&service, row, None).await;
        assert!((200..300).contains(&status), "{method} {path}: {status}");
        let of_route = take();
        let scatters = |(collection, command): &(String, Document)| {
            queries(command).into_iter().any(|query| !is_targeted(query, &keys[collection]))
        };
        if of_route.iter().any(scatters) {
            scattered.insert((method, path));
        } else {
            commands.extend(of_route);
        }
    }
    assert_eq!(scattered, BTreeSet::from(SCATTERED));
    let mut seen = BTreeSet::new();
    for (collection, command) in &commands {
        for query in queries(command) {
            assert!(is_targeted(query, &keys[collection]), "{collection}: {query}");
            seen.insert((collection.as_str(), command.keys().next().expect("a name").as_str()));
        }
    }
    // The control: all collections were written and read. Only a retirement keeps summaries.
    for collection in keys.keys().filter(|name| **name != "kept_summaries") {
        for name in ["find", "update"] {
            assert!(seen.contains(&(collection.as_str(), name)), "no {name} of {collection} in {seen:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unique_indexes_begin_with_the_shard_key() {
    let service = Service::start().await;
    for ShardKey { collection, key } in shard_keys(&Definitions::built_in()) {
        let list = doc! { "listIndexes": &collection };
        let indexes = service.database.run_cursor_command(list).await.expect("indexes");
        let indexes: Vec<Document> = indexes.try_collect().await.expect("indexes");
        let begins = |index: &Document| {
            let fields = index.get_document("key").expect("fields").keys();
            fields.take(key.len()).eq(key.keys())
        };
        assert!(indexes.iter().any(begins), "{collection} has an index for {key}");
        let is_unique = |index: &&Document| index.get_bool("unique").unwrap_or(false);
        for index in indexes.iter().filter(is_unique) {
            // That of a clustered collection is unique on each shard; a bucket's begins with its owner, which
            // is on one.
            let is_id = index.get_document("key").expect("fields").keys().eq(["_id"]);
            assert!(begins(index) || is_id, "{collection}: {index}");
        }
    }
}
