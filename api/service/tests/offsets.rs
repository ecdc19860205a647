//! Windows by offset, as grids ask for them: by parameters or by `Range`, with totals in headers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, History, Service, TOTAL, spawn, test_over, trade};

/// The sequence numbers at an offset, in the order shown.
fn expected(order: &str, total: u64, offset: u64, limit: u64) -> Vec<u64> {
    let in_order: Vec<u64> = if order == "asc" { (1..=total).collect() } else { (1..=total).rev().collect() };
    in_order.into_iter().skip(offset as usize).take(limit as usize).collect()
}

/// Checks that the headers tell what a listing of a history with these totals shows.
#[track_caller]
fn assert_tells(answer: &Answer, seqs: &[u64], order: &str, total: u64) {
    let offset = |seq: u64| if order == "asc" { seq - 1 } else { total - seq };
    let range = match seqs {
        [] => format!("items */{total}"),
        [first, .., last] => format!("items {}-{}/{total}", offset(*first), offset(*last)),
        [only] => format!("items {0}-{0}/{total}", offset(*only)),
    };
    assert_eq!(answer.header("content-range"), range, "{answer:?}");
    assert_eq!(answer.header("x-total-count"), total.to_string(), "{answer:?}");
    assert_eq!(answer.header("accept-ranges"), "items", "{answer:?}");
    let vary = answer.headers.get_all("vary").iter().any(|names| names == "range");
    assert!(vary, "{answer:?}");
}

test_over!(sizes_are_exact_in_either_order, ALL);
async fn sizes_are_exact_in_either_order(history: &'static History) {
    let (page, total) = (history.page_size, history.pages(12.5));
    let service = Service::filled(history, total).await;
    for order in ["asc", "desc"] {
        for limit in [1, 10, 25, 100] {
            for offset in [0, 1, page - 1, page, page + 1, total / 2, total - page, total - 2, total - 1] {
                for as_of in [None, Some(total), Some(total - page / 2), Some(total / 2 + 1)] {
                    let moment = as_of.map(|as_of| format!("&asOf={as_of}")).unwrap_or_default();
                    let query = format!("?offset={offset}&limit={limit}&order={order}{moment}");
                    let answer = service.client.get(&history.at(1, &query)).await;
                    let (body, total) = (answer.expect(200), as_of.unwrap_or(total));
                    let shown = history.seqs(&body);
                    assert_eq!(shown, expected(order, total, offset, limit), "{query}");
                    let totals = (&body[TOTAL], &body["totalPages"]);
                    assert_eq!(totals, (&json!(total), &json!(history.page_of(total))), "{query}");
                    assert_tells(&answer, &shown, order, total);
                    let kept = answer.header("cache-control").ends_with("immutable");
                    assert_eq!(kept, as_of.is_some(), "{query}");
                    assert_eq!((body.get("page"), body.get("full")), (None, None), "{query}");
                }
            }
        }
        let default =
            service.client.get(&history.at(1, &format!("?offset=1&order={order}"))).await.expect(200);
        assert_eq!(history.seqs(&default), expected(order, total, 1, history.default_limit()));
    }
}

test_over!(beyond_the_end_is_empty, NOTES);
async fn beyond_the_end_is_empty(history: &'static History) {
    let total = history.pages(2.5);
    let service = Service::filled(history, total).await;
    for order in ["asc", "desc"] {
        for offset in [total, total + 1, 9_007_199_254_740_991] {
            let path = history.at(1, &format!("?offset={offset}&limit=100&order={order}"));
            let answer = service.client.get(&path).await;
            let body = answer.expect(200);
            assert_eq!((&body["items"], &body[TOTAL]), (&json!([]), &json!(total)), "{path}");
            assert_tells(&answer, &[], order, total);
            assert_eq!((&body["links"]["self"], body["links"].get("next")), (&json!(path), None));
            let back = service.client.get(body["links"]["prev"].as_str().expect("there are items")).await;
            assert!(!history.seqs(&back.expect(200)).is_empty(), "{path}");
        }
        let nobody = service.client.get(&history.at(9, &format!("?offset=0&order={order}"))).await;
        let body = nobody.expect(200);
        assert_eq!((&body["items"], body["links"].as_object().unwrap().len()), (&json!([]), 1), "only self");
        assert_tells(&nobody, &[], order, 0);
        // A moment that has not been is the present.
        let later = history.at(1, &format!("?offset=0&limit=3&order={order}&asOf={}", total + 1));
        let later = service.client.get(&later).await;
        assert_tells(&later, &expected(order, total, 0, 3), order, total);
        assert_eq!(later.header("cache-control"), "no-cache");
    }
}

test_over!(a_hundred_windows_beside_a_writer, NOTES);
/// A grid that names the moment it began at, in either order: no row twice, none missing, and the totals of
/// that moment.
async fn a_hundred_windows_beside_a_writer(history: &'static History) {
    const LIMIT: u64 = 7;
    let began = 100 * LIMIT - 3;
    let service = Service::filled(history, began).await;
    let stop = Arc::new(AtomicBool::new(false));
    let appended = Arc::new(AtomicU64::new(began));
    let writer = {
        let (client, stop, appended) = (service.client.clone(), Arc::clone(&stop), Arc::clone(&appended));
        spawn(async move {
            let (mut next, mut size) = (began + 1, 1);
            while !stop.load(Ordering::Acquire) {
                client.append(1, &history.items(next..=next + size - 1)).await.expect(201);
                appended.store(next + size - 1, Ordering::Release);
                // Sizes that fall across pages in every way.
                (next, size) = (next + size, size % 13 + 1);
            }
            next - 1
        })
    };
    let walks = ["asc", "desc"].map(|order| {
        let (client, appended) = (service.client.clone(), Arc::clone(&appended));
        spawn(async move {
            // Once, or again until enough was appended meanwhile.
            loop {
                let mut shown = Vec::new();
                for window in 0..100 {
                    let query =
                        format!("?offset={}&limit={LIMIT}&order={order}&asOf={began}", window * LIMIT);
                    let answer = client.get(&history.at(1, &query)).await;
                    let body = answer.expect(200);
                    let seqs = history.seqs(&body);
                    assert_eq!(body[TOTAL], began, "{query}");
                    assert_tells(&answer, &seqs, order, began);
                    shown.extend(seqs);
                }
                assert_eq!(shown, expected(order, began, 0, began), "{order}");
                if appended.load(Ordering::Acquire) > began + 20 {
                    break;
                }
            }
        })
    });
    for walk in walks {
        walk.await.expect("no panic");
    }
    stop.store(true, Ordering::Release);
    let total = writer.await.expect("no panic");
    assert!(total > began + 20, "the writer was beside it: {total}");
    let now = service.client.get(&history.at(1, "?offset=0&limit=1&order=desc")).await;
    assert_tells(&now, &[total], "desc", total);
}

test_over!(links_lead_through_one_moment, NOTES);
/// From any window, though items are appended after each: the links keep order, limit and moment.
async fn links_lead_through_one_moment(history: &'static History) {
    let mut total = history.pages(3.5).max(7);
    let service = Service::filled(history, total).await;
    let limit = (total / 7).min(100);
    for order in ["", "&order=asc", "&order=desc"] {
        let direction = order.strip_prefix("&order=").unwrap_or("asc");
        let began = total;
        let to = |offset: u64| history.at(1, &format!("?offset={offset}&limit={limit}&asOf={began}{order}"));
        let last = (began - 1) / limit * limit;
        let mut path = history.at(1, &format!("?offset=0&limit={limit}{order}"));
        let (mut shown, mut offset) = (Vec::new(), 0);
        loop {
            let answer = service.client.get(&path).await;
            let body = answer.expect(200);
            assert_eq!(body[TOTAL], began, "{path}");
            shown.extend(history.seqs(&body));
            let mut links = json!({ "self": path, "first": to(0), "last": to(last) });
            if offset > 0 {
                links["prev"] = json!(to(offset - limit));
            }
            if offset < last {
                links["next"] = json!(to(offset + limit));
                assert!(answer.header("link").contains(&format!("<{}>; rel=\"next\"", to(offset + limit))));
            }
            assert_eq!(body["links"], links);
            service.client.append_all(1, total + 1..=total + 3).await;
            total += 3;
            let Some(next) = body["links"]["next"].as_str() else { break };
            (path, offset) = (next.to_owned(), offset + limit);
        }
        assert_eq!(shown, expected(direction, began, 0, began), "{order}");
    }
}

test_over!(headers_tell_what_is_shown, NOTES);
/// In every listing with totals, whichever way it is asked for; in its 304 and for HEAD too, and if it is
/// compressed.
async fn headers_tell_what_is_shown(history: &'static History) {
    let (page, total) = (history.page_size, history.pages(2.5));
    let service = Service::filled(history, total).await;
    for (query, first, last) in [
        ("".to_owned(), 1, page),
        ("?page=2".to_owned(), page + 1, 2 * page),
        ("?page=3".to_owned(), 2 * page + 1, total),
        ("?limit=1".to_owned(), 1, 1),
        ("?after=1&limit=2".to_owned(), 2, 3),
        (format!("?before={total}&limit=2"), total - 2, total - 1),
        (format!("?after={total}"), 1, 0),
        ("?offset=2&limit=2".to_owned(), 3, 4),
        (format!("?offset={total}"), 1, 0),
    ] {
        let path = history.at(1, &query);
        let answer = service.client.get(&path).await;
        let seqs = history.seqs(&answer.expect(200));
        assert_eq!(seqs, (first..=last).collect::<Vec<_>>(), "{path}");
        assert_tells(&answer, &seqs, "asc", total);
        let tag = answer.header("etag");
        for method in [Method::GET, Method::HEAD] {
            let known = service.client.send(method.clone(), &path, |request| {
                request.header("if-none-match", tag).header("accept-encoding", "gzip")
            });
            let known = known.await;
            assert_eq!((known.status.as_u16(), known.header("etag")), (304, tag), "{path}");
            assert_tells(&known, &seqs, "asc", total);
        }
        let packed =
            service.client.send(Method::GET, &path, |request| request.header("accept-encoding", "gzip"));
        let head = service.client.send(Method::HEAD, &path, |request| request).await;
        assert_tells(&head, &seqs, "asc", total);
        let packed = packed.await;
        assert_eq!((packed.status.as_u16(), packed.header("content-encoding")), (200, "gzip"), "{path}");
        assert_tells(&packed, &seqs, "asc", total);
    }
    for (query, first, last) in [
        ("?order=desc".to_owned(), total, 2 * page + 1),
        ("?order=desc&page=1".to_owned(), page, 1),
        ("?order=desc&limit=2".to_owned(), total, total - 1),
        ("?order=desc&after=1&limit=2".to_owned(), 3, 2),
        ("?order=desc&offset=1&limit=2".to_owned(), total - 1, total - 2),
    ] {
        let answer = service.client.get(&history.at(1, &query)).await;
        let seqs = history.seqs(&answer.expect(200));
        assert_eq!(seqs, (last..=first).rev().collect::<Vec<_>>(), "{query}");
        assert_tells(&answer, &seqs, "desc", total);
    }
    // The 304 of a window that is known without a look at the database.
    let path = history.at(1, &format!("?offset=1&limit=2&order=desc&asOf={page}"));
    let tag = service.client.get(&path).await.header("etag").to_owned();
    let known =
        service.client.send(Method::GET, &path, |request| request.header("if-none-match", &tag)).await;
    assert_eq!((known.status.as_u16(), known.header("server-timing")), (304, "db;dur=0.000"));
    assert_tells(&known, &expected("desc", page, 1, 2), "desc", page);
}

const TRADES: &str = "/v1/customers/1/trades";

/// 34 trades.
async fn thirty_four() -> Service {
    let service = Service::start().await;
    service.client.append(1, &json!((1..=34).map(trade).collect::<Vec<_>>())).await.expect(201);
    service
}

async fn ranged(service: &Service, path: &str, range: &str) -> Answer {
    service.client.send(Method::GET, path, |request| request.header("range", range)).await
}

/// The answer is that of the same offset and limit, but for its status, its tag and its own address.
#[tokio::test(flavor = "multi_thread")]
async fn ranges_are_parts() {
    let service = thirty_four().await;
    for (range, offset, limit) in
        [("items=0-9", 0, 10), ("items=30-39", 30, 10), ("Items=33-33", 33, 1), ("items=3-102", 3, 100)]
    {
        for (query, order, total) in [
            ("", "asc", 34),
            ("order=desc", "desc", 34),
            ("order=desc&asOf=33", "desc", 33),
            ("asOf=34", "asc", 34),
        ] {
            let answer = ranged(&service, &format!("{TRADES}?{query}"), range).await;
            let same = service.client.get(&format!("{TRADES}?{query}&offset={offset}&limit={limit}")).await;
            if offset >= total {
                answer.problem(416, "range-not-satisfiable");
                continue;
            }
            let (mut body, mut same_body): (Value, Value) = (answer.expect(206), same.expect(200));
            assert_tells(&answer, &service.history.seqs(&body), order, total);
            for name in ["content-range", "x-total-count", "cache-control", "vary"] {
                assert_eq!(answer.headers.get(name), same.headers.get(name), "{name} of {range}, {query}");
            }
            for body in [&mut body, &mut same_body] {
                body["links"]["self"].take();
            }
            assert_eq!(body, same_body, "{range}, {query}");
        }
    }
    let compressed = service.client.send(Method::GET, TRADES, |request| {
        request.header("range", "items=0-9").header("accept-encoding", "gzip")
    });
    let compressed = compressed.await;
    assert_eq!((compressed.status.as_u16(), compressed.header("content-encoding")), (206, "gzip"));
    assert_tells(&compressed, &(1..=10).collect::<Vec<_>>(), "asc", 34);
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_beyond_the_end() {
    let service = thirty_four().await;
    for (path, range, total) in [
        (TRADES, "items=34-43", 34),
        (TRADES, "items=9007199254740991-9007199254740991", 34),
        ("/v1/customers/1/trades?order=desc", "items=34-34", 34),
        ("/v1/customers/1/trades?asOf=20", "items=20-29", 20),
        ("/v1/customers/2/trades", "items=0-9", 0),
    ] {
        let answer = ranged(&service, path, range).await;
        answer.problem(416, "range-not-satisfiable");
        assert_tells(&answer, &[], "asc", total);
        assert_eq!(answer.header("cache-control"), "no-cache");
        assert!(!answer.headers.contains_key("etag"), "{answer:?}");
        let any = service
            .client
            .send(Method::GET, path, |request| request.header("range", range).header("if-none-match", "*"));
        any.await.problem(416, "range-not-satisfiable");
    }
}

/// The address of all of these is the same, and each has other bytes.
#[tokio::test(flavor = "multi_thread")]
async fn ranges_have_tags_of_their_own() {
    let service = thirty_four().await;
    for path in [TRADES.to_owned(), format!("{TRADES}?asOf=34&offset=0"), format!("{TRADES}?order=desc")] {
        // With `asOf` alone there is no answer without a range.
        let whole = service.client.get(&path).await;
        let path = path.replace("&offset=0", "");
        let mut tags = vec![whole.header("etag").to_owned()];
        for range in ["items=0-9", "items=0-8", "items=10-19", "items=1-9"] {
            let answer = ranged(&service, &path, range).await;
            assert_eq!(answer.status, 206, "{path}: {range}");
            let tag = answer.header("etag").to_owned();
            for (known, status) in [(&tag, 304), (&tags[0], 206)] {
                let again = service.client.send(Method::GET, &path, |request| {
                    request.header("range", range).header("if-none-match", known)
                });
                let again = again.await;
                assert_eq!(again.status, status, "{path}: {range}, {known}");
                for name in
                    ["content-range", "x-total-count", "vary", "accept-ranges", "cache-control", "etag"]
                {
                    assert_eq!(
                        again.headers.get(name),
                        answer.headers.get(name),
                        "{name} of {path}: {range}"
                    );
                }
            }
            tags.push(tag);
        }
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 5, "{tags:?}");
    }
    let before = ranged(&service, TRADES, "items=0-9").await.header("etag").to_owned();
    service.client.append(1, &trade(35)).await.expect(201);
    assert_ne!(ranged(&service, TRADES, "items=0-9").await.header("etag"), before, "its total is another");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_range_of_items_is_ignored() {
    let service = thirty_four().await;
    let whole = service.client.get(TRADES).await;
    for range in ["bytes=0-9", "bytes=0-9, items=0-9", "rows=0-9", "items", "0-9", ""] {
        let answer = ranged(&service, TRADES, range).await;
        assert_eq!((answer.status.as_u16(), &answer.body), (200, &whole.body), "{range}");
        assert_eq!(answer.header("etag"), whole.header("etag"), "{range}");
    }
    let head =
        service.client.send(Method::HEAD, TRADES, |request| request.header("range", "items=0-4")).await;
    assert_eq!((head.status.as_u16(), head.header("content-range")), (200, "items 0-9/34"));
    let tag = whole.header("etag");
    let conditional = service
        .client
        .send(Method::GET, TRADES, |request| request.header("range", "items=0-4").header("if-range", tag));
    assert_eq!(conditional.await.status, 200);
    // Only listings have ranges.
    for path in
        ["/v1/customers", "/v1/customers/1", "/v1/customers/1/trades/pages/1", "/v1/customers/1/trades/1"]
    {
        let answer = ranged(&service, path, "items=0-0").await;
        assert_eq!((answer.status.as_u16(), answer.headers.get("accept-ranges")), (200, None), "{path}");
    }
    let append = service
        .client
        .send(Method::POST, TRADES, |request| request.header("range", "items=0-0").json(&trade(35)));
    append.await.expect(201);
}

/// A span of time and the list of owners would have to be counted.
#[tokio::test(flavor = "multi_thread")]
async fn no_totals_no_headers() {
    let service = thirty_four().await;
    for path in
        ["/v1/customers/1/trades?from=2004-01-01T00:00:00Z", "/v1/customers?limit=1", "/v1/customers/1"]
    {
        let answer = service.client.get(path).await;
        for name in ["x-total-count", "content-range", "accept-ranges"] {
            assert_eq!((answer.status.as_u16(), answer.headers.get(name)), (200, None), "{name} of {path}");
        }
    }
}
