//! Windows: the trades nearest a cursor, of exact sizes, whatever pages they are on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::harness::{Client, Service, seqs, tests, trade};

tests!["windows":
    sizes_are_exact_across_pages,
    a_cursor_beyond_the_end,
    order_only_arranges,
    links_lead_through_all_of_it,
    what_is_newer_can_be_asked_for_again,
    walks_beside_a_writer,
];

async fn filled(service: &Service, customer: u64, trades: u64) {
    let many: Vec<Value> = (1..=trades).map(trade).collect();
    service.client.append(customer, &json!(many)).await.expect(201);
}

async fn sizes_are_exact_across_pages() {
    let service = Service::start().await;
    filled(&service, 1, 125).await;
    for limit in [1, 2, 9, 10, 11, 25, 99, 100] {
        for cursor in [0, 1, 4, 9, 10, 11, 15, 99, 100, 119, 120, 124, 125] {
            let path = format!("/v1/customers/1/trades?after={cursor}&limit={limit}");
            let body = service.client.get(&path).await.expect(200);
            let expected: Vec<u64> = (cursor + 1..=125).take(limit).collect();
            assert_eq!(seqs(&body), expected, "{path}");
            assert_eq!((&body["totalTrades"], &body["totalPages"]), (&json!(125), &json!(13)), "{path}");
            assert_eq!((body.get("page"), body.get("full")), (None, None), "{path}");

            let path = format!("/v1/customers/1/trades?before={}&limit={limit}", cursor + 1);
            let body = service.client.get(&path).await.expect(200);
            let mut expected: Vec<u64> = (1..=cursor).rev().take(limit).collect();
            expected.reverse();
            assert_eq!(seqs(&body), expected, "{path}");
        }
        let oldest = service.client.get(&format!("/v1/customers/1/trades?limit={limit}")).await.expect(200);
        assert_eq!(seqs(&oldest), (1..=125).take(limit).collect::<Vec<_>>());
        let newest = format!("/v1/customers/1/trades?limit={limit}&order=desc");
        let newest = service.client.get(&newest).await.expect(200);
        assert_eq!(seqs(&newest), (1..=125).rev().take(limit).collect::<Vec<_>>());
    }
    let default = service.client.get("/v1/customers/1/trades?after=3").await.expect(200);
    assert_eq!(seqs(&default), (4..=13).collect::<Vec<_>>());
}

async fn a_cursor_beyond_the_end() {
    let service = Service::start().await;
    filled(&service, 1, 25).await;
    for (customer, cursor) in [(1, 25), (1, 26), (1, 9_007_199_254_740_991_u64), (2, 0), (2, 7)] {
        let path = format!("/v1/customers/{customer}/trades?after={cursor}&limit=5");
        let body = service.client.get(&path).await.expect(200);
        assert_eq!(body["items"], json!([]), "{path}");
        assert_eq!(body["links"].get("next"), None, "{path}");
        assert_eq!(body["links"]["newer"], path, "nothing may be missed: {path}");
    }
    let before =
        service.client.get("/v1/customers/1/trades?before=9007199254740991&limit=4").await.expect(200);
    assert_eq!(seqs(&before), [22, 23, 24, 25]);
    let before = service.client.get("/v1/customers/1/trades?before=1&limit=4").await.expect(200);
    assert_eq!((seqs(&before), before["links"].get("prev")), (vec![], None));
    let unknown = service.client.get("/v1/customers/9/trades?limit=4").await.expect(200);
    assert_eq!((&unknown["totalTrades"], &unknown["items"]), (&json!(0), &json!([])));
}

async fn order_only_arranges() {
    let service = Service::start().await;
    filled(&service, 1, 45).await;
    for cursor in ["after=7&limit=25", "before=30&limit=12", "after=40", "before=3"] {
        let up = service.client.get(&format!("/v1/customers/1/trades?{cursor}")).await.expect(200);
        let same =
            service.client.get(&format!("/v1/customers/1/trades?{cursor}&order=asc")).await.expect(200);
        let down =
            service.client.get(&format!("/v1/customers/1/trades?order=desc&{cursor}")).await.expect(200);
        let mut reversed = seqs(&down);
        reversed.reverse();
        assert_eq!((seqs(&up), seqs(&same)), (reversed.clone(), reversed), "{cursor}");
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
        let now = body["totalTrades"].as_u64().expect("a number");
        assert!(now >= total && seqs(&body).iter().all(|seq| *seq <= now), "{total} before {body}");
        // It leaves the moment at which it began only where pages were not full.
        assert!(total == 0 || now == total || answer.header("cache-control") == "no-cache", "{path}");
        total = now;
        newer.get_or_insert_with(|| body["links"]["newer"].as_str().expect("always there").to_owned());
        let shown = seqs(&body);
        assert!(!shown.is_empty(), "no link leads to an empty window: {path}");
        seen.extend(shown);
        match body["links"]["next"].as_str() {
            Some(next) => path = next.to_owned(),
            None => return (seen, newer.expect("set above")),
        }
    }
}

async fn links_lead_through_all_of_it() {
    let service = Service::start().await;
    filled(&service, 1, 125).await;
    for limit in [1, 7, 10, 25, 100] {
        let (up, _) = walk(&service.client, &format!("/v1/customers/1/trades?limit={limit}")).await;
        assert_eq!(up, (1..=125).collect::<Vec<_>>());
        let (down, _) =
            walk(&service.client, &format!("/v1/customers/1/trades?limit={limit}&order=desc")).await;
        assert_eq!(down, (1..=125).rev().collect::<Vec<_>>());
    }
    let answer = service.client.get("/v1/customers/1/trades?after=50&limit=10").await;
    let links = &answer.expect(200)["links"];
    assert_eq!(
        *links,
        json!({
            "self": "/v1/customers/1/trades?after=50&limit=10", "first": "/v1/customers/1/trades?after=0&limit=10",
            "prev": "/v1/customers/1/trades?before=51&limit=10&asOf=125", "next": "/v1/customers/1/trades?after=60&limit=10&asOf=125",
            "last": "/v1/customers/1/trades?before=126&limit=10", "newer": "/v1/customers/1/trades?after=60&limit=10"
        })
    );
    let last = service.client.get(links["last"].as_str().unwrap()).await.expect(200);
    assert_eq!(seqs(&last), (116..=125).collect::<Vec<_>>());
    let back = service.client.get(links["prev"].as_str().unwrap()).await.expect(200);
    assert_eq!(seqs(&back), (41..=50).collect::<Vec<_>>());
    assert!(
        answer.header("link").contains("</v1/customers/1/trades?after=60&limit=10&asOf=125>; rel=\"next\"")
    );
    assert!(!answer.header("link").contains("newer"), "no registered relation");
}

async fn what_is_newer_can_be_asked_for_again() {
    let service = Service::start().await;
    let empty = service.client.get("/v1/customers/1/trades?limit=3").await.expect(200);
    let mut newer = empty["links"]["newer"].as_str().expect("also of nothing").to_owned();
    for (append, expected) in
        [(2_u64, vec![1, 2]), (9, vec![3, 4, 5]), (0, vec![6, 7, 8]), (0, vec![9, 10, 11]), (0, vec![])]
    {
        if append > 0 {
            let from =
                service.client.get("/v1/customers/1").await.expect(200)["totalTrades"].as_u64().unwrap();
            let many: Vec<Value> = (from + 1..=from + append).map(trade).collect();
            service.client.append(1, &json!(many)).await.expect(201);
        }
        let body = service.client.get(&newer).await.expect(200);
        assert_eq!(seqs(&body), expected);
        newer = body["links"]["newer"].as_str().expect("always there").to_owned();
    }
}

/// A walk to either end while a writer appends as fast as it can, and then on with what is newer:
/// every trade once.
async fn walks_beside_a_writer() {
    const TRADES: u64 = 3_000;
    let service = Service::start().await;
    filled(&service, 1, 200).await;
    let done = Arc::new(AtomicBool::new(false));
    let writer = {
        let (client, done) = (service.client.clone(), Arc::clone(&done));
        tokio::spawn(async move {
            let mut next = 201;
            let mut size = 1;
            while next <= TRADES {
                let last = (next + size - 1).min(TRADES);
                let many: Vec<Value> = (next..=last).map(trade).collect();
                client.append(1, &json!(many)).await.expect(201);
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
                tokio::spawn(async move {
                    let (mut seen, mut newer) =
                        walk(&client, &format!("/v1/customers/1/trades?{query}")).await;
                    if !query.contains("desc") {
                        newer =
                            format!("/v1/customers/1/trades?after={}&limit={limit}", seen.last().unwrap());
                    }
                    loop {
                        let all_is_written = done.load(Ordering::Acquire);
                        let body = client.get(&newer).await.expect(200);
                        let shown = seqs(&body);
                        assert!(shown.len() <= limit);
                        if shown.is_empty() && all_is_written {
                            return seen;
                        }
                        seen.extend(shown);
                        newer = body["links"]["newer"].as_str().expect("always there").to_owned();
                    }
                })
            });
    for reader in readers {
        let seen = reader.await.expect("no panic");
        assert_eq!(seen.len() as u64, TRADES, "each once");
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>().len() as u64, TRADES, "none left out");
    }
    writer.await.expect("no panic");
}
