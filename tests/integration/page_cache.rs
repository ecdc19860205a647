//! Full pages in memory: fetched once, bounded, and never in the way of what is newer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use mongodb::bson::{Document, doc};
use serde_json::{Value, json};

use crate::harness::{Harm, Proxy, Service, Setup, Way, shared, tests, trade};

tests!["page_cache":
    many_misses_at_once_are_one_fetch,
    a_page_is_fetched_once,
    who_turns_pages_is_read_ahead_of,
    many_pages_at_once_are_few_fetches,
    turned_off_it_keeps_nothing,
    it_is_bounded_in_bytes,
    a_page_that_is_not_full_is_never_kept,
    who_came_later_sees_what_came_between,
];

/// A service that counts its `find`s on `trades`, with so many bytes for pages.
fn counting(mut setup: Setup, bytes: u64) -> (Setup, Arc<AtomicUsize>) {
    let finds = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&finds);
    setup.args.page_cache = bytes;
    let setup = setup.observed(move |name, command| {
        if name == "find" && command.get_str(name).is_ok_and(|of| of == "trades") {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    (setup, finds)
}

async fn started(bytes: u64, trades: u64) -> (Service, Arc<AtomicUsize>) {
    let (setup, finds) = counting(Setup::on(shared().await), bytes);
    let service = setup.start().await;
    append(&service, 1, 1..=trades).await;
    finds.store(0, Ordering::Relaxed);
    (service, finds)
}

async fn append(service: &Service, customer: u64, quantities: std::ops::RangeInclusive<u64>) {
    let many: Vec<Value> = quantities.map(trade).collect();
    for part in many.chunks(1000) {
        service.client.append(customer, &json!(part)).await.expect(201);
    }
}

const MIB: u64 = 1024 * 1024;

async fn many_misses_at_once_are_one_fetch() {
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::on(shared().await);
    setup.connection.uri = proxy.uri();
    let (setup, finds) = counting(setup, MIB);
    let service = setup.start().await;
    append(&service, 1, 1..=35).await;
    service.client.get("/v1/customers/2").await.expect(200);
    finds.store(0, Ordering::Relaxed);
    proxy.harm("find", Way::Back, Harm::Hold, 1);
    let asking = (0..50).map(|_| {
        let client = service.client.clone();
        tokio::spawn(async move { client.get("/v1/customers/1/trades/pages/2").await.expect(200) })
    });
    let asking: Vec<_> = asking.collect();
    proxy.struck(1).await;
    proxy.relent();
    for answer in join_all(asking).await {
        assert_eq!(answer.expect("no panic")["firstSeq"], 11);
    }
    assert_eq!(finds.load(Ordering::Relaxed), 1);
}

async fn a_page_is_fetched_once() {
    let (service, finds) = started(MIB, 45).await;
    let first = service.client.get("/v1/customers/1/trades/pages/2").await;
    for path in ["/v1/customers/1/trades/pages/2", "/v1/customers/1/trades/15", "/v1/customers/1/trades/20"] {
        service.client.get(path).await.expect(200);
    }
    assert_eq!(service.client.get("/v1/customers/1/trades/pages/2").await.body, first.body);
    assert_eq!(finds.swap(0, Ordering::Relaxed), 1);
    // A listing always looks at the tail; what is before it comes from memory, or in one command.
    for (path, expected) in [
        ("/v1/customers/1/trades?page=2", 1),
        ("/v1/customers/1/trades?page=3", 2),
        ("/v1/customers/1/trades?page=3", 1),
        ("/v1/customers/1/trades?limit=100", 2),
        ("/v1/customers/1/trades?limit=100&order=desc", 1),
        ("/v1/customers/1", 1),
    ] {
        service.client.get(path).await.expect(200);
        assert_eq!(finds.swap(0, Ordering::Relaxed), expected, "{path}");
    }
}

/// Either way, and never beyond the last full page.
async fn who_turns_pages_is_read_ahead_of() {
    let (service, finds) = started(MIB, 605).await;
    let turned = async |from: &str, relation: &str, pages: usize| {
        finds.store(0, Ordering::Relaxed);
        let mut path = format!("/v1/customers/1/trades?{from}");
        let mut shown = Vec::new();
        for _ in 0..pages {
            let body = service.client.get(&path).await.expect(200);
            assert_eq!(body["totalTrades"], 605);
            shown.extend(
                body["items"].as_array().expect("items").iter().filter_map(|item| item["seq"].as_u64()),
            );
            path = body["links"][relation].as_str().unwrap_or_default().to_owned();
        }
        (shown, path, finds.load(Ordering::Relaxed))
    };
    // A look at the tail, the first page, and of the other 19 every eleventh or earlier.
    let (shown, _, finds) = turned("after=0&limit=10", "next", 20).await;
    assert_eq!(shown, (1..=200).collect::<Vec<_>>());
    assert_eq!(finds, 1 + 1 + 2);
    let (shown, _, finds) = turned("before=506&limit=5&order=desc", "next", 40).await;
    assert_eq!(shown, (306..=505).rev().collect::<Vec<_>>());
    assert!(finds <= 1 + 1 + 2, "{finds}");
    let (shown, end, _) = turned("after=580&limit=10", "next", 3).await;
    assert_eq!((shown, end.as_str()), ((581..=605).collect::<Vec<_>>(), ""));
}

/// Each has its own page, or learns that there is none; who asked for a corrupt one is alone with that.
async fn many_pages_at_once_are_few_fetches() {
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::on(shared().await);
    setup.connection.uri = proxy.uri();
    let (setup, finds) = counting(setup, 0);
    let service = setup.start().await;
    append(&service, 1, 1..=1000).await;
    service.client.get("/v1/customers/2").await.expect(200);
    let damage = doc! { "$set": { "history.3.qty": -1_i64 } };
    let buckets = service.database.collection::<Document>("trades");
    for corrupt in [false, true] {
        finds.store(0, Ordering::Relaxed);
        let struck = proxy.strikes();
        proxy.harm("find", Way::Back, Harm::Hold, 4);
        // Those near the first are reached by skipping, each by a command of its own.
        let asking = (21..=120).map(|page| {
            let (client, path) = (service.client.clone(), format!("/v1/customers/1/trades/pages/{page}"));
            tokio::spawn(async move { (page, client.get(&path).await) })
        });
        let asking: Vec<_> = asking.collect();
        proxy.struck(struck + 4).await;
        // Time enough for the others to come and wait.
        for _ in 0..50 {
            service.client.get("/livez").await.expect(200);
        }
        proxy.relent();
        for answer in join_all(asking).await {
            let (page, answer) = answer.expect("no panic");
            match page {
                70 if corrupt => drop(answer.problem(500, "internal")),
                101.. => drop(answer.problem(404, "page-not-found")),
                _ => assert_eq!(answer.expect(200)["page"], page),
            }
        }
        let finds = finds.load(Ordering::Relaxed);
        assert!(corrupt || finds < 50, "{finds} of 100");
        let page = doc! { "customerId": 1, "page": 70 };
        let damage = buckets.update_one(page, damage.clone()).bypass_document_validation(true);
        damage.await.expect("a corrupt bucket");
    }
}

async fn turned_off_it_keeps_nothing() {
    let (service, finds) = started(0, 35).await;
    for _ in 0..3 {
        let answer = service.client.get("/v1/customers/1/trades/pages/2").await;
        assert_eq!(answer.expect(200)["firstSeq"], 11);
        assert!(!answer.header("server-timing").contains("cache"), "{answer:?}");
        let window = service.client.get("/v1/customers/1/trades?after=5&limit=20").await.expect(200);
        assert_eq!(window["items"].as_array().map(Vec::len), Some(20));
    }
    assert_eq!(finds.load(Ordering::Relaxed), 3 + 3 * 2);
}

async fn it_is_bounded_in_bytes() {
    const BYTES: u64 = 100_000;
    const PAGES: u64 = 300;
    let (service, finds) = started(BYTES, PAGES * 10).await;
    for page in (1..=PAGES).chain(1..=PAGES) {
        let body = service.client.get(&format!("/v1/customers/1/trades/pages/{page}")).await.expect(200);
        assert_eq!(body["page"], page);
    }
    // A page takes more than 1,000 bytes: not even a third of them can have been there.
    let finds = finds.load(Ordering::Relaxed) as u64;
    assert!(finds > PAGES + PAGES * 2 / 3, "{finds} of {}", PAGES * 2);
    // Measurements are of the whole process: other tests' services may have the last word now and then.
    let mut kept = 0.0;
    for _ in 0..100 {
        let metrics = String::from_utf8(service.client.get("/metrics").await.body).expect("text");
        let line = metrics.lines().find(|line| line.starts_with("pagebucket_page_cache_bytes "));
        kept = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).expect("a number");
        if kept > BYTES as f64 / 2.0 {
            break;
        }
    }
    assert!(kept > BYTES as f64 / 2.0 && kept <= BYTES as f64, "{kept}");
}

async fn a_page_that_is_not_full_is_never_kept() {
    let (service, finds) = started(MIB, 12).await;
    for count in 3..=10_u64 {
        let last = 10 + count;
        append(&service, 1, last..=last).await;
        let page = service.client.get("/v1/customers/1/trades/pages/2").await.expect(200);
        assert_eq!((&page["count"], &page["full"]), (&json!(count), &json!(count == 10)));
        service.client.get(&format!("/v1/customers/1/trades/{last}")).await.expect(200);
        service
            .client
            .get(&format!("/v1/customers/1/trades/{}", last + 1))
            .await
            .problem(404, "trade-not-found");
    }
    service.client.get("/v1/customers/1/trades/pages/3").await.problem(404, "page-not-found");
    assert!(finds.load(Ordering::Relaxed) > 7 * 3);
}

/// One asks for a page, and its answer is long on the way. Meanwhile a trade is appended and
/// acknowledged; whoever asks after that must see it, and not what the first one is waiting for.
async fn who_came_later_sees_what_came_between() {
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::on(shared().await);
    setup.connection.uri = proxy.uri();
    let service = setup.start().await;
    let sibling = service.sibling(shared().await).await;
    append(&sibling, 1, 1..=18).await;
    service.client.get("/v1/customers/2").await.expect(200);
    for last in [19_u64, 20, 21] {
        let page = (last - 1) / 10 + 1;
        let path = format!("/v1/customers/1/trades/pages/{page}");
        let ask = || {
            let (client, path) = (service.client.clone(), path.clone());
            tokio::spawn(async move { client.get(&path).await })
        };
        let struck = proxy.strikes();
        proxy.harm("find", Way::Back, Harm::Hold, 1);
        let early = ask();
        proxy.struck(struck + 1).await;
        append(&sibling, 1, last..=last).await;
        let late: Vec<_> = (0..8).map(|_| ask()).collect();
        // Time enough for these to come and wait.
        for _ in 0..20 {
            service.client.get("/livez").await.expect(200);
        }
        proxy.relent();
        early.await.expect("no panic");
        for answer in late {
            let answer = answer.await.expect("no panic").expect(200);
            assert_eq!(
                answer["items"].as_array().and_then(|items| items.last()).unwrap()["seq"],
                last,
                "{path}"
            );
        }
    }
}
