//! Summaries that outlive their pages.

use std::num::NonZeroU64;

use futures_util::TryStreamExt;
use mongodb::bson::{Document, doc};
use rand::SeedableRng;
use rand::rngs::StdRng;
use reqwest::Method;
use serde_json::{Value, json};

use super::definitions::{NoteDefinition, note_points};
use super::{ModelTrade, PATH, points, walk};
use crate::harness::deleted::keeping;
use crate::harness::{Client, NOTES, PATIENCE, Service, Setup, TRADES, eventually, shared};

/// 1890-06-18T23:05:00Z: a day in Berlin began 92 seconds later, in the same quarter of an hour.
const OLD: i64 = -2_509_923_300_000;

/// Its date is before this in UTC and in all zones of the tests.
const AFTER_OLD: &str = "2024-01-01T00:00:00Z";

fn keeping_summaries(mut setup: Setup) -> Setup {
    setup.config.retained.entry(setup.history.name.into()).or_default().keep_summaries = true;
    setup
}

async fn first_page(Service { client, history, .. }: &Service, owner: u64) -> u64 {
    let body = client.get(&history.owner_path(owner)).await.expect(200);
    history.totals(&body)["firstPage"].as_u64().unwrap_or(1)
}

async fn kept(service: &Service) -> Vec<Document> {
    let tiles = service.database.collection::<Document>("kept_summaries");
    let found = tiles.find(doc! {}).sort(doc! { "_id": 1 }).await.expect("an answer");
    found.try_collect().await.expect("documents")
}

/// Random trades, dense and sparse ones: the answers of before, while their pages are retired and after.
#[tokio::test(flavor = "multi_thread")]
async fn days_outlive_their_pages() {
    let service = Service::start().await;
    let mut random = StdRng::seed_from_u64(33);
    let mut trades: Vec<ModelTrade> = Vec::new();
    for seq in 1..=2_003 {
        let mut trade = ModelTrade::random(&mut random, &[], seq % 640 < 320);
        if trade.millis < 0 {
            trade.millis = 1_710_000_000_000 + seq * 1_000;
        }
        trades.push(trade);
    }
    trades[5].millis = OLD;
    for part in trades.chunks(1_000) {
        let items: Vec<_> = part.iter().map(ModelTrade::json).collect();
        service.client.append(1, &json!(items)).await.expect(201);
    }
    let later = format!("from={AFTER_OLD}");
    let questions = [
        ("1d", "UTC", &[][..], "", 0),
        ("1M", "UTC", &["type", "ticker"], "asOf=1281", 1_281),
        ("1d", "Europe/Berlin", &["ticker"], &later, 0),
        ("1d", "America/New_York", &[], &format!("{later}&asOf=2000"), 2_000),
        ("15m", "UTC", &["type"], "ticker=AMD", 0),
        ("1w", "Australia/Lord_Howe", &["ticker"], &later, 0),
    ];
    let query = |by: &str, tz: &str, groups: &[&str], rest: &str| {
        let group = if groups.is_empty() { String::new() } else { format!("&group={}", groups.join(",")) };
        format!("by={by}&tz={tz}&limit=1000{group}&{rest}")
    };
    let expected = questions.map(|(by, tz, groups, rest, as_of)| {
        let there = if as_of == 0 { trades.len() } else { as_of };
        points(&trades[..there], by, tz, groups, |_, trade| {
            (!rest.contains("from") || trade.millis > 0) && (!rest.contains("AMD") || trade.ticker == "AMD")
        })
    });
    let are_answered = async |client: &Client| {
        for ((by, tz, groups, rest, _), expected) in questions.iter().zip(&expected) {
            let query = query(by, tz, groups, rest);
            assert_eq!(&json!(walk(client, &query).await.0), expected, "{query}");
        }
    };
    are_answered(&service.client).await;

    let setup = keeping_summaries(keeping(shared().await, TRADES, 10));
    let beside = setup.in_database(&service.database).start().await;
    let (client, buckets) = (&beside.client, beside.database.collection::<Document>("trades"));
    eventually("pages are deleted, 64 at a time", PATIENCE, async || {
        are_answered(client).await;
        let left = buckets.count_documents(doc! { "customerId": 1_i64 }).await.expect("a number");
        // The marker, and the pages 129 to 201.
        left == 74
    })
    .await;
    let [_, last] = &kept(&beside).await[..] else { panic!("two tiles") };
    assert_eq!(first_page(&beside, 1).await, 129);
    are_answered(client).await;
    // A retirement has stored the next tile, and has not come to its end: the items are still on pages.
    let (tiles, mut next) = (beside.database.collection::<Document>("kept_summaries"), last.clone());
    let id = last.get_str("_id").expect("a text").strip_suffix('1').expect("the second tile");
    next.extend(doc! { "_id": format!("{id}2"), "firstPage": 129_i64 });
    tiles.insert_one(next).await.expect("a tile");
    are_answered(client).await;
    let body = client.get(&format!("{PATH}?by=1M")).await.expect(200);
    assert_eq!((&body["firstSeq"], &body["totalItems"]), (&Value::Null, &json!(2_003)));
    let answer = client.get(&format!("{PATH}?by=1M&asOf=2000")).await;
    assert_eq!(answer.header("cache-control"), "no-cache");
    // What needs pages: a moment before the first page, and a day that begins inside a quarter of an hour
    // with trades.
    for question in ["by=1d&asOf=1280", "by=1d&tz=Europe/Berlin"] {
        let problem = client.get(&format!("{PATH}?{question}")).await.problem(410, "retired");
        assert_eq!((&problem["firstPage"], &problem["firstSeq"]), (&json!(129), &json!(1_281)), "{problem}");
    }
    client.get("/v1/customers/1/trades/pages/128").await.problem(410, "retired");
    let damage = doc! { "$set": { "size": 7 }, "$unset": { "points": 1 } };
    tiles.update_one(doc! { "_id": { "$regex": "0$" } }, damage).await.expect("an answer");
    client.get(&format!("{PATH}?by=1M")).await.problem(500, "internal");
    // A stub: what is after it is whole.
    let stub = doc! { "$set": { "size": 0 } };
    tiles.update_one(doc! { "_id": { "$regex": "0$" } }, stub).await.expect("an answer");
    let body = client.get(&format!("{PATH}?by=1M")).await.expect(200);
    assert_eq!(body["firstSeq"], 641, "{body}");

    // An instance without the flag leaves a gap, and of the tile that was left behind there are pages.
    let without = keeping(shared().await, TRADES, 55).in_database(&service.database).start().await;
    eventually("page 146 is the first", PATIENCE, async || first_page(&beside, 1).await == 146).await;
    let there = |seq, _: &ModelTrade| (641..=1_280).contains(&seq) || seq > 1_450;
    assert_eq!(json!(walk(client, "by=1M").await.0), points(&trades, "1M", "UTC", &[], there));
    let body = client.get(&format!("{PATH}?by=1M")).await.expect(200);
    assert_eq!(body["firstSeq"], 1_451, "{body}");
    assert!(without.stop().await);

    let erased = client.send(Method::DELETE, "/v1/customers/1", |request| request).await;
    assert!(erased.status.is_success(), "{erased:?}");
    eventually("kept tiles are erased", PATIENCE, async || kept(&beside).await.is_empty()).await;
}

/// Kept tiles say what their definition had. Those of another one are not read, and stay.
#[tokio::test(flavor = "multi_thread")]
async fn kept_summaries_are_of_their_definition() {
    let [by_author, in_all] = [NoteDefinition::by_author(), NoteDefinition::in_all()];
    let retiring = |setup: Setup| {
        let mut setup = keeping_summaries(setup);
        setup.config.retained.entry(NOTES.name.into()).or_default().pages = NonZeroU64::new(20);
        setup
    };
    let retires = by_author.start(None, retiring).await;
    let database = retires.database.clone();
    by_author.append(&retires.client, 1, 400).await;
    eventually("notes are retired", PATIENCE, async || first_page(&retires, 1).await == 129).await;
    let path = NOTES.at(1, "/summary?by=1h&limit=1000");
    let answer = async |service: &Service, more: &str| {
        let body = service.client.get(&format!("{path}{more}")).await.expect(200);
        (body["points"].clone(), body["firstSeq"].clone())
    };
    let all = (note_points(1..=400, |_| true, true), Value::Null);
    assert_eq!(answer(&retires, "&group=author").await, all);
    assert!(retires.stop().await);

    // Another definition: its history begins with the first page. It keeps what it retires.
    let other = in_all.start(Some(&database), retiring).await;
    let pages = |of: fn(u64) -> bool| (note_points(257..=400, of, false), json!(257));
    assert_eq!(answer(&other, "").await, pages(|_| true));
    in_all.append(&other.client, 2, 400).await;
    eventually("those of room 2 are retired", PATIENCE, async || first_page(&other, 2).await == 129).await;
    assert_eq!(kept(&other).await.len(), 4, "two of each definition");
    let path = NOTES.at(2, "/summary?by=1h&limit=1000");
    let body = other.client.get(&path).await.expect(200);
    assert_eq!((&body["points"], &body["firstSeq"]), (&note_points(1..=400, |_| true, false), &Value::Null));
    // Authors are no groups of this definition: they are looked for on pages, and only there.
    let body = other.client.get(&format!("{path}&author=Ada")).await.expect(200);
    assert_eq!((&body["points"], &body["firstSeq"]), (&pages(|number| number % 3 > 0).0, &json!(257)));
    assert!(other.stop().await);

    // As before, when the definition is back.
    let again = by_author.start(Some(&database), |setup| setup).await;
    assert_eq!(answer(&again, "&group=author").await, all);
    assert_eq!(kept(&again).await.len(), 4);
}
