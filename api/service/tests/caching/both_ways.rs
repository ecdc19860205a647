//! What the fast path answers (`api/http/routes/fast_path.rs`) is what the router would answer: status,
//! headers and body, and what is counted. A GET with a body is the same request, and takes the way of all
//! requests.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pagebucket_http::OpenParts;
use pagebucket_service::Rate;
use reqwest::Method;
use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;

use crate::harness::tokens::{Issuer, claims};
use crate::harness::{Answer, Client, Setup, shared};

/// The log of the fast path, which names the requests that it has answered.
#[derive(Clone, Default)]
struct FastLog(Arc<Mutex<Vec<u8>>>);

impl FastLog {
    /// Begins the log of this process.
    fn begin() -> Self {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_env_filter(EnvFilter::new("pagebucket_http::routes::fast_path=trace"))
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).expect("the only log of this process");
        log
    }

    fn has(&self, id: &str) -> bool {
        String::from_utf8_lossy(&self.0.lock().unwrap()).contains(&format!("\"{id}\""))
    }
}

impl std::io::Write for FastLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What clients see of an answer, without its date and the id of its request.
fn seen(answer: &Answer) -> (u16, BTreeSet<(String, String)>, Vec<u8>) {
    let headers =
        answer.headers.iter().filter(|(name, _)| !["date", "x-request-id"].contains(&name.as_str()));
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    // A read of the database takes its own time.
    let headers = headers.filter(|(_, value)| !value.ends_with("desc=miss"));
    // A problem has the id in its body.
    let body = String::from_utf8(answer.body.clone());
    let body = body.map(|text| text.replace(answer.header("x-request-id"), "ID").into_bytes());
    (answer.status.as_u16(), headers.collect(), body.unwrap_or_else(|_| answer.body.clone()))
}

/// What is counted of requests to pages, and of clients.
async fn counted(client: &Client) -> BTreeMap<String, f64> {
    let metrics = client.get("/metrics").await;
    let lines = String::from_utf8(metrics.body).unwrap();
    let is_ours = |line: &&str| {
        line.contains("pages/{page}") && !line.contains("_bucket{") && !line.contains("_sum{")
            || line.starts_with("pagebucket_client_requests_total")
            || line.starts_with("pagebucket_page_cache_lookups_total")
    };
    let value = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    lines.lines().filter(is_ours).map(value).collect()
}

/// How much each of these has grown, without what has not. The names of clients are left out.
fn growth(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let old = |name: &str| before.get(name).copied().unwrap_or(0.0);
    let name = |name: &str| match name.split_once("{principal=") {
        Some((name, _)) => name.to_owned(),
        None => name.to_owned(),
    };
    let grown = after.iter().map(|(known, value)| (name(known), value - old(known)));
    grown.filter(|(_, more)| *more != 0.0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answers_are_the_same() {
    let (log, issuer) = (FastLog::begin(), Issuer::start().await);
    for (guarded, limited) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut setup = Setup::on(shared().await);
        if guarded {
            setup.gate = issuer.gate(OpenParts { metrics: true, ..OpenParts::default() }).await;
        }
        let [units, burst] = [1, 9].map(|units| NonZeroU32::new(units).unwrap());
        let rate = Rate { units, per: Duration::from_secs(3600), burst: Some(burst) };
        setup.config.api.rate = limited.then_some(rate);
        setup.config.api.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
        let service = setup.start().await;
        println!("guarded: {guarded}, limited: {limited}");
        compare(&log, &issuer, &service.client, guarded).await;
    }
}

/// Headers of a request.
type Headers<'a> = [(&'static str, &'a str)];

/// A client of its own, from whose quota nothing else takes.
struct Visitor {
    client: Client,
    address: String,
}

impl Visitor {
    async fn get(&self, path: &str, headers: &Headers<'_>, body: Option<&'static str>) -> Answer {
        let request = |request: reqwest::RequestBuilder| {
            let request = request.header("x-forwarded-for", &self.address);
            let request =
                headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            if let Some(body) = body { request.body(body) } else { request }
        };
        self.client.send(Method::GET, path, request).await
    }
}

async fn compare(log: &FastLog, issuer: &Issuer, client: &Client, guarded: bool) {
    let count = Cell::new(0);
    let visitor = |scope: &str, customers: Value| {
        count.set(count.get() + 1);
        let name = format!("visitor-{}", count.get());
        let token = guarded.then(|| issuer.signer.sign(&claims(&name, scope, customers)));
        let client = token.map_or_else(|| client.clone(), |token| client.with_token(token));
        Visitor { client, address: format!("192.0.2.{}", count.get()) }
    };
    let path = |page: &str| format!("/v1/customers/1/trades/pages/{page}");
    let writer = visitor("append read", json!(["1"]));
    writer.client.append_all(1, 1..=25).await;
    let tag = writer.get(&path("1"), &[], None).await.header("etag").to_owned();
    writer.get(&path("2"), &[], None).await.expect(200);
    let [weak, list] = [format!("W/{tag}"), format!("\"x\", {tag}")];
    let (known, gzip) = ("if-none-match", ("accept-encoding", "gzip"));
    let cases: &[(&str, &Headers<'_>, bool)] = &[
        ("1", &[], true),
        ("2", &[], true),
        ("1", &[(known, &tag)], true),
        ("1", &[(known, &weak)], true),
        ("1", &[(known, &list), gzip], true),
        ("2", &[(known, &tag)], true),
        ("1", &[(known, "garbage")], true),
        ("1", &[("accept", "application/json"), ("user-agent", "x"), ("range", "items=0-1")], true),
        ("%31", &[], true),
        // What the fast path leaves to the router.
        ("1", &[(known, "*")], false),
        ("1", &[gzip], false),
        ("1", &[("accept", "text/html")], false),
        ("1", &[("accept-encoding", "identity;q=0"), (known, &tag), ("accept", "x/y")], false),
        ("1", &[("origin", "http://localhost:5173")], false),
        ("1", &[("host", "evil.example")], false),
        ("1?page=2", &[], false),
        ("3", &[], false),
        ("4", &[], false),
        ("0", &[], false),
        ("1/2", &[], false),
    ];
    for (case, (page, headers, is_fast)) in cases.iter().enumerate() {
        let mut both = Vec::new();
        for (way, body) in [("slow", Some("x")), ("fast", None)] {
            let visitor = visitor("read", json!(["1"]));
            // From now on its token is remembered.
            visitor.get("/v1/customers/1", &[], None).await.expect(200);
            let id = format!("{case}-{way}-{}", tag.trim_matches('"'));
            let before = counted(client).await;
            let answer =
                visitor.get(&path(page), &[headers, &[("x-request-id", &*id)][..]].concat(), body).await;
            let grown = growth(&before, &counted(client).await);
            assert_eq!(answer.header("x-request-id"), id);
            assert_eq!(log.has(&id), *is_fast && way == "fast", "{page} {headers:?}, {way}");
            both.push((answer, grown));
        }
        let [(by_router, counted_by_router), (fast, counted_fast)] = &both[..] else { unreachable!() };
        assert_eq!(seen(by_router), seen(fast), "{page} {headers:?}");
        assert_eq!(counted_by_router, counted_fast, "{page} {headers:?}");
    }
    // Who may not read the page is refused, although it is in memory.
    if guarded {
        for visitor in [visitor("append", json!(["1"])), visitor("read", json!(["2"]))] {
            visitor.get(&path("1"), &[], None).await.problem(403, "forbidden");
        }
        client.get(&path("1")).await.problem(401, "unauthorized");
    }
}
