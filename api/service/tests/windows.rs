//! Windows: the items nearest a cursor, of exact sizes, whatever pages they are on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Client, History, Service, TOTAL, spawn, test_over};

test_over!(sizes_are_exact_across_pages, ALL);
async fn sizes_are_exact_across_pages(history: &'static History) {
    let total = history.pages(12.5);
    let (page, full) = (history.page_size, history.pages(12.0));
    let service = Service::filled(history, total).await;
    for limit in [1, 2, 9, 10, 11, 25, 99, 100] {
        for cursor in [
            0,
            1,
            page / 2,
            page - 1,
            page,
            page + 1,
            history.pages(1.5),
            full - history.pages(2.0) - 1,
            full - history.pages(2.0),
            full - 1,
            full,
            total - 1,
            total,
        ] {
            let path = history.at(1, &format!("?after={cursor}&limit={limit}"));
            let body = service.client.get(&path).await.expect(200);
            let expected: Vec<u64> = (cursor + 1..=total).take(limit).collect();
            assert_eq!(history.seqs(&body), expected, "{path}");
            assert_eq!((&body[TOTAL], &body["totalPages"]), (&json!(total), &json!(13)), "{path}");
            assert_eq!((body.get("page"), body.get("full")), (None, None), "{path}");

            let path = history.at(1, &format!("?before={}&limit={limit}", cursor + 1));
            let body = service.client.get(&path).await.expect(200);
            let mut expected: Vec<u64> = (1..=cursor).rev().take(limit).collect();
            expected.reverse();
            assert_eq!(history.seqs(&body), expected, "{path}");
        }
        let oldest = service.client.get(&history.at(1, &format!("?limit={limit}"))).await.expect(200);
        assert_eq!(history.seqs(&oldest), (1..=total).take(limit).collect::<Vec<_>>());
        let newest = history.at(1, &format!("?limit={limit}&order=desc"));
        let newest = service.client.get(&newest).await.expect(200);
        assert_eq!(history.seqs(&newest), (1..=total).rev().take(limit).collect::<Vec<_>>());
    }
    let default = service.client.get(&history.at(1, "?after=3")).await.expect(200);
    assert_eq!(history.seqs(&default), (4..4 + history.default_limit()).collect::<Vec<_>>());
}

test_over!(a_cursor_beyond_the_end, NOTES);
async fn a_cursor_beyond_the_end(history: &'static History) {
    let total = history.pages(2.5);
    let service = Service::filled(history, total).await;
    for (owner, cursor) in [(1, total), (1, total + 1), (1, 9_007_199_254_740_991_u64), (2, 0), (2, 7)] {
        let path = history.at(owner, &format!("?after={cursor}&limit=5"));
        let body = service.client.get(&path).await.expect(200);
        assert_eq!(body["items"], json!([]), "{path}");
        assert_eq!(body["links"].get("next"), None, "{path}");
        assert_eq!(body["links"]["newer"], path, "nothing may be missed: {path}");
    }
    let before = service.client.get(&history.at(1, "?before=9007199254740991&limit=4")).await.expect(200);
    assert_eq!(history.seqs(&before), (total - 3..=total).collect::<Vec<_>>());
    let before = service.client.get(&history.at(1, "?before=1&limit=4")).await.expect(200);
    assert_eq!((history.seqs(&before), before["links"].get("prev")), (vec![], None));
    let unknown = service.client.get(&history.at(9, "?limit=4")).await.expect(200);
    assert_eq!((&unknown[TOTAL], &unknown["items"]), (&json!(0), &json!([])));
}

test_over!(order_only_arranges, NOTES);
async fn order_only_arranges(history: &'static History) {
    let total = history.pages(4.5);
    let service = Service::filled(history, total).await;
    let [some, more, most] = [0.7, 3.0, 4.2].map(|pages| history.pages(pages));
    for cursor in [
        format!("after={some}&limit=25"),
        format!("before={more}&limit=12"),
        format!("after={most}"),
        "before=3".to_owned(),
    ] {
        let up = service.client.get(&history.at(1, &format!("?{cursor}"))).await.expect(200);
        let same = service.client.get(&history.at(1, &format!("?{cursor}&order=asc"))).await.expect(200);
        let down = service.client.get(&history.at(1, &format!("?order=desc&{cursor}"))).await.expect(200);
        let mut reversed = history.seqs(&down);
        reversed.reverse();
        assert_eq!((history.seqs(&up), history.seqs(&same)), (reversed.clone(), reversed), "{cursor}");
        assert_eq!((&up["order"], &down["order"]), (&json!("asc"), &json!("desc")));
        // What comes next in one order came before in the other.
        let at = |listing: &Value, link: &str| {
            listing["links"].get(link).map(|to| to.as_str().unwrap().replace("&order=desc", ""))
        };
        assert_eq!((at(&up, "next"), at(&up, "prev")), (at(&down, "prev"), at(&down, "next")), "{cursor}");
    }
}

/// From the first window of `path` along `next`; all sequence numbers in the order shown, and the
/// link to what was newer than the first window. Totals are never less than before, nor than what is shown.
async fn walk(client: &Client, path: &str) -> (Vec<u64>, String) {
    let mut path = path.to_owned();
    let mut seen = Vec::new();
    let mut newer = None;
    let mut total = 0;
    loop {
        let answer = client.get(&path).await;
        let body = answer.expect(200);
        let now = body[TOTAL].as_u64().expect("a number");
        let shown = client.history.seqs(&body);
        assert!(now >= total && shown.iter().all(|seq| *seq <= now), "{total} before {body}");
        // It leaves the moment at which it began only where pages were not full.
        assert!(total == 0 || now == total || answer.header("cache-control") == "no-cache", "{path}");
        total = now;
        newer.get_or_insert_with(|| body["links"]["newer"].as_str().expect("always there").to_owned());
        assert!(!shown.is_empty(), "no link leads to an empty window: {path}");
        seen.extend(shown);
        match body["links"]["next"].as_str() {
            Some(next) => path = next.to_owned(),
            None => return (seen, newer.expect("set above")),
        }
    }
}

test_over!(links_lead_through_all_of_it, ALL);
async fn links_lead_through_all_of_it(history: &'static History) {
    let total = history.pages(12.5);
    let service = Service::filled(history, total).await;
    // The number of windows is bounded, also of a long history.
    let limits = [1, 7, 10, 25, 100].into_iter().filter(|limit| total / limit <= 200);
    for limit in limits {
        let (up, _) = walk(&service.client, &history.at(1, &format!("?limit={limit}"))).await;
        assert_eq!(up, (1..=total).collect::<Vec<_>>());
        let (down, _) = walk(&service.client, &history.at(1, &format!("?limit={limit}&order=desc"))).await;
        assert_eq!(down, (1..=total).rev().collect::<Vec<_>>());
    }
    let middle = history.pages(5.0);
    let at = |query: &str| history.at(1, query);
    let answer = service.client.get(&at(&format!("?after={middle}&limit=10"))).await;
    let links = &answer.expect(200)["links"];
    let (before, after) = (middle + 1, middle + 10);
    assert_eq!(
        *links,
        json!({
            "self": at(&format!("?after={middle}&limit=10")), "first": at("?after=0&limit=10"),
            "prev": at(&format!("?before={before}&limit=10&asOf={total}")),
            "next": at(&format!("?after={after}&limit=10&asOf={total}")),
            "last": at(&format!("?before={}&limit=10", total + 1)), "newer": at(&format!("?after={after}&limit=10"))
        })
    );
    let last = service.client.get(links["last"].as_str().unwrap()).await.expect(200);
    assert_eq!(history.seqs(&last), (total - 9..=total).collect::<Vec<_>>());
    let back = service.client.get(links["prev"].as_str().unwrap()).await.expect(200);
    assert_eq!(history.seqs(&back), (middle - 9..=middle).collect::<Vec<_>>());
    let next = at(&format!("?after={after}&limit=10&asOf={total}"));
    assert!(answer.header("link").contains(&format!("<{next}>; rel=\"next\"")));
    assert!(!answer.header("link").contains("newer"), "no registered relation");
}

test_over!(what_is_newer_can_be_asked_for_again, NOTES);
async fn what_is_newer_can_be_asked_for_again(history: &'static History) {
    let service = Service::of(history).await;
    let empty = service.client.get(&history.at(1, "?limit=3")).await.expect(200);
    let mut newer = empty["links"]["newer"].as_str().expect("also of nothing").to_owned();
    for (append, expected) in
        [(2_u64, vec![1, 2]), (9, vec![3, 4, 5]), (0, vec![6, 7, 8]), (0, vec![9, 10, 11]), (0, vec![])]
    {
        if append > 0 {
            let from = service.client.total(1).await;
            service.client.append(1, &history.items(from + 1..=from + append)).await.expect(201);
        }
        let body = service.client.get(&newer).await.expect(200);
        assert_eq!(history.seqs(&body), expected);
        newer = body["links"]["newer"].as_str().expect("always there").to_owned();
    }
}

test_over!(what_is_newer_is_a_304_while_there_is_none, NOTES);
async fn what_is_newer_is_a_304_while_there_is_none(history: &'static History) {
    let total = history.pages(2.5);
    let service = Service::filled(history, total).await;
    let end = service.client.get(&history.at(1, "?limit=3&order=desc")).await.expect(200);
    let newer = end["links"]["newer"].as_str().expect("always there");
    let empty = service.client.get(newer).await;
    assert_eq!(empty.expect(200)["items"], json!([]));
    let known = async || {
        let tag = |request: reqwest::RequestBuilder| request.header("if-none-match", empty.header("etag"));
        service.client.send(Method::GET, newer, tag).await
    };
    let same = known().await;
    assert_eq!((same.status.as_u16(), same.body.len(), same.header("etag")), (304, 0, empty.header("etag")));
    // What another owner appends is none of it.
    service.client.append(2, &history.item(1)).await.expect(201);
    assert_eq!(known().await.status, 304);
    service.client.append(1, &history.item(total + 1)).await.expect(201);
    assert_eq!(history.seqs(&known().await.expect(200)), [total + 1]);
}

test_over!(walks_beside_a_writer, NOTES, READINGS);
/// A walk to either end while a writer appends as fast as it can, and then on with what is newer:
/// every item once.
async fn walks_beside_a_writer(history: &'static History) {
    const ITEMS: u64 = 1_200;
    let service = Service::filled(history, 200).await;
    let done = Arc::new(AtomicBool::new(false));
    let writer = {
        let (client, done) = (service.client.clone(), Arc::clone(&done));
        spawn(async move {
            let mut next = 201;
            let mut size = 1;
            while next <= ITEMS {
                let last = (next + size - 1).min(ITEMS);
                client.append(1, &history.items(next..=last)).await.expect(201);
                // Sizes that fall across pages in every way.
                (next, size) = (last + 1, size % 13 + 1);
            }
            done.store(true, Ordering::Release);
        })
    };
    let readers =
        [("limit=7", 7_usize), ("limit=25&order=desc", 25), ("limit=100", 100), ("limit=1&order=desc", 1)]
            .map(|(query, limit)| {
                let (client, done) = (service.client.clone(), Arc::clone(&done));
                spawn(async move {
                    let (mut seen, mut newer) = walk(&client, &history.at(1, &format!("?{query}"))).await;
                    if !query.contains("desc") {
                        let last = seen.last().unwrap();
                        newer = history.at(1, &format!("?after={last}&limit={limit}"));
                    }
                    loop {
                        let all_is_written = done.load(Ordering::Acquire);
                        let body = client.get(&newer).await.expect(200);
                        let shown = history.seqs(&body);
                        assert!(shown.len() <= limit);
                        if shown.is_empty() && all_is_written {
                            return seen;
                        }
                        if shown.is_empty() {
                            // The writer gets the processors.
                            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                        }
                        seen.extend(shown);
                        newer = body["links"]["newer"].as_str().expect("always there").to_owned();
                    }
                })
            });
    for reader in readers {
        let seen = reader.await.expect("no panic");
        assert_eq!(seen.len() as u64, ITEMS, "each once");
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>().len() as u64, ITEMS, "none left out");
    }
    writer.await.expect("no panic");
}
