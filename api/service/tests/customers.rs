//! The customers there are, in order, at the cost of those shown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mongodb::bson::doc;
use serde_json::{Value, json};

use crate::cost::{profiled, sum};
use crate::harness::{History, Service, TOTAL, fill, spawn, test_over, trade};

const GREATEST: u64 = (1 << 53) - 1;

/// Ids and totals of a listing.
#[track_caller]
fn shown(history: &History, listing: &Value) -> Vec<(Value, u64, u64)> {
    let number = |value: &Value| value.as_u64().expect("a number");
    let items = listing["items"].as_array().expect("items");
    let shown = |owner: &Value| {
        let totals = history.totals(owner);
        (owner[history.owner_field].clone(), number(&totals[TOTAL]), number(&totals["totalPages"]))
    };
    items.iter().map(shown).collect()
}

/// Follows `next` to the end.
async fn walk(service: &Service, first: &str) -> Vec<Vec<(Value, u64, u64)>> {
    let mut pages = Vec::new();
    let mut next = Some(first.to_owned());
    while let Some(path) = next {
        let listing = service.client.get(&path).await.expect(200);
        assert_eq!(listing["links"]["self"], path);
        next = listing["links"].get("next").map(|next| next.as_str().expect("a link").to_owned());
        pages.push(shown(service.history, &listing));
    }
    pages
}

test_over!(all_of_them_in_order, SMALL);
async fn all_of_them_in_order(history: &'static History) {
    let service = Service::of(history).await;
    let all = history.owners_path();
    let none = service.client.get(&all).await;
    assert_eq!(none.expect(200), json!({ "items": [], "links": { "self": all } }));
    assert_eq!(none.header("link"), format!("<{all}>; rel=\"self\""));
    // By number, not by text, or by text as bytes; and not in the order in which they came.
    let owners = [(1000, 0.1), (9, 1.0), (10, 1.1), (2, 2.5), (100, 0.9)];
    let counts: BTreeMap<u64, u64> =
        owners.map(|(owner, pages)| (owner, history.pages(pages).max(1))).into_iter().collect();
    for (owner, _) in owners {
        service.client.append_all(owner, 1..=counts[&owner]).await;
    }
    let row = |owner: u64| (history.owner(owner), counts[&owner], history.page_of(counts[&owner]));
    let expected: Vec<_> = history.in_order(counts.keys().copied()).into_iter().map(row).collect();
    for limit in 1..=6 {
        let pages = walk(&service, &format!("{all}?limit={limit}")).await;
        assert!(pages.iter().all(|page| !page.is_empty()), "no link leads to nothing: {pages:?}");
        assert_eq!(pages.len(), expected.len().div_ceil(limit), "{limit}");
        assert_eq!(pages.concat(), expected, "{limit}");
    }
    for after in [1, 2, 8, 9, 999, 1000, 2000] {
        let listing = service.client.get(&format!("{all}?after={}", history.id(after))).await.expect(200);
        let in_order = history.in_order(counts.keys().copied().chain([after]));
        let beyond = in_order.into_iter().skip_while(|owner| *owner != after);
        let expected: Vec<_> = beyond.filter(|owner| *owner != after).map(row).collect();
        assert_eq!(shown(history, &listing), expected, "after {after}");
    }
}

test_over!(the_cost_is_that_of_the_page, SMALL);
/// Two keys an owner shown to find it, and one key and one document for its tail, and two more keys to
/// know whether there is another: whatever else there is.
async fn the_cost_is_that_of_the_page(history: &'static History) {
    let service = Service::of(history).await;
    for owner in [5, 3_000, 1, GREATEST, 70] {
        fill(&service.database, history, owner, 3_000, 1).await;
    }
    for owner in (10_000..10_400).rev() {
        fill(&service.database, history, owner, 2, 1).await;
    }
    let in_order = history.in_order([5, 3_000, 1, GREATEST, 70].into_iter().chain(10_000..10_400));
    for (after, limit) in [(None, 1), (None, 4), (Some(1), 25), (Some(3), 100), (Some(403), 100)] {
        let first = after.map_or(0, |after| after + 1);
        let after = after.map(|after| format!("&after={}", history.id(in_order[after])));
        let path = format!("{}?limit={limit}{}", history.owners_path(), after.unwrap_or_default());
        let mut found = 0;
        let seen = profiled(&service, async {
            let listing = shown(history, &service.client.get(&path).await.expect(200));
            assert_eq!(listing[0].0, history.owner(in_order[first]), "{path}");
            found = listing.len() as i64;
        })
        .await;
        let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
        println!("{path}: {found} owners, {keys} keys, {documents} documents, {} commands", seen.len());
        assert!(
            seen.len() == 2 && documents <= found,
            "{path}: {documents} documents, {} commands",
            seen.len()
        );
        assert!(keys <= 3 * found + 2, "{path}: {keys} keys");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_greatest_id_there_is() {
    let service = Service::start().await;
    service.client.append(GREATEST, &trade(1)).await.expect(201);
    service.client.append(GREATEST - 1, &trade(1)).await.expect(201);
    let pages = walk(&service, "/v1/customers?limit=1").await;
    assert_eq!(pages, [[(json!(GREATEST - 1), 1, 1)], [(json!(GREATEST), 1, 1)]]);
}

test_over!(new_ones_do_not_disturb_a_walk, SMALL);
async fn new_ones_do_not_disturb_a_walk(history: &'static History) {
    let service = Service::of(history).await;
    let own: Vec<u64> = (1..=60).map(|n| n * 10).collect();
    for &owner in &own {
        service.client.append(owner, &history.item(1)).await.expect(201);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (client, stopped) = (service.client.clone(), Arc::clone(&stop));
    let writer = spawn(async move {
        let mut owner = 1;
        while !stopped.load(Ordering::Relaxed) {
            client.append(owner, &history.item(1)).await.expect(201);
            owner += if owner % 10 == 9 { 2 } else { 1 };
        }
    });
    for _ in 0..5 {
        let pages = walk(&service, &format!("{}?limit=7", history.owners_path())).await;
        let walked: Vec<Value> = pages.concat().into_iter().map(|(owner, _, _)| owner).collect();
        let before = |one: &Value, next: &Value| match (one.as_u64(), next.as_u64()) {
            (Some(one), Some(next)) => one < next,
            _ => one.as_str() < next.as_str(),
        };
        assert!(walked.is_sorted_by(before), "{walked:?}");
        assert!(own.iter().all(|owner| walked.contains(&history.owner(*owner))), "{walked:?}");
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.expect("every append is stored");
}

test_over!(a_corrupt_tail_is_told, NOTES);
async fn a_corrupt_tail_is_told(history: &'static History) {
    let service = Service::of(history).await;
    service.client.append(1, &history.item(1)).await.expect(201);
    let mut corrupt = history.bucket(7, 1, 1, &[]);
    corrupt.insert("count", history.page_size as i32 + 1);
    let insert = doc! { "insert": history.name, "bypassDocumentValidation": true, "documents": [corrupt] };
    service.database.run_command(insert).await.expect("it takes anything");
    service.client.get(&history.owners_path()).await.problem(500, "internal");
    let after = format!("{}?after={}", history.owners_path(), history.id(7));
    let others = service.client.get(&after).await.expect(200);
    assert_eq!(others["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
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
