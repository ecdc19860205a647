//! A database in files: each collection with its options, indexes and documents, and what was answered of it.
//! They are lines of JSON, which gzip compresses to a tenth: `zcat` shows them.

use std::fs::File;
use std::io::{BufReader, Write, read_to_string};
use std::path::PathBuf;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, DateTime, Document, doc};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Client;

/// A directory of `tests/fixtures`, which has the name of the version that wrote it.
pub struct Fixture {
    directory: PathBuf,
    exchanges: OnceLock<Vec<Exchange>>,
}

/// A request, and what was answered.
pub struct Exchange {
    /// As `GET /v1/customers/1`.
    request: String,
    /// Of a POST, with its key.
    body: Value,
    answer: Value,
}

impl Fixture {
    pub fn of(version: &str) -> Self {
        let fixtures = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"));
        Self { directory: fixtures.join(version), exchanges: OnceLock::new() }
    }

    /// The definitions of its histories.
    pub fn definitions(&self) -> PathBuf {
        self.directory.join("histories")
    }

    fn lines(&self, file: &str) -> Vec<Value> {
        let file = File::open(self.directory.join(file)).expect("a file of the fixture");
        let text = read_to_string(GzDecoder::new(BufReader::new(file))).expect("gzip");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    fn write(&self, file: &str, lines: impl IntoIterator<Item = Value>) {
        let text: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
        let file = File::create(self.directory.join(file)).expect("to create");
        let mut compressed = GzEncoder::new(file, Compression::best());
        compressed.write_all(text.as_bytes()).expect("to write");
        compressed.finish().expect("to write");
    }

    /// Writes a database: a line for each collection, as `create` takes it, and a line for each of its
    /// documents.
    pub async fn dump(&self, database: &Database, file: &str) {
        let found = database.list_collections().await.expect("collections");
        let mut collections: Vec<_> = found.try_collect().await.expect("collections");
        collections.retain(|collection| !collection.name.starts_with("system."));
        // A view comes after the collection that it shows.
        collections.sort_by_key(|one| (one.options.view_on.is_some(), one.name.clone()));
        let mut lines = Vec::new();
        for collection in collections {
            let mut create = doc! { "create": &collection.name };
            let listed =
                database.run_command(doc! { "listCollections": 1, "filter": { "name": &collection.name } });
            let listed = listed.await.expect("an answer");
            let described = listed.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
            let described = described.expect("a batch")[0].as_document().expect("a collection");
            create.extend(described.get_document("options").expect("options").clone());
            // A usual server derives it.
            if let Ok(series) = create.get_document_mut("timeseries") {
                series.remove("bucketMaxSpanSeconds");
            }
            if collection.options.view_on.is_some() {
                lines.push(json!({ "collection": json_of(create) }));
                continue;
            }
            let source = database.collection::<Document>(&collection.name);
            let indexes =
                database.run_command(doc! { "listIndexes": &collection.name }).await.expect("indexes");
            let indexes = indexes.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
            let indexes: Vec<_> = indexes.expect("a batch").iter().filter_map(Bson::as_document).collect();
            let made = |index: &&Document| {
                !index.contains_key("clustered") && index.get_str("name").is_ok_and(|name| name != "_id_")
            };
            let indexes: Vec<_> = indexes.into_iter().filter(made).cloned().map(json_of).collect();
            lines.push(json!({ "collection": json_of(create), "indexes": indexes }));
            let documents = source.find(doc! {}).sort(doc! { "_id": 1 }).await.expect("documents");
            let documents: Vec<Document> = documents.try_collect().await.expect("documents");
            lines.extend(documents.into_iter().map(|document| json!({ "document": json_of(document) })));
        }
        self.write(file, lines);
    }

    /// Its documents, with the collection of each.
    pub fn documents(&self, file: &str) -> Vec<(String, Document)> {
        let (mut collection, mut documents) = (String::new(), Vec::new());
        for line in self.lines(file) {
            match line.get("document") {
                Some(document) => documents.push((collection.clone(), document_of(document.clone()))),
                None => line["collection"]["create"].as_str().expect("a name").clone_into(&mut collection),
            }
        }
        documents
    }

    /// Writes it into an empty database.
    pub async fn load(&self, database: &Database, file: &str) {
        self.load_with(database, file, |_, document| document).await;
    }

    /// The same, with what becomes of each document of a collection.
    pub async fn load_with(
        &self,
        database: &Database,
        file: &str,
        change: impl Fn(&str, Document) -> Document,
    ) {
        let (mut collection, mut documents) = (String::new(), Vec::new());
        let mut is_altered = false;
        for line in self.lines(file).into_iter().chain([json!({ "collection": null })]) {
            if let Some(document) = line.get("document") {
                let before = document_of(document.clone());
                let after = change(&collection, before.clone());
                is_altered |= before != after;
                documents.push(after);
                continue;
            }
            if !documents.is_empty() {
                let into = database.collection::<Document>(&collection);
                let insert = into.insert_many(std::mem::take(&mut documents));
                // Those of the fixture are valid.
                let insert = if std::mem::take(&mut is_altered) {
                    insert.bypass_document_validation(true)
                } else {
                    insert
                };
                insert.await.expect("to insert");
            }
            if line["collection"].is_null() {
                break;
            }
            let create = document_of(line["collection"].clone());
            collection = create.get_str("create").expect("a name").to_owned();
            database.run_command(create).await.expect("a collection");
            let indexes = line.get("indexes").and_then(Value::as_array).cloned().unwrap_or_default();
            let indexes: Vec<_> = indexes.into_iter().map(document_of).collect();
            // A time series has one that it makes itself.
            if !indexes.is_empty() && line["collection"].get("timeseries").is_none() {
                let create = doc! { "createIndexes": &collection, "indexes": indexes };
                database.run_command(create).await.expect("indexes");
            }
        }
        // Records of keys that were not used for a day are deleted.
        let touch = doc! { "$set": { "touched": DateTime::now() } };
        let records = database.collection::<Document>("idempotency_keys");
        records.update_many(doc! { "touched": { "$exists": true } }, touch).await.expect("an answer");
    }

    pub fn exchanges(&self) -> &[Exchange] {
        let exchange = |mut line: Value| Exchange {
            request: line["request"].as_str().expect("a request").to_owned(),
            body: line["body"].take(),
            answer: line["answer"].take(),
        };
        self.exchanges.get_or_init(|| self.lines("answers.jsonl.gz").into_iter().map(exchange).collect())
    }

    /// Asks, and writes what is answered.
    pub async fn note(&self, client: &Client, requests: &[(String, Value)]) {
        let mut lines = Vec::new();
        for (request, body) in requests {
            let answer = answer(client, request, body).await;
            lines.push(json!({ "request": request, "body": body, "answer": answer }));
        }
        self.write("answers.jsonl.gz", lines);
    }
}

impl Exchange {
    /// Whether this is in its request.
    pub fn asks(&self, part: &str) -> bool {
        self.request.contains(part)
    }

    /// What is answered otherwise than it was; an answer may have got more members.
    pub async fn difference(&self, client: &Client) -> Option<String> {
        let now = answer(client, &self.request, &self.body).await;
        (!has(&now, &self.answer)).then(|| format!("{}: {now}, and it was {}", self.request, self.answer))
    }
}

/// The status and the body of the answer. A repeat is one with a key.
async fn answer(client: &Client, request: &str, body: &Value) -> Value {
    let (method, path) = request.split_once(' ').expect("a method and a path");
    let method: Method = method.parse().expect("a method");
    let answer = client
        .send(method, path, |request| match body.as_object() {
            None => request,
            Some(body) => request
                .header("content-type", "application/json")
                .header("idempotency-key", body["key"].as_str().expect("a key"))
                .body(body["items"].to_string()),
        })
        .await;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let mut body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    // Each answer has its own.
    if let Some(members) = body.as_object_mut() {
        members.remove("requestId");
    }
    json!({ "status": answer.status.as_u16(), "body": body })
}

/// Whether a value has all that another one has.
fn has(now: &Value, then: &Value) -> bool {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            then.iter().all(|(name, then)| now.get(name).is_some_and(|now| has(now, then)))
        }
        (Value::Array(now), Value::Array(then)) => {
            now.len() == then.len() && now.iter().zip(then).all(|(now, then)| has(now, then))
        }
        _ => now == then,
    }
}

fn json_of(document: Document) -> Value {
    Bson::Document(document).into_canonical_extjson()
}

fn document_of(value: Value) -> Document {
    match Bson::try_from(value).expect("Extended JSON") {
        Bson::Document(document) => document,
        other => panic!("no document: {other}"),
    }
}
