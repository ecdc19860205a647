//! A session with the API, as its users have it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    History, ITEM_NOT_FOUND, Service, Setup, TOTAL, eventually, shared, test_over, trade, trade_at,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_append_and_its_pages() {
    let service = Service::start().await;
    let many: Vec<Value> = (1..=25).map(|n| trade_at(n, "2004-01-09T00:00:00Z")).collect();
    let answer = service.client.append(7, &json!(many)).await;
    let body = answer.expect(201);
    assert_eq!(body["ranges"], json!([{ "firstSeq": 1, "lastSeq": 25 }]));
    assert_eq!((&body[TOTAL], &body["totalPages"]), (&json!(25), &json!(3)));
    assert_eq!(answer.header("location"), "/v1/customers/7/trades/1");

    let body = service
        .client
        .append(7, &json!({ "type": "buy", "ticker": "BRK.B", "qty": 1, "price": "15.50" }))
        .await
        .expect(201);
    assert_eq!(body["ranges"], json!([{ "firstSeq": 26, "lastSeq": 26 }]));

    let answer = service.client.get("/v1/customers/7/trades?page=2").await;
    let body = answer.expect(200);
    let seqs: Vec<_> =
        body["items"].as_array().unwrap().iter().map(|item| item["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (11..=20).collect::<Vec<_>>());
    assert_eq!(
        body["items"][0],
        json!({
            "seq": 11, "type": "sell", "ticker": "MDB", "qty": 11, "date": "2004-01-09T00:00:00.000Z"
        })
    );
    assert_eq!((&body["page"], &body["full"], &body["order"]), (&json!(2), &json!(true), &json!("asc")));
    assert_eq!((&body[TOTAL], &body["totalPages"]), (&json!(26), &json!(3)));
    assert_eq!(
        body["links"],
        json!({
            "self": "/v1/customers/7/trades?page=2", "first": "/v1/customers/7/trades?page=1",
            "prev": "/v1/customers/7/trades?page=1", "next": "/v1/customers/7/trades?page=3",
            "last": "/v1/customers/7/trades?page=3"
        })
    );
    assert!(answer.header("link").contains("</v1/customers/7/trades?page=3>; rel=\"next\""));

    let last = service.client.get("/v1/customers/7/trades?page=3").await.expect(200);
    assert_eq!(last["links"].get("next"), None);
    assert_eq!(last["full"], false);
    let newest = &last["items"][5];
    assert_eq!((&newest["price"], &newest["ticker"]), (&json!("15.50"), &json!("BRK.B")));
    service.client.get("/v1/customers/7/trades?page=4").await.problem(404, "page-not-found");
}

test_over!(an_empty_history, NOTES);
async fn an_empty_history(history: &'static History) {
    let service = Service::of(history).await;
    let body = service.client.get(&history.path(9_007_199_254_740_991)).await.expect(200);
    assert_eq!(body["items"], json!([]));
    assert_eq!((&body[TOTAL], &body["totalPages"], &body["page"]), (&json!(0), &json!(0), &json!(1)));
    assert_eq!(body["links"].as_object().unwrap().len(), 1, "only self");
    service.client.get(&history.at(5, "?page=1")).await.expect(200);
    service.client.get(&history.at(5, "?page=2")).await.problem(404, "page-not-found");
    service.client.get(&history.at(5, "/pages/1")).await.problem(404, "page-not-found");
    service.client.get(&history.at(5, "/1")).await.problem(404, ITEM_NOT_FOUND);
    let owner = service.client.get(&history.owner_path(5)).await.expect(200);
    assert_eq!(owner[history.owner_field], history.owner(5));
    let totals = history.totals(&owner);
    assert_eq!((&totals[TOTAL], &totals["totalPages"]), (&json!(0), &json!(0)));
    assert!(totals.get("first").is_none() && totals.get("last").is_none(), "{owner}");
}

test_over!(newest_first, NOTES);
async fn newest_first(history: &'static History) {
    let service = Service::of(history).await;
    let total = history.pages(2.5);
    service.client.append_all(1, 1..=total).await;
    let mut path = history.at(1, "?order=desc");
    let mut seen = Vec::new();
    loop {
        let body = service.client.get(&path).await.expect(200);
        assert_eq!(body["order"], "desc");
        seen.extend(history.seqs(&body));
        let Some(next) = body["links"]["next"].as_str() else { break };
        path = next.to_owned();
    }
    assert_eq!(seen, (1..=total).rev().collect::<Vec<_>>());
    let second = service.client.get(&history.at(1, "?order=desc&page=2")).await.expect(200);
    assert_eq!(second["links"]["prev"], history.at(1, "?page=3&order=desc"));
    assert_eq!(second["links"]["next"], history.at(1, "?page=1&order=desc"));
}

test_over!(pages_and_items_by_address, ALL);
async fn pages_and_items_by_address(history: &'static History) {
    let service = Service::of(history).await;
    let (size, total) = (history.page_size, history.pages(12.5));
    service.client.append_all(3, 1..=total).await;
    for page in 1..=13_u64 {
        let body = service.client.get(&history.at(3, &format!("/pages/{page}"))).await.expect(200);
        let count = if page == 13 { total - 12 * size } else { size };
        assert_eq!(body["firstSeq"], (page - 1) * size + 1);
        assert_eq!((&body["count"], &body["full"]), (&json!(count), &json!(page < 13)));
        assert_eq!(history.seqs(&body).len() as u64, count);
        assert_eq!(body.as_object().unwrap().len(), 6, "no totals, no links: {body}");
        let listed = service.client.get(&history.at(3, &format!("?page={page}"))).await.expect(200);
        assert_eq!(listed["items"], body["items"]);
        for item in body["items"].as_array().unwrap() {
            assert!(history.shows_what_was_sent(item), "{item}");
        }
    }
    for seq in [1, size, size + 1, 12 * size, total] {
        let body = service.client.get(&history.at(3, &format!("/{seq}"))).await.expect(200);
        assert_eq!((&body["seq"], history.number(&body)), (&json!(seq), seq));
        assert_eq!(body["page"], history.page_of(seq));
    }
    for beyond in [total + 1, 9_007_199_254_740_991] {
        service.client.get(&history.at(3, &format!("/{beyond}"))).await.problem(404, ITEM_NOT_FOUND);
    }
    let beyond = history.at(3, "/pages/9007199254740991");
    service.client.get(&beyond).await.problem(404, "page-not-found");
    let owner = service.client.get(&history.owner_path(3)).await.expect(200);
    let totals = history.totals(&owner);
    assert_eq!((&totals["first"]["seq"], &totals["last"]["seq"]), (&json!(1), &json!(total)));
    assert_eq!((&totals[TOTAL], &totals["totalPages"]), (&json!(total), &json!(13)));
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_site() {
    let service = Service::start().await;
    assert_eq!(service.client.get("/livez").await.expect(200)["status"], "ok");
    assert_eq!(service.client.get("/readyz").await.expect(200)["status"], "ok");
    let home = service.client.get("/").await;
    let home = String::from_utf8(home.body).unwrap();
    assert!(home.contains("href=\"./docs/\""));
    // The one that all generators read comes first.
    let at = |document: &str| home.find(&format!("href=\".{document}\"")).unwrap();
    assert!(at("/openapi-3.0.json") < at("/openapi.json"), "{home}");
    let problems = service.client.get("/problems").await;
    assert!(String::from_utf8(problems.body).unwrap().contains("id=\"outcome-unknown\""));
    assert_eq!(service.client.get("/docs").await.status, 303);
    let page = String::from_utf8(service.client.get("/docs/").await.body).unwrap();
    assert!(page.contains("swagger-ui"));
    assert!(!page.contains("src=\"http"), "usable without a network");
    for path in ["/", "/problems", "/docs/"] {
        let page = String::from_utf8(service.client.get(path).await.body).unwrap();
        assert!(page.contains("pagebucket</title>") && page.contains("icon.svg\""), "{page}");
    }
    for (path, media_type) in [("/icon.svg", "image/svg+xml"), ("/favicon.ico", "image/vnd.microsoft.icon")] {
        let icon = service.client.get(path).await;
        assert_eq!((icon.status.as_u16(), icon.header("content-type")), (200, media_type));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_at_once_share_a_ping() {
    const PROBES: u64 = 200;
    let pings = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&pings);
    let setup = Setup::on(shared().await).observed(move |name, _| {
        count.fetch_add(u64::from(name == "ping"), Ordering::Relaxed);
    });
    let service = setup.start().await;
    let before = pings.load(Ordering::Relaxed);
    for answer in join_all((0..PROBES).map(|_| service.client.get("/readyz"))).await {
        answer.expect(200);
    }
    let shared = pings.load(Ordering::Relaxed) - before;
    assert!((1..PROBES).contains(&shared), "{shared} pings for {PROBES} probes at once");
    // An answer of before says nothing of now.
    service.client.get("/readyz").await.expect(200);
    assert_eq!(pings.load(Ordering::Relaxed) - before, shared + 1);
}

/// The driver closes its connections when nothing refers to its client any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_has_stopped_keeps_no_connection() {
    let client = Arc::new(());
    let held = Arc::clone(&client);
    let setup = Setup::on(shared().await).observed(move |_, _| {
        let _of_the_client = &held;
    });
    let service = setup.start().await;
    service.client.append(1, &json!([trade(1), trade(2)])).await.expect(201);
    service.client.append_once(1, "key", &trade(3)).await.expect(201);
    for path in ["", "/pages/1", "/summary?by=1d", "/export.ndjson"] {
        assert_eq!(service.client.get(&format!("/v1/customers/1/trades{path}")).await.status, 200, "{path}");
    }
    let stream = service.client.begin(Method::GET, "/v1/customers/1/trades/live", |request| request).await;
    assert_eq!(stream.expect("a stream").status(), 200);
    let view = json!({ "path": "/", "at": "2026-01-05T00:00:00Z", "views": 1 });
    service.client.post_text("/v1/page-views", view.to_string()).await;
    assert!(service.stop().await);
    let within = Duration::from_secs(60);
    eventually("its client is gone", within, async || Arc::strong_count(&client) == 1).await;
}
