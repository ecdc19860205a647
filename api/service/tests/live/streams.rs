//! Live streams over HTTP.

use std::num::NonZeroU32;
use std::time::Duration;

use pagebucket_service::Rate;
use reqwest::Method;
use serde_json::json;

use crate::harness::Raw;
use crate::harness::events::{Events, begin};
use crate::harness::{History, PATIENCE, Service, Setup, TRADES, eventually, fill, shared, test_over};

test_over!(a_client_resumes_where_it_was, NOTES);
async fn a_client_resumes_where_it_was(history: &'static History) {
    let mongod = shared().await;
    let one = Service::filled(history, 3).await;
    let other = one.sibling(mongod).await;
    let mut events = Events::of(&one.client, 1, "", &[]).await;
    let position = events.next().await;
    assert_eq!((position.name.as_str(), position.data), ("position", json!({ "totalItems": 3 })));
    assert_eq!((events.id.as_deref(), events.retry), (Some("3"), Some(2_000)));
    let end = 3 + history.pages(1.5);
    other.client.append_all(1, 4..=end).await;
    one.client.append_all(1, end + 1..=end + 1).await;
    let live = events.read(history, 4, end + 1).await;
    drop(events);
    // The items are those of listings.
    let rest = history.at(1, &format!("?after=3&limit={}", live.len().min(100)));
    let listed = one.client.get(&rest).await.expect(200);
    assert!(live.iter().zip(listed["items"].as_array().expect("items")).all(|(one, other)| one == other));
    other.client.append_all(1, end + 2..=end + 5).await;
    // The last event counts, whatever the address says, and on every instance.
    let id = (end + 1).to_string();
    let mut resumed = Events::of(&other.client, 1, "?after=1", &[("Last-Event-ID", &id)]).await;
    resumed.read(history, end + 2, end + 5).await;
    // As clients say it that cannot send the header. If both are given, the header counts.
    let queried = format!("?after=0&lastEventId={}", end + 3);
    Events::of(&one.client, 1, &queried, &[]).await.read(history, end + 4, end + 5).await;
    let both = [("Last-Event-ID", id.as_str())];
    Events::of(&one.client, 1, &queried, &both).await.read(history, end + 2, end + 5).await;
    let mut whole = Events::of(&other.client, 1, "?after=0", &[]).await;
    whole.read(history, 1, end + 5).await;
    let mut beyond = Events::of(&one.client, 1, &format!("?after={}", end + 7), &[]).await;
    one.client.append_all(1, end + 6..=end + 8).await;
    beyond.read(history, end + 8, end + 8).await;
    resumed.read(history, end + 6, end + 8).await;
}

/// One event for each page that a commit has written, whichever instance wrote it.
#[tokio::test(flavor = "multi_thread")]
async fn items_of_one_commit_come_in_one_event() {
    let one = Service::filled(TRADES, 1).await;
    let other = one.sibling(shared().await).await;
    let mut events = Events::of(&one.client, 1, "?after=1", &[]).await;
    for (client, numbers, expected) in [
        (&one.client, 2..=9, &[2..=9][..]),
        (&other.client, 10..=10, &[10..=10]),
        (&other.client, 11..=18, &[11..=18]),
        (&one.client, 19..=27, &[19..=20, 21..=27]),
    ] {
        client.append_all(1, numbers).await;
        for seqs in expected {
            let data = events.next().await.data;
            let came: Vec<_> =
                data["items"].as_array().expect("items").iter().map(|item| item["seq"].as_u64()).collect();
            assert_eq!(came, seqs.clone().map(Some).collect::<Vec<_>>());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_begins_is_live() {
    let service = Service::start().await;
    let mut new = Events::of(&service.client, 7, "", &[]).await;
    assert_eq!(new.next().await.data, json!({ "totalItems": 0 }));
    assert_eq!(new.id.as_deref(), Some("0"));
    let mut again = Events::of(&service.client, 7, "", &[("Last-Event-ID", "0")]).await;
    service.client.append_all(7, 1..=12).await;
    new.read(TRADES, 1, 12).await;
    again.read(TRADES, 1, 12).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_what_proxies_must_not_do() {
    let service = Service::filled(TRADES, 1).await;
    let with = [
        ("Accept-Encoding", "gzip, zstd"),
        ("Accept", "text/event-stream"),
        ("Origin", "http://localhost:1"),
    ];
    let events = Events::of(&service.client, 1, "?after=0", &with).await;
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-store"),
        ("x-accel-buffering", "no"),
        ("access-control-allow-origin", "http://localhost:1"),
    ] {
        assert_eq!(events.headers().get(name).and_then(|value| value.to_str().ok()), Some(value), "{name}");
    }
    assert!(!events.headers().contains_key("content-encoding"), "{:?}", events.headers());
    let head = service.client.send(Method::HEAD, &TRADES.at(1, "/live"), |request| request).await;
    assert_eq!((head.status.as_u16(), head.header("content-type")), (200, "text/event-stream"));
    let path = TRADES.at(1, "/live");
    let preflight = service.client.send(Method::OPTIONS, &path, |request| {
        let request = request.header("origin", "http://localhost:1");
        request
            .header("access-control-request-method", "GET")
            .header("access-control-request-headers", "last-event-id")
    });
    assert!(preflight.await.header("access-control-allow-headers").contains("last-event-id"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_malformed_is_refused() {
    let service = Service::filled(TRADES, 1).await;
    for (query, headers, parameter) in [
        ("?after=x", &[][..], "after"),
        ("?after=-1", &[], "after"),
        ("?after=1&after=2", &[], "after"),
        ("?limit=5", &[], "limit"),
        ("?lastEventId=x", &[], "lastEventId"),
        ("?lastEventId=", &[], "lastEventId"),
        ("?lastEventId=1&lastEventId=2", &[], "lastEventId"),
        ("?lastEventId=x", &[("Last-Event-ID", "1")], "lastEventId"),
        ("", &[("Last-Event-ID", "x")], "Last-Event-ID"),
        ("", &[("Last-Event-ID", "")], "Last-Event-ID"),
        ("?after=1", &[("Last-Event-ID", "1.5")], "Last-Event-ID"),
        ("", &[("Last-Event-ID", "9007199254740992")], "Last-Event-ID"),
        ("", &[("Last-Event-ID", "1"), ("Last-Event-ID", "1")], "Last-Event-ID"),
    ] {
        let path = TRADES.at(1, &format!("/live{query}"));
        let with = |request: reqwest::RequestBuilder| {
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
        };
        let problem = service.client.send(Method::GET, &path, with).await.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{problem}");
    }
    let accept = |request: reqwest::RequestBuilder| request.header("accept", "application/json");
    let path = TRADES.at(1, "/live");
    service.client.send(Method::GET, &path, accept).await.problem(406, "not-acceptable");
    service.client.post_text(&path, "{}").await.problem(405, "method-not-allowed");
}

/// A live stream needs no end that a client can tell: it is resumed.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_http_1_0_reads_until_the_connection_ends() {
    let mut setup = Setup::on(shared().await);
    setup.config.api.live_max_age = Duration::from_secs(2);
    let service = setup.start().await;
    service.client.append_all(1, 1..=2).await;
    let mut connection = Raw::connect(service.address()).await;
    connection.send(&format!("GET {} HTTP/1.0\r\n\r\n", TRADES.at(1, "/live?after=1"))).await;
    let answer = String::from_utf8(connection.bytes().await).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(
        head.starts_with("HTTP/1.0 200 ") && !head.to_lowercase().contains("transfer-encoding"),
        "{head}"
    );
    assert!(body.starts_with("retry: 2000\n\nid: 2\ndata: {\"items\":[{\"seq\":2,"), "{body}");
    assert!(body.ends_with("event: end\ndata: {\"reason\":\"max-age\"}\n\n"), "{body}");
}

/// Live streams take no places of requests, and one client has a quarter of theirs.
#[tokio::test(flavor = "multi_thread")]
async fn live_streams_have_places_of_their_own() {
    let mut setup = Setup::on(shared().await);
    (setup.config.api.max_live, setup.config.api.max_requests) = (8, 4);
    let service = setup.start().await;
    let live = [Events::of(&service.client, 1, "", &[]).await, Events::of(&service.client, 2, "", &[]).await];
    let refused = service.client.get(&TRADES.at(1, "/live")).await.problem(503, "overloaded");
    let expected =
        "Too many live streams and long polls of this client are under way: it may have 2 at once.";
    assert_eq!(refused["detail"], expected);
    // One client has one place of a request at a time, and two live streams now.
    assert_eq!(service.client.total(1).await, 0);
    service.client.append_all(1, 1..=1).await;
    drop(live);
    let free =
        || async { begin(&service.client, 1, "", &[]).await.is_ok_and(|answer| answer.status() == 200) };
    eventually("its places are free", PATIENCE, free).await;
}

/// The server does not read on for a client that does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_cut_off() {
    let mut setup = Setup::on(shared().await);
    (setup.config.api.max_live, setup.config.server.write_timeout) = (1, Duration::from_secs(3));
    let service = setup.start().await;
    fill(&service.database, TRADES, 7, 40_000, 10).await;
    let unread = begin(&service.client, 7, "?after=0", &[]).await.expect("an answer");
    assert_eq!(unread.status(), 200);
    service.client.get(&TRADES.at(7, "/live")).await.problem(503, "overloaded");
    let free =
        || async { begin(&service.client, 7, "", &[]).await.is_ok_and(|answer| answer.status() == 200) };
    eventually("it is cut off", PATIENCE, free).await;
    drop(unread);
}

/// What is delivered is charged as reads of pages.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_delivered_is_charged() {
    let mut setup = Setup::on(shared().await);
    let rate = Rate {
        units: NonZeroU32::new(1).unwrap(),
        per: Duration::from_secs(3600),
        burst: NonZeroU32::new(5),
    };
    setup.config.api.rate = Some(rate);
    let service = setup.start().await;
    fill(&service.database, TRADES, 7, 25, 10).await;
    let mut events = Events::of(&service.client, 7, "?after=0", &[]).await;
    // Each page is paid before the next is awaited, so that a sixth comes, and no seventh.
    events.read(TRADES, 1, 60).await;
    service.client.get(&TRADES.at(7, "?limit=1")).await.problem(429, "too-many-requests");
}
