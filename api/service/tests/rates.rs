//! `--rate-limit`: only clients that exceed their limit are refused. Units are refilled in hours, so none is
//! refilled during a test.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use pagebucket_engine::Deadline;
use pagebucket_engine::internal::api_keys::KeyRecord;
use pagebucket_http::auth::Authenticator;
use pagebucket_http::auth::keys::{ApiKey, Keys};
use pagebucket_http::{Gate, OpenParts};
use pagebucket_model::domain::{Clock, Instant, Scope};
use pagebucket_service::{ForwardedHeader, Rate};
use reqwest::Method;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::tokens::{Issuer, claims};
use crate::harness::uploads::wire::Upload;
use crate::harness::uploads::{NDJSON, lines, of, upload};
use crate::harness::{
    Answer, Client, PATIENCE, READINGS, Service, Setup, TRADES, eventually, fill, shared, spawn, test_over,
    trade,
};

/// `units` in an hour, and `burst` at once; behind a proxy on this machine.
fn limited(mut setup: Setup, units: u32, burst: u32) -> Setup {
    let [units, burst] = [units, burst].map(|units| NonZeroU32::new(units).unwrap());
    let rate = Rate { units, per: Duration::from_secs(3600), burst: Some(burst) };
    setup.config.api.rate = Some(rate);
    setup.config.api.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    setup
}

/// A service that gives each client this many units, and one more in an hour.
async fn service(burst: u32) -> Service {
    limited(Setup::on(shared().await), 1, burst).start().await
}

/// Asks as the proxy asks for the client with this address.
async fn ask(client: &Client, method: Method, path: &str, address: &str) -> Answer {
    client.send(method, path, |request| request.header("x-forwarded-for", address)).await
}

async fn get(client: &Client, path: &str, address: &str) -> Answer {
    ask(client, Method::GET, path, address).await
}

/// The fields of this class, with these units left.
#[track_caller]
fn left(answer: &Answer, class: &str, left: u32) {
    let field = answer.header("ratelimit");
    assert!(field.starts_with(&format!("\"{class}\";r={left};t=")), "{left} left: {field}");
}

/// Checks that this is a refusal, and that its fields agree.
#[track_caller]
fn refused(answer: &Answer, class: &str, units: u32) -> Value {
    let problem = answer.problem(429, "too-many-requests");
    let again = answer.header("retry-after");
    assert_eq!(answer.header("ratelimit"), format!("\"{class}\";r={units};t={again}"));
    assert!(again.parse::<u32>().is_ok_and(|seconds| seconds > 0), "{again}");
    problem
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_gets_its_burst_and_others_theirs() {
    let service = service(5).await;
    let (client, path) = (&service.client, TRADES.path(7));
    for (count, method) in [Method::GET, Method::HEAD, Method::GET, Method::GET].into_iter().enumerate() {
        let answer = ask(client, method, &path, "192.0.2.1").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("ratelimit-policy"), "\"reads\";q=5;w=18000");
        left(&answer, "reads", 4 - count as u32);
    }
    let tag = get(client, &path, "192.0.2.2").await.header("etag").to_owned();
    let known = |request: reqwest::RequestBuilder| {
        request.header("x-forwarded-for", "192.0.2.1").header("if-none-match", &tag)
    };
    let unchanged = client.send(Method::GET, &path, known).await;
    assert_eq!(unchanged.status, 304);
    left(&unchanged, "reads", 0);
    let answer = get(client, &path, "192.0.2.1").await;
    refused(&answer, "reads", 0);
    assert_eq!(answer.header("ratelimit-policy"), "\"reads\";q=5;w=18000");
    let wait: u32 = answer.header("retry-after").parse().unwrap();
    assert!((1..=3600).contains(&wait), "{wait}");
    assert_eq!(ask(client, Method::HEAD, &path, "192.0.2.1").await.status, 429);
    // Other addresses, and other classes of the same.
    left(&get(client, &path, "192.0.2.3").await, "reads", 4);
    let append =
        |request: reqwest::RequestBuilder| request.header("x-forwarded-for", "192.0.2.1").json(&trade(1));
    for units in (0..5).rev() {
        let appended = client.send(Method::POST, &path, append).await;
        assert_eq!(appended.status, 201);
        left(&appended, "appends", units);
    }
    refused(&client.send(Method::POST, &path, append).await, "appends", 0);
    let export = get(client, &TRADES.at(7, "/export.csv"), "192.0.2.4").await;
    assert_eq!(export.status, 200);
    left(&export, "streams", 4);
    // Scripts may read it.
    let from_page = |request: reqwest::RequestBuilder| request.header("origin", "http://localhost");
    let exposed = client.send(Method::GET, &path, from_page).await;
    let exposed = exposed.header("access-control-expose-headers").to_lowercase();
    for field in ["retry-after", "ratelimit", "ratelimit-policy"] {
        assert!(exposed.split(',').any(|name| name == field), "{exposed}");
    }
    service.stored(7).await.holds_exactly([1; 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_operators_ask_is_not_limited() {
    let service = service(1).await;
    refuse_reads(&service.client).await;
    for path in ["/livez", "/readyz", "/metrics", "/openapi.json", "/problems", "/docs/"] {
        let answer = service.client.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.headers.contains_key("ratelimit"), "{path}");
    }
    let exposition = String::from_utf8(service.client.get("/metrics").await.body).expect("text");
    // Other tests count in the same process.
    let counted = |name: &str| exposition.lines().any(|line| line.starts_with(name) && !line.ends_with(" 0"));
    assert!(counted("pagebucket_rate_limited_total{class=\"reads\"}"), "{exposition}");
    assert!(exposition.contains("pagebucket_rate_clients{class=\"sign-in\"}"), "{exposition}");
}

/// Reads until that is refused.
async fn refuse_reads(client: &Client) {
    eventually("a refusal", PATIENCE, || async { client.get(&TRADES.path(7)).await.status == 429 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_limit_nothing_is_added() {
    let service = Service::start().await;
    let answer = service.client.get(&TRADES.path(7)).await;
    assert_eq!(answer.status, 200);
    assert!(!answer.headers.keys().any(|name| name.as_str().starts_with("ratelimit")), "{answer:?}");
}

/// A service behind a gate, with these units for each client.
async fn guarded(issuer: &Issuer, burst: u32) -> Service {
    let mut setup = limited(Setup::on(shared().await), 1, burst);
    setup.gate = issuer.gate(OpenParts::default()).await;
    setup.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_principal_is_one_client_from_everywhere() {
    let issuer = Issuer::start().await;
    let service = guarded(&issuer, 3).await;
    let client = |name: &str, jti: &str| {
        let mut claims = claims(name, "read", serde_json::json!(["7"]));
        claims["jti"] = jti.into();
        service.client.with_token(issuer.signer.sign(&claims))
    };
    let (ann, again, bob) = (client("ann", "1"), client("ann", "2"), client("bob", "1"));
    let path = TRADES.path(7);
    left(&get(&ann, &path, "192.0.2.1").await, "reads", 2);
    left(&get(&ann, &path, "192.0.2.2").await, "reads", 1);
    left(&get(&again, &path, "192.0.2.3").await, "reads", 0);
    refused(&get(&ann, &path, "192.0.2.4").await, "reads", 0);
    left(&get(&bob, &path, "192.0.2.1").await, "reads", 2);
    // Who may not use the route is told that, and not counted.
    let other = get(&bob, &TRADES.path(8), "192.0.2.1").await;
    assert_eq!((other.status.as_u16(), other.headers.contains_key("ratelimit")), (403, false));
    left(&get(&bob, &path, "192.0.2.1").await, "reads", 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_are_new_count_for_their_address() {
    let issuer = Issuer::start().await;
    let service = guarded(&issuer, 3).await;
    let token = |name: &str| issuer.signer.sign(&claims(name, "read", serde_json::json!(["7"])));
    let path = TRADES.path(7);
    let with =
        async |token: &str, address: &str| get(&service.client.with_token(token), &path, address).await;
    let known = token("ann");
    assert_eq!(with(&known, "192.0.2.1").await.status, 200);
    for forged in ["a.b.c", "nonsense"] {
        assert_eq!(with(forged, "192.0.2.1").await.status, 401);
    }
    let answer = with(&token("bob"), "192.0.2.1").await;
    answer.problem(429, "too-many-requests");
    assert!(answer.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds > 0));
    assert_eq!(with("nonsense", "192.0.2.1").await.status, 429);
    // A token that was verified needs nothing, and other addresses have their own quota.
    assert_eq!(with(&known, "192.0.2.1").await.status, 200);
    assert_eq!(with(&token("bob"), "192.0.2.2").await.status, 200);
}

/// Others at its address have used up what there is for new ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_is_looked_up_again_for_nothing() {
    let mut setup = limited(Setup::on(shared().await), 1, 3);
    let (store, time) = (setup.store().await, Arc::new(AtomicI64::new(Clock::system().now().millis())));
    let clock = Clock::from_fn({
        let time = Arc::clone(&time);
        move || Instant::from_millis(time.load(Ordering::SeqCst)).expect("a date")
    });
    let key = ApiKey::new();
    let record = KeyRecord {
        name: "backend".to_owned(),
        scopes: [Scope::Read].into_iter().collect(),
        owners: None,
        created: clock.now(),
        last_used: None,
        expires: None,
        revoked: None,
    };
    let soon = || Deadline::within(PATIENCE);
    store.api_keys().create(key.hash(), &record, soon()).await.expect("a new name");
    let keys = Some(Keys::new(&store, clock.clone()));
    setup.gate = Gate::guarded(Authenticator { jwt: None, keys }, OpenParts::default());
    let service = setup.start().await;
    let (known, path) = (service.client.with_token(key.expose()), TRADES.path(7));
    get(&known, &path, "192.0.2.1").await.expect(200);
    let unknown = service.client.with_token(ApiKey::new().expose());
    while get(&unknown, &path, "192.0.2.1").await.status == 401 {}
    // It is looked up again each time: the last one finds that it was revoked.
    for _ in 0..2 {
        time.fetch_add(31_000, Ordering::SeqCst);
        get(&known, &path, "192.0.2.1").await.expect(200);
    }
    store.api_keys().revoke("backend", clock.now(), soon()).await.expect("a revocation");
    time.fetch_add(31_000, Ordering::SeqCst);
    get(&known, &path, "192.0.2.2").await.problem(401, "unauthorized");
    // From now on it is a key like any other that is refused.
    get(&known, &path, "192.0.2.1").await.problem(429, "too-many-requests");
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_strangers_are_not_believed() {
    let mut setup = limited(Setup::on(shared().await), 1, 1);
    setup.config.api.trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
    let service = setup.start().await;
    assert_eq!(get(&service.client, &TRADES.path(7), "192.0.2.1").await.status, 200);
    refused(&get(&service.client, &TRADES.path(7), "192.0.2.2").await, "reads", 0);
}

/// The status of a read with these headers.
async fn with_headers(service: &Service, headers: &[(&str, &str)]) -> u16 {
    let add = |request: reqwest::RequestBuilder| {
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    };
    service.client.send(Method::GET, &TRADES.path(7), add).await.status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_a_client_makes_up_is_none() {
    let service = service(1).await;
    let with = async |headers: &[(&str, &str)]| with_headers(&service, headers).await;
    // What stands on the left is the client's own word.
    assert_eq!(with(&[("x-forwarded-for", "198.51.100.1, 192.0.2.1")]).await, 200);
    assert_eq!(with(&[("x-forwarded-for", "198.51.100.2, 192.0.2.1")]).await, 429);
    assert_eq!(with(&[("x-forwarded-for", "198.51.100.3"), ("x-forwarded-for", "192.0.2.1")]).await, 429);
    // Of two proxies, both of which are trusted.
    assert_eq!(with(&[("x-forwarded-for", "192.0.2.1, 127.0.0.1")]).await, 429);
    // A network of IPv6 is one client.
    assert_eq!(with(&[("x-forwarded-for", "2001:db8::1")]).await, 200);
    assert_eq!(with(&[("x-forwarded-for", "[2001:db8::2]")]).await, 429);
    // What is no address is the proxy's.
    assert_eq!(with(&[("x-forwarded-for", "198.51.100.5, unknown")]).await, 200);
    assert_eq!(with(&[("x-forwarded-for", "198.51.100.6, _hidden")]).await, 429);
    assert_eq!(with(&[]).await, 429);
}

/// Proxies pass on the header that they do not write, as the client has made it up.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_header_of_the_proxy_is_believed() {
    let service_reading = async |header| {
        let mut setup = limited(Setup::on(shared().await), 1, 1);
        setup.config.api.forwarded_header = header;
        setup.start().await
    };
    let service = service_reading(ForwardedHeader::XForwardedFor).await;
    let made_up = |number: u32| format!("for=198.51.100.{number}");
    let of_client = ("x-forwarded-for", "192.0.2.1");
    assert_eq!(with_headers(&service, &[("forwarded", &made_up(1)), of_client]).await, 200);
    for number in 2..6 {
        assert_eq!(with_headers(&service, &[("forwarded", &made_up(number)), of_client]).await, 429);
    }
    // That it is made up to be has used nothing.
    assert_eq!(with_headers(&service, &[("x-forwarded-for", "198.51.100.1")]).await, 200);
    // Without the proxy's header the client is the proxy.
    assert_eq!(with_headers(&service, &[("forwarded", "for=192.0.2.8")]).await, 200);
    assert_eq!(with_headers(&service, &[("forwarded", "for=192.0.2.9")]).await, 429);

    let service = service_reading(ForwardedHeader::Forwarded).await;
    let of_client = ("forwarded", "for=192.0.2.1, for=\"[2001:db8::2]:4711\"");
    assert_eq!(with_headers(&service, &[of_client, ("x-forwarded-for", "198.51.100.1")]).await, 200);
    assert_eq!(with_headers(&service, &[of_client, ("x-forwarded-for", "198.51.100.2")]).await, 429);
    assert_eq!(with_headers(&service, &[("forwarded", "for=\"[2001:db8::3]\"")]).await, 429);
    assert_eq!(with_headers(&service, &[("x-forwarded-for", "198.51.100.1")]).await, 200);
}

/// A client that asks before it sends ("100 Continue") is refused, and not asked to go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_needs_no_body() {
    let service = service(1).await;
    service.client.append(7, &trade(1)).await.expect(201);
    let mut stream = TcpStream::connect(service.address()).await.expect("a connection");
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\
         Expect: 100-continue\r\nConnection: close\r\n\r\n",
        TRADES.path(7)
    );
    stream.write_all(head.as_bytes()).await.expect("to send");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    service.stored(7).await.holds_exactly([1]);
}

test_over!(an_array_costs_the_pages_that_it_writes, SMALL);
async fn an_array_costs_the_pages_that_it_writes(history: &'static crate::harness::History) {
    let size = history.page_size;
    let service = limited(Setup::on(shared().await).of(history), 1, 8).start().await;
    let client = &service.client;
    let append =
        async |from: u64, items: u64| client.append(1, &history.items(from..=from + items - 1)).await;
    let appended = append(1, 2 * size + 1).await;
    appended.expect(201);
    left(&appended, "appends", 5);
    // It would take six of the five.
    let problem = refused(&append(100_000, 5 * size + 1).await, "appends", 4);
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("appends")), "{problem}");
    let appended = append(2 * size + 2, 3 * size).await;
    appended.expect(201);
    left(&appended, "appends", 1);
    let faulty = client.append(1, &serde_json::json!([{}])).await;
    assert_eq!(faulty.status, 422);
    left(&faulty, "appends", 0);
    refused(&append(100_000, 1).await, "appends", 0);
    service.stored(1).await.holds_exactly(1..=(5 * size + 1) as i64);
    // More than a burst: a full bucket suffices.
    let service = limited(Setup::on(shared().await).of(history), 1, 2).start().await;
    let appended = service.client.append(1, &history.items(1..=3 * size)).await;
    appended.expect(201);
    left(&appended, "appends", 0);
    refused(&service.client.append(1, &history.items(1..=1)).await, "appends", 0);
    service.stored(1).await.holds_exactly(1..=3 * size as i64);
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_cost_the_pages_that_they_read() {
    let service = service(100).await;
    fill(&service.database, TRADES, 7, 60, 5).await;
    let cost = async |path: &str, units: u32| {
        let answer = get(&service.client, path, &format!("192.0.2.{units}")).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.status);
        left(&answer, "reads", 100 - units);
    };
    // Each for a client that has not read yet.
    cost(&TRADES.at(7, "/pages/3"), 1).await;
    cost(&TRADES.at(7, "?before=596&limit=100"), 11).await;
    cost(&TRADES.at(7, "?after=0&limit=100"), 10).await;
    cost(&TRADES.at(7, "?after=5&limit=20"), 3).await;
    cost(&TRADES.at(7, "?after=0&limit=12"), 2).await;
    // All of the 59 full pages are examined, and none is read.
    let answer = get(&service.client, &TRADES.at(7, "?ticker=NONE"), "192.0.2.100").await;
    assert_eq!(answer.expect(200)["items"].as_array().map(Vec::len), Some(0));
    left(&answer, "reads", 99);
    // Read one after the other until there are enough.
    let answer =
        get(&service.client, &TRADES.at(7, "?from=1970-01-01T00:00:00Z&after=0&limit=100"), "192.0.2.101")
            .await;
    answer.expect(200);
    left(&answer, "reads", 88);
    // What is owed is paid first.
    for _ in 0..8 {
        let path = TRADES.at(7, "?from=1970-01-01T00:00:00Z&after=0&limit=100");
        assert_eq!(get(&service.client, &path, "192.0.2.102").await.status, 200);
    }
    let answer = get(&service.client, &TRADES.at(7, "?limit=100"), "192.0.2.102").await;
    refused(&answer, "reads", 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn counting_views_costs_what_is_written() {
    let service = service(100).await;
    let client = &service.client;
    let views = |paths: usize, minutes: usize, each: usize| -> Value {
        let view = |number: usize| {
            let (path, minute) = (number % paths, number / paths % minutes);
            serde_json::json!({ "path": format!("/{path}"), "at": format!("2014-01-01T10:{minute:02}:00Z") })
        };
        (0..paths * minutes * each).map(view).collect()
    };
    let count = async |views: Value, address: &str| {
        let with = |request: reqwest::RequestBuilder| request.header("x-forwarded-for", address).json(&views);
        client.send(Method::POST, "/v1/page-views", with).await
    };
    let counted = count(views(3, 4, 10), "192.0.2.1").await;
    assert_eq!(counted.status, 204);
    left(&counted, "appends", 88);
    let counted = count(views(1, 1, 1_000), "192.0.2.2").await;
    assert_eq!(counted.status, 204);
    left(&counted, "appends", 99);
    refused(&count(views(10, 10, 1), "192.0.2.1").await, "appends", 87);
    let bucket = async |path: &str| {
        let path = format!("/v1/page-views/buckets?path={path}&timestamp=2014-01-01T10:00:00Z");
        get(client, &path, "192.0.2.3").await
    };
    assert_eq!(bucket("/0").await.expect(200)["totalViews"], 1_010);
    bucket("/9").await.problem(404, "bucket-not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_waits_and_ends_when_the_service_stops() {
    let service = service(5).await;
    let address = service.address();
    let mut sending = Upload::begin(address, &TRADES.uploads(7), &[]).await;
    sending.send(&lines(1..=50)).await;
    // After this piece nothing is left for the next.
    sending.send(&lines(51..=100)).await;
    let count = async || service.stored(7).await.numbers.len();
    eventually("both are stored", PATIENCE, async || count().await == 100).await;
    sending.send(&lines(101..=110)).await;
    let stored = service.database.clone();
    assert!(service.stop().await, "it does not wait for the quota");
    assert!(sending.head().await.starts_with("HTTP/1.1 503 "));
    let problem = sending.line().await.expect("a problem");
    assert_eq!((&problem["type"], &problem["stored"]), (&"/problems#partly-stored".into(), &100.into()));
    crate::harness::stored(&stored, TRADES, 7).await.holds_exactly(1..=100);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_pays_for_each_owner() {
    const UNITS: u32 = 100;
    for (owners, lines_of_each, units) in [(1, 40, 4), (40, 1, 40), (8, 25, 24)] {
        let service = service(UNITS).await;
        // In turns, and one line that is no item and begins a page as well.
        let lines = (0..owners * lines_of_each).map(|line| of(line % owners + 1, line + 1));
        let lines: String = lines.chain(["{}\n".to_owned()]).collect();
        let summary = upload(&service.client, &TRADES.of_many(), lines).await.expect(200);
        assert_eq!((&summary["stored"], &summary["refused"]), (&(owners * lines_of_each).into(), &1.into()));
        let appended = service.client.append(1, &trade(1)).await;
        left(&appended, "appends", UNITS - units - 1 - 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_its_quota_is_not_too_slow() {
    let mut setup = limited(Setup::on(shared().await), 5 * 3600, 1);
    setup.config.api.body_timeout = Duration::from_secs(1);
    let service = setup.start().await;
    let uploaded = upload(&service.client, &TRADES.uploads(7), lines(1..=200)).await;
    assert_eq!(uploaded.expect(200)["stored"], 200);
    service.stored(7).await.holds_exactly(1..=200);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_nothing_left_waits_for_the_first_rows() {
    let service = service(5).await;
    fill(&service.database, TRADES, 7, 3, 10).await;
    let (page, export) = (TRADES.at(7, "/pages/1"), TRADES.at(7, "/export.ndjson"));
    for _ in 0..5 {
        get(&service.client, &page, "192.0.2.1").await.expect(200);
    }
    refused(&get(&service.client, &page, "192.0.2.1").await, "reads", 0);
    let waiting = spawn({
        let (client, export) = (service.client.clone(), export.clone());
        async move { get(&client, &export, "192.0.2.1").await }
    });
    let rows = |answer: &Answer| answer.body.iter().filter(|byte| **byte == b'\n').count();
    for other in 2..12 {
        let answer = get(&service.client, &export, &format!("192.0.2.{other}")).await;
        assert_eq!((answer.status.as_u16(), rows(&answer)), (200, 30));
    }
    assert!(!waiting.is_finished());
    assert!(service.stop().await, "it does not wait for the quota");
    assert_eq!(rows(&waiting.await.expect("no panic")), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_nothing_left_stores_no_first_lines() {
    let service = service(5).await;
    let path = TRADES.path(7);
    let append =
        |request: reqwest::RequestBuilder| request.header("x-forwarded-for", "192.0.2.1").json(&trade(1));
    for _ in 0..5 {
        service.client.send(Method::POST, &path, append).await.expect(201);
    }
    let headers = [("x-forwarded-for", "192.0.2.1")];
    let mut waiting = Upload::begin(service.address(), &TRADES.uploads(8), &headers).await;
    waiting.send(&lines(1..=10)).await;
    for other in 2..12 {
        let with = |request: reqwest::RequestBuilder| {
            let request = request.header("x-forwarded-for", format!("192.0.2.{other}"));
            request.header("content-type", NDJSON).body(lines(1..=10))
        };
        service.client.send(Method::POST, &TRADES.uploads(9), with).await.expect(200);
    }
    let database = service.database.clone();
    assert!(service.stop().await, "it does not wait for the quota");
    let problem = waiting.line().await.expect("a problem");
    assert_eq!((&problem["type"], &problem["stored"]), (&"/problems#shutting-down".into(), &0.into()));
    crate::harness::stored(&database, TRADES, 8).await.holds_exactly([]);
    assert_eq!(crate::harness::stored(&database, TRADES, 9).await.numbers.len(), 100);
}

/// Also the last ones, which are owed.
#[tokio::test(flavor = "multi_thread")]
async fn streams_cost_all_their_pages() {
    const PAGES: u32 = 25;
    let service = service(100).await;
    let uploaded = upload(&service.client, &TRADES.uploads(7), lines(1..=u64::from(PAGES) * 10)).await;
    assert_eq!(uploaded.expect(200)["stored"], PAGES * 10);
    left(&service.client.append(8, &trade(1)).await, "appends", 100 - PAGES - 1);
    let exported = service.client.get(&TRADES.at(7, "/export.ndjson")).await;
    assert_eq!(exported.body.iter().filter(|byte| **byte == b'\n').count(), PAGES as usize * 10);
    // The export may be dropped a moment after its last byte was sent.
    let asked = AtomicU32::new(0);
    eventually("they are owed", PATIENCE, async || {
        let asked = asked.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(asked < 100 - PAGES, "they are not");
        let answer = service.client.get(&TRADES.at(7, "/pages/1")).await;
        answer.header("ratelimit").starts_with(&format!("\"reads\";r={};", 100 - PAGES - asked))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_waits_until_the_service_stops() {
    const PAGES: u64 = 400;
    let mut setup = limited(Setup::on(shared().await).of(READINGS), 1, 150);
    setup.config.server.drain_delay = Duration::from_secs(1);
    let service = setup.start().await;
    fill(&service.database, READINGS, 7, PAGES, READINGS.page_size).await;
    let export = spawn({
        let client = service.client.clone();
        async move { get(&client, &READINGS.at(7, "/export.ndjson"), "192.0.2.1").await }
    });
    // The second batch takes the units of the first hundred pages. There are too few for the third.
    let path = READINGS.at(7, "/pages/1");
    let used = async || {
        let left = get(&service.client, &path, "192.0.2.1").await;
        !left.header("ratelimit").starts_with("\"reads\";r=1")
    };
    eventually("the first batch is paid", PATIENCE, used).await;
    assert!(!export.is_finished());
    assert!(service.stop().await, "it does not wait for the quota");
    let rows = export.await.expect("no panic").body;
    let rows = rows.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert_eq!(rows, PAGES * READINGS.page_size);
}
