//! A backup is restored: nothing that came after it is measured, whatever the restore leaves behind.

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{DateTime, Document, doc};
use mongodb::options::ReadConcern;

use super::commands::pagebucket;
use super::{SHORT, append, collections, count, each_once, erase, raw, sibling};
use crate::harness::{SERIES, Setup, engine, shared};

/// A collection of a backup.
struct Saved {
    /// As `listCollections` has it.
    listed: Document,
    indexes: Vec<Document>,
    documents: Vec<Document>,
}

impl Saved {
    fn name(&self) -> &str {
        self.listed.get_str("name").expect("a name")
    }
}

/// A backup of all collections but these, as `mongodump` makes it.
async fn back_up(database: &Database, but: &[&str]) -> Vec<Saved> {
    let command = doc! { "listCollections": 1, "filter": { "name": { "$not": { "$regex": "^system" } } } };
    let reply = database.run_command(command).await.expect("an answer");
    let listed = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    let mut backup = Vec::new();
    for listed in listed.expect("collections") {
        let listed = listed.as_document().expect("a document").clone();
        let mut saved = Saved { listed, indexes: Vec::new(), documents: Vec::new() };
        if but.contains(&saved.name()) {
            continue;
        }
        if saved.listed.get_str("type").is_ok_and(|kind| kind != "view") {
            let indexes = database.run_command(doc! { "listIndexes": saved.name() }).await.expect("indexes");
            let indexes = indexes.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
            let is_ours = |index: &Document| {
                index.get_str("name").is_ok_and(|name| name != "_id_") && !index.contains_key("clustered")
            };
            let indexes = indexes.expect("indexes").iter().filter_map(|index| index.as_document().cloned());
            saved.indexes = indexes.filter(is_ours).collect();
            let collection = database.collection::<Document>(saved.name());
            let documents =
                collection.find(doc! {}).read_concern(ReadConcern::majority()).await.expect("an answer");
            saved.documents = documents.try_collect().await.expect("documents");
        }
        backup.push(saved);
    }
    // Views come last.
    backup.sort_by_key(|saved| saved.listed.get_str("type").is_ok_and(|kind| kind == "view"));
    backup
}

/// Restores a backup as `mongorestore --drop` does: what the backup does not have stays.
async fn restore(backup: &[Saved], database: &Database) {
    for saved in backup {
        database.collection::<Document>(saved.name()).drop().await.expect("an answer");
        let mut create = doc! { "create": saved.name() };
        create.extend(saved.listed.get_document("options").expect("options").clone());
        database.run_command(create).await.expect("a collection");
        if !saved.indexes.is_empty() {
            let create = doc! { "createIndexes": saved.name(), "indexes": saved.indexes.clone() };
            database.run_command(create).await.expect("indexes");
        }
        if !saved.documents.is_empty() {
            let collection = database.collection::<Document>(saved.name());
            collection.insert_many(&saved.documents).await.expect("they were there before");
        }
    }
}

/// What a restore leaves if the backup has none of these collections, and the database is not dropped before.
const OF_OWNERS: [&str; 4] = ["summary_tiles", "kept_summaries", "series_generations", "idempotency_keys"];

/// Documents of an owner who is not in the backup.
async fn leave_behind(database: &Database, owner: u64) {
    let (date, id) = (DateTime::from_millis(0), owner as i64);
    let tile = doc! { "_id": format!("trades/0000000000000000/{id}/000000000000000"), "customerId": id, "first": date, "last": date, "size": 0 };
    let mut kept = tile.clone();
    kept.insert("firstPage", 1_i64);
    let generation = doc! { "_id": format!("trades/2/{id}"), "owner": id, "current": 7_i64, "next": 7_i64 };
    for (collection, document) in
        [("summary_tiles", tile), ("kept_summaries", kept), ("series_generations", generation)]
    {
        database.collection(collection).insert_one(document).await.expect("an insert");
    }
}

/// Owner 3 is appended after the backup, measured by a build that the backup does not have, and erased after
/// the restore.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_restore_leaves_comes_back() {
    for drops in [false, true] {
        let service = Setup::on(shared().await).of(SERIES).aging(SHORT).start().await;
        let database = service.database.clone();
        append(&service.client, 1, 1..=20).await;
        append(&service.client, 2, 1..=5).await;
        each_once(&service.client, &database, [1, 2]).await;
        let backup = back_up(&database, if drops { &[] } else { &OF_OWNERS }).await;
        let names = database.list_collection_names().await.expect("names");

        append(&service.client, 3, 1..=9).await;
        each_once(&service.client, &database, 1..=3).await;
        let (status, told) = pagebucket(&service, SERIES.definitions, &["series", "rebuild"]).await;
        assert_eq!(status, Some(0), "{told}");
        let keyed = SERIES.items(10..=11);
        service.client.append_once(3, "a-key", &keyed).await.expect(201);
        each_once(&service.client, &database, 1..=3).await;
        leave_behind(&database, 3).await;
        let left = raw(&database).await;
        service.stop().await;

        // As the runbook has it, or not.
        if drops {
            database.drop().await.expect("an answer");
        }
        restore(&backup, &database).await;
        assert_eq!(collections(&database).await.contains(&left), !drops);
        let (store, place) = (sibling(shared().await.uri(), &database).aging(SHORT).store().await, &database);
        store.renew_epoch().await.expect("to renew");
        let build = raw(&database).await;
        assert_eq!(collections(&database).await, [build], "all former builds are forgotten");
        let of_3 = async |collection: &str| {
            let collection = place.collection::<Document>(collection);
            let found = collection.find(doc! { "_id": { "$regex": "/3(/|$)" } }).await.expect("an answer");
            found.try_collect::<Vec<_>>().await.expect("documents")
        };
        let mut leftovers = of_3("series_generations").await;
        leftovers.extend(of_3("summary_tiles").await);
        if drops {
            leftovers.extend(of_3("kept_summaries").await);
            let keys = place.collection::<Document>("idempotency_keys");
            assert_eq!(keys.count_documents(doc! {}).await.expect("an answer"), 0);
            assert!(place.list_collection_names().await.expect("names").len() <= names.len());
        }
        assert!(leftovers.is_empty(), "{leftovers:?}");

        let service = sibling(shared().await.uri(), &database).aging(SHORT).start().await;
        erase(engine::histories(&store, SERIES), 3).await;
        let (status, told) = pagebucket(&service, SERIES.definitions, &["series", "rebuild"]).await;
        assert_eq!(status, Some(0), "{told}");
        each_once(&service.client, &database, [1, 2]).await;
        assert_eq!(count(&service.client).await, 25);
        let (status, told) = pagebucket(&service, SERIES.definitions, &["verify", "--series"]).await;
        assert_eq!(status, Some(0), "{told}");
    }
}

/// A late insert or a restore has made it.
#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_adopts_no_collection() {
    let service = Setup::on(shared().await).of(SERIES).aging(SHORT).start().await;
    let database = service.database.clone();
    append(&service.client, 1, 1..=5).await;
    each_once(&service.client, &database, [1]).await;
    let current = super::number(&database).await;
    let erased = doc! { "date": DateTime::from_millis(0), "meta": { "owner": 9_i64 }, "seq": 1_i64 };
    for number in [2, current + 1] {
        let left = format!("trades_series_{number}");
        let create = doc! {
            "create": &left, "timeseries": { "timeField": "date", "metaField": "meta", "granularity": "minutes" },
        };
        database.run_command(create).await.expect("a time series");
        database.collection::<Document>(&left).insert_one(&erased).await.expect("a measurement");
    }
    let (status, told) = pagebucket(&service, SERIES.definitions, &["series", "rebuild"]).await;
    assert_eq!(status, Some(0), "{told}");
    each_once(&service.client, &database, [1]).await;
    assert_eq!(collections(&database).await, [raw(&database).await]);
}
