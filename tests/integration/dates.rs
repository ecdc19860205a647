//! Trades of a span of time: exact in every window, whatever the order in which they arrived.

use mongodb::bson::{Bson, DateTime, Document, doc};
use serde_json::{Value, json};

use crate::cost::{profiled, sum};
use crate::harness::{Client, Service, seqs, tests, trade_at};

tests!["dates":
    a_span_is_half_open,
    any_window_of_any_span,
    walks_lead_through_the_span,
    offsets_are_normalised,
    what_is_no_span_is_refused,
    a_walk_beside_a_writer,
    what_a_span_examines,
];

const DAY: i64 = 86_400_000;
/// 2004-01-01T00:00:00Z
const START: i64 = 1_072_915_200_000;

fn text(millis: i64) -> String {
    pagebucket::domain::Instant::from_millis(millis).expect("a date").to_string()
}

async fn append(client: &Client, customer: u64, from: u64, dates: &[i64]) {
    let trades: Vec<Value> = (from..).zip(dates).map(|(seq, date)| trade_at(seq, &text(*date))).collect();
    for part in trades.chunks(1000) {
        client.append(customer, &json!(part)).await.expect(201);
    }
}

/// Numbers by chance, the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        // Knuth, MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

async fn a_span_is_half_open() {
    let service = Service::start().await;
    let dates: Vec<i64> = (0..25).map(|n| START + n).collect();
    append(&service.client, 1, 1, &dates).await;
    for (from, to) in
        [(0, 25), (0, 1), (3, 3), (3, 4), (9, 11), (19, 22), (20, 99), (24, 25), (25, 26), (-5, 0)]
    {
        let query = format!("from={}&to={}&limit=100", text(START + from), text(START + to));
        let body = service.client.get(&format!("/v1/customers/1/trades?{query}")).await.expect(200);
        let expected: Vec<u64> = (1..=25).filter(|seq| (from..to).contains(&(*seq as i64 - 1))).collect();
        assert_eq!(seqs(&body), expected, "{query}");
        for absent in ["totalTrades", "totalPages", "page", "full"] {
            assert_eq!(body.get(absent), None, "{query}");
        }
        assert_eq!((&body["customerId"], &body["order"]), (&json!(1), &json!("asc")));
    }
    let since =
        service.client.get(&format!("/v1/customers/1/trades?from={}", text(START + 20))).await.expect(200);
    assert_eq!(seqs(&since), [21, 22, 23, 24, 25]);
    let until =
        service.client.get(&format!("/v1/customers/1/trades?to={}", text(START + 3))).await.expect(200);
    assert_eq!(seqs(&until), [1, 2, 3]);
    let unknown = service.client.get(&format!("/v1/customers/2/trades?to={}", text(START))).await.expect(200);
    assert_eq!(unknown["items"], json!([]));
}

/// Against the same done by hand on the list of dates.
async fn any_window_of_any_span() {
    let service = Service::start().await;
    let mut chance = Chance(7);
    for (customer, trades, disorder) in
        [(1_u64, 137_u64, 0), (2, 140, 25), (3, 203, 1_000), (4, 10, 0), (5, 7, 3)]
    {
        // Three trades a day; each may have been up to `disorder` places late.
        let mut order: Vec<u64> = (0..trades).collect();
        if disorder > 0 {
            let late: Vec<u64> = order.iter().map(|place| place + chance.below(disorder)).collect();
            order.sort_by_key(|place| late[*place as usize]);
        }
        let dates: Vec<i64> = order.iter().map(|place| START + *place as i64 * DAY / 3).collect();
        append(&service.client, customer, 1, &dates).await;
        for _ in 0..60 {
            let day = |chance: &mut Chance| START + chance.below(trades + 6) as i64 * DAY / 3 - DAY;
            let (mut from, mut to) = (day(&mut chance), day(&mut chance));
            if to < from {
                std::mem::swap(&mut from, &mut to);
            }
            let limit = chance.below(30) as usize + 1;
            let cursor = chance.below(trades + 5);
            let of_span = |seq: &u64| (from..to).contains(&dates[*seq as usize - 1]);
            let (query, mut expected): (String, Vec<u64>) = match chance.below(4) {
                0 => (format!("after={cursor}"), (cursor + 1..=trades).filter(of_span).take(limit).collect()),
                1 => {
                    let end = cursor.min(trades);
                    (format!("before={}", cursor + 1), (1..=end).rev().filter(of_span).take(limit).collect())
                }
                2 => ("order=asc".to_owned(), (1..=trades).filter(of_span).take(limit).collect()),
                _ => ("order=desc".to_owned(), (1..=trades).rev().filter(of_span).take(limit).collect()),
            };
            if !query.contains("desc") {
                expected.sort_unstable();
            }
            let path = format!(
                "/v1/customers/{customer}/trades?{query}&from={}&to={}&limit={limit}",
                text(from),
                text(to)
            );
            assert_eq!(seqs(&service.client.get(&path).await.expect(200)), expected, "{path}");
        }
    }
}

/// Along `next`, each window full but the last, and none empty but that of an empty span.
async fn walk(client: &Client, path: &str, limit: usize) -> (Vec<u64>, String) {
    let mut path = path.to_owned();
    let mut seen = Vec::new();
    let mut newer = None;
    loop {
        let body = client.get(&path).await.expect(200);
        newer.get_or_insert_with(|| body["links"]["newer"].as_str().expect("always there").to_owned());
        let shown = seqs(&body);
        let next = body["links"]["next"].as_str();
        assert!(shown.len() == limit || (next.is_none() && !shown.is_empty()), "{path}: {body}");
        seen.extend(shown);
        match next {
            Some(next) => path = next.to_owned(),
            None => return (seen, newer.expect("set above")),
        }
    }
}

async fn walks_lead_through_the_span() {
    let service = Service::start().await;
    let mut places: Vec<i64> = (0..230).collect();
    Chance(3).shuffle(&mut places);
    let dates: Vec<i64> = places.iter().map(|place| START + place * DAY).collect();
    append(&service.client, 1, 1, &dates).await;
    let (from, to) = (START + 40 * DAY, START + 140 * DAY);
    let expected: Vec<u64> = (1..=230).filter(|seq| (from..to).contains(&dates[*seq as usize - 1])).collect();
    assert_eq!(expected.len(), 100);
    for limit in [1, 7, 25, 100] {
        let path = format!("/v1/customers/1/trades?from={}&to={}&limit={limit}", text(from), text(to));
        let (up, newer) = walk(&service.client, &path, limit).await;
        assert_eq!(up, expected);
        assert!(newer.contains(&format!("&from={}&to={}", text(from), text(to))), "{newer}");
        let (mut down, newer) = walk(&service.client, &format!("{path}&order=desc"), limit).await;
        down.reverse();
        assert_eq!(down, expected);
        assert_eq!(service.client.get(&newer).await.expect(200)["items"], json!([]), "{newer}");
    }
    // Back and forth.
    let path = format!("/v1/customers/1/trades?after=100&from={}&to={}&limit=5", text(from), text(to));
    let body = service.client.get(&path).await.expect(200);
    let there = seqs(&body);
    let before =
        service.client.get(body["links"]["prev"].as_str().expect("there is some before")).await.expect(200);
    let after =
        service.client.get(before["links"]["next"].as_str().expect("there is some behind")).await.expect(200);
    assert_eq!(seqs(&after), there);
}

async fn offsets_are_normalised() {
    let service = Service::start().await;
    append(&service.client, 1, 1, &[START - 1, START, START + DAY - 1, START + DAY]).await;
    for (from, to) in [
        ("2004-01-01T00:00:00Z", "2004-01-02T00:00:00.000Z"),
        ("2004-01-01T01:30:00%2B01:30", "2004-01-02T00:00:00Z"),
        // Curl and many clients do not encode it.
        ("2004-01-01T01:30:00+01:30", "2004-01-02T02:00:00.0+02:00"),
        ("2003-12-31T19:00:00-05:00", "2004-01-01T19:00:00-05:00"),
    ] {
        let path = format!("/v1/customers/1/trades?from={from}&to={to}");
        let body = service.client.get(&path).await.expect(200);
        assert_eq!(seqs(&body), [2, 3], "{path}");
        let links = &body["links"];
        assert_eq!(links["self"], path, "as it was asked for");
        let normal = "&from=2004-01-01T00:00:00.000Z&to=2004-01-02T00:00:00.000Z";
        assert_eq!(links["first"], format!("/v1/customers/1/trades?after=0&limit=10{normal}"));
        assert_eq!(links["newer"], format!("/v1/customers/1/trades?after=4&limit=10{normal}"));
    }
}

async fn what_is_no_span_is_refused() {
    let service = Service::start().await;
    append(&service.client, 1, 1, &[START]).await;
    let refused = async |query: &str, parameters: &[&str]| {
        let path = format!("/v1/customers/1/trades?{query}");
        let problem = service.client.get(&path).await.problem(400, "invalid-parameter");
        let errors = problem["errors"].as_array().expect("errors");
        let named: Vec<&str> =
            errors.iter().map(|error| error["parameter"].as_str().expect("a name")).collect();
        assert_eq!(named, parameters, "{path}: {problem}");
    };
    for bad in [
        "",
        "2004-01-01",
        "2004-01-01T00:00:00",
        "2004-01-01%2000:00:00Z",
        "2004-01-01T00:00:00.0000Z",
        "2004-02-30T00:00:00Z",
        "2016-12-31T23:59:60Z",
        "2004-01-01T00:00:00%20Z",
        "2004-01-01T00:00:00 0100",
        "9999-12-31T23:59:59-00:01",
        "1072915200000",
        "now",
        "%FF",
    ] {
        refused(&format!("from={bad}"), &["from"]).await;
        refused(&format!("limit=3&to={bad}"), &["to"]).await;
    }
    let (early, late) = (text(START), text(START + 1));
    refused(&format!("from={late}&to={early}"), &["to"]).await;
    refused(&format!("from={early}&from={early}"), &["from"]).await;
    refused(&format!("page=1&from={early}"), &["page"]).await;
    refused(&format!("page=1&to={early}"), &["page"]).await;
    refused("from=x&to=y&limit=0&page=2", &["page", "limit", "from", "to"]).await;
    let empty =
        service.client.get(&format!("/v1/customers/1/trades?from={early}&to={early}")).await.expect(200);
    assert_eq!(empty["items"], json!([]));
}

/// Half of what is written is of the span; every one of these is seen once.
async fn a_walk_beside_a_writer() {
    const TRADES: u64 = 2_000;
    let service = Service::start().await;
    let date = |seq: u64| START + (seq as i64 * 7_919 % 1_000) * DAY;
    let dates = move |from: u64, to: u64| (from..=to).map(date).collect::<Vec<_>>();
    append(&service.client, 1, 1, &dates(1, 100)).await;
    let writer = {
        let client = service.client.clone();
        tokio::spawn(async move {
            let (mut next, mut size) = (101, 1);
            while next <= TRADES {
                let last = (next + size - 1).min(TRADES);
                append(&client, 1, next, &dates(next, last)).await;
                (next, size) = (last + 1, size % 17 + 1);
            }
        })
    };
    let expected: Vec<u64> = (1..=TRADES).filter(|seq| (date(*seq) - START) / DAY < 500).collect();
    let mut path = format!("/v1/customers/1/trades?to={}&limit=20", text(START + 500 * DAY));
    let mut seen = Vec::new();
    loop {
        let all_is_written = writer.is_finished();
        let body = service.client.get(&path).await.expect(200);
        let shown = seqs(&body);
        if shown.is_empty() && all_is_written {
            break;
        }
        seen.extend(shown);
        path = body["links"]["newer"].as_str().expect("always there").to_owned();
    }
    writer.await.expect("no panic");
    assert_eq!(seen, expected);
}

const PAGES: usize = 10_000;

/// A full page each thousand of these dates.
async fn fill(service: &Service, customer: i64, dates: &[i64]) {
    let buckets: Vec<Document> = dates
        .chunks(10)
        .zip(1_i64..)
        .map(|(dates, page)| {
            let dated = |date: &i64| DateTime::from_millis(*date);
            let history = dates.iter().zip(1_i64..).map(|(date, place)| {
                Bson::from(doc! { "type": "buy", "ticker": "MDB", "qty": (page - 1) * 10 + place, "date": dated(date) })
            });
            doc! {
                "_id": format!("{customer}_{:010}", 1_072_915_200 + page), "customerId": customer, "page": page,
                "count": 10, "first": dated(dates.iter().min().unwrap()), "last": dated(dates.iter().max().unwrap()),
                "history": history.collect::<Vec<_>>(),
            }
        })
        .collect();
    let trades = service.database.collection::<Document>("trades");
    for buckets in buckets.chunks(1000) {
        trades.insert_many(buckets).await.expect("valid buckets");
    }
}

/// One trade an hour, 100,000 of them: in order, each up to 500 hours late, and in any order.
async fn what_a_span_examines() {
    const HOUR: i64 = DAY / 24;
    let service = Service::start().await;
    let total = PAGES as i64 * 10;
    let ordered: Vec<i64> = (0..total).collect();
    let mut chance = Chance(1);
    let mut late: Vec<(i64, i64)> =
        ordered.iter().map(|hour| (hour + chance.below(500) as i64, *hour)).collect();
    late.sort_unstable();
    let late: Vec<i64> = late.into_iter().map(|(_, hour)| hour).collect();
    let mut shuffled = ordered.clone();
    chance.shuffle(&mut shuffled);
    println!("| History | Span | Trades shown | Full pages that match | Keys | Documents | Commands |");
    println!("|---|---|---|---|---|---|---|");
    for (customer, name, hours) in
        [(1, "in order", ordered), (2, "up to 500 late", late), (3, "in any order", shuffled)]
    {
        let dates: Vec<i64> = hours.iter().map(|hour| START + hour * HOUR).collect();
        fill(&service, customer, &dates).await;
        for (span, first, last) in [
            ("first day", 0, 24),
            ("a day in the middle", total / 2, total / 2 + 24),
            ("last day", total - 24, total),
            ("all", 0, total),
        ] {
            let of_span = |page: &&[i64]| {
                page.iter().min().is_some_and(|hour| *hour < last)
                    && page.iter().max().is_some_and(|hour| *hour >= first)
            };
            let matching = hours[..hours.len() - 10].chunks(10).filter(of_span).count() as i64;
            let path = format!(
                "/v1/customers/{customer}/trades?from={}&to={}&limit=25",
                text(START + first * HOUR),
                text(START + last * HOUR)
            );
            let mut shown = 0;
            let seen = profiled(&service, async {
                let body = service.client.get(&path).await.expect(200);
                shown = seqs(&body).len() as i64;
            })
            .await;
            assert_eq!(shown, (last - first).min(25), "{path}");
            let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
            println!("| {name} | {span} | {shown} | {matching} | {keys} | {documents} | {} |", seen.len());
            // The tail, and full pages that match; of these one more than it takes for 25 trades and a next one.
            assert!(documents <= matching + 1, "{path}: {documents} of {matching}");
            if span == "all" {
                assert!(documents <= 3 + 1 + 1, "{path}: {documents}");
            }
        }
    }
}
