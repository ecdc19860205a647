//! Appends that race, and what they must keep.

use std::collections::HashSet;

use mongodb::bson::{Document, doc};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::{Client, History, INVALID_ITEM, Service, TOTAL, shared, test_over};

const WRITERS: u64 = 64;
const EACH: u64 = 20;

/// Same second, back-dated, future-dated, in turns.
fn mixed(history: &History, number: u64) -> Value {
    match number % 4 {
        0 => history.item_at(number, "2026-01-01T00:00:00Z"),
        1 => history.item_at(number, "1969-12-31T23:59:59.999Z"),
        2 => history.item_at(number, "9999-12-31T23:59:59.999Z"),
        _ => history.item(number),
    }
}

/// Appends 1,280 items, told apart by their numbers, through these clients; returns each one's `seq`.
async fn race(clients: &[Client]) -> Vec<(u64, u64)> {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let client = clients[writer as usize % clients.len()].clone();
        writers.spawn(async move {
            let mut acknowledged = Vec::new();
            for turn in 0..EACH {
                let number = writer * EACH + turn + 1;
                let body = client.append(7, &mixed(client.history, number)).await.expect(201);
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
    let stored = service.stored(7).await;
    stored.holds_exactly(1..=(WRITERS * EACH) as i64);
    for (number, seq) in acknowledged {
        assert_eq!(stored.numbers[*seq as usize - 1], *number as i64, "invariant 5: seq {seq}");
    }
    let owner = service.client.get(&service.history.owner_path(7)).await.expect(200);
    let totals = service.history.totals(&owner);
    let pages = service.history.page_of(1280);
    assert_eq!((&totals[TOTAL], &totals["totalPages"]), (&json!(1280), &json!(pages)));
}

test_over!(sixty_four_writers_to_one_owner, ALL);
async fn sixty_four_writers_to_one_owner(history: &'static History) {
    let service = Service::of(history).await;
    let acknowledged = race(std::slice::from_ref(&service.client)).await;
    check(&service, &acknowledged).await;
}

test_over!(sixty_four_writers_through_two_instances, NOTES);
async fn sixty_four_writers_through_two_instances(history: &'static History) {
    let first = Service::of(history).await;
    let second = first.sibling(shared().await).await;
    let acknowledged = race(&[first.client.clone(), second.client.clone()]).await;
    check(&first, &acknowledged).await;
}

/// The control: the manual's own statement, in a burst of one second, on the same server.
#[tokio::test(flavor = "multi_thread")]
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

test_over!(a_batch_is_an_append_of_an_array, NOTES);
/// The address of arrays takes what the address of an append takes, one item aside.
async fn a_batch_is_an_append_of_an_array(history: &'static History) {
    let service = Service::of(history).await;
    let (client, batch) = (&service.client, history.at(7, "/batch"));
    let count = history.pages(1.5);
    let stored = client.post_text(&batch, history.items(1..=count).to_string()).await;
    assert_eq!(stored.expect(201)["ranges"], json!([{ "firstSeq": 1, "lastSeq": count }]));
    assert_eq!(stored.header("location"), history.at(7, "/1"));
    client.append(7, &history.item(count + 1)).await.expect(201);
    // A body that is no array of items is as bad as elsewhere, and nothing of it is stored.
    for (body, [begin, end]) in [
        (history.item(1), ["must be an array of ", ", not an object"]),
        (json!("batch"), ["must be an array of ", ", not a string"]),
        (json!([]), ["must have at least one ", ""]),
        (history.items(1..=1001), ["must have at most 1000 ", ""]),
    ] {
        let problem = client.post_text(&batch, body.to_string()).await.problem(422, INVALID_ITEM);
        assert_eq!(
            (&problem["errors"][0]["pointer"], problem["errors"].as_array().map(Vec::len)),
            (&json!(""), Some(1))
        );
        let detail = problem["errors"][0]["detail"].as_str().expect("a sentence");
        assert!(detail.starts_with(begin) && detail.ends_with(end), "{detail}");
    }
    let problem = client.post_text(&batch, json!([history.item(1), 5]).to_string()).await;
    assert_eq!(problem.problem(422, INVALID_ITEM)["errors"][0]["pointer"], "/1");
    // Lines are sent to the upload beside it, and no item has this address.
    let lines = crate::harness::uploads::upload(client, &batch, history.item(1).to_string()).await;
    let detail = lines.problem(415, "unsupported-media-type")["detail"].clone();
    let uploads = format!(" are sent to `{}`.", history.uploads(7));
    assert!(detail.as_str().is_some_and(|detail| detail.ends_with(&uploads)), "{detail}");
    let read = client.get(&batch).await;
    read.problem(405, "method-not-allowed");
    assert_eq!(read.header("allow"), "POST");
    service.stored(7).await.holds_exactly(1..=count as i64 + 1);
}

test_over!(arrays_keep_their_order_among_racing_writers, ALL);
async fn arrays_keep_their_order_among_racing_writers(history: &'static History) {
    // Over three pages and more.
    let each = history.pages(3.7);
    let service = Service::of(history).await;
    let second = service.sibling(shared().await).await;
    let mut writers = JoinSet::new();
    for writer in 0..16_u64 {
        let client = [&service, &second][writer as usize % 2].client.clone();
        writers.spawn(async move {
            let first = writer * 1_000 + 1;
            let body = client.append(9, &history.items(first..=first + each - 1)).await.expect(201);
            let ranges = body["ranges"].as_array().unwrap().clone();
            let seqs = ranges
                .iter()
                .flat_map(|range| range["firstSeq"].as_u64().unwrap()..=range["lastSeq"].as_u64().unwrap());
            (first..first + each).zip(seqs.collect::<Vec<_>>()).collect::<Vec<_>>()
        });
    }
    let acknowledged: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    assert_eq!(acknowledged.len() as u64, 16 * each);
    let stored = service.stored(9).await;
    assert_eq!(stored.numbers.len() as u64, 16 * each);
    for (number, seq) in acknowledged {
        assert_eq!(stored.numbers[seq as usize - 1], number as i64);
    }
}

test_over!(bucket_order_is_page_order, SMALL);
/// Across 9 and 10 digits, negative seconds, and five pages in one second.
async fn bucket_order_is_page_order(history: &'static History) {
    let service = Service::of(history).await;
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
        let first = number + 1;
        number += history.page_size;
        let page: Value = (first..=number).map(|number| history.item_at(number, date)).collect();
        service.client.append(5, &page).await.expect(201);
    }
    for _ in 0..history.pages(5.0) {
        number += 1;
        service.client.append(5, &history.item_at(number, "2001-09-09T01:46:41Z")).await.expect(201);
    }
    let stored = service.stored(5).await;
    assert_eq!(stored.numbers, (1..=number as i64).collect::<Vec<_>>());
    let seconds: Vec<_> = stored.ids.iter().filter_map(|id| id.rsplit('_').next()).collect();
    assert_eq!(
        seconds[..6],
        ["0000000000", "0000000001", "0000000002", "0999999999", "1000000000", "1000000001"]
    );
    assert_eq!(seconds[10], "1000000006");
    for page in 1..=11 {
        let body = service.client.get(&history.at(5, &format!("?page={page}"))).await.expect(200);
        assert_eq!(history.number(&body["items"][0]), (page - 1) * history.page_size + 1);
    }
}

test_over!(owners_do_not_see_each_other, SMALL);
/// Owners whose ids begin alike, or differ in case.
async fn owners_do_not_see_each_other(history: &'static History) {
    const OWNERS: [u64; 5] = [1, 2, 11, 12, 123];
    let service = Service::of(history).await;
    let count = history.pages(1.5);
    for owner in OWNERS {
        let items: Value = (0..count).map(|_| history.item(owner)).collect();
        service.client.append(owner, &items).await.expect(201);
    }
    // By another hand: ids that begin as those of owner 1, of which no owner of ours is.
    let foreign = format!("{}_2", history.id(1));
    let foreign = doc! { "_id": format!("{foreign}_1698349623"), history.owner_field: foreign, "count": 1 };
    let buckets = service.database.collection::<Document>(history.name);
    buckets.insert_one(foreign).bypass_document_validation(true).await.unwrap();
    for owner in OWNERS {
        assert_eq!(service.client.total(owner).await, count);
        for page in [1, 2] {
            let body = service.client.get(&history.at(owner, &format!("?page={page}"))).await.expect(200);
            let items = body["items"].as_array().unwrap();
            assert!(items.iter().all(|item| history.number(item) == owner), "{body}");
        }
    }
    let newest = service.client.get(&history.at(1, "?order=desc")).await.expect(200);
    assert_eq!(newest["page"], 2);
}
