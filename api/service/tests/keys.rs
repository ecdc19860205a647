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
    Harm, History, INVALID_ITEM, Proxy, Service, Setup, Way, eventually, shared, test_over, trade,
};

const REPLAYED: &str = "idempotency-replayed";

test_over!(sent_again_it_is_answered_the_same, NOTES);
async fn sent_again_it_is_answered_the_same(history: &'static History) {
    let service = Service::of(history).await;
    let first = service.client.append_once(1, "k-1", &history.item(5)).await;
    let body = first.expect(201);
    assert!(!first.headers.contains_key(REPLAYED), "the first has stored it");
    // Through another instance, after it: nothing is in a memory only.
    let other = service.sibling(shared().await).await;
    for client in [&other.client, &service.client, &other.client] {
        let again = client.append_once(1, "k-1", &history.item(5)).await;
        assert_eq!(again.expect(201), body, "ranges, totals and date");
        assert_eq!(again.header(REPLAYED), "true");
        assert_eq!(again.header("location"), first.header("location"));
    }
    assert_eq!(service.stored(1).await.numbers, [5]);
    // One trade, or an array of it: the same request.
    let array = service.client.append_once(1, "k-1", &json!([history.item(5)])).await;
    assert_eq!((array.expect(201), array.header(REPLAYED)), (body.clone(), "true"));
    // Also at the address of arrays, and from there.
    let batch = async |key: &str, items: &Value| {
        let text = items.to_string();
        let with = |request: reqwest::RequestBuilder| {
            request.header("content-type", "application/json").header("idempotency-key", key).body(text)
        };
        service.client.send(Method::POST, &history.at(1, "/batch"), with).await
    };
    let again = batch("k-1", &json!([history.item(5)])).await;
    assert_eq!((again.expect(201), again.header(REPLAYED)), (body, "true"));
    batch("k-1", &history.items(5..=6)).await.problem(422, "idempotency-key-reused");
    let first = batch("k-2", &json!([history.item(6)])).await.expect(201);
    let again = service.client.append_once(1, "k-2", &history.item(6)).await;
    assert_eq!((again.expect(201), again.header(REPLAYED)), (first, "true"));
    assert_eq!(service.stored(1).await.numbers, [5, 6]);
}

test_over!(an_array_over_several_pages_is_stored_once, ALL);
async fn an_array_over_several_pages_is_stored_once(history: &'static History) {
    let service = Service::of(history).await;
    let (before, count) = (history.pages(0.7), history.pages(2.5));
    service.client.append(1, &history.items(1..=before)).await.expect(201);
    let items = history.items(1_000..=999 + count);
    let body = service.client.append_once(1, "k", &items).await.expect(201);
    assert_eq!(body["ranges"], json!([{ "firstSeq": before + 1, "lastSeq": before + count }]));
    let again = service.client.append_once(1, "k", &items).await;
    assert_eq!((again.expect(201), again.header(REPLAYED)), (body, "true"));
    service.stored(1).await.holds_exactly((1..=before as i64).chain(1_000..1_000 + count as i64));
}

test_over!(a_later_item_does_not_hide_an_earlier_attempt, ALL);
async fn a_later_item_does_not_hide_an_earlier_attempt(history: &'static History) {
    let service = Service::of(history).await;
    let body = service.client.append_once(1, "early", &history.items(1..=3)).await.expect(201);
    // More than are read at a time when the trades are looked for.
    for turn in 0..2 {
        service.client.append_all(1, 1_000 + turn * 1_000..=1_999 + turn * 1_000).await;
    }
    let later = service.sibling(shared().await).await;
    let again = later.client.append_once(1, "early", &history.items(1..=3)).await;
    assert_eq!((again.expect(201), again.header(REPLAYED)), (body, "true"));
    assert_eq!(service.stored(1).await.numbers.len(), 2_003);
}

test_over!(another_body_under_the_same_key_is_refused, ALL);
async fn another_body_under_the_same_key_is_refused(history: &'static History) {
    let service = Service::of(history).await;
    service.client.append_once(1, "k", &history.item(5)).await.expect(201);
    let dated = history.item_at(5, "2026-01-01T00:00:00Z");
    for other in [history.item(6), history.items(5..=6), dated] {
        let problem = service.client.append_once(1, "k", &other).await.problem(422, "idempotency-key-reused");
        assert!(problem["detail"].as_str().unwrap().contains("This request stored nothing."), "{problem}");
    }
    assert_eq!(service.stored(1).await.numbers, [5]);
    // What is refused before anything is stored leaves the key free.
    service.client.append_once(1, "other", &json!({})).await.problem(422, INVALID_ITEM);
    service.client.append_once(1, "other", &history.item(7)).await.expect(201);
}

test_over!(a_key_belongs_to_one_owner, SMALL);
async fn a_key_belongs_to_one_owner(history: &'static History) {
    let service = Service::of(history).await;
    for customer in [1, 2, 12] {
        let answer = service.client.append_once(customer, "same", &history.item(customer)).await;
        answer.expect(201);
        assert!(!answer.headers.contains_key(REPLAYED));
        assert_eq!(service.stored(customer).await.numbers, [customer as i64]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_key_is_refused() {
    let service = Service::start().await;
    let longest = "k".repeat(255);
    service.client.append_once(1, &longest, &trade(1)).await.expect(201);
    for key in ["", "a b", "schl\u{fc}ssel", &"k".repeat(256)] {
        let problem = service.client.append_once(1, key, &trade(1)).await.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], "Idempotency-Key", "{problem}");
    }
    let twice = service.client.send(Method::POST, "/v1/customers/1/trades", |request| {
        let request = request.header("content-type", "application/json").body(trade(1).to_string());
        request.header("idempotency-key", "a").header("idempotency-key", "b")
    });
    twice.await.problem(400, "invalid-parameter");
    assert_eq!(service.stored(1).await.numbers, [1]);
}

test_over!(eight_at_once_through_two_instances, NOTES);
async fn eight_at_once_through_two_instances(history: &'static History) {
    let service = Service::of(history).await;
    let sibling = service.sibling(shared().await).await;
    for round in 1..=20_u64 {
        // Beside a writer without a key, and over a page's end.
        let items = history.items(round * 100..=round * 100 + 3);
        let attempts = (0..8).map(|attempt| {
            let client = if attempt % 2 == 0 { &service.client } else { &sibling.client };
            let (key, items) = (format!("round-{round}"), &items);
            async move { client.append_once(1, &key, items).await }
        });
        let beside = history.item(round);
        let (answers, other) = tokio::join!(join_all(attempts), service.client.append(1, &beside));
        other.expect(201);
        let bodies: Vec<Value> = answers.iter().map(|answer| answer.expect(201)).collect();
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
        let stored = answers.iter().filter(|answer| !answer.headers.contains_key(REPLAYED)).count();
        assert!(stored >= 1, "somebody has stored it");
    }
    let expected = (1..=20).flat_map(|round| (round * 100..round * 100 + 4).chain([round]));
    service.stored(1).await.holds_exactly(expected);
}

/// Makes the database refuse every item beyond the first page while `refusing`.
async fn let_items_fail(service: &Service, refusing: bool) {
    // The validator is the server's own way to refuse.
    let pages = if refusing {
        doc! { "$lte": 1_i64 }
    } else {
        doc! { "$gte": 0_i64 }
    };
    let validator = doc! { "page": pages };
    let command = doc! { "collMod": service.history.name, "validator": validator };
    service.database.run_command(command).await.expect("another validator");
}

test_over!(a_request_cut_off_after_its_record_is_completed, NOTES);
async fn a_request_cut_off_after_its_record_is_completed(history: &'static History) {
    let service = Service::of(history).await;
    let page = history.page_size;
    service.client.append(1, &history.items(1..=page)).await.expect(201);
    let_items_fail(&service, true).await;
    let failed = service.client.append_once(1, "k", &history.item(777)).await.problem(500, "internal");
    assert!(failed["detail"].as_str().unwrap().contains("same `Idempotency-Key`"), "{failed}");
    let_items_fail(&service, false).await;
    // Somebody else comes between.
    service.client.append(1, &history.item(page + 1)).await.expect(201);
    let completed = service.client.append_once(1, "k", &history.item(777)).await;
    let ranges = json!([{ "firstSeq": page + 2, "lastSeq": page + 2 }]);
    assert_eq!(completed.expect(201)["ranges"], ranges);
    assert!(!completed.headers.contains_key(REPLAYED), "this one has stored it");
    service.stored(1).await.holds_exactly((1..=page as i64 + 1).chain([777]));
}

test_over!(a_request_cut_off_between_two_pages_is_completed, SMALL);
async fn a_request_cut_off_between_two_pages_is_completed(history: &'static History) {
    let service = Service::of(history).await;
    let (page, before, count) = (history.page_size, history.pages(0.5), history.pages(1.2).max(2));
    let items = history.items(1_000..=999 + count);
    service.client.append(1, &history.items(1..=before)).await.expect(201);
    let_items_fail(&service, true).await;
    let failed =
        service.client.append_after(1, before, Some("k"), &items).await.problem(503, "partly-stored");
    assert_eq!(failed["ranges"], json!([{ "firstSeq": before + 1, "lastSeq": page }]));
    let_items_fail(&service, false).await;
    service.client.append(1, &history.item(before + 1)).await.expect(201);
    // Though the history has another total by now.
    let completed = service.client.append_after(1, before, Some("k"), &items).await;
    let last = before + count + 1;
    let ranges = json!([
        { "firstSeq": before + 1, "lastSeq": page }, { "firstSeq": page + 2, "lastSeq": last }
    ]);
    let body = completed.expect(201);
    assert_eq!(body["ranges"], ranges);
    assert!(!completed.headers.contains_key(REPLAYED), "it has stored the rest");
    let again = service.client.append_once(1, "k", &items).await;
    assert_eq!((again.expect(201), again.header(REPLAYED)), (body, "true"));
    service.stored(1).await.holds_exactly((1..=before as i64 + 1).chain(1_000..1_000 + count as i64));
}

test_over!(a_repeat_with_too_little_time_left_stores_nothing, NOTES);
/// Its look-up has used up the time that a commit needs.
async fn a_repeat_with_too_little_time_left_stores_nothing(history: &'static History) {
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::at(&proxy.uri()).of(history);
    setup.capacity.commit_time = Duration::from_secs(28);
    let service = setup.start().await;
    let page = history.page_size;
    service.client.append(1, &history.items(1..=page)).await.expect(201);
    let_items_fail(&service, true).await;
    service.client.append_once(1, "k", &history.item(777)).await.problem(500, "internal");
    let_items_fail(&service, false).await;
    proxy.harm(history.command("find"), Way::There, Harm::Hold, 1);
    let item = history.item(777);
    let (late, ()) = tokio::join!(service.client.append_once(1, "k", &item), async {
        proxy.struck(1).await;
        // The look-up itself, which is to leave too little time for a commit: nothing is waited for.
        tokio::time::sleep(Duration::from_secs(6)).await;
        proxy.relent();
    });
    let problem = late.problem(503, "overloaded");
    assert!(problem["detail"].as_str().unwrap().contains("This request stored nothing."), "{problem}");
    assert_eq!(late.header("retry-after"), "1");
    assert_eq!(service.stored(1).await.numbers.len() as u64, page);
    service.client.append_once(1, "k", &item).await.expect(201);
    service.stored(1).await.holds_exactly((1..=page as i64).chain([777]));
}

/// Commands by name and collection.
type Seen = Arc<Mutex<Vec<String>>>;

fn take(seen: &Seen) -> Vec<String> {
    std::mem::take(&mut *seen.lock().expect("no test panics here"))
}

test_over!(what_a_key_costs, NOTES);
/// Without a key nothing; with one a record more; sent again, the record and, once, the items.
async fn what_a_key_costs(history: &'static History) {
    let seen = Seen::default();
    let watch = Arc::clone(&seen);
    let setup = Setup::on(shared().await).of(history).observed(move |name, command| {
        if let Some(Bson::String(collection)) = command.get(name)
            && [history.name, "idempotency_keys"].contains(&collection.as_str())
        {
            watch.lock().expect("no test panics here").push(format!("{name} {collection}"));
        }
    });
    let service = setup.start().await;
    service.client.append(1, &history.item(1)).await.expect(201);
    take(&seen);
    service.client.append(1, &history.item(2)).await.expect(201);
    assert_eq!(take(&seen), [history.command("update")]);
    service.client.append_once(1, "k", &history.item(3)).await.expect(201);
    assert_eq!(take(&seen), ["insert idempotency_keys", &history.command("update")]);
    service.client.append_once(1, "k", &history.item(3)).await.expect(201);
    let found = ["insert idempotency_keys", "update idempotency_keys", "find idempotency_keys"];
    assert_eq!(take(&seen), [&found[..], &[&history.command("find"), "update idempotency_keys"]].concat());
    service.client.append_once(1, "k", &history.item(3)).await.expect(201);
    assert_eq!(take(&seen), found);
    // A tail that is not known is read once, for both.
    service.client.append_once(2, "k", &history.item(4)).await.expect(201);
    assert_eq!(
        take(&seen),
        [&history.command("aggregate"), "insert idempotency_keys", &history.command("update")]
    );
}

test_over!(a_record_lives_from_its_last_use, NOTES);
async fn a_record_lives_from_its_last_use(history: &'static History) {
    let service = Service::of(history).await;
    let records = service.database.collection::<Document>("idempotency_keys");
    let touched = async || {
        let record = records.find_one(doc! {}).await.expect("an answer").expect("a record");
        *record.get_datetime("touched").expect("a date")
    };
    service.client.append_once(1, "k", &history.item(1)).await.expect(201);
    let first = touched().await;
    // The server's clock has milliseconds.
    eventually("a repeat touches the record", Duration::from_secs(10), async || {
        service.client.append_once(1, "k", &history.item(1)).await.expect(201);
        touched().await > first
    })
    .await;
}
