//! `GET /metrics`: what is measured, and that the documentation names it all.

use std::collections::BTreeSet;

use crate::harness::{Service, tests, trade};

tests!["metrics": what_is_measured_is_documented, routes_not_addresses_are_counted];

/// The names that have a `TYPE` line.
fn names(exposition: &str) -> BTreeSet<&str> {
    let types = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|line| line.split(' ').next()).collect()
}

async fn exposition(service: &Service) -> String {
    let answer = service.client.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
    String::from_utf8(answer.body).expect("text")
}

async fn what_is_measured_is_documented() {
    let service = Service::start().await;
    service.client.append(1, &trade(1)).await.expect(201);
    let exposition = exposition(&service).await;
    let documented =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md")).expect("docs");
    let names = names(&exposition);
    for name in [
        "pagebucket_http_requests_total",
        "pagebucket_http_request_duration_seconds",
        "pagebucket_append_queue_trades",
        "pagebucket_commit_duration_seconds",
        "pagebucket_commit_statements",
        "pagebucket_commit_trades",
        "pagebucket_catalog_lookups_total",
        "pagebucket_catalog_customers",
    ] {
        assert!(names.contains(name), "{name} is not measured: {names:?}");
    }
    for name in names {
        assert!(documented.contains(&format!("`{name}`")), "docs/metrics.md does not name {name}");
        assert!(exposition.contains(&format!("# HELP {name} ")), "{name} has no help");
    }
}

async fn routes_not_addresses_are_counted() {
    let service = Service::start().await;
    service.client.get("/v1/customers/424242/trades/pages/77").await.problem(404, "page-not-found");
    service.client.get("/nowhere/424242").await.problem(404, "not-found");
    let exposition = exposition(&service).await;
    let counted = |route: &str, status: &str| {
        let (route, status) = (format!("route=\"{route}\""), format!("status=\"{status}\""));
        let mut lines = exposition.lines().filter(|line| line.starts_with("pagebucket_http_requests_total{"));
        lines.any(|line| line.contains(&route) && line.contains(&status))
    };
    assert!(counted("/v1/customers/{customerId}/trades/pages/{page}", "404"), "{exposition}");
    assert!(counted("none", "404"), "{exposition}");
    assert!(!exposition.contains("424242"), "an address in a label");
}
