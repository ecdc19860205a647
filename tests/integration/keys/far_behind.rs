//! An instance that knows an old tail, behind which another hand has written a long history.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::bson::{Document, doc};
use serde_json::{Value, json};

use super::{REPLAYED, let_trades_fail, many, send};
use crate::harness::{
    Client, Harm, Nth, Proxy, Service, Setup, Way, fill_pages, history, shared, tests, trade, trade_at,
};

tests!["keys::far_behind":
    what_no_other_attempt_has_found_needs_no_search,
    a_long_search_keeps_nobody_waiting,
    a_repeat_searches_on_where_the_attempt_before_has_come_to,
];

/// Longer than anything here takes on a slow machine; only a failure waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

/// More pages than are looked at inside of a commit.
const PAGES: i64 = 1_000;

/// Appends a full page to customer 1, of which more pages can be written directly.
async fn first_page(client: &Client) {
    let page: Value = (1..=10).map(|qty| trade_at(qty, "2004-01-09T00:00:00Z")).collect();
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

async fn watched(mut setup: Setup, database: Option<&str>) -> (Service, LookUps) {
    let look_ups = LookUps::default();
    let watch = Arc::clone(&look_ups);
    if let Some(database) = database {
        setup.connection.database = database.to_owned();
    }
    let setup = setup.observed(move |name, command| {
        if name == "find" && command.get_str(name).is_ok_and(|collection| collection == "trades") {
            let page = command.get_document("filter").and_then(|filter| filter.get_document("page"));
            let first = page.and_then(|page| page.get_i64("$gte")).expect("a look-up");
            watch.lock().expect("no test panics here").push(first);
        }
    });
    (setup.start().await, look_ups)
}

async fn what_no_other_attempt_has_found_needs_no_search() {
    let (service, look_ups) = watched(Setup::on(shared().await), None).await;
    first_page(&service.client).await;
    fill_pages(&service.database, 1, 2..=PAGES, 3).await;
    let total = PAGES * 10 - 7;
    let body = send(&service.client, 1, "k", &many(1_000_000, 2)).await.expect(201);
    assert_eq!(body["ranges"], json!([{ "firstSeq": total + 1, "lastSeq": total + 2 }]));
    assert_eq!(*look_ups.lock().expect("no test panics here"), [0_i64; 0]);
    assert_eq!(from(&service).await, total);
    let again = send(&service.client, 1, "k", &many(1_000_000, 2)).await;
    assert_eq!((again.expect(201), again.header(REPLAYED)), (body, "true"));
    history(&service.database, 1).await.holds_exactly((1..=total).chain([1_000_000, 1_000_001]));
}

/// The search of an attempt whose record another attempt has found: all of the history is looked at.
async fn a_long_search_keeps_nobody_waiting() {
    let wire = Proxy::before(shared().await).await;
    let service = Setup::at(&wire.uri()).start().await;
    let other = service.sibling(shared().await).await;
    first_page(&service.client).await;
    fill_pages(&service.database, 1, 2..=PAGES, 10).await;
    let keyed = trade(1_000_000);
    wire.harm("update trades", Way::There, Harm::Hold, 1);
    let attempt = {
        let (client, keyed) = (service.client.clone(), keyed.clone());
        tokio::spawn(async move { send(&client, 1, "k", &keyed).await })
    };
    wire.struck(1).await;
    // Its append waits on the wire; it will be refused.
    let first = send(&other.client, 1, "k", &keyed).await.expect(201);
    // Of the same customer and of others, in the commit in which it is tried again.
    let others: Vec<_> = (1..=16)
        .map(|customer| {
            let client = service.client.clone();
            tokio::spawn(async move { client.append(customer, &trade(2_000_000)).await })
        })
        .collect();
    wire.relent_but("find trades", Way::Back, Harm::Hold, 1);
    wire.struck(2).await;
    let answers =
        tokio::time::timeout(PATIENCE, join_all(others)).await.expect("nobody waits for the search");
    for answer in answers {
        answer.expect("no panic").expect(201);
    }
    assert!(!attempt.is_finished(), "its search is held");
    wire.relent();
    let answer = attempt.await.expect("no panic");
    assert_eq!((answer.expect(201), answer.header(REPLAYED)), (first, "true"));
    history(&service.database, 1).await.holds_exactly((1..=PAGES * 10).chain([1_000_000, 2_000_000]));
}

async fn a_repeat_searches_on_where_the_attempt_before_has_come_to() {
    // More than are looked at before it is kept how far that was.
    const PAGES: i64 = 9_000;
    let wire = Proxy::before(shared().await).await;
    let service = Setup::at(&wire.uri()).start().await;
    first_page(&service.client).await;
    let keyed = trade(1_000_000);
    let_trades_fail(&service, true).await;
    send(&service.client, 1, "k", &keyed).await.problem(500, "internal");
    let_trades_fail(&service, false).await;
    fill_pages(&service.database, 1, 2..=PAGES, 10).await;
    assert_eq!(from(&service).await, 10);
    // An attempt that comes to no end.
    wire.harm_nth(Nth("find trades".to_owned(), 10), Way::Back, Harm::Hold);
    let attempt = {
        let (client, keyed) = (service.client.clone(), keyed.clone());
        tokio::spawn(async move { send(&client, 1, "k", &keyed).await })
    };
    wire.struck(1).await;
    let kept = from(&service).await;
    assert!(kept > 10, "{kept}");
    let (other, look_ups) = watched(Setup::on(shared().await), Some(service.database.name())).await;
    let first = send(&other.client, 1, "k", &keyed).await.expect(201);
    assert_eq!(first["ranges"], json!([{ "firstSeq": PAGES * 10 + 1, "lastSeq": PAGES * 10 + 1 }]));
    assert_eq!(look_ups.lock().expect("no test panics here").first(), Some(&(kept / 10 + 1)));
    wire.relent();
    let answer = attempt.await.expect("no panic");
    assert_eq!((answer.expect(201), answer.header(REPLAYED)), (first, "true"));
    history(&service.database, 1).await.holds_exactly((1..=PAGES * 10).chain([1_000_000]));
}
