//! What the database adds up is what the service adds up: random items, whose sums are exact in the database
//! or not.

use mongodb::bson::{Document, doc};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::answers::walk;
use super::{append, each_once, number, raw, service};
use crate::cost::{profiled_in, sum};
use crate::harness::differing::{Directory, instance};
use crate::harness::{SERIES, Service};

const OWNERS: u64 = 8;

/// Numbers of all types, with all measures.
fn definition() -> Directory {
    Directory::changed(SERIES, |definition| {
        definition["maxItemBytes"] = json!(1_024);
        definition["summaries"]["values"] = json!({
            "qty": ["sum", "min", "max", "vwap:units"],
            "units": ["ohlc", "sum"],
            "price": ["sum", "min", "max", "ohlc", "vwap:qty"],
            "fee": ["max", "vwap:price"],
            "share": ["vwap:fee", "min"],
            "heat": ["min", "max", "ohlc"],
        });
        let decimal = json!({ "type": "string", "format": "decimal" });
        let properties = &mut definition["item"]["properties"];
        properties["qty"] = json!({ "type": "integer" });
        properties["units"] = json!({ "type": "integer" });
        properties["price"] = decimal.clone();
        properties["fee"] = decimal.clone();
        properties["share"] = decimal;
        properties["heat"] = json!({ "type": "number" });
    })
}

/// A decimal with this many digits at most, and up to so many of them after the point.
fn decimal(random: &mut StdRng, digits: u32, scale: usize) -> String {
    let digits = random.random_range(1..=digits);
    let number = random.random_range(0..10_u128.pow(digits));
    let scale = random.random_range(0..=scale);
    let text = format!("{number:0>width$}", width = scale + 1);
    let (whole, part) = text.split_at(text.len() - scale);
    let sign = if random.random_ratio(1, 4) { "-" } else { "" };
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

fn item(random: &mut StdRng, owner: u64) -> Value {
    // Around a change of the clocks in Berlin and one in Lord Howe; and when offsets had seconds.
    let ranges = [
        1_711_750_000_000..1_711_950_000_000,
        1_712_400_000_000..1_712_500_000_000,
        -2_510_000_000_000..-2_509_800_000_000_i64,
    ];
    let range = ranges.choose(random).expect("a range").clone();
    let millis = random.random_range(range);
    let date = jiff::Timestamp::from_millisecond(millis).expect("a date").to_string();
    let mut item = json!({ "type": "buy", "ticker": format!("T{owner}"), "date": date });
    // The numbers of each owner have other lengths.
    let (digits, scale) =
        [(3, 2), (12, 4), (16, 30), (33, 3), (34, 34), (34, 0), (2, 6_170), (2, 2)][(owner - 1) as usize % 8];
    let most = (1 << 53) - 1_i64;
    let whole = |random: &mut StdRng| match owner % 3 {
        0 => random.random_range(-1_000..=1_000),
        1 => random.random_range(-most..=most),
        _ => *[most, -most, 1, 2_000_000_000].choose(random).expect("a number"),
    };
    item["qty"] = whole(random).into();
    if random.random_ratio(3, 4) {
        item["units"] = whole(random).into();
    }
    for name in ["price", "fee", "share"] {
        // Now and then one that needs all digits.
        let wild = random.random_ratio(1, 60);
        if random.random_ratio(3, 4) {
            let (digits, scale) = if wild { (34, 33) } else { (digits, scale) };
            item[name] = decimal(random, digits, scale).into();
        }
    }
    if random.random_ratio(1, 2) {
        item["heat"] = json!(random.random_range(-40..=40) as f64 / 4.0);
    }
    item
}

/// The points of one place, as far as both routes have the same.
fn shown(points: &[Value]) -> Vec<String> {
    let show = |point: &Value| {
        let [start, end, group, count, values, errors] =
            ["start", "end", "group", "count", "values", "errors"].map(|name| &point[name]);
        format!("{start} {end} {group} {count} {values} {errors}")
    };
    points.iter().map(show).collect()
}

/// Gives an owner another generation, as a settlement does. What it had stays.
async fn change_generation(service: &Service, owner: u64) {
    let measurements = service.database.collection::<Document>(&raw(&service.database).await);
    let mut copies = Vec::new();
    let mut found = measurements.find(doc! { "meta.owner": owner as i64 }).await.expect("an answer");
    while found.advance().await.expect("an answer") {
        let mut copy = found.deserialize_current().expect("a measurement");
        copy.remove("_id");
        copy.get_document_mut("meta").expect("the metaField").insert("generation", 1_i64);
        copies.push(copy);
    }
    measurements.insert_many(copies).await.expect("copies");
    let build = number(&service.database).await;
    let generation = doc! {
        "_id": format!("trades/{build}/{owner}"), "owner": owner as i64, "current": 1_i64, "next": 1_i64, "term": 0_i64,
    };
    service.database.collection("series_generations").insert_one(generation).await.expect("a generation");
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_those_of_the_pages() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let directory = definition();
    let service = instance(SERIES, &directory, None).await;
    let client = &service.client;
    for owner in 1..=OWNERS {
        let items: Vec<_> = (0..150).map(|_| item(&mut random, owner)).collect();
        for part in items.chunks(10) {
            client.append(owner, &json!(part)).await.expect(201);
        }
    }
    each_once(client, &service.database, 1..=OWNERS).await;
    change_generation(&service, 2).await;
    change_generation(&service, 7).await;
    for range in [
        "from=2024-03-29T00:00:00Z&to=2024-04-09T00:00:00Z",
        "from=1890-06-14T00:00:00Z&to=1890-06-24T00:00:00Z",
    ] {
        for by in [
            "5m",
            "1h",
            "1d",
            "1d&tz=Europe/Berlin",
            "1d&tz=Australia/Lord_Howe",
            "1d&tz=Europe/Amsterdam",
            "1w&tz=Asia/Kolkata",
            "1M&tz=America/New_York",
        ] {
            let query = format!("by={by}&{range}&limit=1000");
            let of_all = walk(client, &format!("/v1/trades/summary?{query}&group=ticker")).await;
            let backward = walk(client, &format!("/v1/trades/summary?{query}&group=ticker&order=desc")).await;
            assert_eq!(backward.len(), of_all.len(), "{query}");
            for owner in 1..=OWNERS {
                let ticker = format!("T{owner}");
                let path = format!("/v1/customers/{owner}/trades/summary?{query}");
                let expected = shown(&walk(client, &format!("{path}&group=ticker")).await);
                let is_theirs = |point: &&Value| point["group"]["ticker"] == ticker;
                let found: Vec<_> = of_all.iter().filter(is_theirs).cloned().collect();
                assert_eq!(shown(&found), expected, "{query} {ticker}");
                let mut found: Vec<_> = backward.iter().filter(is_theirs).cloned().collect();
                found.reverse();
                // The groups of a span are in the same order.
                assert_eq!(shown(&found), expected, "{query} {ticker}");
                let found = walk(client, &format!("/v1/trades/summary?{query}&ticker={ticker}")).await;
                assert_eq!(shown(&found), shown(&walk(client, &path).await), "{query} {ticker}");
            }
        }
    }
}

/// It returns groups, not measurements.
#[tokio::test(flavor = "multi_thread")]
async fn the_database_adds_up() {
    let service = service().await;
    append(&service.client, 1, 1..=140).await;
    each_once(&service.client, &service.database, [1]).await;
    let seen = profiled_in(&service, &raw(&service.database).await, async {
        let path = "/v1/trades/summary?by=1d&from=2024-02-01T00:00:00Z&to=2024-03-01T00:00:00Z";
        let answer = service.client.get(path).await.expect(200);
        assert_eq!(answer["points"].as_array().map(Vec::len), Some(28), "{answer}");
    })
    .await;
    assert_eq!(sum(&seen, "nreturned"), 28, "{seen:?}");
}
