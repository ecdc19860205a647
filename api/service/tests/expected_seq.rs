//! Appends on a condition: `expectedSeq`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::join_all;
use mongodb::bson::doc;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::race::CLIENTS;
use crate::harness::rig::{fail, heal};
use crate::harness::uploads::upload;
use crate::harness::{
    Answer, Client, Harm, History, Mongod, Proxy, Service, Setup, TOTAL, Way, shared, test_over,
};

const REPLAYED: &str = "idempotency-replayed";

/// Has all of them append `count` items after `total`, half of them under keys, through these instances.
/// Checks that one succeeds and the others are told what the history has then. Returns the key of the one, if
/// it has one.
async fn race(instances: &[&Client], round: u64, total: u64, count: u64) -> Option<String> {
    let first = |number: u64| (round + 1) * 1_000_000 + number * 1_000;
    let key = |number: u64| (number % 2 == round % 2).then(|| format!("{round}-{number}"));
    let answers = join_all((0..CLIENTS).map(async |number| {
        let client = instances[number as usize % instances.len()];
        let items = client.history.items(first(number)..=first(number) + count - 1);
        (number, client.append_after(7, total, key(number).as_deref(), &items).await)
    }))
    .await;
    let (stored, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|(_, answer)| answer.status == 201);
    let [(number, one)] = &stored[..] else { panic!("{} succeed in round {round}", stored.len()) };
    assert_eq!(one.json()["ranges"][0]["firstSeq"], total + 1);
    for (_, refused) in &refused {
        let problem = unexpected(refused);
        // More than that is not there: all others expect the same total.
        let now = problem[TOTAL].as_u64().expect("a total");
        assert!(now > total && now <= total + count, "{problem}");
    }
    key(*number)
}

/// A refusal, with what every one says.
#[track_caller]
fn unexpected(answer: &Answer) -> Value {
    let problem = answer.problem(412, "unexpected-seq");
    assert!(!answer.headers.contains_key("retry-after"), "the same request is refused again: {problem}");
    let detail = problem["detail"].as_str().expect("a text");
    assert!(detail.contains("stored nothing") || detail.contains("Nothing was stored"), "{detail}");
    // Also of a single item.
    assert!(detail.starts_with(&format!("The history's total is {},", problem[TOTAL])), "{detail}");
    problem
}

test_over!(one_of_thirty_two_succeeds, NOTES);
async fn one_of_thirty_two_succeeds(history: &'static History) {
    let service = Service::of(history).await;
    let other = service.sibling(shared().await).await;
    let mut total = 0;
    // One item, at the end of a page and over it; and arrays of several pages.
    let counts = [1, history.page_size - 2, 1, 1, history.pages(2.5), 1, history.pages(1.3)];
    for (round, count) in (0..).zip(counts.into_iter().filter(|count| *count > 0)) {
        let instances = [&service.client, &other.client];
        let key = race(&instances, round, total, count).await;
        total += count;
        assert_eq!(service.stored(7).await.numbers.len() as u64, total, "round {round}");
        // The total is another one by now. What is stored is found nevertheless, and only that.
        if let Some(key) = key {
            let number: u64 = key.split_once('-').expect("two numbers").1.parse().expect("a number");
            let first = (round + 1) * 1_000_000 + number * 1_000;
            let items = history.items(first..=first + count - 1);
            let again = other.client.append_after(7, total - count, Some(&key), &items).await;
            assert_eq!(
                again.expect(201)["ranges"],
                json!([{ "firstSeq": total - count + 1, "lastSeq": total }])
            );
            assert_eq!(again.header(REPLAYED), "true");
        }
    }
}

test_over!(those_that_succeed_among_others_are_where_they_expect, NOTES);
/// Half of them beside appends that expect nothing.
async fn those_that_succeed_among_others_are_where_they_expect(history: &'static History) {
    let service = Service::of(history).await;
    let other = service.sibling(shared().await).await;
    let clients = [&service.client, &other.client];
    let answers = join_all((1..=128_u64).map(async |number| {
        let client = clients[number as usize % 2];
        match number % 4 {
            0 | 1 => (None, client.append(7, &history.item(number)).await),
            _ => {
                let total = client.total(7).await;
                (Some(total), client.append_after(7, total, None, &history.item(number)).await)
            }
        }
    }))
    .await;
    let mut stored = 0;
    for (expected, answer) in &answers {
        match answer.status.as_u16() {
            201 => {
                stored += 1;
                let first = answer.json()["ranges"][0]["firstSeq"].as_u64().expect("a seq");
                assert!(expected.is_none_or(|expected| expected + 1 == first), "{expected:?}: {first}");
            }
            _ => assert!(unexpected(answer)[TOTAL].as_u64() > *expected),
        }
    }
    assert_eq!(service.stored(7).await.numbers.len(), stored);
}

test_over!(one_of_thirty_two_succeeds_whatever_is_lost, TRADES);
/// Lost before the database applies it and after, as a command and as its answer; and the read of the tail.
async fn one_of_thirty_two_succeeds_whatever_is_lost(history: &'static History) {
    let mongod = Mongod::failing().await;
    let proxy = Proxy::before(&mongod).await;
    let one = Setup::at(&proxy.uri()).of(history).start().await;
    let other = one.sibling(&mongod).await;
    let instances = [&one.client, &other.client];
    let concern = doc! { "writeConcernError": { "code": 64, "errmsg": "of the test" } };
    let cut = doc! { "closeConnection": true };
    let mut total = 0;
    for round in 0..10_u64 {
        match round % 5 {
            0 => fail(&mongod, "update", doc! { "times": 2 }, concern.clone()).await,
            1 => fail(&mongod, "update", doc! { "times": 2 }, cut.clone()).await,
            2 => fail(&mongod, "aggregate", doc! { "times": 2 }, cut.clone()).await,
            3 => proxy.harm("update", Way::Back, Harm::Cut, 2),
            _ => proxy.harm("aggregate", Way::Back, Harm::Cut, 2),
        }
        let count = if round % 2 == 0 { 1 } else { history.pages(1.5) };
        race(&instances, round, total, count).await;
        heal(&mongod).await;
        proxy.relent();
        total += count;
        assert_eq!(one.stored(7).await.numbers.len() as u64, total, "round {round}");
    }
    mongod.remove().await;
}

test_over!(a_refusal_is_not_remembered, NOTES);
async fn a_refusal_is_not_remembered(history: &'static History) {
    let service = Service::of(history).await;
    let (client, item) = (&service.client, &history.item(1));
    assert_eq!(unexpected(&client.append_after(1, 2, Some("k"), item).await)[TOTAL], 0);
    client.append(1, &history.items(10..=11)).await.expect(201);
    // The same request, which is judged by what the history has now. What it expects does not make it another
    // request.
    assert_eq!(unexpected(&client.append_after(1, 0, Some("k"), item).await)[TOTAL], 2);
    let stored = client.append_after(1, 2, Some("k"), item).await;
    assert_eq!(stored.expect(201)["ranges"], json!([{ "firstSeq": 3, "lastSeq": 3 }]));
    assert!(!stored.headers.contains_key(REPLAYED));
    for again in [client.append_after(1, 0, Some("k"), item).await, client.append_once(1, "k", item).await] {
        assert_eq!((again.expect(201), again.header(REPLAYED)), (stored.json(), "true"));
    }
    client.append_after(1, 3, Some("k"), &history.item(2)).await.problem(422, "idempotency-key-reused");
    service.stored(1).await.holds_exactly([10, 11, 1]);
}

test_over!(a_greater_total_than_was_read_is_confirmed, NOTES);
/// A client may have seen what a new primary does not know yet that a majority has. So the primary makes sure
/// that it is one.
async fn a_greater_total_than_was_read_is_confirmed(history: &'static History) {
    let confirmed = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&confirmed);
    let setup = Setup::on(shared().await).of(history).observed(move |name, command| {
        let level = command.get_document("readConcern").and_then(|concern| concern.get_str("level"));
        if name == "aggregate" && level.ok() == Some("linearizable") {
            seen.fetch_add(1, Ordering::Relaxed);
        }
    });
    let service = setup.start().await;
    let client = &service.client;
    client.append_after(1, 0, None, &history.item(1)).await.expect(201);
    client.append_after(1, 1, None, &history.item(2)).await.expect(201);
    assert_eq!(unexpected(&client.append_after(1, 1, None, &history.item(3)).await)[TOTAL], 2);
    assert_eq!(confirmed.load(Ordering::Relaxed), 0, "no more was expected than was read");
    for (times, owner, total) in [(1, 1, 2), (2, 2, 0)] {
        assert_eq!(unexpected(&client.append_after(owner, 7, None, &history.item(4)).await)[TOTAL], total);
        assert_eq!(confirmed.load(Ordering::Relaxed), times, "of {owner}");
    }
}

test_over!(bad_input, NOTES);
async fn bad_input(history: &'static History) {
    let service = Service::of(history).await;
    let client = &service.client;
    client.append(1, &history.item(1)).await.expect(201);
    let item = history.item(2).to_string();
    let post = async |path: &str, query: &str| {
        let body = if path == "/batch" { format!("[{item}]") } else { item.clone() };
        client.post_text(&history.at(1, &format!("{path}?{query}")), body).await
    };
    let no_total = "must be a whole number from 0 to 9007199254740991";
    for path in ["", "/batch"] {
        for bad in ["", "-1", "+1", "01", "1.0", "1e0", "one", "null", "9007199254740992", "%201", "1%00"] {
            let problem = post(path, &format!("expectedSeq={bad}")).await.problem(400, "invalid-parameter");
            assert_eq!(problem["errors"].as_array().map(Vec::len), Some(1), "{bad}: {problem}");
            assert_eq!(problem["errors"][0]["parameter"], "expectedSeq", "{bad}: {problem}");
            let detail = problem["errors"][0]["detail"].as_str().expect("a text");
            assert!(detail.starts_with(no_total), "{bad}: {detail}");
        }
        for query in ["expectedSeq=1&expectedSeq=1", "expectedseq=1", "expectedSeq", "expectedSeq=1&after=0"]
        {
            post(path, query).await.problem(400, "invalid-parameter");
        }
        // The greatest number is a total, which no history has.
        assert_eq!(unexpected(&post(path, "expectedSeq=9007199254740991").await)[TOTAL], 1);
    }
    // A bad item is no matter of the total.
    let path = history.at(1, "?expectedSeq=0");
    client.post_text(&path, "{").await.problem(400, "malformed-json");
    client.post_text(&path, "[]").await.problem(422, crate::harness::INVALID_ITEM);
    upload(client, &path, item.clone()).await.problem(415, "unsupported-media-type");
    // Lines are stored as they arrive: there is no first item of all.
    for uploads in [history.uploads(1), format!("{}.ndjson", history.uploads(1))] {
        let refused = upload(client, &format!("{uploads}?expectedSeq=1"), item.clone()).await;
        let problem = refused.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"].as_array().map(Vec::len), Some(1), "{problem}");
        assert_eq!(problem["errors"][0]["parameter"], "expectedSeq");
        let detail = problem["errors"][0]["detail"].as_str().expect("a text");
        assert!(detail.starts_with("is not supported by uploads"), "{detail}");
    }
    for (method, path) in [
        (Method::GET, history.at(1, "?expectedSeq=1")),
        (Method::POST, "/v1/page-views?expectedSeq=1".to_owned()),
        (Method::POST, "/v1/page-views/batch?expectedSeq=1".to_owned()),
    ] {
        let view = json!({ "path": "/index.htm" }).to_string();
        let with =
            |request: reqwest::RequestBuilder| request.header("content-type", "application/json").body(view);
        let problem = client.send(method, &path, with).await.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], "expectedSeq", "{problem}");
    }
    service.stored(1).await.holds_exactly([1]);
    for (path, total) in [("", 1), ("/batch", 2)] {
        post(path, &format!("expectedSeq={total}")).await.expect(201);
    }
}
