//! A database from before it remembered definitions: one that the last such version has made, in
//! `before.json`.

use mongodb::Database;
use mongodb::bson::{DateTime, Document, doc};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::{Setup, TOTAL, shared, stored, trade};

/// What it holds: 15 trades of customer 7, of which 13 and 14 have the key `one-of-two`, and 15 the key
/// `asked-again`, under which it was sent twice; an upload of three trades of customer 8 with the key
/// `upload`; one trade of another.
#[derive(Deserialize)]
struct Before {
    /// The answers to the pages of customer 7.
    pages: Vec<String>,
    collections: Vec<Collection>,
}

#[derive(Deserialize)]
struct Collection {
    name: String,
    options: Document,
    indexes: Vec<Document>,
    documents: Vec<Document>,
}

impl Before {
    fn read() -> Self {
        serde_json::from_str(include_str!("before.json")).expect("a dump")
    }

    async fn restore(&self, database: &Database) {
        for Collection { name, options, indexes, documents } in &self.collections {
            let mut create = doc! { "create": name };
            create.extend(options.clone());
            database.run_command(create).await.expect("to create it");
            let mut documents = documents.clone();
            if name == "idempotency_keys" {
                // A day later the server removes them.
                documents.iter_mut().for_each(|record| drop(record.insert("touched", DateTime::now())));
            }
            if !documents.is_empty() {
                database.collection(name).insert_many(documents).await.expect("its validator accepts them");
            }
            if !indexes.is_empty() {
                database
                    .run_command(doc! { "createIndexes": name, "indexes": indexes.clone() })
                    .await
                    .expect("its indexes");
            }
        }
    }
}

/// The trades of customers 7 as they were sent.
fn sent(number: u64) -> Value {
    let side = if number.is_multiple_of(3) { "sell" } else { "buy" };
    let date = format!("2004-01-{:02}T00:00:00.{number:03}Z", number % 28 + 1);
    json!({ "type": side, "ticker": "MDB", "qty": number, "date": date })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_from_before_is_served_without_rewriting_a_page() {
    let mongod = shared().await;
    let setup = Setup::on(mongod);
    let database = mongod.client().await.database(&setup.connection.database);
    let before = Before::read();
    before.restore(&database).await;
    let buckets = async || {
        let mut buckets = Vec::new();
        let mut found = database
            .collection::<Document>("trades")
            .find(doc! {})
            .sort(doc! { "_id": 1 })
            .await
            .expect("it");
        while found.advance().await.expect("a bucket") {
            buckets.push(found.deserialize_current().expect("a document"));
        }
        buckets
    };
    let old = buckets().await;
    let service = setup.start().await;
    let client = &service.client;
    assert_eq!(buckets().await, old, "starting changes nothing");
    for (page, answer) in (1..).zip(&before.pages) {
        let shown = client.get(&format!("/v1/customers/7/trades/pages/{page}")).await;
        shown.expect(200);
        assert_eq!(String::from_utf8_lossy(&shown.body), *answer);
    }

    // A repeat finds what the earlier version has stored, whether its record says where, or not.
    let two = json!([sent(13), { "type": "buy", "ticker": "MDB", "qty": 14, "date": sent(14)["date"], "price": "0.00000001" }]);
    for (key, items, first, last) in [("one-of-two", &two, 13, 14), ("asked-again", &sent(15), 15, 15)] {
        let answer = client.append_once(7, key, items).await;
        let told = answer.expect(201);
        assert_eq!(told["ranges"], json!([{ "firstSeq": first, "lastSeq": last }]), "{key}");
        assert_eq!(answer.header("idempotency-replayed"), "true", "{key}");
    }
    client.append_once(7, "one-of-two", &sent(13)).await.problem(422, "idempotency-key-reused");
    let lines: String = (1..4).map(|number| format!("{}\n", sent(number))).collect();
    let upload = client.send(reqwest::Method::POST, "/v1/customers/8/trades/upload", |request| {
        let request =
            request.header("content-type", "application/x-ndjson").header("idempotency-key", "upload");
        request.body(lines.clone())
    });
    assert_eq!(upload.await.expect(200)["ranges"], json!([{ "firstSeq": 1, "lastSeq": 3 }]));
    assert_eq!(buckets().await, old, "nothing is stored twice");

    let appended = client.append(7, &trade(16)).await.expect(201);
    assert_eq!(appended[TOTAL], 16);
    let stored = stored(&database, service.history, 7).await;
    assert_eq!(stored.numbers, (1..=16).collect::<Vec<_>>());
    assert_eq!(buckets().await[0], old[0], "a full page is never written again");
    let known =
        database.collection::<Document>("histories").find_one(doc! { "_id": "trades" }).await.expect("it");
    let known = known.expect("it is remembered");
    assert_eq!((known.get_i32("pageSize").ok(), known.get_bool("ready").ok()), (Some(10), Some(true)));
}
