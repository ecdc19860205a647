//! Full pages in memory: fetched once, bounded, and never in the way of what is newer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};
use serde_json::json;

use crate::harness::{
    Harm, History, ITEM_NOT_FOUND, Proxy, Service, Setup, TOTAL, Way, shared, spawn, test_over,
};

/// A service that counts its `find`s on the history, with so many bytes for pages.
fn counting(mut setup: Setup, bytes: u64) -> (Setup, Arc<AtomicUsize>) {
    let finds = Arc::new(AtomicUsize::new(0));
    let (count, history) = (Arc::clone(&finds), setup.history);
    setup.config.api.page_cache = bytes;
    let setup = setup.observed(move |name, command| {
        if name == "find" && command.get_str(name).is_ok_and(|of| of == history.name) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    (setup, finds)
}

async fn started(history: &'static History, bytes: u64, items: u64) -> (Service, Arc<AtomicUsize>) {
    let (setup, finds) = counting(Setup::on(shared().await).of(history), bytes);
    let service = setup.start().await;
    service.client.append_all(1, 1..=items).await;
    finds.store(0, Ordering::Relaxed);
    (service, finds)
}

const MIB: u64 = 1024 * 1024;

test_over!(many_misses_at_once_are_one_fetch, NOTES);
async fn many_misses_at_once_are_one_fetch(history: &'static History) {
    let proxy = Proxy::before(shared().await).await;
    let (setup, finds) = counting(Setup::at(&proxy.uri()).of(history), MIB);
    let service = setup.start().await;
    service.client.append_all(1, 1..=history.pages(3.5)).await;
    service.client.total(2).await;
    finds.store(0, Ordering::Relaxed);
    proxy.harm("find", Way::Back, Harm::Hold, 1);
    let asking = (0..50).map(|_| {
        let client = service.client.clone();
        spawn(async move { client.get(&history.at(1, "/pages/2")).await.expect(200) })
    });
    let asking: Vec<_> = asking.collect();
    proxy.struck(1).await;
    proxy.relent();
    for answer in join_all(asking).await {
        assert_eq!(answer.expect("no panic")["firstSeq"], history.page_size + 1);
    }
    assert_eq!(finds.load(Ordering::Relaxed), 1);
}

test_over!(a_page_is_fetched_once, ALL);
async fn a_page_is_fetched_once(history: &'static History) {
    let (service, finds) = started(history, MIB, history.pages(4.5)).await;
    let (page, size) = (history.at(1, "/pages/2"), history.page_size);
    let first = service.client.get(&page).await;
    let (middle, last) = (size + 1 + size / 2, 2 * size);
    for path in
        [page.clone(), history.at(1, &format!("/{}", middle.min(last))), history.at(1, &format!("/{last}"))]
    {
        service.client.get(&path).await.expect(200);
    }
    assert_eq!(service.client.get(&page).await.body, first.body);
    assert_eq!(finds.swap(0, Ordering::Relaxed), 1);
    // A listing always looks at the tail; what is before it comes from memory, or in one command.
    let (most, total) = (history.pages(4.5).min(100), history.pages(4.5));
    for (path, expected) in [
        ("?page=2".to_owned(), 1),
        ("?page=3".to_owned(), 2),
        ("?page=3".to_owned(), 1),
        // Of pages 1 to 4 only those that are not there yet; for windows of part of a page, page 1 alone.
        (format!("?after=0&limit={most}"), 2),
        (format!("?before={}&limit={most}&order=desc", most + 1), 1),
    ] {
        service.client.get(&history.at(1, &path)).await.expect(200);
        assert_eq!(finds.swap(0, Ordering::Relaxed), expected, "{path} of {total}");
    }
    service.client.total(1).await;
    assert_eq!(finds.swap(0, Ordering::Relaxed), 1);
}

test_over!(who_turns_pages_is_read_ahead_of, SMALL);
/// Either way, and never beyond the last full page.
async fn who_turns_pages_is_read_ahead_of(history: &'static History) {
    let (size, total) = (history.page_size, history.pages(60.5));
    let (service, finds) = started(history, MIB, total).await;
    let turned = async |from: &str, relation: &str, windows: usize| {
        finds.store(0, Ordering::Relaxed);
        let mut path = history.at(1, &format!("?{from}"));
        let mut shown = Vec::new();
        for _ in 0..windows {
            let body = service.client.get(&path).await.expect(200);
            assert_eq!(body[TOTAL], total);
            shown.extend(history.seqs(&body));
            path = body["links"][relation].as_str().unwrap_or_default().to_owned();
        }
        (shown, path, finds.load(Ordering::Relaxed))
    };
    // A look at the tail, the first page, and of the other 19 every eleventh or earlier.
    let (shown, _, finds) = turned(&format!("after=0&limit={size}"), "next", 20).await;
    assert_eq!(shown, (1..=20 * size).collect::<Vec<_>>());
    assert_eq!(finds, 1 + 1 + 2);
    // Two windows a page.
    let end = history.pages(50.5);
    let backwards = format!("before={}&limit={}&order=desc", end + 1, size / 2);
    let (shown, _, finds) = turned(&backwards, "next", 40).await;
    assert_eq!(shown, (end - 20 * size + 1..=end).rev().collect::<Vec<_>>());
    assert!(finds <= 1 + 1 + 2, "{finds}");
    let (shown, end, _) = turned(&format!("after={}&limit={size}", 58 * size), "next", 3).await;
    assert_eq!((shown, end.as_str()), ((58 * size + 1..=total).collect::<Vec<_>>(), ""));
}

test_over!(many_pages_at_once_are_few_fetches, NOTES);
/// Each has its own page, or learns that there is none; who asked for a corrupt one is alone with that.
async fn many_pages_at_once_are_few_fetches(history: &'static History) {
    let proxy = Proxy::before(shared().await).await;
    let (setup, finds) = counting(Setup::at(&proxy.uri()).of(history), 0);
    let service = setup.start().await;
    service.client.append_all(1, 1..=history.pages(100.0)).await;
    service.client.total(2).await;
    // Of a type that no item holds.
    let damage = doc! { "$set": { format!("history.1.{}", history.number_path()): ObjectId::new() } };
    let buckets = service.database.collection::<Document>(history.name);
    for corrupt in [false, true] {
        finds.store(0, Ordering::Relaxed);
        let struck = proxy.strikes();
        proxy.harm("find", Way::Back, Harm::Hold, 2);
        let asking = (21..=120).map(|page| {
            let (client, path) = (service.client.clone(), history.at(1, &format!("/pages/{page}")));
            spawn(async move { (page, client.get(&path).await) })
        });
        let asking: Vec<_> = asking.collect();
        proxy.struck(struck + 2).await;
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
        let page = doc! { history.owner_field: history.owner_bson(1), "page": 70 };
        let damage = buckets.update_one(page, damage.clone()).bypass_document_validation(true);
        damage.await.expect("a corrupt bucket");
    }
}

test_over!(turned_off_it_keeps_nothing, NOTES);
async fn turned_off_it_keeps_nothing(history: &'static History) {
    let (service, finds) = started(history, 0, history.pages(3.5)).await;
    // A window of the first two pages, or of their ends.
    let (first, limit) = (history.page_size - history.pages(0.5), history.pages(1.0).min(100));
    for _ in 0..3 {
        let answer = service.client.get(&history.at(1, "/pages/2")).await;
        assert_eq!(answer.expect(200)["firstSeq"], history.page_size + 1);
        assert!(!answer.header("server-timing").contains("cache"), "{answer:?}");
        let window = history.at(1, &format!("?after={first}&limit={limit}"));
        let window = service.client.get(&window).await.expect(200);
        assert_eq!(window["items"].as_array().map(|items| items.len() as u64), Some(limit));
    }
    assert_eq!(finds.load(Ordering::Relaxed), 3 + 3 * 2);
}

test_over!(it_is_bounded_in_bytes, TRADES);
async fn it_is_bounded_in_bytes(history: &'static History) {
    const BYTES: u64 = 50_000;
    // Of 50,000 bytes: more pages than fit, however short they are.
    let pages = if history.page_size < 10 { 500 } else { 150 };
    let (service, finds) = started(history, BYTES, history.pages(pages as f64)).await;
    for page in (1..=pages).chain(1..=pages) {
        let body = service.client.get(&history.at(1, &format!("/pages/{page}"))).await.expect(200);
        assert_eq!(body["page"], page);
    }
    // A page takes more than 1,000 bytes, and of two items more than 300: not even a third can have been
    // there.
    let finds = finds.load(Ordering::Relaxed) as u64;
    assert!(finds > pages + pages * 2 / 3, "{finds} of {}", pages * 2);
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

test_over!(a_page_that_is_not_full_is_never_kept, TRADES);
async fn a_page_that_is_not_full_is_never_kept(history: &'static History) {
    let size = history.page_size;
    // The last eight counts of a page.
    let first = size.saturating_sub(8);
    let (service, finds) = started(history, MIB, size + first).await;
    for count in first + 1..=size {
        let last = size + count;
        service.client.append_all(1, last..=last).await;
        let page = service.client.get(&history.at(1, "/pages/2")).await.expect(200);
        assert_eq!((&page["count"], &page["full"]), (&json!(count), &json!(count == size)));
        service.client.get(&history.at(1, &format!("/{last}"))).await.expect(200);
        let beyond = history.at(1, &format!("/{}", last + 1));
        service.client.get(&beyond).await.problem(404, ITEM_NOT_FOUND);
    }
    service.client.get(&history.at(1, "/pages/3")).await.problem(404, "page-not-found");
    assert!(finds.load(Ordering::Relaxed) as u64 > (size - first - 1) * 3);
}

test_over!(who_came_later_sees_what_came_between, NOTES);
/// One asks for a page, and its answer is long on the way. Meanwhile an item is appended and
/// acknowledged. Every later request must see it, and not what the first one is waiting for.
async fn who_came_later_sees_what_came_between(history: &'static History) {
    let proxy = Proxy::before(shared().await).await;
    let service = Setup::at(&proxy.uri()).of(history).start().await;
    let sibling = service.sibling(shared().await).await;
    let full = history.pages(2.0);
    sibling.client.append_all(1, 1..=full - 2).await;
    service.client.total(2).await;
    for last in [full - 1, full, full + 1] {
        let path = history.at(1, &format!("/pages/{}", history.page_of(last)));
        let ask = || {
            let (client, path) = (service.client.clone(), path.clone());
            spawn(async move { client.get(&path).await })
        };
        let struck = proxy.strikes();
        proxy.harm("find", Way::Back, Harm::Hold, 1);
        let early = ask();
        proxy.struck(struck + 1).await;
        sibling.client.append_all(1, last..=last).await;
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
