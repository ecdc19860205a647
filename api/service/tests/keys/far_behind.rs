//! An instance that knows an old tail, behind which another hand has written a long history.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::bson::{Document, doc};
use serde_json::{Value, json};

use super::{REPLAYED, let_items_fail};
use crate::harness::{
    Client, Harm, History, Nth, Proxy, Service, Setup, Way, fill_pages, shared, spawn, test_over,
};

/// Longer than an append takes that waits for no search.
const UNHINDERED: Duration = Duration::from_secs(20);

/// More pages than are looked at inside of a commit.
const PAGES: u64 = 1_000;

/// Appends a full page to owner 1, of which more pages can be written directly.
async fn first_page(client: &Client) {
    let history = client.history;
    let page: Value =
        (1..=history.page_size).map(|number| history.item_at(number, "2004-01-09T00:00:00Z")).collect();
    client.append(1, &page).await.expect(201);
}

/// `from` of the one record that there is.
async fn from(service: &Service) -> i64 {
    let records = service.database.collection::<Document>("idempotency_keys");
    let record = records.find_one(doc! {}).await.expect("an answer").expect("a record");
    record.get_i64("from").expect("from")
}

/// The first pages of the look-ups of a service.
type LookUps = Arc<Mutex<Vec<i64>>>;

async fn watched(setup: Setup) -> (Service, LookUps) {
    let look_ups = LookUps::default();
    let (watch, history) = (Arc::clone(&look_ups), setup.history);
    let setup = setup.observed(move |name, command| {
        if name == "find" && command.get_str(name).is_ok_and(|collection| collection == history.name) {
            let page = command.get_document("filter").and_then(|filter| filter.get_document("page"));
            let first = page.and_then(|page| page.get_i64("$gte")).expect("a look-up");
            watch.lock().expect("no test panics here").push(first);
        }
    });
    (setup.start().await, look_ups)
}

test_over!(what_no_other_attempt_has_found_needs_no_search, NOTES);
async fn what_no_other_attempt_has_found_needs_no_search(history: &'static History) {
    let (service, look_ups) = watched(Setup::on(shared().await).of(history)).await;
    first_page(&service.client).await;
    let total = (PAGES - 1) * history.page_size + 1;
    fill_pages(&service.database, history, 1, 2..=PAGES, 1).await;
    let items = history.items(1_000_000..=1_000_001);
    let body = service.client.append_once(1, "k", &items).await.expect(201);
    assert_eq!(body["ranges"], json!([{ "firstSeq": total + 1, "lastSeq": total + 2 }]));
    assert_eq!(*look_ups.lock().expect("no test panics here"), [0_i64; 0]);
    assert_eq!(from(&service).await, total as i64);
    let again = service.client.append_once(1, "k", &items).await;
    assert_eq!((again.expect(201), again.header(REPLAYED)), (body, "true"));
    service.stored(1).await.holds_exactly((1..=total as i64).chain([1_000_000, 1_000_001]));
}

test_over!(a_long_search_keeps_nobody_waiting, NOTES);
/// The search of an attempt whose record another attempt has found: all of the history is looked at.
async fn a_long_search_keeps_nobody_waiting(history: &'static History) {
    let wire = Proxy::before(shared().await).await;
    let service = Setup::at(&wire.uri()).of(history).start().await;
    let other = service.sibling(shared().await).await;
    first_page(&service.client).await;
    fill_pages(&service.database, history, 1, 2..=PAGES, history.page_size).await;
    let keyed = history.item(1_000_000);
    wire.harm(history.command("update"), Way::There, Harm::Hold, 1);
    let attempt = {
        let (client, keyed) = (service.client.clone(), keyed.clone());
        spawn(async move { client.append_once(1, "k", &keyed).await })
    };
    wire.struck(1).await;
    // Its append waits on the wire; it will be refused.
    let first = other.client.append_once(1, "k", &keyed).await.expect(201);
    // Of the same customer and of others, in the commit in which it is tried again.
    let others: Vec<_> = (1..=16)
        .map(|customer| {
            let client = service.client.clone();
            spawn(async move { client.append(customer, &history.item(2_000_000)).await })
        })
        .collect();
    wire.relent_but(history.command("find"), Way::Back, Harm::Hold, 1);
    wire.struck(2).await;
    let answers =
        tokio::time::timeout(UNHINDERED, join_all(others)).await.expect("nobody waits for the search");
    for answer in answers {
        answer.expect("no panic").expect(201);
    }
    assert!(!attempt.is_finished(), "its search is held");
    wire.relent();
    let answer = attempt.await.expect("no panic");
    assert_eq!((answer.expect(201), answer.header(REPLAYED)), (first, "true"));
    service
        .stored(1)
        .await
        .holds_exactly((1..=(PAGES * history.page_size) as i64).chain([1_000_000, 2_000_000]));
}

test_over!(a_repeat_searches_on_where_the_attempt_before_has_come_to, NOTES);
async fn a_repeat_searches_on_where_the_attempt_before_has_come_to(history: &'static History) {
    // More than are looked at before it is kept how far that was.
    const PAGES: u64 = 9_000;
    let wire = Proxy::before(shared().await).await;
    let service = Setup::at(&wire.uri()).of(history).start().await;
    first_page(&service.client).await;
    let keyed = history.item(1_000_000);
    let_items_fail(&service, true).await;
    service.client.append_once(1, "k", &keyed).await.problem(500, "internal");
    let_items_fail(&service, false).await;
    fill_pages(&service.database, history, 1, 2..=PAGES, history.page_size).await;
    assert_eq!(from(&service).await, history.page_size as i64);
    // An attempt that comes to no end.
    wire.harm_nth(Nth(history.command("find"), 10), Way::Back, Harm::Hold);
    let attempt = {
        let (client, keyed) = (service.client.clone(), keyed.clone());
        spawn(async move { client.append_once(1, "k", &keyed).await })
    };
    wire.struck(1).await;
    let kept = from(&service).await;
    assert!(kept > history.page_size as i64, "{kept}");
    let other = Setup::on(shared().await).of(history).in_database(&service.database);
    let (other, look_ups) = watched(other).await;
    let first = other.client.append_once(1, "k", &keyed).await.expect(201);
    let next = PAGES * history.page_size + 1;
    assert_eq!(first["ranges"], json!([{ "firstSeq": next, "lastSeq": next }]));
    assert_eq!(
        look_ups.lock().expect("no test panics here").first(),
        Some(&(kept / history.page_size as i64 + 1))
    );
    wire.relent();
    let answer = attempt.await.expect("no panic");
    assert_eq!((answer.expect(201), answer.header(REPLAYED)), (first, "true"));
    service.stored(1).await.holds_exactly((1..=(PAGES * history.page_size) as i64).chain([1_000_000]));
}
