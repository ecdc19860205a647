//! Who has something new: live streams of all owners.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use mongodb::bson::{doc, serialize_to_bson};
use pagebucket_service::Rate;
use reqwest::Method;
use serde_json::json;

use crate::harness::events::{Events, begin_at, begin_owners, follow_owners, of_owners};
use crate::harness::rig::{fail, heal};
use crate::harness::{
    Client, History, Mongod, NOTES, PATIENCE, READINGS, Service, Setup, TRADES, eventually, shared, test_over,
};

/// Reads until these owners have these totals. No total gets less. Returns how many events that took.
async fn read_to(events: &mut Events, history: &History, expected: &[(u64, u64)]) -> usize {
    let mut count = 0;
    let mut told = BTreeMap::new();
    let expected: BTreeMap<_, _> =
        expected.iter().map(|(owner, total)| (history.id(*owner).to_string(), *total)).collect();
    // Others may be told again.
    while expected.iter().any(|(owner, total)| told.get(owner) != Some(total)) {
        let event = events.next().await;
        if event.name == "position" {
            continue;
        }
        assert_eq!(event.name, "message", "{event:?}");
        count += 1;
        for item in event.data["items"].as_array().expect("items") {
            let owner = item[history.owner_field].to_string().trim_matches('"').to_owned();
            let totals = &item[history.name];
            let total = totals["totalItems"].as_u64().expect("a total");
            assert_eq!(totals["totalPages"], total.div_ceil(history.page_size), "{event:?}");
            assert!(told.insert(owner, total).is_none_or(|before| before <= total), "{event:?}");
        }
    }
    count
}

test_over!(who_has_something_new_is_told, SMALL);
async fn who_has_something_new_is_told(history: &'static History) {
    let mongod = shared().await;
    let one = Service::filled(history, 3).await;
    let other = one.sibling(mongod).await;
    let (mut events, first) = begin_owners(&one.client).await;
    let appended = [(1, 4), (2, 1), (3, history.page_size + 2)];
    one.client.append_all(1, 4..=4).await;
    other.client.append_all(2, 1..=1).await;
    other.client.append_all(3, 1..=history.page_size + 2).await;
    read_to(&mut events, history, &appended).await;
    let last = events.id.clone().expect("an id");
    drop(events);
    // On every instance, from every place.
    one.client.append_all(2, 2..=2).await;
    let mut resumed = follow_owners(&other.client, Some(&last)).await;
    read_to(&mut resumed, history, &[(2, 2)]).await;
    let queried = format!("{}?lastEventId={last}", of_owners(history));
    let mut queried = Events::at(&one.client, &queried, &[]).await;
    read_to(&mut queried, history, &[(2, 2)]).await;
    let mut all = follow_owners(&other.client, Some(&first)).await;
    read_to(&mut all, history, &[(1, 4), (2, 2), (3, history.page_size + 2)]).await;
    // And go on.
    one.client.append_all(5, 1..=1).await;
    read_to(&mut resumed, history, &[(5, 1)]).await;
    read_to(&mut all, history, &[(5, 1)]).await;
}

/// The place of a stream is one in the log of all histories: also that of a change in another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_place_in_another_history_is_resumed() {
    let service = Service::of(NOTES).await;
    let readings = Client::new(READINGS, service.client.url(""));
    let (_events, first) = begin_owners(&service.client).await;
    service.client.append_all(1, 1..=1).await;
    // Between two changes of a batch a place is that of the one before.
    let mut changes = service.database.watch().await.expect("a change stream");
    readings.append_all(1, 1..=1).await;
    let change = loop {
        let change = changes.next().await.expect("a change").expect("an answer");
        if change.ns.as_ref().and_then(|ns| ns.coll.as_deref()) == Some(READINGS.name) {
            break change;
        }
    };
    let token = serialize_to_bson(&change.id).expect("a token");
    let place = token.as_document().and_then(|token| token.get_str("_data").ok()).expect("a text");
    service.client.append_all(2, 1..=1).await;
    for (place, expected) in [(place, &[(2, 1)][..]), (&first, &[(1, 1), (2, 1)])] {
        let mut resumed = follow_owners(&service.client, Some(place)).await;
        read_to(&mut resumed, NOTES, expected).await;
    }
}

/// One read for all readers, and for all appends of a second.
#[tokio::test(flavor = "multi_thread")]
async fn many_changes_come_in_few_events() {
    let service = Service::start().await;
    let (mut events, _) = begin_owners(&service.client).await;
    join_all((1..=150).map(|owner| service.client.append_all(owner, 1..=1))).await;
    join_all((2..=40).map(|number| service.client.append_all(7, number..=number))).await;
    let expected: Vec<_> = (1..=150).map(|owner| (owner, if owner == 7 { 40 } else { 1 })).collect();
    let count = read_to(&mut events, TRADES, &expected).await;
    // With one for each append there were 189.
    assert!(count <= 47, "{count} events");
}

/// Each event with owners is a read.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_is_charged() {
    let mut setup = Setup::on(shared().await);
    let rate = Rate { units: NonZeroU32::MIN, per: Duration::from_secs(3600), burst: NonZeroU32::new(4) };
    setup.config.api.rate = Some(rate);
    let service = setup.start().await;
    let (mut events, _) = begin_owners(&service.client).await;
    for owner in 1..=3 {
        service.client.append_all(owner, 1..=1).await;
        read_to(&mut events, TRADES, &[(owner, 1)]).await;
    }
    // An event is paid before the next one comes: two at least.
    let mut left = 0;
    while service.client.get(&TRADES.path(1)).await.status == 200 {
        left += 1;
    }
    assert!(left <= 2, "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_too_old_is_told() {
    let mongod = Mongod::failing().await;
    let service = Setup::on(&mongod).start().await;
    let (mut events, first) = begin_owners(&service.client).await;
    service.client.append_all(1, 1..=1).await;
    read_to(&mut events, TRADES, &[(1, 1)]).await;
    let with = |request: reqwest::RequestBuilder| request.header("Last-Event-ID", first.as_str());
    for code in [286, 280] {
        // Only a stream that is opened asks by an aggregate on the database.
        let namespace = format!("{}.$cmd.aggregate", service.database.name());
        let how = doc! { "failCommands": ["aggregate"], "namespace": namespace, "errorCode": code };
        fail(&mongod, "aggregate", "alwaysOn", how).await;
        let refused = service.client.send(Method::GET, &of_owners(TRADES), with).await;
        refused.problem(410, "position-too-old");
        heal(&mongod).await;
    }
    // A place that the stream loses: its readers resume.
    let how = doc! { "failCommands": ["getMore", "aggregate"], "errorCode": 286 };
    fail(&mongod, "getMore", doc! { "times": 2 }, how).await;
    loop {
        let event = events.next().await;
        if event.name == "end" {
            assert_eq!(event.data, json!({ "reason": "lost" }));
            break;
        }
    }
    events.end().await;
    heal(&mongod).await;
    service.client.append_all(2, 1..=1).await;
    let mut resumed = follow_owners(&service.client, events.id.as_deref()).await;
    read_to(&mut resumed, TRADES, &[(2, 1)]).await;
    mongod.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_none_is_refused() {
    let service = Service::start().await;
    let (_events, _) = begin_owners(&service.client).await;
    for id in ["", "34", "x", "82", "8200000001000000012B0229296e04", "8200000001000000012B0229296E0"] {
        let with = |request: reqwest::RequestBuilder| request.header("Last-Event-ID", id);
        let refused = service.client.send(Method::GET, &of_owners(TRADES), with).await;
        let problem = refused.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], "Last-Event-ID", "{id}: {problem}");
        let queried = service.client.get(&format!("{}?lastEventId={id}", of_owners(TRADES))).await;
        let problem = queried.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], "lastEventId", "{id}: {problem}");
    }
    service.client.get("/v1/trades/live?after=3").await.problem(400, "invalid-parameter");
}

/// It is honest: there is nothing to be told by.
#[tokio::test(flavor = "multi_thread")]
async fn a_standalone_server_tells_no_changes() {
    let mongod = Mongod::standalone().await;
    let service = Setup::on(&mongod).start().await;
    let refused = service.client.get(&of_owners(TRADES)).await;
    refused.problem(501, "not-available");
    mongod.remove().await;
}

/// A stream of all owners has the feed opened, and lets it close.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_all_owners_has_a_place() {
    let service = Service::start().await;
    let (events, last) = begin_owners(&service.client).await;
    drop(events);
    service.client.append_all(1, 1..=1).await;
    let again = || async {
        begin_at(&service.client, &of_owners(TRADES), &[("Last-Event-ID", &last)])
            .await
            .is_ok_and(|answer| answer.status() == 200)
    };
    eventually("it is resumed", PATIENCE, again).await;
    let mut resumed = follow_owners(&service.client, Some(&last)).await;
    read_to(&mut resumed, TRADES, &[(1, 1)]).await;
}
