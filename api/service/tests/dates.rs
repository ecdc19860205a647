//! Items of a span of time: exact in every window, whatever the order in which they arrived.

use mongodb::bson::{DateTime, Document};
use serde_json::{Value, json};

use crate::cost::{profiled, sum};
use crate::harness::{Client, History, Service, TOTAL, amount, spawn, test_over};

const DAY: i64 = 86_400_000;
/// 2004-01-01T00:00:00Z
const START: i64 = 1_072_915_200_000;

fn text(millis: i64) -> String {
    pagebucket_model::domain::Instant::from_millis(millis).expect("a date").to_string()
}

async fn append(client: &Client, owner: u64, from: u64, dates: &[i64]) {
    let dated = |(seq, date): (u64, &i64)| client.history.item_at(seq, &text(*date));
    let items: Vec<Value> = (from..).zip(dates).map(dated).collect();
    for part in items.chunks(1000) {
        client.append(owner, &json!(part)).await.expect(201);
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

test_over!(a_span_is_half_open, ALL);
async fn a_span_is_half_open(history: &'static History) {
    let service = Service::of(history).await;
    // At most as many as one window shows.
    let total = history.pages(2.5).min(99);
    let dates: Vec<i64> = (0..total as i64).map(|n| START + n).collect();
    append(&service.client, 1, 1, &dates).await;
    let end = total as i64;
    let page = (history.page_size as i64).min(end / 2);
    for (from, to) in [
        (0, end),
        (0, 1),
        (3, 3),
        (3, 4),
        (page - 1, page + 1),
        (2 * page - 1, 2 * page + 2),
        (2 * page, end + 74),
        (end - 1, end),
        (end, end + 1),
        (-5, 0),
    ] {
        let query = format!("from={}&to={}&limit=100", text(START + from), text(START + to));
        let body = service.client.get(&history.at(1, &format!("?{query}"))).await.expect(200);
        let expected: Vec<u64> = (1..=total).filter(|seq| (from..to).contains(&(*seq as i64 - 1))).collect();
        assert_eq!(history.seqs(&body), expected, "{query}");
        for absent in [TOTAL, "totalPages", "page", "full"] {
            assert_eq!(body.get(absent), None, "{query}");
        }
        assert_eq!((&body[history.owner_field], &body["order"]), (&history.owner(1), &json!("asc")));
    }
    let since = history.at(1, &format!("?from={}", text(START + end - 2)));
    assert_eq!(history.seqs(&service.client.get(&since).await.expect(200)), [total - 1, total]);
    let until = history.at(1, &format!("?to={}", text(START + 2)));
    assert_eq!(history.seqs(&service.client.get(&until).await.expect(200)), [1, 2]);
    let unknown = history.at(2, &format!("?to={}", text(START)));
    let unknown = service.client.get(&unknown).await.expect(200);
    assert_eq!(unknown["items"], json!([]));
}

test_over!(any_window_of_any_span, ALL);
/// Against the same done by hand on the list of dates.
async fn any_window_of_any_span(history: &'static History) {
    let service = Service::of(history).await;
    let mut chance = Chance(7);
    for (owner, pages, disorder) in
        [(1_u64, 13.7, 0), (2, 14.0, 25), (3, 20.3, 1_000), (4, 1.0, 0), (5, 0.7, 3)]
    {
        let items = history.pages(pages).max(1);
        // Three items a day; each may have been up to `disorder` places late.
        let mut order: Vec<u64> = (0..items).collect();
        if disorder > 0 {
            let late: Vec<u64> = order.iter().map(|place| place + chance.below(disorder)).collect();
            order.sort_by_key(|place| late[*place as usize]);
        }
        let dates: Vec<i64> = order.iter().map(|place| START + *place as i64 * DAY / 3).collect();
        append(&service.client, owner, 1, &dates).await;
        for _ in 0..60 {
            let day = |chance: &mut Chance| START + chance.below(items + 6) as i64 * DAY / 3 - DAY;
            let (mut from, mut to) = (day(&mut chance), day(&mut chance));
            if to < from {
                std::mem::swap(&mut from, &mut to);
            }
            let limit = chance.below(30) as usize + 1;
            let cursor = chance.below(items + 5);
            let of_span = |seq: &u64| (from..to).contains(&dates[*seq as usize - 1]);
            let (query, mut expected): (String, Vec<u64>) = match chance.below(4) {
                0 => (format!("after={cursor}"), (cursor + 1..=items).filter(of_span).take(limit).collect()),
                1 => {
                    let end = cursor.min(items);
                    (format!("before={}", cursor + 1), (1..=end).rev().filter(of_span).take(limit).collect())
                }
                2 => ("order=asc".to_owned(), (1..=items).filter(of_span).take(limit).collect()),
                _ => ("order=desc".to_owned(), (1..=items).rev().filter(of_span).take(limit).collect()),
            };
            if !query.contains("desc") {
                expected.sort_unstable();
            }
            let span = format!("&from={}&to={}", text(from), text(to));
            let path = history.at(owner, &format!("?{query}{span}&limit={limit}"));
            assert_eq!(history.seqs(&service.client.get(&path).await.expect(200)), expected, "{path}");
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
        let shown = client.history.seqs(&body);
        let next = body["links"]["next"].as_str();
        assert!(shown.len() == limit || (next.is_none() && !shown.is_empty()), "{path}: {body}");
        seen.extend(shown);
        match next {
            Some(next) => path = next.to_owned(),
            None => return (seen, newer.expect("set above")),
        }
    }
}

test_over!(walks_lead_through_the_span, ALL);
async fn walks_lead_through_the_span(history: &'static History) {
    let service = Service::of(history).await;
    let total = history.pages(23.0);
    let mut places: Vec<i64> = (0..total as i64).collect();
    Chance(3).shuffle(&mut places);
    let dates: Vec<i64> = places.iter().map(|place| START + place * DAY).collect();
    append(&service.client, 1, 1, &dates).await;
    // As many as ten pages hold, but on more of them.
    let shown = history.pages(10.0).min(300) as i64;
    let (from, to) = (START + 4 * history.page_size as i64 * DAY, shown * DAY);
    let to = from + to;
    let expected: Vec<u64> =
        (1..=total).filter(|seq| (from..to).contains(&dates[*seq as usize - 1])).collect();
    assert_eq!(expected.len() as i64, shown);
    for limit in [1, 7, 25, 100] {
        let span = format!("from={}&to={}", text(from), text(to));
        let path = history.at(1, &format!("?{span}&limit={limit}"));
        let (up, newer) = walk(&service.client, &path, limit).await;
        assert_eq!(up, expected);
        assert!(newer.contains(&format!("&{span}")), "{newer}");
        let (mut down, newer) = walk(&service.client, &format!("{path}&order=desc"), limit).await;
        down.reverse();
        assert_eq!(down, expected);
        assert_eq!(service.client.get(&newer).await.expect(200)["items"], json!([]), "{newer}");
    }
    // Back and forth.
    let cursor = expected[expected.len() / 2];
    let path = format!("?after={cursor}&from={}&to={}&limit=5", text(from), text(to));
    let body = service.client.get(&history.at(1, &path)).await.expect(200);
    let there = history.seqs(&body);
    let before =
        service.client.get(body["links"]["prev"].as_str().expect("there is some before")).await.expect(200);
    let after =
        service.client.get(before["links"]["next"].as_str().expect("there is some behind")).await.expect(200);
    assert_eq!(history.seqs(&after), there);
}

test_over!(offsets_are_normalised, NOTES);
async fn offsets_are_normalised(history: &'static History) {
    let service = Service::of(history).await;
    append(&service.client, 1, 1, &[START - 1, START, START + DAY - 1, START + DAY]).await;
    for (from, to) in [
        ("2004-01-01T00:00:00Z", "2004-01-02T00:00:00.000Z"),
        ("2004-01-01T01:30:00%2B01:30", "2004-01-02T00:00:00Z"),
        // Curl and many clients do not encode it.
        ("2004-01-01T01:30:00+01:30", "2004-01-02T02:00:00.0+02:00"),
        ("2003-12-31T19:00:00-05:00", "2004-01-01T19:00:00-05:00"),
    ] {
        let path = history.at(1, &format!("?from={from}&to={to}&limit=10"));
        let body = service.client.get(&path).await.expect(200);
        assert_eq!(history.seqs(&body), [2, 3], "{path}");
        let links = &body["links"];
        assert_eq!(links["self"], path, "as it was asked for");
        let normal = "&limit=10&from=2004-01-01T00:00:00.000Z&to=2004-01-02T00:00:00.000Z";
        assert_eq!(links["first"], history.at(1, &format!("?after=0{normal}")));
        assert_eq!(links["newer"], history.at(1, &format!("?after=4{normal}")));
    }
}

#[tokio::test(flavor = "multi_thread")]
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
        "2004-01-01T00:00:00.0001Z",
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

test_over!(a_walk_beside_a_writer, SMALL);
/// Half of what is written is of the span; every one of these is seen once.
async fn a_walk_beside_a_writer(history: &'static History) {
    const ITEMS: u64 = 2_000;
    let service = Service::of(history).await;
    let date = |seq: u64| START + (seq as i64 * 7_919 % 1_000) * DAY;
    let dates = move |from: u64, to: u64| (from..=to).map(date).collect::<Vec<_>>();
    append(&service.client, 1, 1, &dates(1, 100)).await;
    let writer = {
        let client = service.client.clone();
        spawn(async move {
            let (mut next, mut size) = (101, 1);
            while next <= ITEMS {
                let last = (next + size - 1).min(ITEMS);
                append(&client, 1, next, &dates(next, last)).await;
                (next, size) = (last + 1, size % 17 + 1);
            }
        })
    };
    let expected: Vec<u64> = (1..=ITEMS).filter(|seq| (date(*seq) - START) / DAY < 500).collect();
    let mut path = history.at(1, &format!("?to={}&limit=20", text(START + 500 * DAY)));
    let mut seen = Vec::new();
    loop {
        let all_is_written = writer.is_finished();
        let body = service.client.get(&path).await.expect(200);
        let shown = history.seqs(&body);
        if shown.is_empty() && all_is_written {
            break;
        }
        seen.extend(shown);
        path = body["links"]["newer"].as_str().expect("always there").to_owned();
    }
    writer.await.expect("no panic");
    assert_eq!(seen, expected);
}

/// Full pages of items with these dates.
async fn fill(service: &Service, owner: u64, dates: &[i64]) {
    let size = service.history.page_size;
    let buckets: Vec<Document> = dates
        .chunks(size as usize)
        .zip(1_u64..)
        .map(|(dates, page)| {
            let seqs = (page - 1) * size + 1..;
            let items: Vec<_> = seqs.zip(dates.iter().map(|date| DateTime::from_millis(*date))).collect();
            service.history.bucket(owner, 1_072_915_200 + page as i64, page, &items)
        })
        .collect();
    let collection = service.database.collection::<Document>(service.history.name);
    for buckets in buckets.chunks(1000) {
        collection.insert_many(buckets).await.expect("valid buckets");
    }
}

test_over!(what_a_span_examines, SMALL);
/// One item an hour, on a thousand pages, in a long run on ten thousand: in order, each up to 500 hours late,
/// and in any order.
async fn what_a_span_examines(history: &'static History) {
    const HOUR: i64 = DAY / 24;
    let service = Service::of(history).await;
    let size = history.page_size as usize;
    let total = amount(1_000, 10_000) as i64 * size as i64;
    let ordered: Vec<i64> = (0..total).collect();
    let mut chance = Chance(1);
    let mut late: Vec<(i64, i64)> =
        ordered.iter().map(|hour| (hour + chance.below(500) as i64, *hour)).collect();
    late.sort_unstable();
    let late: Vec<i64> = late.into_iter().map(|(_, hour)| hour).collect();
    let mut shuffled = ordered.clone();
    chance.shuffle(&mut shuffled);
    println!("| History | Span | Items shown | Full pages that match | Keys | Documents | Commands |");
    println!("|---|---|---|---|---|---|---|");
    for (owner, name, hours) in
        [(1, "in order", ordered), (2, "up to 500 late", late), (3, "in any order", shuffled)]
    {
        let dates: Vec<i64> = hours.iter().map(|hour| START + hour * HOUR).collect();
        fill(&service, owner, &dates).await;
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
            let matching = hours[..hours.len() - size].chunks(size).filter(of_span).count() as i64;
            let path =
                format!("?from={}&to={}&limit=25", text(START + first * HOUR), text(START + last * HOUR));
            let path = history.at(owner, &path);
            let mut shown = 0;
            let seen = profiled(&service, async {
                let body = service.client.get(&path).await.expect(200);
                shown = history.seqs(&body).len() as i64;
            })
            .await;
            assert_eq!(shown, (last - first).min(25), "{path}");
            let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
            println!("| {name} | {span} | {shown} | {matching} | {keys} | {documents} | {} |", seen.len());
            // The tail, and full pages that match; of these one more than it takes for 25 items and a next
            // one. A scan of the clustered collection that ends at the tail looks at the bucket after it, if
            // there is one.
            let after = i64::from(owner != 1 && history.id(owner) < history.id(1));
            // Where the search shows page 1, that is read once more: it may be a marker by now.
            let more = after + 1;
            assert!(documents <= matching + 1 + more, "{path}: {documents} of {matching}");
            if span == "all" {
                let most = 25_u64.div_ceil(history.page_size) as i64 + 1 + 1 + more;
                assert!(documents <= most, "{path}: {documents}");
            }
        }
    }
}
