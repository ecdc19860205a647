//! Without a replica set there are no numbers: a lost answer is an unknown outcome at once. What HTTP
//! makes of it is seen best here, where nothing is waited for.

use mongodb::bson::{DateTime, Document, doc};
use serde_json::{Value, json};

use crate::harness::rig::{fail, heal};
use crate::harness::{Answer, History, Mongod, Setup, TOTAL, test_over};

/// 503 without an invitation to send the same again.
#[track_caller]
fn told(answer: &Answer, slug: &str) -> Value {
    let problem = answer.problem(503, slug);
    assert!(!answer.headers.contains_key("retry-after"), "{problem}");
    problem
}

test_over!(what_clients_are_told, TRADES);
async fn what_clients_are_told(history: &'static History) {
    let mongod = Mongod::failing_standalone().await;
    let service = Setup::on(&mongod).of(history).start().await;
    let client = &service.client;
    let (page, half, several) = (history.page_size, history.pages(0.5), history.pages(2.5));
    // How many items find room beside half a page.
    let room = page - half;
    let cut = || doc! { "closeConnection": true };

    client.append_all(7, 1..=half).await;
    fail(&mongod, "update", doc! { "times": 1 }, cut()).await;
    let problem = told(&client.append(7, &history.item(1)).await, "outcome-unknown");
    assert_eq!(problem["unknownItems"], json!({ "first": 0, "last": 0 }));
    assert_eq!((&problem["ranges"], &problem["notStoredItems"]), (&json!([]), &Value::Null));
    fail(&mongod, "update", doc! { "times": 1 }, cut()).await;
    let problem = told(&client.append(7, &history.items(1..=several)).await, "outcome-unknown");
    assert_eq!(problem["unknownItems"], json!({ "first": 0, "last": several - 1 }));
    let stored = client.append(7, &history.item(6)).await.expect(201);
    assert_eq!(stored[TOTAL], half + 1, "neither was stored");

    // Another's page 2 is in the way of the second half.
    let obstruct = async |owner: u64| {
        client.append_all(owner, 1..=half).await;
        let bucket = history.bucket(owner, 9_999_999_000, 2, &[(9_000, DateTime::from_millis(0))]);
        service.database.collection::<Document>(history.name).insert_one(bucket).await.expect("a bucket");
    };
    obstruct(8).await;
    fail(&mongod, "update", doc! { "skip": 1 }, cut()).await;
    let answer = client.append(8, &history.items(1..=several)).await;
    heal(&mongod).await;
    let problem = told(&answer, "outcome-unknown");
    assert_eq!(problem["ranges"], json!([{ "firstSeq": half + 1, "lastSeq": page }]));
    assert_eq!(problem["unknownItems"], json!({ "first": room, "last": several - 1 }));
    assert_eq!(problem["notStoredItems"], Value::Null);

    obstruct(9).await;
    fail(&mongod, "aggregate", "alwaysOn", cut()).await;
    let answer = client.append(9, &history.items(1..=several)).await;
    heal(&mongod).await;
    let problem = told(&answer, "partly-stored");
    assert_eq!(problem["ranges"], json!([{ "firstSeq": half + 1, "lastSeq": page }]));
    assert_eq!(problem["notStoredItems"], json!({ "first": room, "last": several - 1 }));
    assert_eq!(problem["unknownItems"], Value::Null);

    for owner in [8, 9] {
        let stored = client.append(owner, &history.item(77)).await.expect(201);
        assert_eq!(stored["ranges"], json!([{ "firstSeq": page + 2, "lastSeq": page + 2 }]));
        let expected: Vec<i64> = (1..=half as i64).chain(1..=room as i64).chain([9_000, 77]).collect();
        assert_eq!(service.stored(owner).await.numbers, expected);
    }

    // Nothing was sent for one who is not known: all may be sent again.
    fail(&mongod, "aggregate", "alwaysOn", cut()).await;
    let refused = client.append(10, &history.items(1..=several)).await;
    heal(&mongod).await;
    refused.problem(503, "database-unavailable");
    assert!(refused.headers.contains_key("retry-after"));
    mongod.remove().await;
}
