//! What clients may keep, and what is answered to those that have it.

mod both_ways;

use std::sync::{Arc, Mutex};

use pagebucket_http::KeptBy;
use reqwest::Method;
use serde_json::json;

use crate::harness::{Answer, Service, Setup, shared, trade};

const FULL: [&str; 6] = [
    "/v1/customers/1/trades/pages/2",
    "/v1/customers/1/trades/11",
    "/v1/customers/1/trades/20",
    "/v1/customers/1/trades?after=3&limit=17&asOf=25",
    "/v1/customers/1/trades?after=3&limit=40&asOf=25",
    "/v1/customers/1/trades?offset=0&order=desc&asOf=25",
];

const CHANGING: [&str; 8] = [
    "/v1/customers/1",
    "/v1/customers/1/trades",
    "/v1/customers/1/trades?page=2",
    "/v1/customers/1/trades?order=desc",
    "/v1/customers/1/trades?after=3&limit=25",
    "/v1/customers/1/trades?offset=3",
    "/v1/customers/1/trades/pages/3",
    "/v1/customers/1/trades/25",
];

/// 25 trades: two full pages, and one that is not.
async fn filled(setup: Setup) -> Service {
    let service = setup.start().await;
    service.client.append(1, &json!((1..=25).map(trade).collect::<Vec<_>>())).await.expect(201);
    service
}

async fn with(service: &Service, path: &str, headers: &[(&'static str, &str)]) -> Answer {
    let add = |request: reqwest::RequestBuilder| {
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    };
    service.client.send(Method::GET, path, add).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_page_is_kept_for_ever() {
    for (public, control) in
        [(false, "private, max-age=31536000, immutable"), (true, "public, max-age=31536000, immutable")]
    {
        let mut setup = Setup::on(shared().await);
        setup.config.api.kept_by = if public { KeptBy::Anybody } else { KeptBy::Client };
        let service = filled(setup).await;
        let before: Vec<String> = tags(&service, &FULL).await;
        service.client.append(1, &trade(26)).await.expect(201);
        for (path, tag) in FULL.iter().zip(before) {
            let answer = service.client.get(path).await;
            assert_eq!(
                (answer.header("cache-control"), answer.header("etag")),
                (control, tag.as_str()),
                "{path}"
            );
            let what = if path.contains("asOf") { ".4.1.trades.a25\"" } else { ".4.1.trades.p2\"" };
            assert!(tag.starts_with('"') && tag.ends_with(what), "{tag}");
            assert!(answer.header("vary").contains("accept-encoding"), "{path}");
        }
    }
}

async fn tags(service: &Service, paths: &[&str]) -> Vec<String> {
    let mut tags = Vec::new();
    for path in paths {
        tags.push(service.client.get(path).await.header("etag").to_owned());
    }
    tags
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_is_asked_for_anew() {
    let service = filled(Setup::on(shared().await)).await;
    let before = tags(&service, &CHANGING).await;
    assert_eq!(tags(&service, &CHANGING).await, before);
    for (path, tag) in CHANGING.iter().zip(&before) {
        let answer = service.client.get(path).await;
        assert_eq!(answer.header("cache-control"), "no-cache", "{path}");
        assert!(answer.header("vary").contains("accept-encoding"), "{path}");
        let known = with(&service, path, &[("if-none-match", tag)]).await;
        assert_eq!((known.status.as_u16(), known.body.len()), (304, 0), "{path}");
        assert_eq!(
            (known.header("etag"), known.header("cache-control")),
            (tag.as_str(), "no-cache"),
            "{path}"
        );
        assert!(known.header("vary").contains("accept-encoding"), "{path}");
    }
    service.client.append(1, &trade(26)).await.expect(201);
    for (path, tag) in CHANGING.iter().zip(&before) {
        let answer = with(&service, path, &[("if-none-match", tag)]).await;
        assert_eq!(answer.status, 200, "{path}: the history has grown");
        assert_ne!(answer.header("etag"), tag, "{path}");
    }
    // The tail that is full now is final, and has another tag than when it was the tail.
    let page = "/v1/customers/1/trades/pages/3";
    service.client.append(1, &json!((27..=30).map(trade).collect::<Vec<_>>())).await.expect(201);
    let answer = with(&service, page, &[("if-none-match", &before[6])]).await;
    assert!(answer.header("cache-control").ends_with("immutable"), "{answer:?}");
    assert!(answer.header("etag").ends_with(".p3\""), "{answer:?}");
}

/// A service whose commands are written down, and that remembers no page.
async fn observed() -> (Service, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let watch = Arc::clone(&seen);
    let mut setup = Setup::on(shared().await);
    setup.config.api.page_cache = 0;
    let setup = setup.observed(move |name, command| {
        watch
            .lock()
            .expect("no test panics here")
            .push(format!("{name} {}", command.get_str(name).unwrap_or("")));
    });
    let service = filled(setup).await;
    (service, seen)
}

fn taken(seen: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut seen.lock().expect("no test panics here"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_full_page_costs_the_database_nothing() {
    let (service, seen) = observed().await;
    // Tags are made of numbers alone: those of pages that this instance never read are known to it.
    let tags = tags(&service, &FULL).await;
    let sibling = {
        let watch = Arc::clone(&seen);
        let mut setup =
            Setup::on(shared().await).observed(move |name, _| watch.lock().unwrap().push(name.to_owned()));
        setup.connection.database = service.database.name().to_owned();
        setup.start().await
    };
    sibling.client.get("/v1/customers/1").await.expect(200);
    taken(&seen);
    for (path, tag) in FULL.iter().zip(&tags) {
        for service in [&service, &sibling] {
            let answer = with(service, path, &[("if-none-match", tag)]).await;
            assert_eq!((answer.status.as_u16(), answer.body.len()), (304, 0), "{path}");
            assert_eq!(answer.header("etag"), tag);
            assert!(answer.header("cache-control").ends_with("immutable"), "{path}");
            assert_eq!(answer.header("server-timing"), "db;dur=0.000");
        }
    }
    assert_eq!(taken(&seen), Vec::<String>::new());
    let other = with(&service, FULL[0], &[("if-none-match", &tags[0].replace(".p2", ".p1"))]).await;
    assert_eq!(other.status, 200, "another page's tag");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_listing_costs_one_look_at_the_tail() {
    let (service, seen) = observed().await;
    for path in &CHANGING[..6] {
        let tag = service.client.get(path).await.header("etag").to_owned();
        taken(&seen);
        assert_eq!(with(&service, path, &[("if-none-match", &tag)]).await.status, 304, "{path}");
        assert_eq!(taken(&seen), ["find trades"], "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_bodies_have_weak_tags() {
    let service = filled(Setup::on(shared().await)).await;
    for path in FULL.iter().chain(&CHANGING) {
        let strong = service.client.get(path).await.header("etag").to_owned();
        let weak = format!("W/{strong}");
        let answer = with(&service, path, &[("accept-encoding", "gzip")]).await;
        assert_eq!(answer.header("content-encoding"), "gzip", "{path}");
        assert_eq!(answer.header("etag"), weak, "{path}");
        // Weak comparison: a client with the compressed bytes has what there is, and so has another.
        for (given, kept) in [(&weak, &weak), (&strong, &strong)] {
            let answer = with(&service, path, &[("if-none-match", given), ("accept-encoding", "gzip")]).await;
            assert_eq!(answer.status, 304, "{path}");
            assert_eq!(answer.header("etag"), kept, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_malformed_is_ignored() {
    let service = filled(Setup::on(shared().await)).await;
    for path in [FULL[0], CHANGING[1]] {
        let tag = service.client.get(path).await.header("etag").to_owned();
        let bare = tag.trim_matches('"');
        for given in
            [bare, "", "\"", &tag[..tag.len() - 1], &format!("{tag} {tag}"), &format!("{tag}, x"), "w/*"]
        {
            let answer = with(&service, path, &[("if-none-match", given)]).await;
            assert_eq!(answer.status, 200, "{path}: {given}");
            assert!(!answer.body.is_empty());
        }
        for given in [format!("\"a,b\", {tag}"), format!(",, {tag},"), format!("W/{tag}")] {
            assert_eq!(
                with(&service, path, &[("if-none-match", &given)]).await.status,
                304,
                "{path}: {given}"
            );
        }
        let twice = with(&service, path, &[("if-none-match", "\"x\""), ("if-none-match", &tag)]).await;
        assert_eq!(twice.status, 304, "a list in two lines");
    }
    // A condition on a POST is none of a read: it stores.
    let tag = service.client.get(CHANGING[1]).await.header("etag").to_owned();
    let stored = service.client.send(Method::POST, "/v1/customers/1/trades", |request| {
        request.header("if-none-match", tag).json(&trade(26))
    });
    stored.await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_star_needs_something_there() {
    let service = filled(Setup::on(shared().await)).await;
    for path in FULL.iter().chain(&CHANGING) {
        let answer = with(&service, path, &[("if-none-match", "*")]).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (304, 0), "{path}");
    }
    for path in
        ["/v1/customers/1/trades/pages/4", "/v1/customers/1/trades/26", "/v1/customers/1/trades?page=4"]
    {
        let answer = with(&service, path, &[("if-none-match", "*")]).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn head_is_as_get() {
    let service = filled(Setup::on(shared().await)).await;
    for path in FULL.iter().chain(&CHANGING) {
        let get = service.client.get(path).await;
        let head = service.client.send(Method::HEAD, path, |request| request).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0), "{path}");
        for name in ["etag", "cache-control", "vary", "content-length", "content-type", "link"] {
            assert_eq!(head.headers.get(name), get.headers.get(name), "{name} of {path}");
        }
        let tag = get.header("etag");
        let known =
            service.client.send(Method::HEAD, path, |request| request.header("if-none-match", tag)).await;
        assert_eq!((known.status.as_u16(), known.header("etag")), (304, tag), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_not_kept() {
    let service = filled(Setup::on(shared().await)).await;
    for path in [
        "/v1/customers/1/trades/pages/4",
        "/v1/customers/1/trades/26",
        "/v1/customers/1/trades?page=4",
        "/v1/customers/0",
        "/v1/customers/1/trades?limit=0",
    ] {
        let answer = service.client.get(path).await;
        assert_eq!(answer.header("cache-control"), "no-cache", "{path}");
        assert!(!answer.headers.contains_key("etag"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_are_of_one_database() {
    let service = filled(Setup::on(shared().await)).await;
    let other = filled(Setup::on(shared().await)).await;
    let all = [&FULL[..], &CHANGING].concat();
    let (ours, theirs) = (tags(&service, &all).await, tags(&other, &all).await);
    assert!(ours.iter().zip(&theirs).all(|(ours, theirs)| ours != theirs), "{ours:?} {theirs:?}");
    for (path, tag) in all.iter().zip(&theirs) {
        assert_eq!(with(&service, path, &[("if-none-match", tag)]).await.status, 200, "{path}");
    }
    // Another instance, or this one after a restart, makes the same ones.
    let sibling = service.sibling(shared().await).await;
    assert_eq!(tags(&sibling, &all).await, ours);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_taken_is_not_sent() {
    let service = filled(Setup::on(shared().await)).await;
    for path in FULL.iter().chain(&CHANGING) {
        for (name, value) in [
            ("accept", "text/html"),
            ("accept", "application/json;q=0, */*"),
            ("accept", "application/problem+json"),
            ("accept-encoding", "identity;q=0"),
            ("accept-encoding", "br, *;q=0"),
        ] {
            let answer = with(&service, path, &[(name, value)]).await;
            answer.problem(406, "not-acceptable");
            assert_eq!(answer.header("cache-control"), "no-cache", "{path}");
        }
        for accept in
            ["*/*", "application/json", "text/html, application/*;q=0.1", "garbage", "application/json;q=9"]
        {
            assert_eq!(with(&service, path, &[("accept", accept)]).await.status, 200, "{path}: {accept}");
        }
    }
    // Said before anything is stored.
    for (name, value) in [("accept", "text/csv"), ("accept-encoding", "identity;q=0")] {
        let append = service.client.send(Method::POST, "/v1/customers/1/trades", |request| {
            request.header(name, value).json(&trade(26))
        });
        append.await.problem(406, "not-acceptable");
    }
    assert_eq!(service.client.total(1).await, 25);
}

#[tokio::test(flavor = "multi_thread")]
async fn timings_are_told() {
    let service = filled(Setup::on(shared().await)).await;
    for path in FULL.iter().chain(&CHANGING) {
        let answer = service.client.get(path).await;
        let timing = answer.header("server-timing");
        let milliseconds = timing.strip_prefix("db;dur=").and_then(|rest| rest.split(',').next());
        assert!(milliseconds.is_some_and(|number| number.parse::<f64>().is_ok()), "{path}: {timing}");
    }
    for (path, cache) in [
        ("/v1/customers/1/trades/pages/1", "hit"),
        ("/v1/customers/1/trades/5", "hit"),
        ("/v1/customers/1/trades?page=1", "hit"),
        ("/v1/customers/1/trades?limit=20", "hit"),
        ("/v1/customers/1/trades/pages/3", "miss"),
    ] {
        let answer = service.client.get(path).await;
        assert!(
            answer.header("server-timing").ends_with(&format!(", cache;desc={cache}")),
            "{path}: {answer:?}"
        );
    }
    let newest = service.client.get("/v1/customers/1/trades?page=3").await;
    assert!(!newest.header("server-timing").contains("cache"), "only the tail was needed: {newest:?}");
}
