//! Several histories in one live stream.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pagebucket_http::OpenParts;
use pagebucket_service::Rate;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::events::{Event, Events, begin_at};
use crate::harness::tokens::{Issuer, claims};
use crate::harness::{Client, History, PATIENCE, Service, Setup, TRADES, eventually, fill, shared};

/// How a stream names the history of an owner.
fn name(history: &History, owner: u64) -> String {
    history.path(owner).trim_start_matches("/v1/").to_owned()
}

/// The address of a stream of these, each with its position, if there is one.
fn address(watched: &[(&History, u64, Option<u64>)]) -> String {
    let value = |(history, owner, after): &(&History, u64, Option<u64>)| {
        let position = after.map_or_else(String::new, |after| format!(":{after}"));
        format!("watch={}{position}", name(history, *owner))
    };
    format!("/v1/live?{}", watched.iter().map(value).collect::<Vec<_>>().join("&"))
}

async fn watch(client: &Client, watched: &[(&History, u64, Option<u64>)], last: Option<&str>) -> Events {
    let headers: Vec<_> = last.map(|last| ("Last-Event-ID", last)).into_iter().collect();
    Events::at(client, &address(watched), &headers).await
}

/// The numbers of the items of an event, which is one of this history.
fn seqs(event: &Event, name: &str) -> Vec<u64> {
    assert_eq!((event.name.as_str(), &event.data["watch"]), ("message", &json!(name)), "{event:?}");
    event.data["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["seq"].as_u64().expect("a number"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_shows_several_histories() {
    let mongod = shared().await;
    let one = Service::filled(TRADES, 12).await;
    let other = one.sibling(mongod).await;
    other.client.append_all(2, 1..=3).await;
    let list = [(TRADES, 1, Some(10)), (TRADES, 2, None), (TRADES, 3, None)];
    let [first, second, third] = [1, 2, 3].map(|owner| name(TRADES, owner));
    let mut events = watch(&one.client, &list, None).await;
    for (history, total) in [(&second, 3), (&third, 0)] {
        let position = events.next().await;
        assert_eq!(
            (position.name, position.data),
            ("position".into(), json!({ "watch": history, "totalItems": total }))
        );
    }
    let id = events.id.clone().expect("an id");
    assert!(id.ends_with(".10.3.0"), "{id}");
    assert_eq!(seqs(&events.next().await, &first), [11, 12]);
    for (client, owner, number, history) in
        [(&other.client, 2, 4, &second), (&one.client, 3, 1, &third), (&other.client, 1, 13, &first)]
    {
        client.append_all(owner, number..=number).await;
        assert_eq!(seqs(&events.next().await, history), [number]);
    }
    let id = events.id.clone().expect("an id");
    assert!(id.ends_with(".13.4.1"), "{id}");
    drop(events);
    // The last event counts, whatever the address says, and on every instance.
    one.client.append_all(2, 5..=5).await;
    let mut resumed = watch(&other.client, &list, Some(&id)).await;
    assert_eq!(seqs(&resumed.next().await, &second), [5]);
    one.client.append_all(3, 2..=2).await;
    assert_eq!(seqs(&resumed.next().await, &third), [2]);
    // So does `lastEventId` in the query, and the header before it.
    let queried = format!("{}&lastEventId={id}", address(&list));
    let mut resumed = Events::at(&one.client, &queried, &[]).await;
    assert_eq!(seqs(&resumed.next().await, &second), [5]);
    let last = resumed.id.clone().expect("an id");
    let mut resumed = Events::at(&one.client, &queried, &[("Last-Event-ID", &last)]).await;
    assert_eq!(seqs(&resumed.next().await, &third), [2]);
    // Another list, also one of another order, has other ids.
    let turned = [list[1], list[0], list[2]];
    for list in [&turned[..], &list[..2]] {
        let refused =
            begin_at(&one.client, &address(list), &[("Last-Event-ID", &id)]).await.expect("an answer");
        assert_eq!(refused.status(), 400);
        let problem: Value = refused.json().await.expect("a problem");
        assert_eq!(
            problem["errors"][0]["detail"], "is of a stream with another list of `watch`",
            "{problem}"
        );
    }
}

/// Each ready history has its turn, however much another one has.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_keeps_no_other_waiting() {
    let service = Service::filled(TRADES, 3).await;
    let pages = 400;
    fill(&service.database, TRADES, 2, pages, 10).await;
    let list = [(TRADES, 2, Some(0)), (TRADES, 1, Some(0)), (TRADES, 3, Some(0))];
    let mut events = watch(&service.client, &list, None).await;
    let (long, short, live) = (name(TRADES, 2), name(TRADES, 1), name(TRADES, 3));
    let (mut read, mut stored, mut appended) = (0, None, None);
    while read < 10 * pages {
        let event = events.next().await;
        if event.data["watch"] == long {
            let seqs = seqs(&event, &long);
            assert_eq!(seqs.first(), Some(&(read + 1)));
            read = *seqs.last().expect("items");
            if read == 100 {
                service.client.append_all(3, 1..=1).await;
            }
        } else if event.data["watch"] == short {
            assert_eq!((seqs(&event, &short), stored.replace(read)), (vec![1, 2, 3], None));
        } else {
            assert_eq!((seqs(&event, &live), appended.replace(read)), (vec![1], None));
        }
    }
    assert!(stored.is_some_and(|read| read < 1_000), "{stored:?} of {}", 10 * pages);
    assert!(appended.is_some_and(|read| read < 10 * pages), "{appended:?}");
}

/// Each of several backlogs has its turn, one page at a time, however many pages are read at once.
#[tokio::test(flavor = "multi_thread")]
async fn histories_with_a_backlog_take_turns() {
    let service = Service::start().await;
    let pages = [(1, 40), (2, 25), (3, 40), (4, 3)];
    for (owner, pages) in pages {
        fill(&service.database, TRADES, owner, pages, 10).await;
    }
    let list = pages.map(|(owner, _)| (TRADES, owner, Some(0)));
    let mut events = watch(&service.client, &list, None).await;
    for turn in 0..40 {
        let mut shown = Vec::new();
        let left = pages.iter().filter(|(_, pages)| turn < *pages).map(|(owner, _)| name(TRADES, *owner));
        let left: Vec<_> = left.collect();
        for _ in &left {
            let event = events.next().await;
            let name = event.data["watch"].as_str().expect("a name").to_owned();
            assert_eq!(seqs(&event, &name), (10 * turn + 1..=10 * turn + 10).collect::<Vec<_>>());
            shown.push(name);
        }
        shown.sort();
        assert_eq!(shown, left, "turn {turn}");
    }
}

/// What is deleted ends one history, and not the stream.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_is_gone_ends_alone() {
    let service = Service::filled(TRADES, 3).await;
    let erase = async |owner: u64| {
        let erased = service.client.send(Method::DELETE, &TRADES.owner_path(owner), |request| request).await;
        assert!(erased.status.is_success(), "{erased:?}");
    };
    let gone = async |events: &mut Events, owner: u64| {
        let event = events.next().await;
        assert_eq!(
            (event.name.as_str(), &event.data["watch"]),
            ("gone", &json!(name(TRADES, owner))),
            "{event:?}"
        );
        assert_eq!((&event.data["status"], &event.data["type"]), (&json!(410), &json!("/problems#erased")));
    };
    service.client.append_all(2, 1..=1).await;
    service.client.append_all(3, 1..=1).await;
    erase(2).await;
    let list = [(TRADES, 1, Some(3)), (TRADES, 2, None), (TRADES, 3, Some(0))];
    let mut events = watch(&service.client, &list, None).await;
    gone(&mut events, 2).await;
    assert_eq!(seqs(&events.next().await, &name(TRADES, 3)), [1]);
    erase(3).await;
    gone(&mut events, 3).await;
    service.client.append_all(1, 4..=4).await;
    assert_eq!(seqs(&events.next().await, &name(TRADES, 1)), [4]);
    let id = events.id.clone().expect("an id");
    assert!(id.ends_with(".4.-.1"), "{id}");
    let mut resumed = watch(&service.client, &list, Some(&id)).await;
    gone(&mut resumed, 2).await;
    gone(&mut resumed, 3).await;
    erase(1).await;
    for events in [&mut events, &mut resumed] {
        gone(events, 1).await;
        events.end().await;
    }
}

/// Nothing is read before all of it is allowed.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_watches_its_owners_only() {
    let issuer = Issuer::start().await;
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    let mut setup = Setup::on(shared().await).observed(move |name, command| {
        // Of histories, and the change stream.
        if command.get_str(name).is_ok_and(|of| of == TRADES.name) || name == "aggregate" {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    setup.gate = issuer.gate(OpenParts::default()).await;
    let service = setup.start().await;
    let client = service.client.with_token(issuer.signer.sign(&claims("ann", "read", json!([1, 2]))));
    let before = reads.load(Ordering::Relaxed);
    let head = async |client: &Client, path: &str| {
        client.send(Method::HEAD, path, |request| request).await.status.as_u16()
    };
    let of = |owners: &[u64]| address(&owners.iter().map(|owner| (TRADES, *owner, None)).collect::<Vec<_>>());
    for (path, status) in [
        (of(&[1, 2, 3]), 403),
        (of(&[3]), 403),
        // Whether it exists or not, and however it is spelled.
        ("/v1/live?watch=customers/1/trades&watch=rooms/1/messages".to_owned(), 403),
        ("/v1/live?watch=customers/1/trades&w%61tch=customers%2F3/trades:x".to_owned(), 403),
        ("/v1/live?watch=customers/1/trades&watch=customers".to_owned(), 400),
    ] {
        assert_eq!(head(&client, &path).await, status, "{path}");
    }
    assert_eq!(reads.load(Ordering::Relaxed), before, "not even of those that it may read");
    assert_eq!(head(&client, &of(&[1, 2])).await, 200);
    assert!(reads.load(Ordering::Relaxed) > before);
    assert_eq!(head(&service.client, &of(&[1])).await, 401);
    let other = service.client.with_token(issuer.signer.sign(&claims("ann", "list", json!("*"))));
    assert_eq!(head(&other, &of(&[1])).await, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_list_is_refused() {
    let service = Service::filled(TRADES, 1).await;
    let many = (1..=33).map(|owner| format!("watch=customers/{owner}/trades")).collect::<Vec<_>>().join("&");
    for (query, parameter, detail) in [
        ("", "watch", "is required"),
        ("after=1", "watch", "is required"),
        ("watch=", "watch", "must be a history"),
        ("watch=customers/7", "watch", "must be a history"),
        ("watch=customers/7/trades/live", "watch", "must be a history"),
        ("watch=rooms/7/messages", "watch", "must name a history that this server has"),
        ("watch=trades/7/customers", "watch", "must name a history that this server has"),
        ("watch=customers/0/trades", "watch", "has an owner that must be"),
        ("watch=customers/7/trades:", "watch", "has a position that must be"),
        ("watch=customers/7/trades:-1", "watch", "has a position that must be"),
        ("watch=customers/7/trades&watch=customers/8/trades:x", "watch", "(value 2 of 2)"),
        ("watch=customers/7/trades&watch=customers/7/trades", "watch", "twice"),
        ("watch=customers/7/trades:1&watch=customers/7/trades:2", "watch", "twice"),
        ("watch=customers/7/trades,customers/8/trades", "watch", "repeat the parameter"),
        (&many, "watch", "more than 32 times"),
        ("watch=customers/7/trades&limit=1", "limit", "is not a parameter"),
    ] {
        let problem =
            service.client.get(&format!("/v1/live?{query}")).await.problem(400, "invalid-parameter");
        let error = problem["errors"]
            .as_array()
            .and_then(|errors| errors.iter().find(|error| error["parameter"] == parameter));
        let told = error.and_then(|error| error["detail"].as_str()).expect("the parameter");
        assert!(told.contains(detail), "{query}: {problem}");
    }
    for id in ["", "34", "x.1", "0123456789ab", "0123456789ab.1"] {
        let with = |request: reqwest::RequestBuilder| request.header("Last-Event-ID", id);
        let answer = service.client.send(Method::GET, "/v1/live?watch=customers/7/trades", with).await;
        let problem = answer.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], "Last-Event-ID", "{problem}");
    }
    let accept = |request: reqwest::RequestBuilder| request.header("accept", "application/json");
    let answer = service.client.send(Method::GET, "/v1/live?watch=customers/7/trades", accept).await;
    answer.problem(406, "not-acceptable");
}

/// Beside the stream itself, each history after the first is a read.
#[tokio::test(flavor = "multi_thread")]
async fn each_further_history_is_charged() {
    let mut setup = Setup::on(shared().await);
    let rate = Rate { units: NonZeroU32::MIN, per: Duration::from_secs(3600), burst: NonZeroU32::new(6) };
    setup.config.api.rate = Some(rate);
    let service = setup.start().await;
    let list: Vec<_> = (1..=6).map(|owner| (TRADES, owner, Some(0))).collect();
    let _events = watch(&service.client, &list, None).await;
    service.client.get(&TRADES.path(1)).await.expect(200);
    service.client.get(&TRADES.path(1)).await.problem(429, "too-many-requests");
    // Streams have units of their own.
    let _again = watch(&service.client, &list[..1], None).await;
}

/// A stream has one place, however many histories it shows.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_several_histories_has_one_place() {
    let mut setup = Setup::on(shared().await);
    setup.config.api.max_live = 8;
    let service = setup.start().await;
    let list: Vec<_> = (1..=32).map(|owner| (TRADES, owner, Some(0))).collect();
    let live = [watch(&service.client, &list, None).await, watch(&service.client, &list, None).await];
    service.client.get(&address(&list)).await.problem(503, "overloaded");
    drop(live);
    let free = || async {
        begin_at(&service.client, &address(&list), &[]).await.is_ok_and(|answer| answer.status() == 200)
    };
    eventually("its places are free", PATIENCE, free).await;
}

/// Histories of several definitions, of other owners.
#[tokio::test(flavor = "multi_thread")]
async fn histories_of_other_owners_share_a_stream() {
    let mut setup = Setup::on(shared().await);
    setup.definitions = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/histories"));
    let service = setup.start().await;
    let served = service.client.get("/openapi.json").await.expect(200);
    let histories = [
        ("accounts/123e4567-e89b-42d3-a456-426614174000/executions", "ExecutionInput"),
        ("rooms/kitchen/messages", "MessageInput"),
    ];
    let query = histories.map(|(name, _)| format!("watch={name}:0")).join("&");
    let mut events = Events::at(&service.client, &format!("/v1/live?{query}"), &[]).await;
    for (name, schema) in histories {
        let item = &served["components"]["schemas"][schema]["examples"][0];
        service.client.post_text(&format!("/v1/{name}"), item.to_string()).await.expect(201);
        assert_eq!(seqs(&events.next().await, name), [1]);
    }
    assert!(events.id.as_deref().is_some_and(|id| id.ends_with(".1.1")), "{:?}", events.id);
}
