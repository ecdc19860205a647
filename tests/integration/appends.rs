//! Appends that race, and what they must keep.

use std::collections::HashSet;

use mongodb::bson::{Document, doc};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::{Client, Service, history, shared, tests, trade_at};

tests!["appends":
    sixty_four_writers_to_one_customer,
    sixty_four_writers_through_two_instances,
    the_manuals_statement_loses_trades,
    arrays_keep_their_order_among_racing_writers,
    bucket_order_is_page_order,
    customers_do_not_see_each_other,
];

const WRITERS: u64 = 64;
const EACH: u64 = 20;

/// Same second, back-dated, future-dated, in turns.
fn mixed(number: u64) -> Value {
    match number % 4 {
        0 => trade_at(number, "2026-01-01T00:00:00Z"),
        1 => trade_at(number, "1969-12-31T23:59:59.999Z"),
        2 => trade_at(number, "9999-12-31T23:59:59.999Z"),
        _ => json!({ "type": "buy", "ticker": "MDB", "qty": number }),
    }
}

/// Appends 1,280 trades, told apart by their quantity, through these clients; returns each one's `seq`.
async fn race(clients: &[Client]) -> Vec<(u64, u64)> {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let client = clients[writer as usize % clients.len()].clone();
        writers.spawn(async move {
            let mut acknowledged = Vec::new();
            for turn in 0..EACH {
                let number = writer * EACH + turn + 1;
                let body = client.append(7, &mixed(number)).await.expect(201);
                acknowledged.push((number, body["ranges"][0]["firstSeq"].as_u64().unwrap()));
            }
            acknowledged
        });
    }
    writers.join_all().await.into_iter().flatten().collect()
}

async fn check(service: &Service, acknowledged: &[(u64, u64)]) {
    let seqs: HashSet<_> = acknowledged.iter().map(|(_, seq)| *seq).collect();
    assert_eq!(seqs, (1..=WRITERS * EACH).collect(), "each seq acknowledged once");
    let history = history(&service.database, 7).await;
    history.holds_exactly(1..=(WRITERS * EACH) as i64);
    for (number, seq) in acknowledged {
        assert_eq!(history.quantities[*seq as usize - 1], *number as i64, "invariant 5: seq {seq}");
    }
    let body = service.client.get("/v1/customers/7").await.expect(200);
    assert_eq!((&body["totalTrades"], &body["totalPages"]), (&json!(1280), &json!(128)));
}

async fn sixty_four_writers_to_one_customer() {
    let service = Service::start().await;
    let acknowledged = race(std::slice::from_ref(&service.client)).await;
    check(&service, &acknowledged).await;
}

async fn sixty_four_writers_through_two_instances() {
    let first = Service::start().await;
    let second = first.sibling(shared().await).await;
    let acknowledged = race(&[first.client.clone(), second.client.clone()]).await;
    check(&first, &acknowledged).await;
}

/// The control: the manual's own statement, in a burst of one second, on the same server.
async fn the_manuals_statement_loses_trades() {
    let service = Service::start().await;
    let manual = service.database.collection::<Document>("manual");
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let manual = manual.clone();
        writers.spawn(async move {
            let mut acknowledged = 0;
            for turn in 0..EACH {
                let number = (writer * EACH + turn + 1) as i64;
                let trade = doc! { "type": "buy", "ticker": "MDB", "qty": number };
                let update = doc! {
                    "$push": { "history": trade },
                    "$inc": { "count": 1 },
                    "$setOnInsert": { "_id": "123_1698349623", "customerId": 123 },
                };
                let filter = doc! { "_id": { "$regex": "^123_" }, "count": { "$lt": 10 } };
                acknowledged += i32::from(manual.update_one(filter, update).upsert(true).await.is_ok());
            }
            acknowledged
        });
    }
    let acknowledged: i32 = writers.join_all().await.into_iter().sum();
    let lost = (WRITERS * EACH) as i32 - acknowledged;
    println!("the manual's statement, 1,280 appends in one second: {acknowledged} stored, {lost} failed");
    assert!(lost > 1000, "the control shows what the pattern loses: {lost}");
}

async fn arrays_keep_their_order_among_racing_writers() {
    let service = Service::start().await;
    let second = service.sibling(shared().await).await;
    let mut writers = JoinSet::new();
    for writer in 0..16_u64 {
        let client = [&service, &second][writer as usize % 2].client.clone();
        writers.spawn(async move {
            let first = writer * 100 + 1;
            let trades: Vec<Value> =
                (first..first + 37).map(|n| json!({ "type": "buy", "ticker": "A", "qty": n })).collect();
            let body = client.append(9, &json!(trades)).await.expect(201);
            let ranges = body["ranges"].as_array().unwrap().clone();
            let seqs = ranges
                .iter()
                .flat_map(|range| range["firstSeq"].as_u64().unwrap()..=range["lastSeq"].as_u64().unwrap());
            (first..first + 37).zip(seqs.collect::<Vec<_>>()).collect::<Vec<_>>()
        });
    }
    let acknowledged: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    assert_eq!(acknowledged.len(), 16 * 37);
    let history = history(&service.database, 9).await;
    assert_eq!(history.quantities.len(), 16 * 37);
    for (number, seq) in acknowledged {
        assert_eq!(history.quantities[seq as usize - 1], number as i64);
    }
}

/// Across 9 and 10 digits, negative seconds, and 50 trades in one second.
async fn bucket_order_is_page_order() {
    let service = Service::start().await;
    let dates = [
        "1900-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:01Z",
        "2001-09-09T01:46:39Z",
        "2001-09-09T01:46:40Z",
        "2001-09-09T01:46:41Z",
    ];
    let mut number = 0;
    for date in dates {
        let page: Vec<Value> = (0..10)
            .map(|_| {
                number += 1;
                trade_at(number, date)
            })
            .collect();
        service.client.append(5, &json!(page)).await.expect(201);
    }
    for _ in 0..50 {
        number += 1;
        service.client.append(5, &trade_at(number, "2001-09-09T01:46:41Z")).await.expect(201);
    }
    let history = history(&service.database, 5).await;
    assert_eq!(history.quantities, (1..=110).collect::<Vec<_>>());
    let seconds: Vec<_> = history.ids.iter().map(|id| &id[2..]).collect();
    assert_eq!(
        seconds[..6],
        ["0000000000", "0000000001", "0000000002", "0999999999", "1000000000", "1000000001"]
    );
    assert_eq!(seconds[10], "1000000006");
    for page in 1..=11 {
        let body = service.client.get(&format!("/v1/customers/5/trades?page={page}")).await.expect(200);
        assert_eq!(body["items"][0]["qty"], (page - 1) * 10 + 1);
    }
}

async fn customers_do_not_see_each_other() {
    let service = Service::start().await;
    for customer in [1, 11, 12, 123] {
        let trades: Vec<Value> =
            (0..15).map(|_| json!({ "type": "buy", "ticker": "A", "qty": customer })).collect();
        service.client.append(customer, &json!(trades)).await.expect(201);
    }
    // By another hand: ids that begin with "1_", of which no customer of ours is the owner.
    let foreign = doc! { "_id": "1_2_1698349623", "customerId": "1_2", "count": 1 };
    let trades = service.database.collection::<Document>("trades");
    trades.insert_one(foreign).bypass_document_validation(true).await.unwrap();
    for customer in [1, 11, 12, 123] {
        let body = service.client.get(&format!("/v1/customers/{customer}")).await.expect(200);
        assert_eq!(body["totalTrades"], 15);
        for page in [1, 2] {
            let body =
                service.client.get(&format!("/v1/customers/{customer}/trades?page={page}")).await.expect(200);
            assert!(body["items"].as_array().unwrap().iter().all(|item| item["qty"] == customer), "{body}");
        }
    }
    let page = |order: &'static str| service.client.get(order);
    assert_eq!(page("/v1/customers/1/trades?order=desc").await.expect(200)["page"], 2);
}
