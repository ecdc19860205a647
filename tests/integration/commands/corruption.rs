//! A bucket that is damaged: named in the log, by `_id` and field, and to nobody else.

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, doc};
use serde_json::{Value, json};

use super::program::Place;
use crate::harness::trade_at;

/// Whatever way it is read: by its address, as a page, in a window, in a span of time.
const PATHS: [&str; 6] = [
    "/pages/2",
    "/15",
    "?page=2",
    "?after=12&limit=3",
    "?limit=100&order=desc",
    "?from=2004-01-09T00:00:00Z&limit=100",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_bucket_is_named_in_the_log() {
    let place = Place::new().await;
    let serving = place.serve(&["--page-cache", "0"]).await;
    let trades: Vec<Value> = (1..=35).map(|n| trade_at(n, &format!("2004-01-09T00:00:{n:02}Z"))).collect();
    serving.client.append(7, &json!(trades)).await.expect(201);
    let buckets = place.database().await.collection::<Document>("trades");
    let whole = buckets
        .find_one(doc! { "customerId": 7_i64, "page": 2_i64 })
        .await
        .expect("an answer")
        .expect("a page");
    let id = whole.get_str("_id").expect("_id");
    let cases: [(&str, Bson, &[&str]); 9] = [
        ("history.3.qty", Bson::from(i64::MAX), &PATHS),
        ("history.3.qty", Bson::from(f64::NAN), &PATHS),
        ("history.0.ticker", Bson::from(ObjectId::new()), &PATHS),
        ("history.4.type", Bson::MaxKey, &PATHS),
        ("history.4.date", Bson::from("2004-01-09T00:00:14Z"), &PATHS),
        ("history.9.date", Bson::from(DateTime::from_millis(i64::MAX)), &PATHS),
        ("history.5", Bson::from("a trade"), &PATHS),
        ("history", Bson::from("all"), &PATHS),
        // Found by its place, or by its number: only the first is the bucket itself.
        ("page", Bson::from(77_i64), &PATHS[..3]),
    ];
    let mut expected = Vec::new();
    for (field, value, paths) in cases {
        let damage = buckets.update_one(doc! { "_id": id }, doc! { "$set": { field: &value } });
        damage.bypass_document_validation(true).await.expect("a corrupt bucket");
        for path in paths {
            let path = format!("/v1/customers/7/trades{path}");
            let answer = serving.client.get(&path).await;
            let problem = answer.problem(500, "internal");
            let body = problem.to_string();
            assert!(!body.contains(id) && !body.contains("history."), "{path}: {body}");
            let request = problem["requestId"].as_str().expect("an id").to_owned();
            expected.push([
                " ERROR ".to_owned(),
                request,
                format!("id=\"{id}\""),
                format!("field=\"{field}\""),
            ]);
        }
        let mend = buckets.replace_one(doc! { "_id": id }, &whole);
        mend.bypass_document_validation(true).await.expect("to mend it");
        serving.client.get("/v1/customers/7/trades?limit=100").await.expect(200);
    }
    let log = serving.stop().await.err;
    for parts in expected {
        let told = |line: &str| parts.iter().all(|part| line.contains(part));
        assert!(log.lines().any(told), "{parts:?} in {log}");
    }
}
