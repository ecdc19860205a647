//! `serve --otlp-endpoint`: a collector gets the spans of traced requests. It decodes them by OpenTelemetry's
//! own definitions.

use std::collections::{HashMap, HashSet};
use std::process::Stdio;

use futures_util::future::join_all;
use mongodb::bson::doc;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::program::{Place, run};
use crate::harness::{Mongod, TRADES, skip, trade};

/// A collector that runs.
struct Collector {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    url: String,
}

impl Collector {
    /// One that Python runs; `None` where its packages are missing.
    async fn start() -> Option<Self> {
        let Some(python) = std::env::var_os("PYMONGO") else {
            skip("traces", "PYMONGO names no Python with opentelemetry-proto");
            return None;
        };
        let mut command = Command::new(python);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collector/collector.py"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("Python");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let port = lines.next_line().await.expect("a line").expect("a port");
        Some(Self { process, lines, url: format!("http://127.0.0.1:{port}") })
    }

    /// All spans that it was sent. It ends.
    async fn spans(mut self) -> Vec<Value> {
        drop(self.process.stdin.take());
        let mut spans = Vec::new();
        while let Some(line) = self.lines.next_line().await.expect("a line") {
            spans.push(serde_json::from_str(&line).expect("a span"));
        }
        spans
    }
}

/// The trace and the span of a caller.
fn caller(number: u64) -> (String, String) {
    (format!("{:032x}", 0xabc_0000 + number), format!("{:016x}", 0xdef_0000 + number))
}

fn traceparent(number: u64, flags: &str) -> String {
    let (trace, span) = caller(number);
    format!("00-{trace}-{span}-{flags}")
}

fn is<'a>(name: &'a str) -> impl FnMut(&&'a Value) -> bool {
    move |span| span["name"] == name
}

const APPEND: &str = "POST /v1/customers/{customerId}/trades";
const WRITERS: u64 = 24;

#[tokio::test(flavor = "multi_thread")]
async fn requests_commits_and_commands_are_spans() {
    let Some(collector) = Collector::start().await else { return };
    let mongod = Mongod::failing().await;
    let place = Place { history: TRADES, uri: mongod.uri().to_owned(), name: "pagebucket".to_owned() };
    let serving = place.serve(&["--otlp-endpoint", &collector.url, "--trace-share", "0"]).await;
    let send = async |method: Method, path: &str, traceparent: Option<String>| {
        let with = |request: reqwest::RequestBuilder| {
            let request =
                traceparent.into_iter().fold(request, |it, parent| it.header("traceparent", parent));
            let body = (method == Method::POST).then(|| trade(1).to_string());
            body.into_iter()
                .fold(request.header("content-type", "application/json"), reqwest::RequestBuilder::body)
        };
        serving.client.send(method.clone(), path, with).await
    };

    // The first commit takes long, so that the next one has several requests.
    let slow = doc! { "failCommands": ["update"], "blockConnection": true, "blockTimeMS": 500, "appName": "pagebucket" };
    mongod.fail_point("failCommand", doc! { "times": 1 }, slow).await;
    let appends = (1..=WRITERS)
        .map(|number| send(Method::POST, "/v1/customers/7/trades", Some(traceparent(number, "01"))));
    join_all(appends).await.into_iter().for_each(|answer| drop(answer.expect(201)));
    send(Method::GET, "/v1/customers/7/trades", Some(traceparent(100, "01"))).await.expect(200);
    send(Method::GET, "/v1/customers/7/trades?page=0", Some(traceparent(101, "01"))).await.expect(400);
    let busy = doc! { "failCommands": ["find", "aggregate"], "errorCode": 14031, "appName": "pagebucket" };
    mongod.fail_point("failCommand", "alwaysOn", busy).await;
    send(Method::GET, "/v1/customers/8/trades", Some(traceparent(102, "01"))).await.expect(503);
    mongod.fail_point("failCommand", "off", doc! {}).await;
    // Neither is traced: one says so, and of the other no share is.
    send(Method::GET, "/v1/customers/7/trades", Some(traceparent(103, "00"))).await.expect(200);
    send(Method::GET, "/v1/customers/7/trades", None).await.expect(200);
    send(Method::GET, "/v1/customers/7/trades", Some("not one".to_owned())).await.expect(200);

    let ended = serving.stop().await;
    assert!(!ended.err.contains("pagebucket_trace") && !ended.err.contains("url.path"), "{ended:?}");
    // The log has its own span, as without traces.
    let failed = ended.err.lines().find(|line| line.contains("ERROR")).expect("the read that failed");
    assert!(failed.contains("request{id="), "{failed}");
    let spans = collector.spans().await;
    mongod.remove().await;
    let of = |number| {
        let trace = caller(number).0;
        spans.iter().filter(|span| span["trace"] == *trace).collect::<Vec<_>>()
    };
    let traces: HashSet<_> = spans.iter().map(|span| span["trace"].as_str().expect("an id")).collect();
    let callers: Vec<_> = (1..=WRITERS).chain(100..=102).map(|number| caller(number).0).collect();
    assert_eq!(traces, callers.iter().map(String::as_str).collect());
    for span in &spans {
        assert_eq!(span["resource"]["service.name"], "pagebucket", "{span}");
        assert_eq!(span["events"], json!([]), "{span}");
    }

    let mut requests = HashMap::new();
    for number in 1..=WRITERS {
        let of = of(number);
        let request = of.iter().copied().find(is(APPEND)).unwrap_or_else(|| panic!("{of:#?}"));
        assert_eq!(request["parent"], *caller(number).1, "{request}");
        assert_eq!(
            (&request["kind"], &request["status"]),
            (&json!("SPAN_KIND_SERVER"), &json!("STATUS_CODE_UNSET"))
        );
        let said = &request["attributes"];
        assert_eq!(said["http.request.method"], "POST", "{said}");
        assert_eq!(said["http.route"], "/v1/customers/{customerId}/trades", "{said}");
        assert_eq!(
            (&said["url.path"], &said["http.response.status_code"]),
            (&json!("/v1/customers/7/trades"), &json!(201))
        );
        let queue = of.iter().copied().find(is("queue")).unwrap_or_else(|| panic!("{of:#?}"));
        assert_eq!(queue["parent"], request["id"]);
        requests.insert(request["id"].as_str().expect("an id"), number);
    }
    // Each append is in one commit, and few commits have them all.
    let commits: Vec<_> = spans.iter().filter(is("commit")).collect();
    let linked: Vec<_> =
        commits.iter().flat_map(|commit| commit["links"].as_array().expect("links")).collect();
    let merged: HashSet<_> = linked.iter().map(|link| link.as_str().expect("an id")).collect();
    assert_eq!(merged, requests.keys().copied().collect());
    assert!(linked.len() == requests.len() && commits.len() < 12, "{commits:#?}");
    for commit in commits {
        let first = requests[commit["parent"].as_str().expect("an id")];
        let of = of(first);
        let mut commands = of.iter().filter(|span| span["parent"] == commit["id"]);
        let update = commands.clone().copied().find(is("update trades")).unwrap_or_else(|| panic!("{of:#?}"));
        let said = &update["attributes"];
        assert_eq!(
            (&said["db.system.name"], &said["db.operation.name"]),
            (&json!("mongodb"), &json!("update"))
        );
        assert_eq!(
            (&said["db.collection.name"], &update["kind"]),
            (&json!("trades"), &json!("SPAN_KIND_CLIENT"))
        );
        assert!(commands.all(|command| command["kind"] == "SPAN_KIND_CLIENT"), "{of:#?}");
    }

    let read = of(100);
    let request = read.iter().copied().find(is("GET /v1/customers/{customerId}/trades")).expect("a read");
    assert!(
        read.iter().any(|span| span["parent"] == request["id"] && span["name"] == "find trades"),
        "{read:#?}"
    );
    let refused = of(101);
    let [request] = refused[..] else { panic!("{refused:#?}") };
    assert_eq!(request["attributes"]["http.response.status_code"], 400);
    assert_eq!(request["status"], "STATUS_CODE_UNSET", "the client's mistake is no failure: {request}");
    let failed = of(102);
    assert!(failed.len() > 1, "{failed:#?}");
    for span in failed {
        assert_eq!(span["status"], "STATUS_CODE_ERROR", "{span}");
    }
}

/// Without a collector nothing waits, and nothing is lost but spans.
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_keeps_nobody() {
    let place = Place::new().await;
    let serving = place.serve(&["--otlp-endpoint", "http://127.0.0.1:1"]).await;
    for _ in 0..5 {
        serving.client.append(7, &trade(1)).await.expect(201);
    }
    let ended = serving.stop().await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_has_an_address() {
    let place = Place::new().await;
    for (flag, value, rule) in [
        ("--otlp-endpoint", "collector:4318", "must be an address such as http://127.0.0.1:4318"),
        (
            "--otlp-endpoint",
            "http://user:sesame@collector",
            "must be an address such as http://127.0.0.1:4318",
        ),
        ("--trace-share", "1.5", "must be a number from 0 to 1"),
        ("--trace-share", "NaN", "must be a number from 0 to 1"),
    ] {
        let ended = run(&mut place.pagebucket("serve", &["--listen", "0", flag, value])).await;
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.err.contains(rule), "{ended:?}");
    }
}
