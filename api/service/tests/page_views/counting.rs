//! Counting: where a view belongs, and that each is counted once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_model::domain::{Clock, Instant};
use serde_json::json;

use super::{PATH, bucket, count, counted, documents, points, series, view};
use crate::harness::{Service, Setup, shared};

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_belongs_to_its_second() {
    let service = Service::start().await;
    for (at, views) in [
        ("2014-01-01T10:00:59.999Z", 1),
        ("2014-01-01T10:01:00.000Z", 2),
        ("2014-01-01T10:01:00.999Z", 4),
        ("2014-01-01T10:01:01Z", 8),
        ("2014-01-01T11:01:59.999+01:00", 16),
        ("2014-01-01T10:02:00Z", 32),
    ] {
        counted(&count(&service.client, &view("/index.htm", at, views)).await);
    }
    assert_eq!(
        bucket(&service, "/index.htm", "2014-01-01T10:01:00Z").await,
        json!({
            "path": "/index.htm", "timestamp": "2014-01-01T10:01:00.000Z", "totalViews": 30,
            "seconds": { "0": 6, "1": 8, "59": 16 }
        })
    );
    let before = bucket(&service, "/index.htm", "2014-01-01T10:00:00Z").await;
    assert_eq!(before["seconds"], json!({ "59": 1 }));
    let behind = bucket(&service, "/index.htm", "2014-01-01T10:02:00Z").await;
    assert_eq!(behind["seconds"], json!({ "0": 32 }));
    // An array has an address of its own, too.
    let array = json!([view("/batch", "2014-01-01T10:01:00Z", 1), view("/batch", "2014-01-01T10:01:00Z", 2)]);
    counted(&service.client.post_text(&format!("{PATH}/batch"), array.to_string()).await);
    assert_eq!(bucket(&service, "/batch", "2014-01-01T10:01:00Z").await["totalViews"], 3);
    // Paths are what their bytes are.
    counted(&count(&service.client, &view("/Index.htm", "2014-01-01T10:01:00Z", 1)).await);
    counted(&count(&service.client, &view("/ä?".trim_end_matches('?'), "2014-01-01T10:01:00Z", 1)).await);
    assert_eq!(bucket(&service, "/%C3%A4", "2014-01-01T10:01:00Z").await["path"], "/ä");
    assert_eq!(bucket(&service, "/index.htm", "2014-01-01T10:01:00Z").await["totalViews"], 30);
    // As the issue of this collection has it, and no other field. mongod 7.0 puts `timestamp` before `page`.
    let stored = service.database.collection::<Document>("page_views");
    let stored =
        stored.find_one(doc! { "page": "/Index.htm" }).await.expect("an answer").expect("a document");
    let fields: BTreeSet<_> = stored.keys().map(String::as_str).collect();
    assert_eq!(fields, BTreeSet::from(["_id", "page", "timestamp", "seconds", "totalViews"]));
    assert!(stored.get_object_id("_id").is_ok(), "{stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn years_before_1970() {
    let service = Service::start().await;
    for at in
        ["1969-12-31T23:59:59.999Z", "1969-12-31T23:59:00Z", "0000-01-01T00:00:00Z", "1900-02-28T23:59:59Z"]
    {
        counted(&count(&service.client, &view("/old", at, 1)).await);
    }
    let last = bucket(&service, "/old", "1969-12-31T23:59:00Z").await;
    assert_eq!(last["seconds"], json!({ "0": 1, "59": 1 }));
    assert_eq!(bucket(&service, "/old", "0000-01-01T00:00:00Z").await["totalViews"], 1);
    let around = "path=/old&from=1969-12-31T23:58:00Z&to=1970-01-01T00:02:00Z";
    assert_eq!(points(&series(&service, around).await), [0, 2, 0, 0]);
    for (resolution, from, to, expected) in [
        ("hour", "1900-02-28T22:00:00Z", "1900-03-01T01:00:00Z", &[0, 1, 0][..]),
        ("day", "1900-02-28T22:00:00Z", "1900-03-01T00:00:01Z", &[1, 0]),
        ("day", "1969-12-30T12:00:00Z", "1970-01-01T12:00:00Z", &[0, 2, 0]),
        ("day", "0000-01-01T00:00:00Z", "0000-01-02T00:00:00Z", &[1]),
        ("second", "1969-12-31T23:59:58.500Z", "1970-01-01T00:00:00.001Z", &[0, 1, 0]),
    ] {
        let query = format!("path=/old&resolution={resolution}&from={from}&to={to}");
        assert_eq!(points(&series(&service, &query).await), expected, "{query}");
    }
}

/// A service whose clock stands still at this time.
async fn at(now: &str) -> Service {
    let now = Instant::parse_rfc3339(now).expect("a date");
    let mut setup = Setup::on(shared().await);
    setup.clock = Clock::from_fn(move || now);
    setup.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_date_is_of_now() {
    let service = at("2014-01-01T10:01:14.250Z").await;
    counted(&count(&service.client, &json!({ "path": "/" })).await);
    counted(&count(&service.client, &json!([{ "path": "/", "views": 2 }, { "path": "/" }])).await);
    assert_eq!(bucket(&service, "/", "2014-01-01T10:01:00Z").await["seconds"], json!({ "14": 4 }));
    let usual = series(&service, "path=/").await;
    assert_eq!(
        (&usual["from"], &usual["to"]),
        (&json!("2014-01-01T09:02:00.000Z"), &json!("2014-01-01T10:02:00.000Z"))
    );
    assert_eq!(points(&usual)[59], 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_ahead_and_no_more() {
    let service = at("2014-01-01T10:01:14.250Z").await;
    counted(&count(&service.client, &view("/", "2014-01-02T10:01:14.250Z", 1)).await);
    for (at, rule) in [
        ("2014-01-02T10:01:14.251Z", "must be at most 24 hours ahead of the server's clock"),
        ("9999-12-31T23:59:59.999Z", "must be at most 24 hours ahead of the server's clock"),
        ("2016-12-31T23:59:60Z", "must not be a leap second: seconds go from 00 to 59"),
    ] {
        let problem = count(&service.client, &view("/", at, 1)).await.problem(422, "invalid-page-view");
        assert_eq!(problem["errors"], json!([{ "pointer": "/at", "detail": rule }]), "{at}");
    }
    assert_eq!(bucket(&service, "/", "2014-01-02T10:01:00Z").await["totalViews"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once() {
    let service = Service::start().await;
    let many: Vec<_> = (0..1_000)
        .map(|n| view(&format!("/{}", n % 7), &format!("2014-01-01T10:0{}:{:02}Z", n % 3, n % 60), n + 1))
        .collect();
    counted(&count(&service.client, &json!(many)).await);
    let all = service
        .client
        .get(&format!("{PATH}/top?from=2014-01-01T10:00:00Z&to=2014-01-01T10:03:00Z&limit=100"))
        .await
        .expect(200);
    let total: u64 =
        all["items"].as_array().expect("items").iter().map(|item| item["totalViews"].as_u64().unwrap()).sum();
    assert_eq!(total, 500_500);
    assert_eq!(documents(&service, doc! {}).await, 21, "one for each page and minute");
}

#[tokio::test(flavor = "multi_thread")]
async fn by_lines() {
    let service = Service::start().await;
    let send = async |body: String| {
        crate::harness::uploads::upload(&service.client, &format!("{PATH}/upload"), body).await
    };
    // More than an array may hold.
    let lines: String = (0..5_000)
        .map(|n| format!("{}\n", view(&format!("/{}", n % 1_500), "2014-01-01T10:01:02Z", 2)))
        .collect();
    counted(&send(lines).await);
    assert_eq!(bucket(&service, "/0", "2014-01-01T10:01:00Z").await["totalViews"], 8);
    assert_eq!(bucket(&service, "/1499", "2014-01-01T10:01:00Z").await["totalViews"], 6);

    let bad = "{\"path\":\"/never\"}\n\n{\"path\":\"never\",\"views\":0}\n{\"path\"\n".to_owned();
    let problem = send(bad).await.problem(422, "invalid-page-view");
    let told: Vec<_> = problem["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .map(|e| (e["line"].as_u64(), e["pointer"].as_str()))
        .collect();
    assert_eq!(told, [(Some(3), Some("/path")), (Some(3), Some("/views")), (Some(4), Some(""))], "{problem}");
    let problem = send("\n \n".to_owned()).await.problem(422, "invalid-page-view");
    assert_eq!(problem["errors"], json!([{ "pointer": "", "detail": "must have at least one page view" }]));
    assert_eq!(
        documents(&service, doc! { "page": "/never" }).await,
        0,
        "of a body with a fault nothing is counted"
    );
    send(" ".repeat(1024 * 1024 + 1)).await.problem(413, "body-too-large");
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_clients_on_one_minute() {
    const CLIENTS: u64 = 64;
    const EACH: u64 = 20;
    let service = Service::start().await;
    let client = async |number: u64| {
        for turn in 0..EACH {
            let at = format!("2014-01-01T10:01:{:02}Z", (number + turn) % 60);
            counted(&count(&service.client, &view("/hot", &at, number + 1)).await);
        }
    };
    join_all((0..CLIENTS).map(client)).await;
    let acknowledged = EACH * (1..=CLIENTS).sum::<u64>();
    let hot = bucket(&service, "/hot", "2014-01-01T10:01:00Z").await;
    assert_eq!(hot["totalViews"], acknowledged);
    assert_eq!(documents(&service, doc! { "page": "/hot" }).await, 1);
    let point = series(&service, "path=/hot&from=2014-01-01T10:01:00Z&to=2014-01-01T10:02:00Z").await;
    assert_eq!(points(&point), [acknowledged]);
}

/// The control: what the guard is there for. The same upserts, on a collection without it.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_unique_index_a_minute_is_two_documents() {
    let service = Service::start().await;
    let unguarded = service.database.collection::<Document>("unguarded");
    let guarded = service.database.collection::<Document>("page_views");
    let minute = |turn: i64| DateTime::from_millis(turn * 60_000);
    let upsert = async |views: &mongodb::Collection<Document>, turn: i64| {
        let named = doc! { "page": "/", "timestamp": minute(turn) };
        let count = doc! { "$inc": { "totalViews": 1, "seconds.0": 1 } };
        views.update_one(named, count).upsert(true).await
    };
    // Two upserts that find nothing at the same time: a matter of luck, so that it is tried until it happens.
    let mut found = None;
    for turn in 0..1_000 {
        let race = join_all((0..16).map(|_| upsert(&unguarded, turn))).await;
        assert!(race.iter().all(Result::is_ok), "nobody is refused");
        let documents = unguarded.count_documents(doc! { "timestamp": minute(turn) }).await.expect("a count");
        if documents > 1 {
            found = Some((turn, documents));
            break;
        }
    }
    let (turn, documents) = found.expect("a minute with two documents, in 1,000 races");
    println!("without the unique index: {documents} documents for one minute, at race {}", turn + 1);
    // With the guard it never happens, in as many races.
    for turn in 0..=turn.max(20) {
        let race = join_all((0..16).map(|_| upsert(&guarded, turn))).await;
        let counted = race.iter().filter(|upsert| upsert.is_ok()).count();
        let only = guarded
            .find_one(doc! { "timestamp": minute(turn) })
            .await
            .expect("an answer")
            .expect("a document");
        assert_eq!(only.get_i32("totalViews").ok(), Some(counted as i32), "{only}");
        assert_eq!(guarded.count_documents(doc! { "timestamp": minute(turn) }).await.expect("a count"), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_outgrow_32_bits() {
    let service = Service::start().await;
    let stored = service.database.collection::<Document>("page_views");
    let most = i32::MAX - 1;
    let minute = DateTime::from_millis(1_388_570_460_000);
    let nearly = doc! { "page": "/", "timestamp": minute, "totalViews": most, "seconds": { "2": most } };
    stored.insert_one(nearly).await.expect("a sound minute");
    let many: Vec<_> = (0..1_000).map(|_| view("/", "2014-01-01T10:01:02Z", 1_000_000)).collect();
    for _ in 0..3 {
        counted(&count(&service.client, &json!(many)).await);
    }
    let expected = most as u64 + 3_000_000_000;
    let found = bucket(&service, "/", "2014-01-01T10:01:00Z").await;
    assert_eq!((&found["totalViews"], &found["seconds"]["2"]), (&json!(expected), &json!(expected)));
    let document = stored.find_one(doc! {}).await.expect("an answer").expect("a document");
    assert_eq!(document.get("totalViews"), Some(&Bson::Int64(expected as i64)));
}

/// By equality, with its minute, and by the unique index: on a cluster sharded by page every statement goes
/// to one shard. What all pages had is the exception.
#[tokio::test(flavor = "multi_thread")]
async fn every_statement_names_its_page() {
    let seen = Arc::new(Mutex::new(Vec::<(String, Document)>::new()));
    let watch = Arc::clone(&seen);
    let setup = Setup::on(shared().await).observed(move |name, command| {
        if command.get_str(name).is_ok_and(|collection| collection == "page_views") {
            watch.lock().expect("no test panics here").push((name.to_owned(), command.clone()));
        }
    });
    let service = setup.start().await;
    counted(
        &count(
            &service.client,
            &json!([view("/a", "2014-01-01T10:01:02Z", 1), view("/b", "2014-01-01T10:01:02Z", 1)]),
        )
        .await,
    );
    bucket(&service, "/a", "2014-01-01T10:01:00Z").await;
    for resolution in ["second", "minute", "hour", "day"] {
        series(
            &service,
            &format!("path=/a&resolution={resolution}&from=2014-01-01T10:01:00Z&to=2014-01-01T10:02:00Z"),
        )
        .await;
    }
    let seen = seen.lock().expect("no test panics here");
    let mut filters = Vec::new();
    for (name, command) in seen.iter() {
        match name.as_str() {
            "update" => {
                let concern = command.get_document("writeConcern").expect("a write concern");
                assert_eq!(
                    (concern.get_str("w").ok(), concern.get_bool("j").ok()),
                    (Some("majority"), Some(true))
                );
                let updates = command
                    .get_array("updates")
                    .expect("updates")
                    .iter()
                    .map(|update| update.as_document().unwrap());
                filters.extend(updates.map(|update| (update.get_document("q").unwrap(), update)));
            }
            "find" => filters.push((command.get_document("filter").unwrap(), command)),
            "aggregate" => {
                let stages = command.get_array("pipeline").expect("a pipeline");
                filters.push((stages[0].as_document().unwrap().get_document("$match").unwrap(), command));
            }
            "create" | "collMod" | "createIndexes" | "listIndexes" => {}
            other => panic!("{other} on page_views: {command}"),
        }
    }
    assert_eq!(filters.len(), 7, "{filters:?}");
    for (filter, command) in filters {
        assert!(filter.get_str("page").is_ok() && filter.contains_key("timestamp"), "{command}");
        assert_eq!(command.get_document("hint").ok(), Some(&doc! { "page": 1, "timestamp": 1 }), "{command}");
    }
}
