//! Requests with an `Idempotency-Key`, sent again.

mod asleep;
mod far_behind;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::bson::{Bson, Document, doc};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    Answer, Client, Harm, Proxy, Service, Setup, Way, eventually, history, shared, tests, trade, trade_at,
};

tests!["keys":
    sent_again_it_is_answered_the_same,
    an_array_over_several_pages_is_stored_once,
    a_later_trade_does_not_hide_an_earlier_attempt,
    another_body_under_the_same_key_is_refused,
    a_key_belongs_to_one_customer,
    a_malformed_key_is_refused,
    eight_at_once_through_two_instances,
    a_request_cut_off_after_its_record_is_completed,
    a_request_cut_off_between_two_pages_is_completed,
    a_repeat_with_too_little_time_left_stores_nothing,
    what_a_key_costs,
    a_record_lives_from_its_last_use,
];

const REPLAYED: &str = "idempotency-replayed";

async fn send(client: &Client, customer: u64, key: &str, trades: &Value) -> Answer {
    client
        .send(Method::POST, &format!("/v1/customers/{customer}/trades"), |request| {
            let request = request.header("content-type", "application/json").header("idempotency-key", key);
            request.body(trades.to_string())
        })
        .await
}

fn many(first: u64, count: u64) -> Value {
    (first..first + count).map(trade).collect()
}

async fn sent_again_it_is_answered_the_same() {
    let service = Service::start().await;
    let first = send(&service.client, 1, "k-1", &trade(5)).await;
    let body = first.expect(201);
    assert!(!first.headers.contains_key(REPLAYED), "the first has stored it");
    // Through another instance, after it: nothing is in a memory only.
    let other = service.sibling(shared().await).await;
    for client in [&other.client, &service.client, &other.client] {
        let again = send(client, 1, "k-1", &trade(5)).await;
        assert_eq!(again.expect(201), body, "ranges, totals and date");
        assert_eq!(again.header(REPLAYED), "true");
        assert_eq!(again.header("location"), first.header("location"));
    }
    assert_eq!(history(&service.database, 1).await.quantities, [5]);
    // One trade, or an array of it: the same request.
    let array = send(&service.client, 1, "k-1", &json!([trade(5)])).await;
    assert_eq!((array.expect(201), array.header(REPLAYED)), (body, "true"));
}

async fn an_array_over_several_pages_is_stored_once() {
    let service = Service::start().await;
    service.client.append(1, &many(1, 7)).await.expect(201);
    let body = send(&service.client, 1, "k", &many(100, 25)).await.expect(201);
    assert_eq!(body["ranges"], json!([{ "firstSeq": 8, "lastSeq": 32 }]));
    let again = send(&service.client, 1, "k", &many(100, 25)).await;
    assert_eq!((again.expect(201), again.header(REPLAYED)), (body, "true"));
    history(&service.database, 1).await.holds_exactly((1..=7).chain(100..125));
}

async fn a_later_trade_does_not_hide_an_earlier_attempt() {
    let service = Service::start().await;
    let body = send(&service.client, 1, "early", &many(1, 3)).await.expect(201);
    // More than are read at a time when the trades are looked for.
    for turn in 0..2 {
        service.client.append(1, &many(1_000 + turn * 1_000, 1_000)).await.expect(201);
    }
    let later = service.sibling(shared().await).await;
    let again = send(&later.client, 1, "early", &many(1, 3)).await;
    assert_eq!((again.expect(201), again.header(REPLAYED)), (body, "true"));
    assert_eq!(history(&service.database, 1).await.quantities.len(), 2_003);
}

async fn another_body_under_the_same_key_is_refused() {
    let service = Service::start().await;
    send(&service.client, 1, "k", &trade(5)).await.expect(201);
    let dated = trade_at(5, "2026-01-01T00:00:00Z");
    for other in [trade(6), many(5, 2), dated] {
        let problem = send(&service.client, 1, "k", &other).await.problem(422, "idempotency-key-reused");
        assert!(problem["detail"].as_str().unwrap().contains("This request stored nothing."), "{problem}");
    }
    assert_eq!(history(&service.database, 1).await.quantities, [5]);
    // What is refused before anything is stored leaves the key free.
    send(&service.client, 1, "other", &json!({ "type": "hold" })).await.problem(422, "invalid-trade");
    send(&service.client, 1, "other", &trade(7)).await.expect(201);
}

async fn a_key_belongs_to_one_customer() {
    let service = Service::start().await;
    for customer in [1, 2, 12] {
        let answer = send(&service.client, customer, "same", &trade(customer)).await;
        answer.expect(201);
        assert!(!answer.headers.contains_key(REPLAYED));
        assert_eq!(history(&service.database, customer).await.quantities, [customer as i64]);
    }
}

async fn a_malformed_key_is_refused() {
    let service = Service::start().await;
    let longest = "k".repeat(255);
    send(&service.client, 1, &longest, &trade(1)).await.expect(201);
    for key in ["", "a b", "schl\u{fc}ssel", &"k".repeat(256)] {
        let problem = send(&service.client, 1, key, &trade(1)).await.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], "Idempotency-Key", "{problem}");
    }
    let twice = service.client.send(Method::POST, "/v1/customers/1/trades", |request| {
        let request = request.header("content-type", "application/json").body(trade(1).to_string());
        request.header("idempotency-key", "a").header("idempotency-key", "b")
    });
    twice.await.problem(400, "invalid-parameter");
    assert_eq!(history(&service.database, 1).await.quantities, [1]);
}

async fn eight_at_once_through_two_instances() {
    let service = Service::start().await;
    let sibling = service.sibling(shared().await).await;
    for round in 1..=20_u64 {
        // Beside a writer without a key, and over a page's end.
        let trades = many(round * 100, 4);
        let attempts = (0..8).map(|attempt| {
            let client = if attempt % 2 == 0 { &service.client } else { &sibling.client };
            let (key, trades) = (format!("round-{round}"), &trades);
            async move { send(client, 1, &key, trades).await }
        });
        let beside = trade(round);
        let (answers, other) = tokio::join!(join_all(attempts), service.client.append(1, &beside));
        other.expect(201);
        let bodies: Vec<Value> = answers.iter().map(|answer| answer.expect(201)).collect();
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
        let stored = answers.iter().filter(|answer| !answer.headers.contains_key(REPLAYED)).count();
        assert!(stored >= 1, "somebody has stored it");
    }
    let expected = (1..=20).flat_map(|round| (round * 100..round * 100 + 4).chain([round]));
    history(&service.database, 1).await.holds_exactly(expected);
}

/// A service whose trades the database refuses to take while `refusing`.
async fn let_trades_fail(service: &Service, refusing: bool) {
    // The validator is the server's own way to refuse: no trade is allowed beyond this page.
    let pages = if refusing {
        doc! { "$lte": 1_i64 }
    } else {
        doc! { "$gte": 0_i64 }
    };
    let validator = doc! { "page": pages };
    let command = doc! { "collMod": "trades", "validator": validator };
    service.database.run_command(command).await.expect("another validator");
}

async fn a_request_cut_off_after_its_record_is_completed() {
    let service = Service::start().await;
    service.client.append(1, &many(1, 10)).await.expect(201);
    let_trades_fail(&service, true).await;
    let failed = send(&service.client, 1, "k", &trade(77)).await.problem(500, "internal");
    assert!(failed["detail"].as_str().unwrap().contains("same `Idempotency-Key`"), "{failed}");
    let_trades_fail(&service, false).await;
    // Somebody else comes between.
    service.client.append(1, &trade(11)).await.expect(201);
    let completed = send(&service.client, 1, "k", &trade(77)).await;
    assert_eq!(completed.expect(201)["ranges"], json!([{ "firstSeq": 12, "lastSeq": 12 }]));
    assert!(!completed.headers.contains_key(REPLAYED), "this one has stored it");
    history(&service.database, 1).await.holds_exactly((1..=11).chain([77]));
}

async fn a_request_cut_off_between_two_pages_is_completed() {
    let service = Service::start().await;
    service.client.append(1, &many(1, 5)).await.expect(201);
    let_trades_fail(&service, true).await;
    let failed = send(&service.client, 1, "k", &many(100, 12)).await.problem(503, "partly-stored");
    assert_eq!(failed["ranges"], json!([{ "firstSeq": 6, "lastSeq": 10 }]));
    let_trades_fail(&service, false).await;
    service.client.append(1, &trade(6)).await.expect(201);
    let completed = send(&service.client, 1, "k", &many(100, 12)).await;
    let ranges = json!([{ "firstSeq": 6, "lastSeq": 10 }, { "firstSeq": 12, "lastSeq": 18 }]);
    let body = completed.expect(201);
    assert_eq!(body["ranges"], ranges);
    assert!(!completed.headers.contains_key(REPLAYED), "it has stored the rest");
    let again = send(&service.client, 1, "k", &many(100, 12)).await;
    assert_eq!((again.expect(201), again.header(REPLAYED)), (body, "true"));
    history(&service.database, 1).await.holds_exactly((1..=6).chain(100..112));
}

/// Its look-up has used up the time that a commit needs.
async fn a_repeat_with_too_little_time_left_stores_nothing() {
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::on(shared().await);
    setup.connection.uri = proxy.uri();
    setup.capacity.commit_time = Duration::from_secs(28);
    let service = setup.start().await;
    service.client.append(1, &many(1, 10)).await.expect(201);
    let_trades_fail(&service, true).await;
    send(&service.client, 1, "k", &trade(77)).await.problem(500, "internal");
    let_trades_fail(&service, false).await;
    proxy.harm("find trades", Way::There, Harm::Hold, 1);
    let trade = trade(77);
    let (late, ()) = tokio::join!(send(&service.client, 1, "k", &trade), async {
        proxy.struck(1).await;
        // The look-up itself, which is to take long: nothing is waited for.
        tokio::time::sleep(Duration::from_secs(6)).await;
        proxy.relent();
    });
    let problem = late.problem(503, "overloaded");
    assert!(problem["detail"].as_str().unwrap().contains("This request stored nothing."), "{problem}");
    assert_eq!(late.header("retry-after"), "1");
    assert_eq!(history(&service.database, 1).await.quantities.len(), 10);
    send(&service.client, 1, "k", &trade).await.expect(201);
    history(&service.database, 1).await.holds_exactly((1..=10).chain([77]));
}

/// Commands by name and collection.
type Seen = Arc<Mutex<Vec<String>>>;

fn take(seen: &Seen) -> Vec<String> {
    std::mem::take(&mut *seen.lock().expect("no test panics here"))
}

/// Without a key nothing; with one a record more; sent again, the record and, once, the trades.
async fn what_a_key_costs() {
    let seen = Seen::default();
    let watch = Arc::clone(&seen);
    let setup = Setup::on(shared().await).observed(move |name, command| {
        if let Some(Bson::String(collection)) = command.get(name)
            && ["trades", "idempotency_keys"].contains(&collection.as_str())
        {
            watch.lock().expect("no test panics here").push(format!("{name} {collection}"));
        }
    });
    let service = setup.start().await;
    service.client.append(1, &trade(1)).await.expect(201);
    take(&seen);
    service.client.append(1, &trade(2)).await.expect(201);
    assert_eq!(take(&seen), ["update trades"]);
    send(&service.client, 1, "k", &trade(3)).await.expect(201);
    assert_eq!(take(&seen), ["insert idempotency_keys", "update trades"]);
    send(&service.client, 1, "k", &trade(3)).await.expect(201);
    let found = ["insert idempotency_keys", "update idempotency_keys", "find idempotency_keys"];
    assert_eq!(take(&seen), [&found[..], &["find trades", "update idempotency_keys"]].concat());
    send(&service.client, 1, "k", &trade(3)).await.expect(201);
    assert_eq!(take(&seen), found);
    // A tail that is not known is read once, for both.
    send(&service.client, 2, "k", &trade(4)).await.expect(201);
    assert_eq!(take(&seen), ["aggregate trades", "insert idempotency_keys", "update trades"]);
}

async fn a_record_lives_from_its_last_use() {
    let service = Service::start().await;
    let records = service.database.collection::<Document>("idempotency_keys");
    let touched = async || {
        let record = records.find_one(doc! {}).await.expect("an answer").expect("a record");
        *record.get_datetime("touched").expect("a date")
    };
    send(&service.client, 1, "k", &trade(1)).await.expect(201);
    let first = touched().await;
    // The server's clock has milliseconds.
    eventually("a repeat touches the record", Duration::from_secs(10), async || {
        send(&service.client, 1, "k", &trade(1)).await.expect(201);
        touched().await > first
    })
    .await;
}
