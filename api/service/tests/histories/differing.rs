//! Two instances whose definitions of one history have different `item`s: as while an operator replaces them
//! one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pagebucket_engine::internal::Ages;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::differing::{Directory, instance};
use crate::harness::{Client, History, INVALID_ITEM, Service, Setup, eventually, shared, test_over};

/// One whose notes may have a mood, and one whose notes may be drafts.
async fn two(history: &'static History) -> ([Service; 2], [Directory; 2]) {
    let moody = Directory::of(history, |item| {
        item["properties"]["mood"] = json!({ "enum": ["good", "bad"] });
    });
    let drafting = Directory::of(history, |item| {
        item["properties"]["draft"] = json!({ "type": "boolean" });
    });
    let one = instance(history, &moody, None).await;
    let other = instance(history, &drafting, Some(&one)).await;
    ([one, other], [moody, drafting])
}

/// What the one takes and the other does not.
const OWN: [(&str, &str); 2] = [("mood", "\"good\""), ("draft", "true")];

/// A generated item with the property that the instance of this number takes.
fn own(history: &History, instance: usize, number: u64) -> Value {
    let (name, value) = OWN[instance];
    let mut item = history.item(number);
    item[name] = serde_json::from_str(value).expect("JSON");
    item
}

test_over!(each_accepts_by_its_own_item_and_shows_all, NOTES);
async fn each_accepts_by_its_own_item_and_shows_all(history: &'static History) {
    const WRITERS: u64 = 16;
    const TURNS: u64 = 20;
    let (instances, _directories) = two(history).await;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let clients = [&instances[0], &instances[1]].map(|instance| instance.client.clone());
        writers.spawn(async move {
            let its = writer as usize % 2;
            for turn in 0..TURNS {
                let item = own(history, its, writer * TURNS + turn + 1);
                clients[its].append(1, &item).await.expect(201);
                // The other one says which property it does not know, and stores nothing.
                let problem = clients[1 - its].append(1, &item).await.problem(422, INVALID_ITEM);
                assert_eq!(problem["errors"][0]["pointer"], format!("/{}", OWN[its].0), "{problem}");
            }
        });
    }
    writers.join_all().await;
    instances[0].stored(1).await.holds_exactly(1..=(WRITERS * TURNS) as i64);
    show_the_same(&instances, WRITERS * TURNS).await;
}

/// Checks that both instances show all of the history of owner 1, byte for byte the same.
async fn show_the_same(instances: &[Service; 2], total: u64) {
    let [one, other] = [&instances[0], &instances[1]];
    let history = one.history;
    let pages = (1..=history.page_of(total)).map(|page| format!("/pages/{page}"));
    let items = (1..=total).step_by(7).map(|seq| format!("/{seq}"));
    let listings =
        ["", "?order=desc", "?after=3&limit=100", "?from=2000-01-01T00:00:00Z&limit=100", "/export.ndjson"];
    for path in pages.chain(items).chain(listings.map(str::to_owned)) {
        let path = history.at(1, &path);
        let (shown, also) = (one.client.get(&path).await, other.client.get(&path).await);
        assert_eq!((shown.status.as_u16(), also.status.as_u16()), (200, 200), "{path}");
        assert_eq!(shown.body, also.body, "{path}");
        if shown.headers.contains_key("etag") {
            assert_eq!(shown.header("etag"), also.header("etag"), "{path}");
        }
    }
    assert_eq!((one.client.total(1).await, other.client.total(1).await), (total, total));
}

test_over!(a_repeat_is_found_by_an_instance_with_another_item, NOTES);
/// The fingerprint is that of what the client sent, which no definition changes; nor does the order of names.
async fn a_repeat_is_found_by_an_instance_with_another_item(history: &'static History) {
    let (instances, _directories) = two(history).await;
    let items = history.items(1..=5);
    let clients: [&Client; 2] = [&instances[0].client, &instances[1].client];
    for (key, first, second) in [("k-1", 0, 1), ("k-2", 1, 0)] {
        let stored = clients[first].append_once(1, key, &items).await.expect(201);
        let again = clients[second].append_once(1, key, &items).await;
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert_eq!(again.expect(201), stored);
        let other = clients[second].append_once(1, key, &history.items(2..=6)).await;
        other.problem(422, "idempotency-key-reused");
    }
    let item = history.item(1);
    let members = item.as_object().expect("an item").iter();
    let reversed: Vec<_> = members.rev().map(|(name, value)| format!("\"{name}\" : {value}")).collect();
    let reversed = format!("{{{}}}", reversed.join(" , "));
    clients[0].append_once(2, "k", &item).await.expect(201);
    let with = |request: reqwest::RequestBuilder| {
        request.header("content-type", "application/json").header("idempotency-key", "k").body(reversed)
    };
    let again = clients[1].send(reqwest::Method::POST, &history.path(2), with).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (201, "true"));
    assert_eq!((clients[0].total(1).await, clients[0].total(2).await), (10, 1));
}

test_over!(a_narrower_item_concerns_only_what_is_written, NOTES);
/// Pages from before are shown, and their open tail is filled, though their items would not be taken now.
async fn a_narrower_item_concerns_only_what_is_written(history: &'static History) {
    let (wide, narrow) = (
        Directory::of(history, |_| ()),
        Directory::of(history, |item| {
            item["properties"]["text"]["maxLength"] = json!(3);
        }),
    );
    let before = instance(history, &wide, None).await;
    let total = history.pages(2.5);
    before.client.append_all(1, 1..=total).await;
    let after = instance(history, &narrow, Some(&before)).await;
    let refused = after.client.append(1, &history.item(total + 1)).await.problem(422, INVALID_ITEM);
    assert_eq!(refused["errors"][0]["pointer"], "/text", "{refused}");
    let mut short = history.item(total + 1);
    short["text"] = json!("ok");
    after.client.append(1, &short).await.expect(201);
    after.stored(1).await.holds_exactly(1..=total as i64 + 1);
    show_the_same(&[before, after], total + 1).await;
}

test_over!(items_beyond_an_instances_own_bound_are_read, NOTES);
/// Another instance raises `maxItemBytes` while this one runs. A reply of as many pages as fitted before has
/// more bytes than a server sends at once. Soon afterwards this instance asks for fewer pages.
async fn items_beyond_an_instances_own_bound_are_read(history: &'static History) {
    const ITEMS: u64 = 12;
    const LEN: usize = 1_900_000;
    let small = Directory::of(history, |_| ());
    let large = Directory::changed(history, |definition| {
        definition["maxItemBytes"] = json!(2 * 1024 * 1024);
        definition["item"]["properties"]["text"]["maxLength"] = json!(LEN);
    });
    let before = instance(history, &small, None).await;
    let more = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&more);
    let mut asking = Setup::on(shared().await).of(history.holding_any()).observed(move |name, _| {
        count.fetch_add(u32::from(name == "getMore"), Ordering::SeqCst);
    });
    asking.definitions = Some(small.0.clone());
    let asking = asking.aging(Ages { poll: Duration::from_millis(50), ..Ages::default() });
    let asking = asking.in_database(&before.database).start().await;
    let mut raising = Setup::on(shared().await).of(history.holding_any()).in_database(&before.database);
    raising.definitions = Some(large.0.clone());
    raising.config.api.max_body = 4 * 1024 * 1024;
    let raised = raising.start().await;
    let mut item = history.item(1);
    item["text"] = json!("x".repeat(LEN));
    for _ in 0..ITEMS {
        raised.client.append(1, &item).await.expect(201);
    }
    let export = history.at(1, "/export.ndjson");
    let all = async |service: &Service| {
        let exported = service.client.get(&export).await;
        assert_eq!((exported.status.as_u16(), exported.body.len() as u64 / LEN as u64), (200, ITEMS));
    };
    all(&before).await;
    eventually("its replies have fewer pages", Duration::from_secs(60), async || {
        more.store(0, Ordering::SeqCst);
        all(&asking).await;
        more.load(Ordering::SeqCst) == 0
    })
    .await;
}
