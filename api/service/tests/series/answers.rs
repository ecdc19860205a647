//! `GET /v1/trades/summary`: the same numbers as the summaries of all owners, and what it refuses.

use std::collections::BTreeMap;

use mongodb::bson::doc;
use pagebucket_http::OpenParts;
use pagebucket_model::domain::Clock;
use serde_json::{Value, json};

use super::{MONTH, append, dated, each_once, number, raw, service, up_to};
use crate::cost::{profiled_in, sum};
use crate::harness::tokens::{Issuer, claims};
use crate::harness::{Client, Harm, PATIENCE, Proxy, SERIES, Setup, Way, eventually, shared, spawn};

/// All points of an address, by its links.
pub(super) async fn walk(client: &Client, path: &str) -> Vec<Value> {
    let (mut points, mut next) = (Vec::new(), Some(path.to_owned()));
    while let Some(path) = next {
        let answer = client.get(&path).await.expect(200);
        points.extend(answer["points"].as_array().expect("points").clone());
        next = answer["links"]["next"].as_str().map(str::to_owned);
    }
    points
}

/// What points of a place add up to.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    count: u64,
    quantity: u64,
    /// In tenths, as the prices of the trades are.
    low: Option<i64>,
    high: Option<i64>,
    /// Of prices by quantities, in tenths.
    weighted: i64,
}

/// What points add up to, by start and group.
fn sums(points: &[Value]) -> BTreeMap<(String, String), Sums> {
    let mut sums: BTreeMap<_, Sums> = BTreeMap::new();
    for point in points {
        let number = |value: &Value| value.as_str().map(|text| text.parse::<f64>().expect("a number"));
        let (price, quantity) = (&point["values"]["price"], number(&point["values"]["qty"]["sum"]));
        let quantity = quantity.unwrap_or(0.0);
        let tenths = |value: f64| (value * 10.0).round() as i64;
        let sums = sums.entry(place(point)).or_default();
        sums.count += point["count"].as_u64().expect("a count");
        sums.quantity += quantity as u64;
        sums.low = number(&price["low"]).map(tenths).into_iter().chain(sums.low).min();
        sums.high = number(&price["high"]).map(tenths).max(sums.high);
        sums.weighted += number(&price["vwap"]).map_or(0, |vwap| tenths(vwap * quantity));
    }
    sums
}

/// Start and group of a point.
fn place(point: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&point["start"]), text(&point["group"]["ticker"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_says_what_the_summaries_of_all_owners_say() {
    let service = service().await;
    let client = &service.client;
    for owner in 1..=6 {
        append(client, owner, owner..=owner * 37).await;
    }
    let from_old = json!({ "type": "buy", "ticker": "OLD", "qty": 5, "date": "1950-06-01T00:00:00Z" });
    client.append(3, &from_old).await.expect(201);
    each_once(client, &service.database, 1..=6).await;
    for by in ["5m", "15m", "1h", "1d&tz=Asia/Kolkata", "1w", "1M&tz=America/New_York"] {
        for group in ["", "&group=ticker"] {
            for filter in ["", "&ticker=AMD", "&ticker=AMD&ticker=MDB", "&ticker=OLD"] {
                for (from, to) in [
                    ("2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"),
                    ("2024-02-03T01:10:00Z", "2024-02-20T02:20:00Z"),
                    ("1950-05-31T00:00:00Z", "1950-06-02T00:00:00Z"),
                    ("2024-02-03T00:00:00Z", "2024-02-03T00:00:00Z"),
                ] {
                    let query = format!("by={by}{group}{filter}&from={from}&to={to}");
                    let of_all = walk(client, &format!("/v1/trades/summary?{query}&limit=60")).await;
                    let latest =
                        walk(client, &format!("/v1/trades/summary?{query}&limit=60&order=desc")).await;
                    let starts: Vec<_> = latest.iter().map(|point| point["start"].to_string()).collect();
                    assert!(starts.is_sorted_by(|one, next| one >= next), "{starts:?}");
                    assert_eq!(sums(&latest), sums(&of_all), "{query}");
                    let mut of_each = Vec::new();
                    for owner in 1..=6 {
                        let path = format!("/v1/customers/{owner}/trades/summary?{query}&limit=1000");
                        of_each.extend(walk(client, &path).await);
                    }
                    assert_eq!(sums(&of_all), sums(&of_each), "{query}");
                    // Trades of several owners have equal dates: the first may be that of either.
                    for (point, end) in of_all.iter().flat_map(|point| [(point, "open"), (point, "close")]) {
                        let is_same = |other: &&Value| place(other) == place(point);
                        let mut ends =
                            of_each.iter().filter(is_same).map(|other| &other["values"]["price"][end]);
                        assert!(
                            ends.any(|other| *other == point["values"]["price"][end]),
                            "{query}: {point}"
                        );
                    }
                    let starts: Vec<_> =
                        of_all.iter().map(|point| point["start"].clone().to_string()).collect();
                    assert!(starts.is_sorted(), "{starts:?}");
                    assert!(of_all.iter().all(|point| point.get("firstSeq").is_none()), "of which owner?");
                }
            }
        }
    }
}

/// Those of all owners that were erased, unless they are more than a question can name: then those of the
/// owners whose measurements are read.
#[tokio::test(flavor = "multi_thread")]
async fn each_generation_is_read_once_at_most() {
    let service = service().await;
    append(&service.client, 1, 1..=20).await;
    append(&service.client, 2, 1..=20).await;
    each_once(&service.client, &service.database, 1..=2).await;
    let build = number(&service.database).await;
    for (others, most) in [(100..600_i64, 500), (600..10_101, 10_001 + 2)] {
        let erased = others.map(|owner| {
            doc! { "_id": format!("trades/{build}/{owner}"), "owner": owner, "current": 1_i64, "next": 1_i64, "term": 0_i64 }
        });
        service.database.collection("series_generations").insert_many(erased).await.expect("an answer");
        let seen = profiled_in(&service, "series_generations", async {
            let answer = service.client.get(MONTH).await.expect(200);
            let counts = answer["points"].as_array().expect("points").iter();
            assert_eq!(counts.map(|point| point["count"].as_u64().expect("a count")).sum::<u64>(), 40);
        })
        .await;
        let examined = sum(&seen, "docsExamined");
        assert!(examined <= most, "{examined}: {seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_how_far_it_is() {
    let service = service().await;
    append(&service.client, 1, 1..=3).await;
    let client = &service.client;
    eventually("it says something", PATIENCE, async || up_to(client).await.is_some()).await;
    let before = up_to(client).await;
    eventually("what is said grows", PATIENCE, async || {
        let now = up_to(client).await;
        assert!(before <= now, "{before:?} {now:?}");
        before < now
    })
    .await;
    // What is acknowledged before that moment is counted.
    append(&service.client, 1, 4..=5).await;
    let acknowledged = Clock::system().now().to_string();
    eventually("it is counted", PATIENCE, async || {
        let answer = client.get(MONTH).await.expect(200);
        let up_to = answer["upTo"].as_str().expect("a moment").to_owned();
        let counts = answer["points"].as_array().expect("points").iter();
        let count: u64 = counts.map(|point| point["count"].as_u64().expect("a count")).sum();
        assert!(up_to <= acknowledged || count == 5, "{answer}");
        up_to > acknowledged
    })
    .await;
    eventually("nothing is behind", PATIENCE, async || {
        let metrics = String::from_utf8(service.client.get("/metrics").await.body).expect("text");
        metrics.lines().any(|line| line == "pagebucket_series_lag_seconds{collection=\"trades\"} 0")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_for_clients_with_access_to_all_owners() {
    let issuer = Issuer::start().await;
    let mut setup = Setup::on(shared().await).of(SERIES);
    setup.gate = issuer.gate(OpenParts::default()).await;
    let service = setup.start().await;
    service.client.get(MONTH).await.problem(401, "unauthorized");
    for (scope, owners, status) in
        [("list", json!("*"), 200), ("read append", json!("*"), 403), ("list read", json!([7]), 403)]
    {
        let token = issuer.signer.sign(&claims("ann", scope, owners));
        let answer = service.client.with_token(token).get(MONTH).await;
        assert_eq!(answer.status, status, "{scope}: {}", answer.json());
    }
}

/// Of one client; with long reads of other routes, which have the same permits.
#[tokio::test(flavor = "multi_thread")]
async fn few_questions_at_once() {
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::at(&proxy.uri()).of(SERIES);
    // One client has a quarter.
    setup.config.api.max_scans = 4;
    let service = setup.start().await;
    let client = &service.client;
    proxy.harm(format!("aggregate {}", raw(&service.database).await), Way::There, Harm::Hold, 1);
    let waiting = client.clone();
    let held = spawn(async move { waiting.get(MONTH).await });
    proxy.struck(1).await;
    client.get(MONTH).await.problem(503, "overloaded");
    client.at([127, 0, 0, 2]).get(MONTH).await.expect(200);
    proxy.relent();
    held.await.expect("no panic").expect(200);
    eventually("its place is free", PATIENCE, async || client.get(MONTH).await.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_by_name() {
    let service = service().await;
    service.client.append(1, &dated(1, "AMD")).await.expect(201);
    let (from, to) = ("from=2004-01-09T00:00:00Z", "to=2004-01-10T00:00:00Z");
    for (query, parameter, detail) in [
        (format!("{from}&{to}"), "by", "is required"),
        (format!("by=2w&{from}&{to}"), "by", "must be \"1m\", \"5m\", \"15m\", \"30m\""),
        (format!("by=1h&{from}&{to}&fill=previous"), "fill", "must be \"none\" or \"zero\""),
        (format!("by=1h&{to}"), "from", "is required"),
        (format!("by=1h&{from}"), "to", "is required"),
        (format!("by=1h&{from}&to=2004-01-08T00:00:00Z"), "to", "must not be before `from`"),
        (format!("by=15m&{from}&to=2014-01-08T00:00:00Z"), "to", "must be at most 10000 spans after `from`"),
        (format!("by=1h&from=yesterday&{to}"), "from", "must be an RFC 3339"),
        (
            format!("by=1h&{from}&{to}&group=type"),
            "group",
            "must name properties that the definition declares as groups: `ticker`",
        ),
        (format!("by=1h&{from}&{to}&group=ticker,ticker"), "group", "must not name a property twice"),
        (format!("by=1h&{from}&{to}&ticker=amd"), "ticker", "must"),
        (format!("by=1h&{from}&{to}&type=buy"), "type", "is not a parameter of this address"),
        (format!("by=1h&{from}&{to}&tz=Mars"), "tz", "must be the name of an IANA time zone"),
        (format!("by=1h&{from}&{to}&order=up"), "order", "must be \"asc\" or \"desc\""),
        (format!("by=1h&{from}&{to}&asOf=1"), "asOf", "is not a parameter of this address"),
        (format!("by=1h&{from}&{to}&limit=0"), "limit", "must be a whole number from 1 to 1000"),
        (format!("by=1h&by=1d&{from}&{to}"), "by", "must not be given more than once"),
    ] {
        let path = format!("/v1/trades/summary?{query}");
        let problem = service.client.get(&path).await.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"].as_array().map(Vec::len), Some(1), "{path}: {problem}");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{path}: {problem}");
        let given = problem["errors"][0]["detail"].as_str().expect("a text");
        assert!(given.starts_with(detail), "{path}: {given}");
    }
    append(&service.client, 1, 2..=3).await;
    super::each_once(&service.client, &service.database, [1]).await;
    let path =
        "/v1/trades/summary?by=1d&group=ticker&limit=1&from=2024-02-01T00:00:00Z&to=2024-03-01T00:00:00Z";
    let mut trade = dated(2, "IBM");
    service.client.append(1, &trade).await.expect(201);
    trade["ticker"] = json!("MDB");
    service.client.append(1, &trade).await.expect(201);
    eventually("one day has two groups", PATIENCE, async || {
        let answer = service.client.get(path).await;
        answer.status != 200 || {
            let next = answer.json()["links"]["next"].as_str().map(str::to_owned);
            match next {
                Some(next) => service.client.get(&next).await.status == 422,
                None => false,
            }
        }
    })
    .await;
}
