//! Migrations on a real database: what 0001 makes, and what keeps several instances and versions apart.

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Decimal128, Document, Timestamp, doc};
use pagebucket_engine::internal::Migration;
use pagebucket_engine::{Capacity, ConnectError, ConnectionSettings, MigrationError, Store};
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::Clock;

use crate::harness::{PATIENCE, Setup, eventually, migrations, shared, spawn};

pub mod page_views;

/// `DocumentValidationFailure`
const REFUSED_BY_VALIDATOR: i32 = 121;

/// A database of a test's own, and the connection of one instance to it.
struct Place {
    connection: ConnectionSettings,
    store: Store,
    database: Database,
}

impl Place {
    async fn new() -> Self {
        let connection = Setup::on(shared().await).connection;
        let store = connect(&connection).await;
        let client = mongodb::Client::with_uri_str(&connection.uri).await.expect("a connection string");
        let database = client.database(&connection.database);
        Self { connection, store, database }
    }

    /// Names of what is recorded, in order.
    async fn recorded(&self) -> Vec<String> {
        let records = self.database.collection::<Document>("migrations");
        let found = records.find(doc! {}).sort(doc! { "_id": 1 });
        let records: Vec<Document> = found.await.expect("records").try_collect().await.expect("records");
        records.iter().map(|record| record.get_str("name").expect("a name").to_owned()).collect()
    }

    /// How often each mark was left by [`leaving`].
    async fn marks(&self, mark: &str) -> u64 {
        let marks = self.database.collection::<Document>("scratch");
        marks.count_documents(doc! { "mark": mark }).await.expect("a count")
    }

    async fn has_lock(&self) -> bool {
        let locks = self.database.collection::<Document>("migrations");
        locks.find_one(doc! { "_id": "lock" }).await.expect("an answer").is_some()
    }
}

async fn connect(connection: &ConnectionSettings) -> Store {
    Store::connect(connection.clone(), Definitions::built_in(), Capacity::default(), Clock::system())
        .await
        .expect("the shared mongod")
}

/// Those of them that are files: histories are created by any migration.
fn of_files(applied: Vec<String>) -> Vec<String> {
    applied.into_iter().filter(|name| !name.starts_with("history ")).collect()
}

/// A file that leaves a mark each time it is run.
fn leaving(mark: &str) -> Document {
    doc! { "insert": "scratch", "documents": [{ "mark": mark }] }
}

fn file(name: &'static str, compatible: bool, commands: &[Document]) -> Migration {
    // Not as a JSON value, which sorts the fields: a command's name is its first one.
    let run = |command| serde_json::to_string(command).expect("JSON");
    let commands: Vec<_> = commands
        .iter()
        .map(|command| format!(r#"{{"why": "To see it run.", "run": {}}}"#, run(command)))
        .collect();
    let commands = commands.join(", ");
    let text = format!(r#"{{"why": "For a test.", "compatible": {compatible}, "commands": [{commands}]}}"#);
    Migration::parse(name, &text).expect("a well-formed file")
}

#[tokio::test(flavor = "multi_thread")]
async fn trades_is_made_as_designed() {
    let place = Place::new().await;
    assert_eq!(place.store.migrate().await.expect("an empty database"), migrations());
    place.store.check_collections().await.expect("its own collection");

    let found = place.database.run_command(doc! { "listCollections": 1, "filter": { "name": "trades" } });
    let found = found.await.expect("an answer");
    let found = first_batch(&found);
    let options = found[0].as_document().and_then(|found| found.get_document("options").ok()).unwrap();
    let clustered = options.get_document("clusteredIndex").expect("it is clustered");
    assert_eq!(clustered.get_document("key").ok(), Some(&doc! { "_id": 1 }), "{clustered}");
    assert_eq!(clustered.get_bool("unique").ok(), Some(true), "{clustered}");
    assert_eq!(options.get_str("validationLevel").ok(), Some("strict"));
    assert_eq!(options.get_str("validationAction").ok(), Some("error"));
    let validator = options.get_document("validator").expect("a validator");
    assert!(validator.contains_key("$jsonSchema"), "{validator}");
    assert_eq!(
        validator.get_document("$expr").ok(),
        Some(&doc! { "$and": [
            { "$eq": [{ "$size": "$history" }, { "$cond": ["$firstPage", 0, "$count"] }] },
            { "$lte": ["$opened", "$openable"] },
            { "$ne": ["$opened", Timestamp { time: 0, increment: 0 }] },
        ] }),
        "{validator}"
    );

    let found = place.database.run_command(doc! { "listIndexes": "trades" }).await.expect("an answer");
    let found = first_batch(&found);
    let mut indexes: Vec<_> = found
        .iter()
        .map(|index| {
            let index = index.as_document().expect("an index");
            let is = |name| index.get_bool(name).unwrap_or(false);
            (index.get_document("key").expect("a key").clone(), is("unique"), is("clustered"))
        })
        .collect();
    indexes.sort_by_key(|(key, ..)| key.len());
    assert_eq!(
        indexes,
        [
            (doc! { "_id": 1 }, true, true),
            (doc! { "swept": 1 }, false, false),
            (doc! { "customerId": 1, "page": 1 }, true, false),
            (doc! { "customerId": 1, "count": 1, "last": 1, "first": 1, "page": 1 }, false, false),
        ],
        "these four and no other"
    );
}

fn first_batch(reply: &Document) -> &[Bson] {
    reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch")).expect("a cursor")
}

fn price(text: &str) -> Bson {
    text.parse::<Decimal128>().expect("a decimal").into()
}

/// A bucket of customer 7 with as many trades.
fn bucket(second: i64, page: i64, trades: usize) -> Document {
    let date = DateTime::from_millis(second * 1000);
    let trade = doc! { "type": "buy", "ticker": "MDB", "qty": 419_i64, "date": date };
    doc! {
        "_id": format!("7_{second:010}"), "customerId": 7_i64, "page": page, "count": trades as i32,
        "first": date, "last": date, "history": vec![trade; trades],
    }
}

const BEFORE_YEAR_0000: DateTime = DateTime::from_millis(-62_167_219_200_001);
const AFTER_YEAR_9999: DateTime = DateTime::from_millis(253_402_300_800_000);

#[tokio::test(flavor = "multi_thread")]
async fn no_corrupt_bucket_can_be_written() {
    let place = Place::new().await;
    place.store.migrate().await.expect("an empty database");
    let trades = place.database.collection::<Document>("trades");
    let with = |field: &str, value: Bson| {
        let mut bucket = bucket(1_698_349_623, 1, 2);
        bucket.insert(field, value);
        bucket
    };
    let without = |field: &str| {
        let mut bucket = bucket(1_698_349_623, 1, 2);
        bucket.remove(field).expect("such a field");
        bucket
    };
    let with_trade = |field: &str, value: Bson| {
        let mut bucket = bucket(1_698_349_623, 1, 2);
        bucket.get_array_mut("history").unwrap()[1].as_document_mut().unwrap().insert(field, value);
        bucket
    };
    let without_in_trade = |field: &str| {
        let mut bucket = bucket(1_698_349_623, 1, 2);
        let trade = bucket.get_array_mut("history").unwrap()[1].as_document_mut().unwrap();
        trade.remove(field).expect("such a field");
        bucket
    };
    let corrupt = [
        with("count", 1_i32.into()),
        with("count", 3_i32.into()),
        with("count", 2_i64.into()),
        with("count", 2.0.into()),
        bucket(1_698_349_623, 1, 0),
        bucket(1_698_349_623, 1, 11),
        with("page", 0_i64.into()),
        with("page", (-1_i64).into()),
        with("page", 1_i32.into()),
        with("page", 1.0.into()),
        with("customerId", 7_i32.into()),
        with("customerId", "7".into()),
        with("customerId", 7.0.into()),
        with("customerId", 0_i64.into()),
        with("customerId", (1_i64 << 53).into()),
        with("_id", 7_i64.into()),
        with("first", "2023-10-26".into()),
        with("last", 1_698_349_623_000_i64.into()),
        with("history", doc! {}.into()),
        with("history", vec![Bson::Int32(1), Bson::Int32(2)].into()),
        with("note", "unknown".into()),
        with("customerId", Bson::Null),
        with("customerId", doc! {}.into()),
        with_trade("date", "2023-10-26T19:47:03Z".into()),
    ];
    let incomplete = ["customerId", "page", "count", "first", "last", "history"].map(without);
    let incomplete_trade = ["date"].map(without_in_trade);
    for bucket in corrupt.iter().chain(&incomplete).chain(&incomplete_trade) {
        let refused = trades.insert_one(bucket).await.expect_err(&format!("corrupt: {bucket}"));
        assert_eq!(write_error(&refused), Some(REFUSED_BY_VALIDATOR), "{bucket}: {refused}");
    }

    // What an append reads as *refused*: the count alone is wrong.
    let mut elsewhere = with("count", 3_i32.into());
    assert_eq!(unsatisfied(&trades, &elsewhere).await, ["$expr"]);
    elsewhere.insert("page", 0_i64);
    assert_eq!(unsatisfied(&trades, &elsewhere).await, ["$expr", "$jsonSchema"]);

    // What is sound goes in, also with all that is optional, and is held to its shape afterwards.
    let mut sound = bucket(1_698_349_623, 1, 10);
    let trade = sound.get_array_mut("history").unwrap()[3].as_document_mut().unwrap();
    trade.insert("price", "15.50".parse::<Decimal128>().expect("a decimal"));
    trade.insert(
        "key",
        mongodb::bson::Binary { subtype: mongodb::bson::spec::BinarySubtype::Generic, bytes: vec![7; 12] },
    );
    trades.insert_one(&sound).await.expect("a sound bucket");
    trades.insert_one(bucket(1_698_349_624, 2, 1)).await.expect("a sound bucket");
    for update in [
        doc! { "$inc": { "count": 1 } },
        doc! { "$push": { "history": { "type": "buy", "ticker": "A", "qty": 1_i64, "date": DateTime::MIN } } },
        doc! { "$pop": { "history": 1 } },
        doc! { "$set": { "page": 0_i64 } },
        doc! { "$set": { "note": "unknown" } },
    ] {
        for id in ["7_1698349623", "7_1698349624"] {
            let refused = trades.update_one(doc! { "_id": id }, update.clone()).await;
            let refused = refused.expect_err(&format!("corrupt: {update}"));
            assert_eq!(write_error(&refused), Some(REFUSED_BY_VALIDATOR), "{update}: {refused}");
        }
    }

    // What is at the edge of the ranges is inside.
    for (place, (date, value)) in (3..).zip([
        (DateTime::from_millis(-62_167_219_200_000), "9999999999999999999999999999999999"),
        (DateTime::from_millis(253_402_300_799_999), "1E-6176"),
    ]) {
        let mut edge = bucket(1_698_349_623 + place, place, 1);
        edge.insert("first", date);
        edge.insert("last", date);
        let trade = edge.get_array_mut("history").unwrap()[0].as_document_mut().unwrap();
        trade.insert("date", date);
        trade.insert("price", price(value));
        trades.insert_one(&edge).await.expect("the edge of what there can be");
    }

    // The two indexes: an `_id`, and a page of a customer, exist once.
    for again in [bucket(1_698_349_623, 9, 1), bucket(1_698_349_999, 2, 1)] {
        let refused = trades.insert_one(&again).await.expect_err(&format!("taken: {again}"));
        assert_eq!(write_error(&refused), Some(11000), "{again}: {refused}");
    }
}

/// The clauses of the validator that a bucket does not satisfy, by name.
async fn unsatisfied(trades: &mongodb::Collection<Document>, bucket: &Document) -> Vec<String> {
    use mongodb::error::{ErrorKind, WriteFailure};
    let refused = trades.insert_one(bucket).await.expect_err("corrupt");
    let ErrorKind::Write(WriteFailure::WriteError(error)) = refused.kind.as_ref() else {
        panic!("{refused}");
    };
    let details = error.details.as_ref().and_then(|info| info.get_document("details").ok());
    let clauses = details.and_then(|details| details.get_array("clausesNotSatisfied").ok());
    let name = |clause: &Bson| {
        let details = clause.as_document().and_then(|clause| clause.get_document("details").ok());
        details.and_then(|details| details.get_str("operatorName").ok()).expect("a name").to_owned()
    };
    let mut names: Vec<_> = clauses.expect("clauses").iter().map(name).collect();
    names.sort_unstable();
    names
}

fn write_error(error: &mongodb::error::Error) -> Option<i32> {
    use mongodb::error::{ErrorKind, WriteFailure};
    match error.kind.as_ref() {
        ErrorKind::Write(WriteFailure::WriteError(error)) => Some(error.code),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_once_and_recorded() {
    let place = Place::new().await;
    let files =
        || vec![file("0001_one", false, &[leaving("one")]), file("0002_two", true, &[leaving("two")])];
    let applied = of_files(place.store.apply(files()).await.expect("an empty database"));
    assert_eq!(applied, ["0001_one", "0002_two"], "in order");
    assert_eq!(place.store.apply(files()).await.expect("nothing to do"), [""; 0]);
    assert_eq!((place.marks("one").await, place.marks("two").await), (1, 1));

    let records = place.database.collection::<Document>("migrations");
    let record = records.find_one(doc! { "_id": 2 }).await.expect("an answer").expect("a record");
    assert_eq!(record.get_str("name").ok(), Some("0002_two"), "{record}");
    assert_eq!(record.get_str("checksum").ok(), Some(&*files()[1].checksum), "{record}");
    assert_eq!(record.get_bool("compatible").ok(), Some(true), "{record}");
    assert!(record.get_datetime("appliedAt").is_ok(), "{record}");
    assert!(!place.has_lock().await, "nobody applies any more");

    // A later version adds one.
    let mut more = files();
    more.push(file("0003_three", false, &[leaving("three")]));
    assert_eq!(place.store.apply(more).await.expect("one to do"), ["0003_three"]);
    assert_eq!((place.marks("one").await, place.marks("three").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_is_named() {
    let place = Place::new().await;
    let first = || file("0001_one", false, &[leaving("one")]);
    place.store.apply(vec![first(), file("0002_two", false, &[leaving("two")])]).await.expect("both");
    let changed = file("0002_two", false, &[leaving("something else")]);
    let later = file("0003_three", false, &[leaving("three")]);
    let error = place.store.apply(vec![first(), changed, later]).await.expect_err("it was changed");
    assert!(matches!(&error, MigrationError::Changed(name) if name == "0002_two"), "{error}");
    assert_eq!(error.to_string(), "migration 0002_two was changed after it was applied to this database");
    assert_eq!(place.marks("something else").await + place.marks("three").await, 0, "nothing is run then");

    // The binary's own, by the way that the commands take.
    let place = Place::new().await;
    place.store.migrate().await.expect("an empty database");
    let records = place.database.collection::<Document>("migrations");
    let changed = doc! { "$set": { "checksum": "of an earlier text" } };
    records.update_one(doc! { "_id": 1 }, changed).await.expect("to change the record");
    for error in [
        place.store.pending_migrations().await.expect_err("it was changed"),
        place.store.migrate().await.expect_err("it was changed"),
    ] {
        assert!(matches!(&error, MigrationError::Changed(name) if name == "0001_trades"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_file_is_named() {
    let place = Place::new().await;
    let files = [("0001_one", "one"), ("0002_two", "two"), ("0003_three", "three")];
    let files = files.map(|(name, mark)| file(name, true, &[leaving(mark)]));
    place.store.apply(files.to_vec()).await.expect("all");
    // Also one marked compatible: it is not ahead of this version, but was taken out of it.
    for missing in [0, 1] {
        let mut left = files.to_vec();
        let name = left.remove(missing).name;
        let error = place.store.apply(left).await.expect_err("it is missing");
        assert!(matches!(&error, MigrationError::Missing(missing) if missing == name), "{error}");
        assert_eq!(
            error.to_string(),
            format!("migration {name} was applied to this database, but is missing from this version")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_ahead() {
    let place = Place::new().await;
    let ours = || vec![file("0001_one", false, &[leaving("one")])];
    let mut theirs = ours();
    theirs.push(file("0002_two", true, &[leaving("two")]));
    theirs.push(file("0003_three", true, &[leaving("three")]));
    place.store.apply(theirs.clone()).await.expect("the later version");
    assert_eq!(place.store.apply(ours()).await.expect("all that is ahead is compatible"), [""; 0]);

    theirs.push(file("0004_four", false, &[leaving("four")]));
    theirs.push(file("0005_five", true, &[leaving("five")]));
    place.store.apply(theirs).await.expect("the latest version");
    let error = place.store.apply(ours()).await.expect_err("one that is ahead is not compatible");
    assert!(matches!(&error, MigrationError::Ahead(name) if name == "0004_four"), "{error}");
    assert_eq!(
        error.to_string(),
        "this database is ahead: migration 0004_four needs a later version of pagebucket"
    );

    // The binary's own, by the way that the commands take.
    let place = Place::new().await;
    place.store.migrate().await.expect("an empty database");
    let records = place.database.collection::<Document>("migrations");
    let ahead = |compatible: bool| {
        doc! { "$set": { "name": "9999_later", "checksum": "unknown", "compatible": compatible } }
    };
    records.update_one(doc! { "_id": 9999 }, ahead(true)).upsert(true).await.expect("to record it");
    let pending = place.store.pending_migrations().await.expect("all that is ahead is compatible");
    assert_eq!(pending, [""; 0]);
    records.update_one(doc! { "_id": 9999 }, ahead(false)).await.expect("to record it");
    let error = place.store.pending_migrations().await.expect_err("it is not compatible");
    assert!(matches!(&error, MigrationError::Ahead(name) if name == "9999_later"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_starting_together_apply_each_once() {
    let place = Place::new().await;
    let index = doc! {
        "createIndexes": "scratch", "indexes": [{ "key": { "mark": 1 }, "name": "mark_1" }],
    };
    let files = vec![
        file("0001_one", false, &[leaving("one"), index]),
        file("0002_two", false, &[leaving("two")]),
        file("0003_three", false, &[leaving("three")]),
    ];
    let mut instances = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let (connection, files) = (place.connection.clone(), files.clone());
        instances.spawn(async move { connect(&connection).await.apply(files).await.expect("its turn") });
    }
    let mut applied = of_files(instances.join_all().await.concat());
    applied.sort_unstable();
    assert_eq!(applied, ["0001_one", "0002_two", "0003_three"], "each by one instance");
    for mark in ["one", "two", "three"] {
        assert_eq!(place.marks(mark).await, 1, "{mark}");
    }
    assert_eq!(place.recorded().await, ["0001_one", "0002_two", "0003_three"], "and no lock is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_failed_half_way_runs_again() {
    let place = Place::new().await;
    let first = || file("0001_one", false, &[leaving("one")]);
    for (wrong, command) in [
        (doc! { "createIndexes": "scratch", "indexes": "none" }, "createIndexes"),
        // Refused statement by statement, in a reply that says ok.
        (doc! { "insert": "scratch", "documents": [{ "_id": 1 }, { "_id": 1 }] }, "insert"),
    ] {
        let broken = file("0002_two", false, &[leaving("two"), wrong, leaving("after")]);
        let later = file("0003_three", false, &[leaving("three")]);
        let error = place.store.apply(vec![first(), broken, later]).await.expect_err("it is wrong");
        assert!(
            matches!(&error, MigrationError::Failed { name, command: at, .. } if name == "0002_two" && at == command),
            "{error}"
        );
        let said = format!("migration 0002_two failed at `{command}`: ");
        assert!(error.to_string().starts_with(&said), "{error}");
        assert_eq!(place.recorded().await, ["0001_one"], "not what failed; and no lock is left");
        assert_eq!(place.marks("after").await + place.marks("three").await, 0, "it stops where it failed");
    }

    let mended = file("0002_two", false, &[leaving("two"), leaving("after")]);
    let applied = place.store.apply(vec![first(), mended]).await.expect("it is mended");
    assert_eq!(of_files(applied), ["0002_two"]);
    assert_eq!(place.marks("two").await, 3, "from its beginning, each time");
    assert_eq!((place.marks("one").await, place.marks("after").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_left_half_made_is_finished() {
    let place = Place::new().await;
    // As an instance leaves it that dies after the first command of 0001.
    let key = doc! { "key": { "_id": 1 }, "unique": true, "name": "_id_" };
    let create = doc! { "create": "trades", "clusteredIndex": key };
    place.database.run_command(create).await.expect("an empty database");
    let pending = place.store.pending_migrations().await.expect("a plan");
    assert_eq!(pending, migrations());
    assert_eq!(place.store.migrate().await.expect("it goes on"), migrations());
    let trades = place.database.collection::<Document>("trades");
    trades.insert_one(doc! { "_id": "7_1698349623" }).await.expect_err("the validator is there");
    let names = trades.list_index_names().await.expect("names");
    assert!(names.contains(&"customerId_1_page_1".to_owned()), "{names:?}");
}

/// The lock as a foreign owner holds it, until so far from now.
async fn hold(place: &Place, owner: ObjectId, until: i64) {
    let until = doc! { "$add": ["$$NOW", until] };
    let locks = place.database.collection::<Document>("migrations");
    let held = vec![doc! { "$set": { "owner": owner, "until": until } }];
    locks.update_one(doc! { "_id": "lock" }, held).upsert(true).await.expect("to hold the lock");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_held_is_waited_for() {
    let place = Place::new().await;
    let owner = ObjectId::new();
    hold(&place, owner, 3_600_000).await;
    place.database.run_command(doc! { "profile": 2 }).await.expect("the profiler");
    let applying = {
        let store = place.store.clone();
        spawn(async move { store.apply(vec![file("0001_one", false, &[leaving("one")])]).await })
    };
    // Two statements each time.
    let profile = place.database.collection::<Document>("system.profile");
    let asked = doc! { "op": "update", "ns": format!("{}.migrations", place.connection.database) };
    eventually("it asks again and again", PATIENCE, || async {
        profile.count_documents(asked.clone()).await.expect("a count") >= 6
    })
    .await;
    assert!(!applying.is_finished() && place.marks("one").await == 0, "it waits");
    let locks = place.database.collection::<Document>("migrations");
    let held = locks.find_one(doc! { "_id": "lock" }).await.expect("an answer").expect("the lock");
    assert_eq!(held.get_object_id("owner").ok(), Some(owner), "it is not taken from a living owner");

    locks.delete_one(doc! { "_id": "lock", "owner": owner }).await.expect("to release it");
    assert_eq!(of_files(applying.await.expect("no panic").expect("its turn")), ["0001_one"]);
    assert_eq!(place.marks("one").await, 1);
    assert!(!place.has_lock().await);
    place.database.run_command(doc! { "profile": 0 }).await.expect("the profiler");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lock_of_the_dead_is_taken_over() {
    let place = Place::new().await;
    hold(&place, ObjectId::new(), -1).await;
    let applied = place.store.apply(vec![file("0001_one", false, &[leaving("one")])]).await;
    assert_eq!(of_files(applied.expect("the lease has ended")), ["0001_one"]);
    assert!(!place.has_lock().await, "it was ours to release");

    // One of several takes it over.
    hold(&place, ObjectId::new(), -1).await;
    let files = vec![
        file("0001_one", false, &[leaving("one")]),
        file("0002_two", false, &[leaving("two"), leaving("two again")]),
    ];
    let mut instances = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (connection, files) = (place.connection.clone(), files.clone());
        instances.spawn(async move { connect(&connection).await.apply(files).await.expect("its turn") });
    }
    assert_eq!(instances.join_all().await.concat(), ["0002_two"]);
    assert_eq!((place.marks("two").await, place.marks("two again").await), (1, 1));
    assert!(!place.has_lock().await);
}

#[track_caller]
fn one_sentence(error: &ConnectError, part: &str) {
    let sentence = error.to_string();
    assert!(sentence.contains("`trades`") && sentence.contains(part), "{sentence}");
    assert!(!sentence.contains('\n') && !sentence.contains(". "), "one sentence: {sentence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn trades_that_are_not_clustered_are_refused() {
    let place = Place::new().await;
    place.store.refuse_foreign_collections().await.expect("there is none yet");
    place.database.create_collection("trades").await.expect("an ordinary collection");
    for error in [
        place.store.refuse_foreign_collections().await.expect_err("it is not clustered"),
        place.store.check_collections().await.expect_err("it is not clustered"),
    ] {
        assert!(matches!(&error, ConnectError::Foreign(_)), "{error}");
        one_sentence(&error, "not created by pagebucket");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trades_without_a_guard_are_refused() {
    let place = Place::new().await;
    let error = place.store.check_collections().await.expect_err("there is none yet");
    assert!(matches!(&error, ConnectError::Missing(collection) if collection == "trades"), "{error}");
    place.store.migrate().await.expect("an empty database");
    place.store.check_collections().await.expect("its own collection");

    let harm = async |command: Document| {
        place.database.run_command(command).await.expect("to harm it");
        place.store.refuse_foreign_collections().await.expect("it is clustered still");
        place.store.check_collections().await.expect_err("it is harmed")
    };
    for command in [
        doc! { "collMod": "trades", "validationAction": "warn" },
        doc! { "collMod": "trades", "validationLevel": "off" },
        doc! { "collMod": "trades", "validator": {} },
        doc! { "collMod": "trades", "validator": { "$expr": true } },
    ] {
        let error = harm(command).await;
        assert!(
            matches!(&error, ConnectError::Unguarded { collection, guard } if collection == "trades" && guard == "validator"),
            "{error}"
        );
        one_sentence(&error, "`pagebucket migrate`");
        mend(&place).await;
    }
    let error = harm(doc! { "dropIndexes": "trades", "index": "customerId_1_page_1" }).await;
    assert!(
        matches!(&error, ConnectError::Unguarded { collection, .. } if collection == "trades"),
        "{error}"
    );
    one_sentence(&error, "unique index");
    mend(&place).await;

    // Dropped, and not there, or made anew by an append of an instance that goes on.
    place.database.collection::<Document>("trades").drop().await.expect("to drop it");
    let error = place.store.check_collections().await.expect_err("it is dropped");
    assert!(matches!(&error, ConnectError::Missing(collection) if collection == "trades"), "{error}");
    one_sentence(&error, "backup");
    assert_eq!(place.store.migrate().await.expect("nothing is pending"), [""; 0]);
    let trades = place.database.collection::<Document>("trades");
    trades.insert_one(bucket(1_698_349_623, 1, 1)).await.expect("nothing refuses it");
    let error = place.store.check_collections().await.expect_err("it is made anew");
    assert!(matches!(&error, ConnectError::Foreign(_)), "{error}");
}

/// As the sentences say.
async fn mend(place: &Place) {
    place.database.collection::<Document>("migrations").drop().await.expect("to drop it");
    // 0009 has histories created once more.
    assert_eq!(place.store.migrate().await.expect("again"), migrations());
    place.store.check_collections().await.expect("it is mended");
}
