//! A session with the API, as its users have it.

use serde_json::{Value, json};

use crate::harness::{Service, tests, trade, trade_at};

tests!["service": an_append_and_its_pages, an_empty_history, newest_first, pages_and_trades_by_address, probes_and_site];

async fn an_append_and_its_pages() {
    let service = Service::start().await;
    let many: Vec<Value> = (1..=25).map(|n| trade_at(n, "2004-01-09T00:00:00Z")).collect();
    let answer = service.client.append(7, &json!(many)).await;
    let body = answer.expect(201);
    assert_eq!(body["ranges"], json!([{ "firstSeq": 1, "lastSeq": 25 }]));
    assert_eq!((&body["totalTrades"], &body["totalPages"]), (&json!(25), &json!(3)));
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
    assert_eq!((&body["totalTrades"], &body["totalPages"]), (&json!(26), &json!(3)));
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

async fn an_empty_history() {
    let service = Service::start().await;
    let body = service.client.get("/v1/customers/9007199254740991/trades").await.expect(200);
    assert_eq!(body["items"], json!([]));
    assert_eq!((&body["totalTrades"], &body["totalPages"], &body["page"]), (&json!(0), &json!(0), &json!(1)));
    assert_eq!(body["links"].as_object().unwrap().len(), 1, "only self");
    service.client.get("/v1/customers/5/trades?page=1").await.expect(200);
    service.client.get("/v1/customers/5/trades?page=2").await.problem(404, "page-not-found");
    service.client.get("/v1/customers/5/trades/pages/1").await.problem(404, "page-not-found");
    service.client.get("/v1/customers/5/trades/1").await.problem(404, "trade-not-found");
    let summary = service.client.get("/v1/customers/5").await.expect(200);
    assert_eq!(
        summary,
        json!({ "customerId": 5, "totalTrades": 0, "totalPages": 0, "first": null, "last": null })
    );
}

async fn newest_first() {
    let service = Service::start().await;
    let many: Vec<Value> = (1..=25).map(trade).collect();
    service.client.append(1, &json!(many)).await.expect(201);
    let mut path = "/v1/customers/1/trades?order=desc".to_owned();
    let mut seen = Vec::new();
    loop {
        let body = service.client.get(&path).await.expect(200);
        assert_eq!(body["order"], "desc");
        seen.extend(body["items"].as_array().unwrap().iter().map(|item| item["seq"].as_u64().unwrap()));
        let Some(next) = body["links"]["next"].as_str() else { break };
        path = next.to_owned();
    }
    assert_eq!(seen, (1..=25).rev().collect::<Vec<_>>());
    let second = service.client.get("/v1/customers/1/trades?order=desc&page=2").await.expect(200);
    assert_eq!(second["links"]["prev"], "/v1/customers/1/trades?page=3&order=desc");
    assert_eq!(second["links"]["next"], "/v1/customers/1/trades?page=1&order=desc");
}

async fn pages_and_trades_by_address() {
    let service = Service::start().await;
    let many: Vec<Value> = (1..=125).map(trade).collect();
    service.client.append(3, &json!(many)).await.expect(201);
    for page in 1..=13_u64 {
        let body = service.client.get(&format!("/v1/customers/3/trades/pages/{page}")).await.expect(200);
        let count = if page == 13 { 5 } else { 10 };
        assert_eq!(body["firstSeq"], (page - 1) * 10 + 1);
        assert_eq!((&body["count"], &body["full"]), (&json!(count), &json!(page < 13)));
        assert_eq!(body["items"].as_array().unwrap().len(), count);
        assert_eq!(body.as_object().unwrap().len(), 6, "no totals, no links: {body}");
        let listed = service.client.get(&format!("/v1/customers/3/trades?page={page}")).await.expect(200);
        assert_eq!(listed["items"], body["items"]);
    }
    for seq in [1, 10, 11, 120, 125] {
        let body = service.client.get(&format!("/v1/customers/3/trades/{seq}")).await.expect(200);
        assert_eq!(
            (&body["seq"], &body["qty"], &body["page"]),
            (&json!(seq), &json!(seq), &json!((seq - 1) / 10 + 1))
        );
    }
    service.client.get("/v1/customers/3/trades/126").await.problem(404, "trade-not-found");
    service.client.get("/v1/customers/3/trades/9007199254740991").await.problem(404, "trade-not-found");
    service.client.get("/v1/customers/3/trades/pages/9007199254740991").await.problem(404, "page-not-found");
    let summary = service.client.get("/v1/customers/3").await.expect(200);
    assert_eq!((&summary["first"]["seq"], &summary["last"]["seq"]), (&json!(1), &json!(125)));
    assert_eq!((&summary["totalTrades"], &summary["totalPages"]), (&json!(125), &json!(13)));
}

async fn probes_and_site() {
    let service = Service::start().await;
    assert_eq!(service.client.get("/livez").await.expect(200)["status"], "ok");
    assert_eq!(service.client.get("/readyz").await.expect(200)["status"], "ok");
    let home = service.client.get("/").await;
    let home = String::from_utf8(home.body).unwrap();
    assert!(home.contains("href=\"/docs/\"") && home.contains("href=\"/openapi.json\""));
    let problems = service.client.get("/problems").await;
    assert!(String::from_utf8(problems.body).unwrap().contains("id=\"outcome-unknown\""));
    assert_eq!(service.client.get("/docs").await.status, 303);
    let page = String::from_utf8(service.client.get("/docs/").await.body).unwrap();
    assert!(page.contains("swagger-ui"));
    assert!(!page.contains("src=\"http"), "usable without a network");
}
