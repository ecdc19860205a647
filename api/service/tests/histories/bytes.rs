//! Limits in bytes: the greatest items there are, pages of 4 MiB, what does not fit into one reply or one
//! command of the database, and what is too large for good.

use mongodb::bson::{Document, doc};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::rig::{LONG, Rig, Told, fail};
use crate::harness::uploads::upload;
use crate::harness::{
    Client, History, INVALID_ITEM, Mongod, READINGS, Service, Setup, TOTAL, shared, test_over,
};

/// What an item may be larger or smaller than its limit where a test names no byte: more than the engine's
/// own fields take.
const NEAR: usize = 64;

/// A service that takes bodies of 64 MiB.
async fn wide(history: &'static History) -> Service {
    let mut setup = Setup::on(shared().await).of(history.holding_any());
    setup.config.api.max_body = 64 * 1024 * 1024;
    setup.start().await
}

/// An item of about `bytes` bytes in the database: with a long text where the definition has room for one,
/// else with an array of zeros, which is a seventh of that in JSON.
fn of_bytes(history: &History, number: u64, bytes: usize) -> Value {
    let mut item = history.item(number);
    if history.name == READINGS.name {
        item["padding"] = json!("");
        let text = bytes - stored_bytes(&item);
        item["padding"] = json!("x".repeat(text));
    } else {
        // Each takes a type, its place in digits, a zero and eight bytes.
        let (mut length, mut left) = (0_usize, bytes - 100);
        loop {
            let element = 10 + length.max(1).ilog10() as usize + 1;
            if element > left {
                break;
            }
            (length, left) = (length + 1, left - element);
        }
        item["samples"] = json!(vec![0; length]);
    }
    item
}

/// The bytes of an item in the database, with a date and a key: but for decimals, which are longer in JSON.
fn stored_bytes(item: &Value) -> usize {
    fn bytes(value: &Value) -> usize {
        match value {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Number(_) => 8,
            Value::String(text) => 4 + text.len() + 1,
            Value::Array(values) => {
                let element = |(place, value): (usize, &Value)| 2 + place.to_string().len() + bytes(value);
                5 + values.iter().enumerate().map(element).sum::<usize>()
            }
            Value::Object(members) => {
                5 + members.iter().map(|(name, value)| 2 + name.len() + bytes(value)).sum::<usize>()
            }
        }
    }
    // A date of eight bytes, a key of twelve, and their names.
    bytes(item) + 12 + 8 + 6 + 17
}

fn greatest(history: &History, number: u64) -> Value {
    of_bytes(history, number, history.max_item_bytes as usize - NEAR)
}

/// Appends the greatest items, a few at a time.
async fn append_greatest(client: &Client, owner: u64, numbers: std::ops::RangeInclusive<u64>) {
    let numbers: Vec<u64> = numbers.collect();
    for part in numbers.chunks(50) {
        let items: Value = part.iter().map(|number| greatest(client.history, *number)).collect();
        client.append(owner, &items).await.expect(201);
    }
}

/// Checks that a listing holds the greatest items with these numbers, whole.
#[track_caller]
fn are_whole(history: &History, listing: &Value, numbers: impl IntoIterator<Item = u64>) {
    assert_eq!(history.seqs(listing), numbers.into_iter().collect::<Vec<_>>());
    let items = listing["items"].as_array().expect("items");
    let whole = |item: &Value| {
        let sent = greatest(history, history.number(item));
        ["padding", "samples"].iter().all(|name| item.get(name) == sent.get(name))
    };
    assert!(items.iter().all(whole), "an item is not as it was sent");
}

test_over!(pages_of_the_greatest_items_are_served_whole, READINGS, TRACES);
async fn pages_of_the_greatest_items_are_served_whole(history: &'static History) {
    let service = wide(history).await;
    let (size, total) = (history.page_size, history.pages(2.5));
    append_greatest(&service.client, 1, 1..=total).await;
    service.stored(1).await.holds_exactly(1..=total as i64);
    let buckets = service.database.collection::<Document>(history.name);
    let sizes = [
        doc! { "$match": { "count": size as i32 } },
        doc! { "$project": { "bytes": { "$bsonSize": "$$ROOT" } } },
    ];
    let mut sizes = buckets.aggregate(sizes).await.expect("sizes");
    while sizes.advance().await.expect("sizes") {
        let bytes = sizes.deserialize_current().expect("a size").get_i32("bytes").expect("bytes");
        assert!((4_100_000..=4_200_000).contains(&bytes), "a full page takes 4 MiB: {bytes}");
    }
    // Twice: also from memory.
    for _ in 0..2 {
        for page in 1..=3 {
            let seqs = (page - 1) * size + 1..=(page * size).min(total);
            let body = service.client.get(&history.at(1, &format!("/pages/{page}"))).await.expect(200);
            are_whole(history, &body, seqs.clone());
            let listed = service.client.get(&history.at(1, &format!("?page={page}"))).await.expect(200);
            are_whole(history, &listed, seqs);
        }
        let limit = total.min(100);
        let after = size.saturating_sub(limit / 2);
        let window = history.at(1, &format!("?after={after}&limit={limit}"));
        let window = service.client.get(&window).await.expect(200);
        are_whole(history, &window, after + 1..=total.min(after + limit));
        for seq in [1, size, size + 1, total] {
            let item = service.client.get(&history.at(1, &format!("/{seq}"))).await.expect(200);
            are_whole(history, &json!({ "items": [item] }), [seq]);
        }
    }
    are_exported_whole(&service, 1, total).await;
}

/// Checks that an export holds the greatest items of an owner, each whole.
async fn are_exported_whole(service: &Service, owner: u64, total: u64) {
    let history = service.history;
    for query in ["", "?from=2000-01-01T00:00:00Z"] {
        let rows = service.client.get(&history.at(owner, &format!("/export.ndjson{query}"))).await.body;
        let lines = str::from_utf8(&rows).expect("UTF-8").lines();
        let rows: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("JSON")).collect();
        are_whole(history, &json!({ "items": rows }), 1..=total);
    }
}

test_over!(an_item_beyond_the_limit_is_refused_for_good, READINGS, TRACES);
/// Before anything is sent: 422, its key stays free, and its neighbours of an upload are stored.
async fn an_item_beyond_the_limit_is_refused_for_good(history: &'static History) {
    let mut setup = Setup::on(shared().await).of(history.holding_any());
    setup.config.api.max_body = 64 * 1024 * 1024;
    let (sent, seen) = tokio::sync::watch::channel(0);
    let setup = setup.observed(move |name, command| {
        if name == "update" && command.get_str(name).is_ok_and(|collection| collection == history.name) {
            sent.send_modify(|updates| *updates += 1);
        }
    });
    let service = setup.start().await;
    let client = &service.client;
    let beyond = of_bytes(history, 1, history.max_item_bytes as usize + NEAR);
    let refused = client.append_once(1, "k", &beyond).await.problem(422, INVALID_ITEM);
    assert_eq!(refused["errors"][0]["pointer"], "", "{refused}");
    let array = json!([history.item(1), beyond, history.item(2)]);
    let refused = client.append_once(1, "k", &array).await.problem(422, INVALID_ITEM);
    assert_eq!(refused["errors"][0]["pointer"], "/1", "{refused}");
    assert_eq!(*seen.borrow(), 0, "nothing was sent");
    assert_eq!(client.total(1).await, 0);
    client.append_once(1, "k", &greatest(history, 1)).await.expect(201);
    // A line may have 64 KiB of JSON.
    if beyond.to_string().len() < 64 * 1024 {
        let body = [greatest(history, 2), beyond, greatest(history, 3)].map(|item| format!("{item}\n"));
        let summary = upload(client, &history.uploads(1), body.concat()).await.expect(200);
        assert_eq!((&summary["stored"], &summary["refused"]), (&json!(2), &json!(1)), "{summary}");
        assert_eq!(summary["problems"][0]["line"], 2, "{summary}");
    }
    let total = client.total(1).await as i64;
    service.stored(1).await.holds_exactly(1..=total);
}

test_over!(what_does_not_fit_into_one_reply_is_read_in_several, TRACES);
/// A reply ends at 16 MB without a word: windows, spans of dates, exports, many pages and many tails at once
/// are whole all the same.
async fn what_does_not_fit_into_one_reply_is_read_in_several(history: &'static History) {
    let service = wide(history).await;
    let total = history.pages(8.0);
    append_greatest(&service.client, 1, 1..=total).await;
    let cold = service.sibling(shared().await).await;
    for query in ["?limit=100", "?limit=100&from=2000-01-01T00:00:00Z", "?after=1&limit=13"] {
        let window = cold.client.get(&history.at(1, query)).await.expect(200);
        let first = if query.contains("after=1") { 2 } else { 1 };
        are_whole(history, &window, first..=total.min(first + 99).min(if first == 2 { 14 } else { total }));
    }
    let newest = cold.client.get(&history.at(1, "?limit=100&order=desc")).await.expect(200);
    assert_eq!(history.seqs(&newest), (1..=total).rev().collect::<Vec<_>>());
    are_exported_whole(&cold, 1, total).await;

    // Pages that are asked for at once are read by few commands.
    let colder = service.sibling(shared().await).await;
    let mut asking = JoinSet::new();
    for page in 1..=8 {
        let client = colder.client.clone();
        asking.spawn(async move { (page, client.get(&history.at(1, &format!("/pages/{page}"))).await) });
    }
    for (page, answer) in asking.join_all().await {
        are_whole(
            history,
            &answer.expect(200),
            (page - 1) * history.page_size + 1..=page * history.page_size,
        );
    }

    // Tails: of many owners in one listing, and in one commit of an instance that knows none.
    for owner in 2..=9 {
        append_greatest(&service.client, owner, 1..=history.page_size).await;
    }
    let owners = cold.client.get(&history.owners_path()).await.expect(200);
    let owners = owners["items"].as_array().expect("owners");
    assert_eq!(owners.len(), 9);
    assert!(owners.iter().skip(1).all(|owner| history.totals(owner)[TOTAL] == history.page_size));
    let coldest = service.sibling(shared().await).await;
    let mut appending = JoinSet::new();
    for owner in 1..=9 {
        let client = coldest.client.clone();
        appending.spawn(async move { client.append(owner, &history.item(1_000)).await.expect(201) });
    }
    appending.join_all().await;
    for owner in 2..=9 {
        assert_eq!(coldest.client.total(owner).await, history.page_size + 1);
    }
}

test_over!(what_does_not_fit_into_one_command_is_written_in_several, TRACES);
/// A command of the store stays below 12 MB, of however many owners' items it could be made.
async fn what_does_not_fit_into_one_command_is_written_in_several(history: &'static History) {
    const MOST: usize = 12 * 1000 * 1000;
    let (sent, largest) = tokio::sync::watch::channel(0);
    let mut setup = Setup::on(shared().await).of(history.holding_any());
    setup.config.api.max_body = 64 * 1024 * 1024;
    // Room for all of them at once, in the quarter of one client.
    setup.capacity.queued_bytes = 1024 * 1024 * 1024;
    let setup = setup.observed(move |name, command| {
        if name == "update" {
            let bytes = mongodb::bson::serialize_to_vec(command).expect("a command").len();
            sent.send_modify(|largest: &mut usize| *largest = bytes.max(*largest));
        }
    });
    let service = setup.start().await;
    // Of many owners at once, and of one, over many pages.
    let mut appending = JoinSet::new();
    for owner in 2..=20 {
        let client = service.client.clone();
        appending.spawn(async move { client.append(owner, &greatest(history, 1)).await.expect(201) });
    }
    let total = history.pages(8.0);
    let array: Value = (1..=total).map(|number| greatest(history, number)).collect();
    // On a busy machine it may take longer than a request: then it goes on with the same key.
    let mut appended = service.client.append_once(1, "k", &array).await;
    for _ in 0..10 {
        if appended.status != 503 {
            break;
        }
        appended = service.client.append_once(1, "k", &array).await;
    }
    let appended = appended.expect(201);
    assert_eq!(appended["ranges"], json!([{ "firstSeq": 1, "lastSeq": total }]));
    let again = service.client.append_once(1, "k", &array).await;
    assert_eq!((again.header("idempotency-replayed"), again.expect(201)), ("true", appended));
    appending.join_all().await;
    service.stored(1).await.holds_exactly(1..=total as i64);
    for owner in 2..=20 {
        service.stored(owner).await.holds_exactly([1]);
    }
    let largest = *largest.borrow();
    assert!((2_000_000..=MOST).contains(&largest), "{largest} bytes in one command");
}

test_over!(a_page_beyond_the_cache_is_not_kept, TRACES);
/// It is served, and costs its reading each time.
async fn a_page_beyond_the_cache_is_not_kept(history: &'static History) {
    let mut setup = Setup::on(shared().await).of(history.holding_any());
    (setup.config.api.page_cache, setup.config.api.max_body) = (256 * 1024, 64 * 1024 * 1024);
    let service = setup.start().await;
    append_greatest(&service.client, 1, 1..=history.pages(2.5)).await;
    for _ in 0..3 {
        let answer = service.client.get(&history.at(1, "/pages/1")).await;
        are_whole(history, &answer.expect(200), 1..=history.page_size);
        assert!(!answer.header("server-timing").contains("cache;desc=hit"), "{:?}", answer.headers);
    }
}

test_over!(a_document_that_the_server_finds_too_large_is_refused_once, READINGS);
/// BSONObjectTooLarge and 17419, "resulting document after update is larger than": as its own limits keep the
/// store from causing them, the server is made to say so.
async fn a_document_that_the_server_finds_too_large_is_refused_once(history: &'static History) {
    let mongod = Mongod::failing().await;
    let rig = Rig::on(history, &mongod).await;
    let mut told = vec![rig.append(7, 1, 3, LONG).await];
    for (turn, code) in (1..).zip([10334, 17419]) {
        rig.sent.forget();
        fail(&mongod, "update", doc! { "times": 1 }, doc! { "errorCode": code }).await;
        let refused = rig.append(7, turn * 1_000, 1, LONG).await;
        let Err(error) = &refused.outcome else { panic!("{refused:?}") };
        assert_eq!((error.progress.ranges().len(), error.unknown), (0, 0), "{refused:?}");
        assert_eq!(rig.sent.updates().len(), 1, "it is not replayed");
        told.push(refused);
        told.push(rig.append(7, turn * 1_000 + 1, 1, LONG).await);
        told.last().expect("one").stored();
    }
    assert_eq!(rig.check(told.iter().collect::<Vec<&Told>>()).await.len(), 3 + 2);
    mongod.remove().await;
}
