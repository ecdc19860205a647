//! Without a replica set there are no numbers: a lost answer is an unknown outcome at once. What HTTP
//! makes of it is seen best here, where nothing is waited for.

use mongodb::bson::{DateTime, Document, doc};
use serde_json::{Value, json};

use super::rig::{LONG, Rig, Told};
use super::updates::{fail, heal};
use crate::harness::{Answer, Mongod, Setup, history, tests, trade};

tests!["faults": a_standalone_server_has_one_attempt, what_clients_are_told];

async fn a_standalone_server_has_one_attempt() {
    let mongod = Mongod::failing_standalone().await;
    let rig = Rig::on(&mongod).await;
    let mut told: Vec<Told> = Vec::new();
    told.push(rig.append(7, 1, 25, LONG).await);
    told.extend(rig.append_to_all(101..=140, 1, 12, LONG).await);
    told.iter().for_each(Told::stored);
    let mut next = 101;
    for how in [
        doc! { "closeConnection": true },
        doc! { "errorCode": 91 },
        doc! { "writeConcernError": { "code": 64, "errmsg": "of the test" } },
    ] {
        for count in [1, 25] {
            rig.sent.forget();
            fail(&mongod, "update", doc! { "times": 1 }, how.clone()).await;
            let unknown = rig.append(7, next, count, LONG).await;
            unknown.unknown_after(0);
            assert_eq!(rig.sent.updates().len(), 1, "no attempt but one: {how}");
            let after = rig.append(7, next + 50, 1, LONG).await;
            after.stored();
            let total = told.iter().chain([&after]).filter(|told| told.customer == 7);
            let known: usize = total.map(|told| told.seqs().len()).sum();
            let stored = history(&rig.database, 7).await.quantities;
            let came = stored.contains(&(next as i64));
            assert_eq!(came, how.contains_key("writeConcernError"), "{how}");
            assert!(stored.len() >= known);
            told.extend([unknown, after]);
            next += 100;
        }
    }
    // A lost read is tried again all the same.
    let cold = rig.sibling(&mongod).await;
    fail(&mongod, "aggregate", doc! { "times": 3 }, doc! { "closeConnection": true }).await;
    told.push(cold.append(7, next, 1, LONG).await);
    told.last().expect("one").stored();
    rig.check(&told).await;
    mongod.remove().await;
}

/// 503 without an invitation to send the same again.
#[track_caller]
fn told(answer: &Answer, slug: &str) -> Value {
    let problem = answer.problem(503, slug);
    assert!(!answer.headers.contains_key("retry-after"), "{problem}");
    problem
}

async fn what_clients_are_told() {
    let mongod = Mongod::failing_standalone().await;
    let service = Setup::on(&mongod).start().await;
    let client = &service.client;
    let many = |count: u64| json!((1..=count).map(trade).collect::<Vec<_>>());
    let cut = || doc! { "closeConnection": true };

    client.append(7, &many(5)).await.expect(201);
    fail(&mongod, "update", doc! { "times": 1 }, cut()).await;
    let problem = told(&client.append(7, &trade(1)).await, "outcome-unknown");
    assert_eq!(problem["unknownItems"], json!({ "first": 0, "last": 0 }));
    assert_eq!((&problem["ranges"], &problem["notStoredItems"]), (&json!([]), &Value::Null));
    fail(&mongod, "update", doc! { "times": 1 }, cut()).await;
    let problem = told(&client.append(7, &many(25)).await, "outcome-unknown");
    assert_eq!(problem["unknownItems"], json!({ "first": 0, "last": 24 }));
    assert_eq!(client.append(7, &trade(6)).await.expect(201)["totalTrades"], 6, "neither was stored");

    // Another's page 2 is in the way of the second half.
    let obstruct = async |customer: i64| {
        client.append(customer as u64, &many(5)).await.expect(201);
        let date = DateTime::from_millis(0);
        let one = doc! { "type": "buy", "ticker": "MDB", "qty": 900_i64, "date": date };
        let bucket = doc! {
            "_id": format!("{customer}_9999999000"), "customerId": customer, "page": 2_i64, "count": 1,
            "first": date, "last": date, "history": [one],
        };
        service.database.collection::<Document>("trades").insert_one(bucket).await.expect("a bucket");
    };
    obstruct(8).await;
    fail(&mongod, "update", doc! { "skip": 1 }, cut()).await;
    let answer = client.append(8, &many(25)).await;
    heal(&mongod).await;
    let problem = told(&answer, "outcome-unknown");
    assert_eq!(problem["ranges"], json!([{ "firstSeq": 6, "lastSeq": 10 }]));
    assert_eq!(problem["unknownItems"], json!({ "first": 5, "last": 24 }));
    assert_eq!(problem["notStoredItems"], Value::Null);

    obstruct(9).await;
    fail(&mongod, "aggregate", "alwaysOn", cut()).await;
    let answer = client.append(9, &many(25)).await;
    heal(&mongod).await;
    let problem = told(&answer, "partly-stored");
    assert_eq!(problem["ranges"], json!([{ "firstSeq": 6, "lastSeq": 10 }]));
    assert_eq!(problem["notStoredItems"], json!({ "first": 5, "last": 24 }));
    assert_eq!(problem["unknownItems"], Value::Null);

    for customer in [8, 9] {
        let stored = client.append(customer, &trade(77)).await.expect(201);
        assert_eq!(stored["ranges"], json!([{ "firstSeq": 12, "lastSeq": 12 }]));
        let expected: Vec<i64> = (1..=5).chain(1..=5).chain([900, 77]).collect();
        assert_eq!(history(&service.database, customer).await.quantities, expected);
    }

    // Nothing was sent for one who is not known: all may be sent again.
    fail(&mongod, "aggregate", "alwaysOn", cut()).await;
    let refused = client.append(10, &many(25)).await;
    heal(&mongod).await;
    refused.problem(503, "database-unavailable");
    assert!(refused.headers.contains_key("retry-after"));
    mongod.remove().await;
}
