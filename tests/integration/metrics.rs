//! `GET /metrics`: what is measured, and that the documentation names it all.

use std::collections::BTreeSet;

use pagebucket_engine::internal::NUMBERED;
use pagebucket_model::metric::{ALL, Collections, MetricKind};

use crate::commands::program::Place;
use crate::harness::uploads::wire::Upload;
use crate::harness::uploads::{lines, upload};
use crate::harness::{PATIENCE, Service, eventually, trade};

/// Of the process, as Prometheus' client libraries name them.
const OF_PROCESS: [&str; 8] = [
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_max_fds",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
    "process_virtual_memory_max_bytes",
    "process_start_time_seconds",
    "process_threads",
];

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

#[tokio::test(flavor = "multi_thread")]
async fn what_is_measured_is_documented() {
    let service = Service::start().await;
    service.client.append(1, &trade(1)).await.expect(201);
    upload(&service.client, "/v1/customers/1/trades/upload", lines([1])).await.expect(200);
    let exposition = exposition(&service).await;
    let documented =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/metrics.md"))
            .expect("docs");
    let names = names(&exposition);
    for name in [
        "pagebucket_http_requests_total",
        "pagebucket_http_request_duration_seconds",
        "pagebucket_append_queue_bytes",
        "pagebucket_commit_duration_seconds",
        "pagebucket_commit_statements",
        "pagebucket_commit_items",
        "pagebucket_catalog_lookups_total",
        "pagebucket_catalog_owners",
        "pagebucket_uploads_total",
        "pagebucket_uploads_under_way",
        "pagebucket_upload_held_bytes",
        "pagebucket_upload_lines_read_total",
        "pagebucket_upload_lines_total",
    ] {
        assert!(names.contains(name), "{name} is not measured: {names:?}");
    }
    for name in OF_PROCESS {
        assert!(names.contains(name) && documented.contains(&format!("`{name}`")), "{name}");
    }
    for name in names {
        let is_known = OF_PROCESS.contains(&name) || ALL.iter().any(|metric| metric.name == name);
        assert!(is_known, "{name} is not in the table");
        assert!(exposition.contains(&format!("# HELP {name} ")), "{name} has no help");
    }
}

/// In a process of its own, in which nothing has happened.
#[tokio::test(flavor = "multi_thread")]
async fn every_known_series_is_there_from_the_start() {
    let place = Place::new().await;
    let serving = place.serve(&["--log", "error"]).await;
    let exposition = String::from_utf8(serving.client.get("/metrics").await.body).expect("text");
    let value =
        |series: &str| exposition.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let collections = Collections { histories: &["trades"], others: &NUMBERED };
    for metric in ALL {
        for labels in metric.series(collections) {
            let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let series = |suffix: &str| format!("{}{suffix}{labels}", metric.name);
            match metric.kind {
                MetricKind::Counter => assert_eq!(value(&series("")), Some("0"), "{}", series("")),
                MetricKind::Gauge => assert!(value(&series("")).is_some(), "{}", series("")),
                MetricKind::Histogram => assert_eq!(value(&series("_count")), Some("0"), "{}", series("")),
            }
        }
    }
    let route = "/v1/customers/{customerId}/trades";
    for (method, route) in [("GET", route), ("POST", route), ("GET", "/readyz")] {
        let failures = format!("{{method=\"{method}\",route=\"{route}\",status=\"503\"}}");
        assert_eq!(value(&format!("pagebucket_http_requests_total{failures}")), Some("0"), "{exposition}");
    }
    let version = format!("pagebucket_build_info{{version=\"{}\",", env!("CARGO_PKG_VERSION"));
    assert!(
        exposition.lines().any(|line| line.starts_with(&version) && line.ends_with(" 1")),
        "{exposition}"
    );
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_not_addresses_are_counted() {
    let service = Service::start().await;
    service.client.get("/v1/customers/424242/trades/pages/77").await.problem(404, "page-not-found");
    service.client.get("/nowhere/424242").await.problem(404, "not-found");
    assert_eq!(service.client.get("/v1/customers/424242/trades/export.csv").await.status, 200);
    let exposition = exposition(&service).await;
    let counted = |route: &str, status: &str| {
        let (route, status) = (format!("route=\"{route}\""), format!("status=\"{status}\""));
        let mut lines = exposition.lines().filter(|line| line.starts_with("pagebucket_http_requests_total{"));
        lines.any(|line| line.contains(&route) && line.contains(&status))
    };
    assert!(counted("/v1/customers/{customerId}/trades/pages/{page}", "404"), "{exposition}");
    assert!(counted("none", "404"), "{exposition}");
    assert!(counted("/v1/customers/{customerId}/trades/export.csv", "200"), "{exposition}");
    let address =
        |line: &&str| line.rsplit_once(' ').is_some_and(|(labels, _value)| labels.contains("424242"));
    assert_eq!(exposition.lines().find(address), None, "an address in a label");
}

/// In a process of its own: all services of the tests count together.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_are_counted() {
    let place = Place::new().await;
    let serving = place.serve(&["--log", "error"]).await;
    let counted = async || {
        let exposition = String::from_utf8(serving.client.get("/metrics").await.body).expect("text");
        let uploads = exposition.lines().filter(|line| {
            ["pagebucket_upload", "pagebucket_http_requests_under_way{class=\"streams\"}"]
                .iter()
                .any(|name| line.starts_with(name))
        });
        // What is remembered of a customer is held as long as the upload.
        let uploads = uploads.filter(|line| !line.starts_with("pagebucket_upload_held_bytes"));
        uploads.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let expected = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<BTreeSet<_>>();
    let body = format!("{}{{}}\n\n", lines([1, 2]));
    upload(&serving.client, "/v1/customers/1/trades/upload", body).await.expect(200);
    let finished = [
        "pagebucket_uploads_under_way 0",
        "pagebucket_http_requests_under_way{class=\"streams\"} 0",
        "pagebucket_uploads_total{result=\"abandoned\"} 0",
        "pagebucket_uploads_total{result=\"failed\"} 0",
        "pagebucket_uploads_total{result=\"stopped\"} 0",
        "pagebucket_uploads_total{result=\"finished\"} 1",
        "pagebucket_upload_lines_read_total 3",
        "pagebucket_upload_lines_total{result=\"stored\"} 2",
        "pagebucket_upload_lines_total{result=\"refused\"} 1",
        "pagebucket_upload_lines_total{result=\"unknown\"} 0",
        "pagebucket_upload_lines_total{result=\"not_stored\"} 0",
    ];
    assert_eq!(counted().await, expected(&finished));
    let mut cut = Upload::begin(serving.address, "/v1/customers/1/trades/upload", &[]).await;
    cut.send(&lines([3])).await;
    // While it is under way.
    let mut under_way = finished;
    under_way[0] = "pagebucket_uploads_under_way 1";
    under_way[1] = "pagebucket_http_requests_under_way{class=\"streams\"} 1";
    under_way[6] = "pagebucket_upload_lines_read_total 4";
    under_way[7] = "pagebucket_upload_lines_total{result=\"stored\"} 3";
    eventually("its line is counted", PATIENCE, async || counted().await == expected(&under_way)).await;
    let mut read = cut.cut("{").await;
    assert_eq!(read.line().await.expect("a problem")["stored"], 1);
    let mut ended = under_way.to_vec();
    ended[0] = "pagebucket_uploads_under_way 0";
    ended[1] = "pagebucket_http_requests_under_way{class=\"streams\"} 0";
    ended[2] = "pagebucket_uploads_total{result=\"abandoned\"} 1";
    eventually("it is over", PATIENCE, async || counted().await == expected(&ended)).await;
    let exposition = String::from_utf8(serving.client.get("/metrics").await.body).expect("text");
    assert!(exposition.lines().any(|line| line == "pagebucket_upload_held_bytes 0"), "{exposition}");
    serving.stop().await;
}
