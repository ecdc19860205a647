//! The customers there are, in order, at the cost of those shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mongodb::bson::doc;
use serde_json::{Value, json};

use crate::cost::{profiled, sum};
use crate::harness::{Service, Setup, fill, shared, tests, trade};

tests!["customers":
    all_of_them_in_order,
    the_cost_is_that_of_the_page,
    the_greatest_id_there_is,
    new_ones_do_not_disturb_a_walk,
    a_corrupt_tail_is_told,
    bad_parameters,
];

const GREATEST: u64 = (1 << 53) - 1;

/// Ids and totals of a listing.
#[track_caller]
fn shown(listing: &Value) -> Vec<(u64, u64, u64)> {
    let number = |value: &Value| value.as_u64().expect("a number");
    let items = listing["items"].as_array().expect("items");
    items
        .iter()
        .map(|item| (number(&item["customerId"]), number(&item["totalTrades"]), number(&item["totalPages"])))
        .collect()
}

/// Follows `next` to the end.
async fn walk(service: &Service, first: &str) -> Vec<Vec<(u64, u64, u64)>> {
    let mut pages = Vec::new();
    let mut next = Some(first.to_owned());
    while let Some(path) = next {
        let listing = service.client.get(&path).await.expect(200);
        assert_eq!(listing["links"]["self"], path);
        next = listing["links"].get("next").map(|next| next.as_str().expect("a link").to_owned());
        pages.push(shown(&listing));
    }
    pages
}

async fn all_of_them_in_order() {
    let service = Service::start().await;
    let none = service.client.get("/v1/customers").await;
    assert_eq!(none.expect(200), json!({ "items": [], "links": { "self": "/v1/customers" } }));
    assert_eq!(none.header("link"), "</v1/customers>; rel=\"self\"");
    // By number, not by text, and not in the order in which they came.
    let mut expected = Vec::new();
    for (customer, trades) in [(1000, 1), (9, 10), (10, 11), (2, 25), (100, 9)] {
        let many: Vec<Value> = (1..=trades).map(trade).collect();
        service.client.append(customer, &json!(many)).await.expect(201);
        expected.push((customer, trades, trades.div_ceil(10)));
    }
    expected.sort_unstable();
    for limit in 1..=6 {
        let pages = walk(&service, &format!("/v1/customers?limit={limit}")).await;
        assert!(pages.iter().all(|page| !page.is_empty()), "no link leads to nothing: {pages:?}");
        assert_eq!(pages.len(), expected.len().div_ceil(limit), "{limit}");
        assert_eq!(pages.concat(), expected, "{limit}");
    }
    for (after, from) in [(1, 0), (2, 1), (8, 1), (9, 2), (999, 4), (1000, 5), (GREATEST, 5)] {
        let listing = service.client.get(&format!("/v1/customers?after={after}")).await.expect(200);
        assert_eq!(shown(&listing), expected[from..], "after {after}");
    }
}

/// Two keys a customer shown to find it, and one key and one document for its tail, and two more keys to
/// know whether there is another: whatever else there is.
async fn the_cost_is_that_of_the_page() {
    let service = Service::start().await;
    for customer in [5, 3_000, 1, GREATEST, 70] {
        fill(&service.database, customer, 3_000, 4).await;
    }
    for customer in (10_000..10_400).rev() {
        fill(&service.database, customer, 2, 1).await;
    }
    for (after, limit, first) in
        [(0, 1, 1), (0, 4, 1), (5, 25, 70), (3_000, 100, 10_000), (10_399, 100, GREATEST)]
    {
        let after_it = if after > 0 { format!("&after={after}") } else { String::new() };
        let path = format!("/v1/customers?limit={limit}{after_it}");
        let mut found = 0;
        let seen = profiled(&service, async {
            let listing = shown(&service.client.get(&path).await.expect(200));
            assert_eq!(listing[0].0, first, "{path}");
            found = listing.len() as i64;
        })
        .await;
        let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
        println!("{path}: {found} customers, {keys} keys, {documents} documents, {} commands", seen.len());
        assert!(
            seen.len() == 2 && documents <= found,
            "{path}: {documents} documents, {} commands",
            seen.len()
        );
        assert!(keys <= 3 * found + 2, "{path}: {keys} keys");
    }
}

async fn the_greatest_id_there_is() {
    let service = Service::start().await;
    service.client.append(GREATEST, &trade(1)).await.expect(201);
    service.client.append(GREATEST - 1, &trade(1)).await.expect(201);
    let pages = walk(&service, "/v1/customers?limit=1").await;
    assert_eq!(pages, [[(GREATEST - 1, 1, 1)], [(GREATEST, 1, 1)]]);
}

async fn new_ones_do_not_disturb_a_walk() {
    let service = Service::start().await;
    let own: Vec<u64> = (1..=60).map(|n| n * 10).collect();
    for &customer in &own {
        service.client.append(customer, &trade(1)).await.expect(201);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (client, stopped) = (service.client.clone(), Arc::clone(&stop));
    let writer = tokio::spawn(async move {
        let mut customer = 1;
        while !stopped.load(Ordering::Relaxed) {
            client.append(customer, &trade(1)).await.expect(201);
            customer += if customer % 10 == 9 { 2 } else { 1 };
        }
    });
    for _ in 0..5 {
        let walked: Vec<u64> =
            walk(&service, "/v1/customers?limit=7").await.concat().iter().map(|c| c.0).collect();
        assert!(walked.is_sorted_by(|one, next| one < next), "{walked:?}");
        assert!(own.iter().all(|customer| walked.contains(customer)), "{walked:?}");
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.expect("every append is stored");
}

async fn a_corrupt_tail_is_told() {
    let service = Setup::on(shared().await).start().await;
    service.client.append(1, &trade(1)).await.expect(201);
    let corrupt = doc! { "insert": "trades", "bypassDocumentValidation": true,
    "documents": [{ "_id": "7_0000000001", "customerId": 7_i64, "page": 1_i64, "count": 11, "history": [] }] };
    service.database.run_command(corrupt).await.expect("it takes anything");
    service.client.get("/v1/customers").await.problem(500, "internal");
    let others = service.client.get("/v1/customers?after=7").await.expect(200);
    assert_eq!(others["items"], json!([]));
}

async fn bad_parameters() {
    let service = Service::start().await;
    for (query, parameter) in [
        ("after=0", "after"),
        ("after=-1", "after"),
        ("after=9007199254740992", "after"),
        ("after=x", "after"),
        ("after=1&after=2", "after"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=1.5", "limit"),
        ("before=5", "before"),
    ] {
        let problem = service.client.get(&format!("/v1/customers?{query}")).await;
        let problem = problem.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{query}");
    }
}
