//! Summaries by spans of time: those of a model that knows all items, while others are appended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::deleted::keeping;
use crate::harness::differing::{Directory, instance};
use crate::harness::{Client, NOTES, Service, Setup, TRADES, eventually, shared};

mod definitions;
mod kept;

const PATH: &str = "/v1/customers/1/trades/summary";

/// A trade as the model knows it: prices in units of 10^-24, so that one with 30 digits has six before the
/// point.
#[derive(Debug, Clone, Copy)]
struct ModelTrade {
    millis: i64,
    ticker: &'static str,
    kind: &'static str,
    qty: u64,
    price: Option<i128>,
}

const UNITS: u32 = 24;

/// A span and a group.
type Place<'a> = ([i64; 2], Vec<&'a str>);

impl ModelTrade {
    /// Of one in six the date is that of another trade. Dense ones are many in each quarter of an hour, and
    /// have short prices: their tiles are short.
    fn random(random: &mut StdRng, others: &[Self], is_dense: bool) -> Self {
        // Around changes of the clocks in New York, Berlin and Lord Howe, and in 1890.
        let ranges = match is_dense {
            false => [
                1_710_000_000_000..1_710_100_000_000,
                1_711_600_000_000..1_712_100_000_000,
                1_730_000_000_000..1_730_700_000_000,
                -2_510_000_000_000..-2_509_800_000_000_i64,
            ],
            true => [
                1_710_053_100_000..1_710_055_000_000,
                1_711_846_000_000..1_711_848_000_000,
                1_712_415_000_000..1_712_417_000_000,
                1_730_617_000_000..1_730_617_800_000,
            ],
        };
        // Late in a dense history, so that tiles before it are whole.
        let is_old = is_dense && others.len() > 1_200 && random.random_ratio(1, 40);
        let range = ranges.choose(random).unwrap().clone();
        let range = if is_old { -2_509_900_000_000..-2_509_899_000_000_i64 } else { range };
        let millis = random.random_range(range);
        let millis =
            others.choose(random).filter(|_| random.random_ratio(1, 6)).map_or(millis, |other| other.millis);
        let price = random.random_ratio(4, 5).then(|| match is_dense {
            true => random.random_range(1..=999_i128) * 10_i128.pow(UNITS - 2),
            false => {
                let digits = 10_i128.pow(random.random_range(1..=30));
                random.random_range(1..=digits)
            }
        });
        Self {
            millis,
            ticker: ["AMD", "MDB", "IBM"].choose(random).unwrap(),
            kind: ["buy", "sell"].choose(random).unwrap(),
            qty: random.random_range(1..1_000),
            price,
        }
    }

    fn json(&self) -> Value {
        let date = Timestamp::from_millisecond(self.millis).unwrap().to_string();
        let mut json = json!({ "type": self.kind, "ticker": self.ticker, "qty": self.qty, "date": date });
        if let Some(price) = self.price {
            json["price"] = json!(text(price, UNITS as usize));
        }
        json
    }
}

/// A number of units as a decimal with all its digits.
fn text(units: i128, scale: usize) -> String {
    let digits = format!("{units:0>width$}", width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    format!("{whole}.{part}")
}

/// The quotient of units by a whole number with 34 significant digits, half to even, by long division.
fn average(units: i128, divisor: i128) -> String {
    let mut digits = Some((units / divisor).to_string()).filter(|digits| digits != "0").unwrap_or_default();
    let (mut rest, mut scale) = (units % divisor, UNITS as usize);
    while digits.len() < 34 {
        let digit = rest * 10 / divisor;
        rest = rest * 10 % divisor;
        scale += 1;
        if digit > 0 || !digits.is_empty() {
            digits.push_str(&digit.to_string());
        }
    }
    let number: i128 = digits.parse().unwrap();
    let up = 2 * rest > divisor || (2 * rest == divisor && number % 2 == 1);
    text(number + i128::from(up), scale).trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The ends of the span of a moment, by jiff's days.
fn span_of(millis: i64, by: &str, zone: &TimeZone) -> [i64; 2] {
    let minutes = match by {
        "1m" => 1,
        "5m" => 5,
        "15m" => 15,
        "30m" => 30,
        "1h" => 60,
        "4h" => 240,
        _ => 0,
    };
    if minutes > 0 {
        let start = millis.div_euclid(minutes * 60_000) * minutes * 60_000;
        return [start, start + minutes * 60_000];
    }
    let date = Timestamp::from_millisecond(millis).unwrap().to_zoned(zone.clone()).date();
    let days = |days: i64| jiff::Span::new().days(days);
    let [start, end] = match by {
        "1d" => [date, date + days(1)],
        "1w" => {
            let monday = date - days(date.weekday().to_monday_zero_offset().into());
            [monday, monday + days(7)]
        }
        _ => [date.first_of_month(), date.last_of_month() + days(1)],
    };
    [start, end]
        .map(|day| day.to_zoned(zone.clone()).unwrap().start_of_day().unwrap().timestamp().as_millisecond())
}

/// The points of these trades, by the model.
fn points(
    trades: &[ModelTrade],
    by: &str,
    tz: &str,
    groups: &[&str],
    chosen: impl Fn(u64, &ModelTrade) -> bool,
) -> Value {
    let zone = TimeZoneDatabase::bundled().get(tz).unwrap();
    let mut found: BTreeMap<Place<'_>, Vec<(u64, ModelTrade)>> = BTreeMap::new();
    for (trade, seq) in trades.iter().zip(1..).filter(|(trade, seq)| chosen(*seq, trade)) {
        let group = groups.iter().map(|group| if *group == "ticker" { trade.ticker } else { trade.kind });
        found.entry((span_of(trade.millis, by, &zone), group.collect())).or_default().push((seq, *trade));
    }
    let instant = |millis: i64| {
        let text = Timestamp::from_millisecond(millis).unwrap().to_string();
        format!("{}.000Z", text.trim_end_matches('Z'))
    };
    let point = |(([start, end], group), trades): (Place<'_>, Vec<(u64, ModelTrade)>)| {
        let seqs = || trades.iter().map(|(seq, _)| *seq);
        let mut priced: Vec<_> = trades
            .iter()
            .filter_map(|(seq, trade)| Some((trade.millis, *seq, trade.price?, trade.qty)))
            .collect();
        priced.sort_unstable();
        let prices = || priced.iter().map(|(.., price, _)| *price);
        let decimal = |price: Option<i128>| price.map(|price| text(price, UNITS as usize));
        let qty: u64 = trades.iter().map(|(_, trade)| trade.qty).sum();
        let mut point = json!({
            "start": instant(start), "end": instant(end), "count": trades.len(), "firstSeq": seqs().min(), "lastSeq": seqs().max(),
            "values": { "qty": { "sum": qty.to_string() }, "price": {} },
        });
        if !groups.is_empty() {
            let named: BTreeMap<_, _> = groups.iter().zip(&group).collect();
            point["group"] = json!(named);
        }
        if !priced.is_empty() {
            let weight: i128 = priced.iter().map(|(.., qty)| i128::from(*qty)).sum();
            let weighted = priced.iter().map(|(.., price, qty)| price * i128::from(*qty)).sum();
            point["values"]["price"] = json!({
                "open": decimal(prices().next()), "high": decimal(prices().max()), "low": decimal(prices().min()),
                "close": decimal(prices().next_back()), "vwap": average(weighted, weight),
            });
        }
        point
    };
    found.into_iter().map(point).collect()
}

/// A point without what the clocks of the server and of the zone say.
fn without_clocks(point: &Value) -> Value {
    let mut point = point.clone();
    for name in ["complete", "date"] {
        point.as_object_mut().expect("a point").shift_remove(name);
    }
    point
}

/// All points, along the links, and the total of each answer. Points without `complete`.
async fn walk(client: &Client, query: &str) -> (Vec<Value>, Vec<u64>) {
    let (mut path, mut points, mut totals) = (format!("{PATH}?{query}"), Vec::new(), Vec::new());
    loop {
        let body = client.get(&path).await.expect(200);
        totals.push(body["totalItems"].as_u64().expect("a total"));
        for point in body["points"].as_array().expect("points") {
            points.push(without_clocks(point));
        }
        match body["links"]["next"].as_str() {
            Some(next) => path = next.to_owned(),
            None => return (points, totals),
        }
    }
}

/// Dates out of order and equal, days of 23 and 25 hours, offsets with seconds, prices of 30 digits: random
/// questions while trades are appended. Questions about a moment have the same answer later.
#[tokio::test(flavor = "multi_thread")]
async fn summaries_are_those_of_a_model() {
    are_those_of_a_model(Setup::on(shared().await), 31, 700, 1_100, false).await;
}

/// The same where tiles are made and read while trades are appended.
#[tokio::test(flavor = "multi_thread")]
async fn summaries_from_tiles_are_those_of_a_model() {
    let read = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&read);
    let setup = Setup::on(shared().await).observed(move |_, body| {
        let ids = body.get_document("filter").and_then(|filter| filter.get_document("_id"));
        let reads = body.get_str("find").is_ok_and(|name| name == "summary_tiles")
            && ids.is_ok_and(|ids| ids.contains_key("$in"));
        counted.fetch_add(u64::from(reads), Ordering::Relaxed);
    });
    let (service, trades) = are_those_of_a_model(setup, 32, 1_300, 2_000, true).await;
    let tiles = service.database.collection::<Document>("summary_tiles");
    let kept = tiles.count_documents(doc! { "points": { "$exists": true } }).await.expect("an answer");
    let read = read.load(Ordering::Relaxed);
    assert!(kept >= 2 && read > 10, "{kept} tiles, which {read} commands have read");

    // While the beginning is retired, also inside a tile.
    let beside = keeping(shared().await, TRADES, 60).in_database(&service.database).start().await;
    let path = format!("{PATH}?by=1d&tz=Europe/Berlin&group=ticker&limit=1000");
    eventually("the beginning is retired", Duration::from_secs(60), async || {
        let (found, totals, first) = answer_of(&beside.client, &path).await;
        let there = &trades[..totals as usize];
        assert_eq!(
            found,
            points(there, "1d", "Europe/Berlin", &["ticker"], |seq, _| seq >= first),
            "{first}"
        );
        first > 640
    })
    .await;
    let erased = beside.client.send(Method::DELETE, "/v1/customers/1", |request| request).await;
    assert!(erased.status.is_success(), "{erased:?}");
    beside.client.get(&path).await.problem(410, "erased");
    eventually("its tiles are deleted", Duration::from_secs(60), async || {
        tiles.count_documents(doc! {}).await.expect("an answer") == 0
    })
    .await;
}

/// The points of one answer without `complete`, the total, and the first item that is there.
async fn answer_of(client: &Client, path: &str) -> (Value, u64, u64) {
    let body = client.get(path).await.expect(200);
    let mut points = body["points"].clone();
    for point in points.as_array_mut().expect("points") {
        *point = without_clocks(point);
    }
    (points, body["totalItems"].as_u64().expect("a total"), body["firstSeq"].as_u64().unwrap_or(1))
}

async fn are_those_of_a_model(
    setup: Setup,
    seed: u64,
    first: usize,
    all: usize,
    is_dense: bool,
) -> (Service, Vec<ModelTrade>) {
    let service = setup.start().await;
    let client = &service.client;
    let mut random = StdRng::seed_from_u64(seed);
    let mut trades: Vec<ModelTrade> = Vec::new();
    for _ in 0..all {
        let trade = ModelTrade::random(&mut random, &trades, is_dense);
        trades.push(trade);
    }
    let batch = |trades: &[ModelTrade]| json!(trades.iter().map(ModelTrade::json).collect::<Vec<_>>());
    for part in trades[..first].chunks(1_000) {
        client.append(1, &batch(part)).await.expect(201);
    }
    let (stored, done) = (AtomicU64::new(first as u64), AtomicBool::new(false));
    let appends = async {
        for part in trades[first..].chunks(7) {
            if done.load(Ordering::Relaxed) {
                break;
            }
            client.append(1, &batch(part)).await.expect(201);
            stored.fetch_add(part.len() as u64, Ordering::Relaxed);
        }
    };
    let questions = async {
        let mut settled = Vec::new();
        for _ in 0..30 {
            let by =
                *["1m", "5m", "15m", "30m", "1h", "4h", "1d", "1d", "1w", "1M"].choose(&mut random).unwrap();
            let tz = *[
                "UTC",
                "Europe/Berlin",
                "America/New_York",
                "Australia/Lord_Howe",
                "Asia/Kolkata",
                "Europe/Amsterdam",
            ]
            .choose(&mut random)
            .unwrap();
            let groups: &[&str] = [&[][..], &["ticker"], &["type", "ticker"]].choose(&mut random).unwrap();
            let ticker = ["AMD", "IBM"].choose(&mut random).filter(|_| random.random_ratio(1, 3)).copied();
            let ends = [0, 1].map(|_| {
                trades.choose(&mut random).filter(|_| random.random_ratio(1, 2)).map(|trade| trade.millis)
            });
            let ends = match ends {
                [Some(from), Some(to)] if from > to => [Some(to), Some(from)],
                ends => ends,
            };
            let mut query =
                format!("by={by}&tz={tz}&limit={}", [25, 100, 1_000].choose(&mut random).unwrap());
            if !groups.is_empty() {
                query.push_str(&format!("&group={}", groups.join(",")));
            }
            for (name, end) in ["from", "to"].into_iter().zip(ends) {
                end.into_iter().for_each(|end| {
                    query.push_str(&format!("&{name}={}", Timestamp::from_millisecond(end).unwrap()));
                });
            }
            ticker.into_iter().for_each(|ticker| query.push_str(&format!("&ticker={ticker}")));
            // The same spans, the latest first. Those of one span stay in the order of their groups.
            let is_descending = random.random_ratio(1, 3);
            if is_descending {
                query.push_str("&order=desc");
            }
            let in_order = |points: Value| match is_descending {
                true => latest_first(points),
                false => points,
            };
            let zone = TimeZoneDatabase::bundled().get(tz).unwrap();
            // Rounded outward to whole spans.
            let from = ends[0].map(|from| span_of(from, by, &zone)[0]);
            let to = ends[1].map(|to| {
                let [start, end] = span_of(to, by, &zone);
                if start == to || ends[0] == Some(to) { start } else { end }
            });
            let chosen = |_, trade: &ModelTrade| {
                from.is_none_or(|from| from <= trade.millis)
                    && to.is_none_or(|to| trade.millis < to)
                    && ticker.is_none_or(|ticker| ticker == trade.ticker)
            };
            let as_of = random.random_range(1..=stored.load(Ordering::Relaxed));
            let moment = format!("{query}&asOf={as_of}");
            let expected = in_order(points(&trades[..as_of as usize], by, tz, groups, chosen));
            assert_eq!(json!(walk(client, &moment).await.0), expected, "{moment}");
            settled.push((moment, expected));
            // Without a moment, an answer says which it is of.
            let (found, totals) = walk(client, &query).await;
            if let [total] = totals[..] {
                let expected = points(&trades[..total as usize], by, tz, groups, chosen);
                assert_eq!(json!(found), in_order(expected), "{query}");
            }
        }
        done.store(true, Ordering::Relaxed);
        settled
    };
    let (settled, ()) = tokio::join!(questions, appends);
    for (moment, expected) in settled {
        assert_eq!(json!(walk(client, &moment).await.0), expected, "{moment}");
    }
    (service, trades)
}

/// These points with the latest spans first.
fn latest_first(points: Value) -> Value {
    let Value::Array(mut points) = points else { panic!("points") };
    points.sort_by(|one, other| other["start"].as_str().cmp(&one["start"].as_str()));
    points.into()
}

async fn points_of(client: &Client, query: &str) -> Vec<Value> {
    client.get(&format!("{PATH}?{query}")).await.expect(200)["points"].as_array().expect("points").clone()
}

/// `complete` by the server's clock, spans without items, and what a point has that has no numbers.
#[tokio::test(flavor = "multi_thread")]
async fn spans_end_and_may_be_empty() {
    let service = Service::start().await;
    let client = &service.client;
    let dated = |date: &str| json!({ "type": "buy", "ticker": "MDB", "qty": 1, "date": date });
    let trades = json!([
        dated("2024-03-30T12:00:00Z"),
        dated("9999-12-31T23:59:59.999Z"),
        dated("2024-04-01T12:00:00Z")
    ]);
    client.append(1, &trades).await.expect(201);
    let complete: Vec<_> =
        points_of(client, "by=1d").await.iter().map(|point| point["complete"].clone()).collect();
    assert_eq!(complete, [true, true, false]);
    let of_moment = points_of(client, "by=1d&asOf=3").await;
    assert!(of_moment.iter().all(|point| point.get("complete").is_none()), "{of_moment:?}");
    assert_eq!(of_moment[2]["end"], "9999-12-31T23:59:59.999Z");
    let filled = "by=1d&tz=Europe%2FBerlin&fill=zero&from=2024-03-30T12:00:00Z&to=2024-04-02T00:00:00Z";
    let points = points_of(client, &format!("{filled}&group=ticker")).await;
    let empty = json!({
        "start": "2024-03-30T23:00:00.000Z", "end": "2024-03-31T22:00:00.000Z", "date": "2024-03-31", "count": 0,
        "values": { "qty": { "sum": "0" }, "price": {} }, "complete": true,
    });
    assert_eq!((points.len(), &points[1]), (4, &empty));
    let counts =
        |points: &[Value]| points.iter().map(|point| point["count"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(counts(&points), [1, 0, 1, 0]);
    let (walked, totals) = walk(client, &format!("{filled}&limit=1")).await;
    assert_eq!((counts(&walked), totals.len()), (vec![1, 0, 1, 0], 4));
    // A client that has never appended has no points, and one moment is an empty span of time.
    let unknown = client.get("/v1/customers/2/trades/summary?by=1M").await.expect(200);
    assert_eq!((&unknown["points"], &unknown["totalItems"]), (&json!([]), &json!(0)));
    assert_eq!(
        points_of(client, "by=1d&from=2024-03-30T12:00:00Z&to=2024-03-30T12:00:00Z").await,
        [Value::Null; 0]
    );
}

/// What a chart asks for: the newest points, the last price where a minute is empty, and times by the clock
/// of a zone.
#[tokio::test(flavor = "multi_thread")]
async fn a_chart_has_the_newest_points_and_the_last_prices() {
    let service = Service::start().await;
    let client = &service.client;
    let trade = |date: &str, price: Option<&str>| {
        let mut trade = json!({ "type": "buy", "ticker": "MDB", "qty": 1, "date": date });
        price.into_iter().for_each(|price| trade["price"] = json!(price));
        trade
    };
    let trades = json!([
        trade("2024-03-30T11:59:59Z", Some("9.5")),
        trade("2024-03-30T12:02:30Z", Some("2.5")),
        trade("2024-03-30T12:02:31Z", Some("3")),
        // It comes last, and is not the last one.
        trade("2024-03-30T12:02:29Z", Some("1.50")),
        trade("2024-03-30T12:04:00Z", None),
    ]);
    client.append(1, &trades).await.expect(201);
    let newest = points_of(client, "by=1m&order=desc&limit=2&tz=Asia/Kolkata").await;
    let dates = |points: &[Value]| points.iter().map(|point| point["date"].clone()).collect::<Vec<_>>();
    assert_eq!(dates(&newest), ["2024-03-30T17:34:00", "2024-03-30T17:32:00"]);
    let price = json!({ "open": "1.50", "high": "3", "low": "1.50", "close": "3", "vwap": "2.333333333333333333333333333333333" });
    assert_eq!(newest[1]["values"]["price"], price);
    let day = points_of(client, "by=1d&order=desc&tz=Pacific/Auckland").await;
    assert_eq!(
        (dates(&day), &day[0]["start"]),
        (vec![json!("2024-03-31")], &json!("2024-03-30T11:00:00.000Z"))
    );

    let span = "by=1m&fill=previous&from=2024-03-30T12:00:00Z&to=2024-03-30T12:06:00Z";
    for order in ["asc", "desc"] {
        // Whatever page an empty minute begins.
        for limit in [1, 2, 3, 100] {
            let (points, _) = walk(client, &format!("{span}&order={order}&limit={limit}")).await;
            let close = |point: &Value| point["values"]["price"]["close"].as_str().map(str::to_owned);
            let mut closes: Vec<_> = points.iter().map(close).collect();
            if order == "desc" {
                closes.reverse();
            }
            let expected = [Some("9.5"), Some("9.5"), Some("3"), Some("3"), None, Some("3")];
            assert_eq!(closes, expected.map(|close| close.map(str::to_owned)), "{order} {limit}");
        }
    }
    let empty = &points_of(client, span).await[3];
    let values =
        json!({ "qty": { "sum": "0" }, "price": { "open": "3", "high": "3", "low": "3", "close": "3" } });
    assert_eq!((&empty["count"], &empty["values"]), (&json!(0), &values));
    // Before the first item there is nothing to go on with.
    let before =
        points_of(client, "by=1m&fill=previous&from=2024-03-30T11:58:00Z&to=2024-03-30T12:00:00Z").await;
    assert_eq!(before[0]["values"]["price"], json!({}));
    for (query, parameter) in [
        ("by=1m&fill=previous&from=2024-03-30T12:00:00Z", "fill"),
        ("by=1m&fill=previous&group=ticker&from=2024-03-30T12:00:00Z&to=2024-03-30T12:06:00Z", "fill"),
        ("by=2m", "by"),
        ("by=1m&order=newest", "order"),
    ] {
        let problem = client.get(&format!("{PATH}?{query}")).await.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{query}: {problem}");
    }
}

/// A sum of too many digits is missing, and is named. A history begins to have summaries when its definition
/// names them.
#[tokio::test(flavor = "multi_thread")]
async fn a_sum_that_does_not_fit_is_named() {
    let before = Setup::on(shared().await).of(NOTES).start().await;
    let directory = Directory::changed(NOTES, |definition| {
        definition["item"]["properties"]["cost"] = json!({ "type": "string", "format": "decimal" });
        definition["summaries"] = json!({ "values": { "cost": ["sum", "max"], "number": ["sum", "ohlc"] } });
    });
    let service = instance(NOTES, &directory, Some(&before)).await;
    before.client.append(1, &json!([NOTES.item(1)])).await.expect(201);
    let most = "9".repeat(34);
    for cost in [&*most, "0.5"] {
        let mut note = NOTES.item(2);
        note["cost"] = json!(cost);
        service.client.append(1, &note).await.expect(201);
    }
    let summary = NOTES.at(1, "/summary?by=1M");
    let body = service.client.get(&summary).await.expect(200);
    let fault =
        json!([{ "value": "cost", "measure": "sum", "detail": "has more than 34 significant digits" }]);
    let values = json!({
        "cost": { "max": most },
        "number": { "sum": "5", "open": 1, "high": 2, "low": 1, "close": 2 },
    });
    assert_eq!((&body["points"][0]["errors"], &body["points"][0]["values"]), (&fault, &values), "{body}");
    assert_eq!((&body["points"][0]["count"], body["points"].as_array().map(Vec::len)), (&json!(3), Some(1)));
    // Another definition has other values, and another tag.
    let other = Directory::changed(NOTES, |definition| {
        definition["summaries"] = json!({ "values": { "number": ["max"] } });
    });
    let other = instance(NOTES, &other, Some(&before)).await;
    let [one, another] = [&service, &other].map(|service| service.client.get(&summary));
    let (one, another) = tokio::join!(one, another);
    assert_ne!(one.header("etag"), another.header("etag"));
    assert_eq!(another.expect(200)["points"][0]["values"], json!({ "number": { "max": 2 } }));
    let group = service.client.get(&NOTES.at(1, "/summary?by=1M&group=author")).await;
    let problem = group.problem(400, "invalid-parameter");
    let rule = "must not be given: the definition of the history declares no groups";
    assert_eq!(problem["errors"], json!([{ "parameter": "group", "detail": rule }]), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_name_the_history_and_the_time() {
    let service = Service::start().await;
    let client = &service.client;
    let trade =
        |date: &str| json!({ "type": "buy", "ticker": "MDB", "qty": 1, "price": "2.50", "date": date });
    client
        .append(1, &json!([trade("2024-03-30T12:00:00Z"), trade("2024-04-30T12:00:00Z")]))
        .await
        .expect(201);
    let get = |query: &str| {
        let path = format!("{PATH}?{query}");
        async move { client.get(&path).await }
    };
    let [now, utc, berlin] = ["by=1d", "by=1d&asOf=2", "by=1d&asOf=2&tz=Europe/Berlin"];
    let mut tags = Vec::new();
    for (query, control) in
        [(now, "no-cache"), (utc, "private, max-age=31536000, immutable"), (berlin, "no-cache")]
    {
        let answer = get(query).await;
        assert_eq!(answer.header("cache-control"), control, "{query}");
        let tag = answer.header("etag").to_owned();
        let is_weak = answer.headers["etag"].as_bytes().starts_with(b"W/");
        assert!(is_weak, "{tag}: how many points there are is not named");
        let path = format!("{PATH}?{query}");
        let again = client.send(Method::GET, &path, |request| request.header("if-none-match", &tag)).await;
        assert_eq!((again.status, again.header("etag")), (StatusCode::NOT_MODIFIED, &*tag), "{query}");
        tags.push(tag);
    }
    client.append(1, &trade("2024-03-30T13:00:00Z")).await.expect(201);
    assert_ne!(get(now).await.header("etag"), tags[0]);
    assert_eq!([get(utc).await.header("etag"), get(berlin).await.header("etag")], [&tags[1], &tags[2]]);
    // A span of a quarter of an hour ends more often than one of a month.
    assert_ne!(get("by=1M").await.header("etag"), get("by=15m").await.header("etag"));
    // A moment that the history has not reached is ignored.
    let later = get("by=1d&asOf=9").await;
    assert_eq!((later.header("cache-control"), &later.expect(200)["totalItems"]), ("no-cache", &json!(3)));
}

/// One span with more groups than points, and one with items on more pages than a request reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_span_that_is_too_large_is_refused() {
    let service = Service::start().await;
    let client = &service.client;
    // Later tickers are all different, so that tiles are not shorter than their pages.
    let ticker = |seq: u64| if seq <= 12 { format!("T{}", seq % 3) } else { format!("X{seq}") };
    let trade = |seq: u64| json!({ "type": "buy", "ticker": ticker(seq), "qty": seq, "price": format!("{}.5", seq % 7), "date": format!("2024-03-30T12:{:02}:00Z", seq % 60) });
    client.append(1, &json!((1..=12).map(trade).collect::<Vec<_>>())).await.expect(201);
    let groups = client.get(&format!("{PATH}?by=1d&group=ticker&limit=2")).await;
    let problem = groups.problem(422, "summary-too-large");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("more than 2 points") && detail.contains("a greater `limit`"), "{problem}");
    assert_eq!(points_of(client, "by=1d&group=ticker&limit=3").await.len(), 3);
    // 1,001 pages before the last one, each with trades of the whole hour.
    for part in (13..=10_015).collect::<Vec<u64>>().chunks(1000) {
        client.append(1, &json!(part.iter().copied().map(trade).collect::<Vec<_>>())).await.expect(201);
    }
    // Of more groups than any answer has, some can be asked for.
    let groups = client.get(&format!("{PATH}?by=1d&group=ticker&limit=1000&asOf=2000")).await;
    let problem = groups.problem(422, "summary-too-large");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("by a filter") && !detail.contains("greater"), "{problem}");
    assert_eq!(points_of(client, "by=1d&group=ticker&ticker=X20&ticker=X21&asOf=2000").await.len(), 2);
    // Tiles could make it possible, until they are there and have no groups.
    let by_hour = format!("{PATH}?by=1h&type=buy");
    let pages = client.get(&by_hour).await;
    pages.problem(503, "summary-not-ready");
    assert_eq!(pages.header("retry-after"), "5");
    eventually("tiles are made", Duration::from_secs(60), async || client.get(&by_hour).await.status == 422)
        .await;
    let problem = client.get(&by_hour).await.problem(422, "summary-too-large");
    assert!(problem["detail"].as_str().unwrap().contains("than one request reads"), "{problem}");
    // What ends earlier is complete, and is followed by what cannot be read.
    client
        .append(1, &json!({ "type": "buy", "ticker": "T1", "qty": 1, "date": "2024-03-29T00:00:00Z" }))
        .await
        .expect(201);
    let body = client.get(&format!("{PATH}?by=1h&type=buy")).await.expect(200);
    assert_eq!(body["points"].as_array().map(Vec::len), Some(1), "{body}");
    let next = body["links"]["next"].as_str().expect("more points");
    assert!(next.contains("from=2024-03-30T12:00:00.000Z"), "{next}");
    client.get(next).await.problem(422, "summary-too-large");
    assert_eq!(points_of(client, "by=1h&type=buy&asOf=12").await[0]["count"], 12);
    // Without groups the tiles are short.
    let by_month = format!("{PATH}?by=1M");
    eventually("tiles without groups are made", Duration::from_secs(60), async || {
        client.get(&by_month).await.status == 200
    })
    .await;
    let month = &points_of(client, "by=1M").await[0];
    let quantities: u64 = (1..=10_015).sum::<u64>() + 1;
    assert_eq!(
        (&month["count"], &month["values"]["qty"]["sum"]),
        (&json!(10_016), &json!(quantities.to_string()))
    );
    client.get(&format!("{PATH}?by=1M&type=buy")).await.problem(422, "summary-too-large");
    // They say what their pages say, which are few enough for this moment.
    let quarters = points_of(client, "by=15m&asOf=9000").await;
    assert_eq!((quarters.len(), &quarters), (4, &points_of(client, "by=15m&type=buy&asOf=9000").await));
    let kept = service.database.collection::<Document>("summary_tiles");
    assert!(kept.count_documents(doc! { "grouped": false }).await.expect("an answer") > 0);
    assert_eq!(kept.count_documents(doc! { "grouped": { "$exists": false } }).await.expect("an answer"), 0);
}

/// Most pages are skipped by their dates: a walk over a long history reads each of them once.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_is_read_in_parts() {
    let mut setup = Setup::on(shared().await);
    // Each client has one.
    setup.config.api.max_scans = 4;
    let service = setup.start().await;
    let client = &service.client;
    let trade = |seq: i64| {
        let date = Timestamp::from_second(1_700_000_000 + seq * 3_600).unwrap().to_string();
        json!({ "type": "buy", "ticker": "MDB", "qty": 2, "date": date })
    };
    for part in (0..12_000).collect::<Vec<i64>>().chunks(1000) {
        client.append(1, &json!(part.iter().copied().map(trade).collect::<Vec<_>>())).await.expect(201);
    }
    let (points, totals) = walk(client, "by=1d&limit=1000").await;
    let count: u64 = points.iter().map(|point| point["count"].as_u64().unwrap()).sum();
    let sum: u64 = points
        .iter()
        .map(|point| point["values"]["qty"]["sum"].as_str().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!((count, sum, points.len()), (12_000, 24_000, 501));
    assert_eq!(totals.len(), 2, "a request reads 1,000 pages");
    let (descending, totals) = walk(client, "by=1d&limit=1000&order=desc").await;
    assert_eq!((json!(descending), totals.len()), (latest_first(json!(points)), 2));
    // As many as a page with charts asks for at once, from more than a hundred pages each: one after the
    // other reads.
    let chart = format!("{PATH}?by=5m&limit=1000&from=2023-11-15T00:00:00Z&to=2024-01-10T00:00:00Z");
    join_all((0..6).map(|_| client.get(&chart))).await.iter().for_each(|answer| drop(answer.expect(200)));
}

/// Tiles that cannot say it have dates, as missing ones have, which say where the first pages are: keys of
/// later pages are not examined.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_of_many_groups_is_read_in_parts() {
    const COUNT: i64 = 22_000;
    let bounded = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&bounded);
    let setup = Setup::on(shared().await).observed(move |command, body| {
        let last = body.get_document("filter").and_then(|filter| filter.get_document("last"));
        let is_bounded = command == "find" && last.is_ok_and(|last| last.contains_key("$lte"));
        seen.fetch_add(u64::from(is_bounded), Ordering::Relaxed);
    });
    let service = setup.start().await;
    let client = &service.client;
    // One every two minutes, of which each eighth comes a day late.
    let second = |seq: i64| 1_700_000_000 + seq * 120 - if seq % 8 == 0 { 86_400 } else { 0 };
    let ticker = |seq: i64| format!("X{}", seq % 500);
    let trade = |seq: i64| {
        let date = Timestamp::from_second(second(seq)).unwrap().to_string();
        json!({ "type": "buy", "ticker": ticker(seq), "qty": 1, "date": date })
    };
    for part in (1..=COUNT).collect::<Vec<i64>>().chunks(1000) {
        client.append(1, &json!(part.iter().copied().map(trade).collect::<Vec<_>>())).await.expect(201);
    }
    let mut expected = BTreeMap::<(String, String), u64>::new();
    for seq in 1..=COUNT {
        let day = Timestamp::from_second(second(seq).div_euclid(86_400) * 86_400).unwrap();
        *expected.entry((format!("{day:.3}"), ticker(seq))).or_default() += 1;
    }
    let kept = service.database.collection::<Document>("summary_tiles");
    let query = "by=1d&group=ticker&limit=1000";
    points_of(client, query).await;
    assert_eq!(bounded.load(Ordering::Relaxed), 1, "no tile is there yet");
    // No tile can answer for spans of five minutes.
    points_of(client, "by=5m&limit=1000").await;
    assert_eq!(bounded.load(Ordering::Relaxed), 2, "their tiles are not asked for");
    eventually("all tiles are made", Duration::from_secs(60), async || {
        kept.count_documents(doc! {}).await.expect("an answer") == COUNT as u64 / 640
    })
    .await;
    bounded.store(0, Ordering::Relaxed);
    let (points, totals) = walk(client, query).await;
    let text = |point: &Value, name: &str| point[name].as_str().expect("a text").to_owned();
    let found = points.iter().map(|point| {
        let ticker = point["group"]["ticker"].as_str().expect("a ticker").to_owned();
        ((text(point, "start"), ticker), point["count"].as_u64().expect("a count"))
    });
    let found: Vec<_> = found.collect();
    assert_eq!(found.len(), expected.len());
    assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected);
    let bounded = bounded.load(Ordering::Relaxed);
    assert!(bounded > 0 && bounded < totals.len() as u64, "{bounded} of {}", totals.len());
}

/// What a request cannot read from pages, it reads from tiles, which the first one has made. Appends have no
/// part in it.
#[tokio::test(flavor = "multi_thread")]
async fn tiles_answer_what_pages_cannot() {
    let (appends, tiles) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (commits, about_tiles) = (Arc::clone(&appends), Arc::clone(&tiles));
    let setup = Setup::on(shared().await).observed(move |command, body| {
        let is = |name: &str| body.get_str(command).is_ok_and(|collection| collection == name);
        commits
            .fetch_add(u64::from(["update", "insert"].contains(&command) && is("trades")), Ordering::Relaxed);
        about_tiles.fetch_add(u64::from(is("summary_tiles")), Ordering::Relaxed);
    });
    // Housekeeping makes no tiles meanwhile.
    let mut setup = setup;
    setup.config.house_every = Duration::from_secs(3_600);
    let service = setup.start().await;
    // The migration is not counted.
    tiles.store(0, Ordering::Relaxed);
    let client = &service.client;
    // One a minute, of which each eighth comes a day late.
    let trade = |seq: i64| {
        let late = if seq % 8 == 0 { 86_400 } else { 0 };
        let date = Timestamp::from_second(1_700_000_000 + seq * 60 - late).unwrap().to_string();
        json!({ "type": "buy", "ticker": "MDB", "qty": seq + 1, "price": format!("{}.5", seq % 7), "date": date })
    };
    for part in (0..12_000).collect::<Vec<i64>>().chunks(1000) {
        client.append(1, &json!(part.iter().copied().map(trade).collect::<Vec<_>>())).await.expect(201);
    }
    assert_eq!(
        (appends.load(Ordering::Relaxed), tiles.load(Ordering::Relaxed)),
        (12, 0),
        "an append costs nothing more"
    );
    let (by_day, totals) = walk(client, "by=1d&tz=Asia/Kolkata&limit=1000").await;
    assert_eq!((by_day.len(), totals.len()), (10, 2), "a request reads 1,000 pages");
    let kept = service.database.collection::<Document>("summary_tiles");
    eventually("all tiles are made", Duration::from_secs(60), async || {
        kept.count_documents(doc! { "points": { "$exists": true } }).await.expect("an answer") == 18
    })
    .await;
    let (again, totals) = walk(client, "by=1d&tz=Asia/Kolkata&limit=1000").await;
    assert_eq!((&again, totals.len()), (&by_day, 1));
    // A whole month is one span. It needs more pages than a request reads, and no more tiles.
    let month = points_of(client, "by=1M&ticker=MDB").await;
    assert_eq!((month.len(), &month[0]["count"]), (1, &json!(12_000)));
    assert_eq!(points_of(client, "by=1M&ticker=AMD").await, [Value::Null; 0]);
    // Tiles that are gone are made again, though it is known where they stood.
    kept.delete_many(doc! {}).await.expect("an answer");
    assert_eq!(walk(client, "by=1d&tz=Asia/Kolkata&limit=1000").await.0, by_day);
    eventually("all tiles are made again", Duration::from_secs(60), async || {
        kept.count_documents(doc! {}).await.expect("an answer") == 18
    })
    .await;
    assert_eq!(points_of(client, "by=1M&ticker=MDB").await, month);
    // A damaged tile is not read.
    let other = Binary { subtype: BinarySubtype::Generic, bytes: vec![7; 12] };
    kept.update_many(doc! {}, doc! { "$set": { "points": other } }).await.expect("an answer");
    assert_eq!(walk(client, "by=1d&tz=Asia/Kolkata&limit=1000").await.0, by_day);
}

/// A history whose definition has no summaries says so.
#[tokio::test(flavor = "multi_thread")]
async fn without_summaries_there_are_none() {
    let service = Setup::on(shared().await).of(NOTES).start().await;
    let answer = service.client.get(&NOTES.at(1, "/summary?by=1d")).await;
    let problem = answer.problem(404, "not-found");
    assert_eq!(problem["detail"], "The definition of notes has no `summaries`.");
    let document = service.client.get("/openapi.json").await.expect(200);
    let names = ["paths", "components/schemas"]
        .map(|part| document.pointer(&format!("/{part}")).unwrap().as_object().unwrap());
    let left =
        names.into_iter().flatten().filter(|(name, _)| name.contains("Series") || name.ends_with("/summary"));
    let left: Vec<_> = left.map(|(name, _)| name).filter(|name| !name.starts_with("PageView")).collect();
    assert_eq!(left, [""; 0]);
}
