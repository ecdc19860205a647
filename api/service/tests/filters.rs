//! Listings of the items with given values: exact, and of a bounded cost.

use std::collections::BTreeMap;

use mongodb::bson::{DateTime, Document, doc};
use reqwest::Method;
use serde_json::{Value, json};

use crate::cost::{profiled, sum};
use crate::harness::differing::Directory;
use crate::harness::{Client, NOTES, Service, Setup, TRADES, amount, fill, shared};

/// From 1: buys and sales in turns, of a ticker that is frequent, one that is rare, and others.
fn trade(seq: u64) -> Value {
    let ticker = match seq {
        seq if seq.is_multiple_of(97) => "RARE",
        seq if seq.is_multiple_of(3) => "MDB",
        _ => "AMD",
    };
    json!({ "type": if seq % 2 == 1 { "buy" } else { "sell" }, "ticker": ticker, "qty": seq })
}

async fn of_trades(total: u64) -> Service {
    let service = Service::start().await;
    let trades: Vec<_> = (1..=total).map(trade).collect();
    for part in trades.chunks(1000) {
        service.client.append(1, &json!(part)).await.expect(201);
    }
    service
}

/// The trades of this query, which has filters alone: one of the values of each.
fn has(filter: &str, seq: u64) -> bool {
    let (trade, mut wanted) = (trade(seq), BTreeMap::<_, Vec<_>>::new());
    for (name, value) in filter.split('&').filter_map(|pair| pair.split_once('=')) {
        wanted.entry(name).or_default().push(value);
    }
    wanted.iter().all(|(name, values)| values.iter().any(|value| trade[name] == *value))
}

/// Against the same done by hand.
#[tokio::test(flavor = "multi_thread")]
async fn any_window_of_any_values() {
    const TOTAL: u64 = 437;
    let service = of_trades(TOTAL).await;
    for filter in [
        "ticker=RARE",
        "ticker=MDB",
        "type=buy&ticker=MDB",
        "ticker=NONE",
        "ticker=RARE&ticker=MDB",
        "type=sell&ticker=NONE&type=buy&ticker=RARE",
    ] {
        for limit in [1, 10, 100] {
            let expect = async |query: &str, wanted: Vec<u64>| {
                let path = format!("/v1/customers/1/trades?{filter}&{query}&limit={limit}");
                let body = service.client.get(&path).await.expect(200);
                assert_eq!(TRADES.seqs(&body), wanted, "{path}");
                assert_eq!((body.get("totalItems"), body.get("page")), (None, None), "{path}");
            };
            let reversed = |seqs: &[u64]| seqs.iter().rev().copied().collect::<Vec<_>>();
            // The ends of a page, of the pages with a rare one, and of all.
            for at in [0, 9, 10, 96, 97, 430, 437, 1_000] {
                let after: Vec<_> = (at + 1..=TOTAL).filter(|seq| has(filter, *seq)).take(limit).collect();
                let before: Vec<_> =
                    (1..=at.min(TOTAL)).rev().filter(|seq| has(filter, *seq)).take(limit).collect();
                expect(&format!("after={at}&order=desc"), reversed(&after)).await;
                expect(&format!("before={}", at + 1), reversed(&before)).await;
                if at == 0 {
                    expect("order=asc", after.clone()).await;
                }
                if at == TOTAL {
                    expect("order=desc", before.clone()).await;
                }
                expect(&format!("after={at}"), after).await;
                expect(&format!("before={}&order=desc", at + 1), before).await;
            }
        }
    }
    let unknown = service.client.get("/v1/customers/2/trades?ticker=MDB").await.expect(200);
    assert_eq!((&unknown["items"], unknown["links"].get("next")), (&json!([]), None));
}

/// 2004-01-01T00:00:00Z
const START: i64 = 1_072_915_200_000;

/// That many days later.
fn day(day: u64) -> String {
    let millis = START + day as i64 * 86_400_000;
    pagebucket_model::domain::Instant::from_millis(millis).expect("a date").to_string()
}

/// In order of date, and in none: of customer 2 nearly every page spans all dates.
#[tokio::test(flavor = "multi_thread")]
async fn any_window_of_values_of_any_span() {
    const TOTAL: u64 = 437;
    let service = Service::start().await;
    let dates: [fn(u64) -> u64; 2] = [|seq| seq, |seq| seq * 61 % TOTAL];
    for (customer, date) in (1..).zip(dates) {
        let dated = |seq| {
            let mut trade = trade(seq);
            trade["date"] = json!(day(date(seq)));
            trade
        };
        let trades: Vec<_> = (1..=TOTAL).map(dated).collect();
        service.client.append(customer, &json!(trades)).await.expect(201);
        for filter in ["ticker=RARE", "ticker=RARE&ticker=MDB&type=buy", "ticker=NONE", "type=sell"] {
            for (from, to) in
                [(None, Some(200)), (Some(100), Some(130)), (Some(400), None), (Some(7), Some(7))]
            {
                let shown = |seq: &u64| {
                    let date = date(*seq);
                    has(filter, *seq) && from.is_none_or(|from| from <= date) && to.is_none_or(|to| date < to)
                };
                let bound = |(name, date): (&str, Option<u64>)| Some(format!("&{name}={}", day(date?)));
                let span: String = [("from", from), ("to", to)].into_iter().filter_map(bound).collect();
                let path = format!("/v1/customers/{customer}/trades?{filter}{span}");
                let all: Vec<u64> = (1..=TOTAL).filter(shown).collect();
                for (query, expected) in [
                    ("after=96&limit=5", all.iter().copied().filter(|seq| *seq > 96).take(5).collect()),
                    (
                        "before=401&limit=5&order=desc",
                        all.iter().rev().copied().filter(|seq| *seq < 401).take(5).collect(),
                    ),
                    ("limit=100", all.iter().copied().take(100).collect::<Vec<_>>()),
                ] {
                    let path = format!("{path}&{query}");
                    let body = service.client.get(&path).await.expect(200);
                    assert_eq!(TRADES.seqs(&body), expected, "{path}");
                    assert_eq!(body.get("totalItems"), None, "{path}");
                }
                let (up, _) = walk(&service.client, &format!("{path}&limit=7")).await;
                assert_eq!(up, all, "{path}");
                let (mut down, _) = walk(&service.client, &format!("{path}&limit=7&order=desc")).await;
                down.reverse();
                assert_eq!(down, all, "{path}");
            }
        }
    }
}

/// Links name all that was asked for, in an order of their own.
#[tokio::test(flavor = "multi_thread")]
async fn links_repeat_all_values() {
    let service = of_trades(30).await;
    let span = format!("from={}", day(0));
    for query in [
        format!("type=sell&ticker=MDB&{span}&type=buy&ticker=AMD&limit=2"),
        format!("limit=2&{span}&ticker=AMD&type=buy&ticker=MDB&type=sell"),
    ] {
        let body = service.client.get(&TRADES.at(1, &format!("?{query}"))).await.expect(200);
        for name in ["first", "next", "last", "newer"] {
            let link = body["links"][name].as_str().expect("a link");
            let values = format!("&{span}&ticker=AMD&ticker=MDB&type=buy&type=sell");
            assert!(link.ends_with(&values), "{name}: {link}");
        }
    }
}

/// Follows the link `next` to the end of the walk. Returns the sequence numbers shown, and the number of
/// windows.
async fn walk(client: &Client, path: &str) -> (Vec<u64>, usize) {
    let (mut path, mut seen, mut windows) = (path.to_owned(), Vec::new(), 0);
    loop {
        let body = client.get(&path).await.expect(200);
        seen.extend(client.history.seqs(&body));
        windows += 1;
        match body["links"]["next"].as_str() {
            Some(next) => path = next.to_owned(),
            None => return (seen, windows),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn walks_find_all() {
    const TOTAL: u64 = 437;
    let service = of_trades(TOTAL).await;
    for ticker in ["RARE", "MDB", "AMD", "NONE"] {
        let expected: Vec<u64> = (1..=TOTAL).filter(|seq| trade(*seq)["ticker"] == ticker).collect();
        for limit in [1, 7, 100] {
            let path = format!("/v1/customers/1/trades?ticker={ticker}&limit={limit}");
            let (up, windows) = walk(&service.client, &path).await;
            assert_eq!(up, expected);
            assert!(windows <= expected.len() / limit + 1, "{windows}");
            let (mut down, _) = walk(&service.client, &format!("{path}&order=desc")).await;
            down.reverse();
            assert_eq!(down, expected);
        }
    }
    // An answer is that of a moment: it changes with the history.
    let path = "/v1/customers/1/trades?ticker=RARE&order=desc&limit=1";
    let before = service.client.get(path).await;
    service.client.append(1, &json!({ "type": "buy", "ticker": "RARE", "qty": TOTAL + 1 })).await.expect(201);
    let after = service.client.get(path).await;
    assert_ne!(before.header("etag"), after.header("etag"));
    assert_eq!(TRADES.seqs(&after.expect(200)), [TOTAL + 1]);
    assert_eq!(after.header("cache-control"), "no-cache");
}

/// Whatever it finds, and then it says where to go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_ends_after_a_thousand_pages() {
    const PAGES: u64 = 2_500;
    let service = Service::start().await;
    fill(&service.database, TRADES, 1, PAGES, 10).await;
    let last = json!({ "type": "buy", "ticker": "LAST", "qty": PAGES * 10 + 1 });
    service.client.append(1, &last).await.expect(201);
    // All pages are of the first span, the last of them and that of today of the second.
    let late = format!("LAST&from={}", day(PAGES * 10 / 24 - 10));
    let found_last = || vec![vec![], vec![], vec![PAGES * 10 + 1]];
    for (order, found_in, expected) in [
        ("asc", "LAST", found_last()),
        ("asc", "LAST&ticker=NONE", found_last()),
        ("asc", &format!("LAST&ticker=NONE&from={}", day(0)), found_last()),
        ("desc", "LAST", vec![vec![PAGES * 10 + 1], vec![], vec![]]),
        ("desc", "NONE", vec![vec![]; 3]),
        ("desc", &format!("NONE&from={}", day(0)), vec![vec![]; 3]),
        ("asc", &late, vec![vec![PAGES * 10 + 1]]),
        ("desc", &late, vec![vec![PAGES * 10 + 1]]),
    ] {
        let mut path = format!("/v1/customers/1/trades?ticker={found_in}&order={order}");
        let mut windows = Vec::new();
        loop {
            let mut body = Value::Null;
            let seen = profiled(&service, async { body = service.client.get(&path).await.expect(200) }).await;
            let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
            println!("{path}: {keys} keys, {documents} documents, {} commands", seen.len());
            // Pages of a span are chosen by their keys alone, as in `dates.rs`.
            let most_keys = if found_in.contains("from") { PAGES as i64 + 2_100 } else { 1_002 };
            // With the tail, the page after it, and page 1, which may be a marker by now.
            assert!(keys <= most_keys && documents <= 1_003, "{path}: {keys} keys, {documents} documents");
            assert!(found_in != late || documents < 60, "{path}: {documents} documents");
            windows.push(TRADES.seqs(&body));
            match body["links"]["next"].as_str() {
                Some(next) => path = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(windows, expected, "{found_in} {order}");
    }
    // A frequent one is found at once.
    let seen = profiled(&service, async {
        let body = service.client.get("/v1/customers/1/trades?ticker=MDB&limit=10").await.expect(200);
        assert_eq!(TRADES.seqs(&body), (1..=10).collect::<Vec<_>>());
    })
    .await;
    assert!(sum(&seen, "docsExamined") <= 14, "{seen:?}");
}

/// Links repeat the value so that it is read as it was written.
#[tokio::test(flavor = "multi_thread")]
async fn texts_of_any_script() {
    let service = Service::of(NOTES).await;
    let authors = ["Ada & Co", "Ωmega+1", "a=b#c%41", "日本"];
    for number in 1..=40_u64 {
        let author = authors[number as usize % authors.len()];
        let note = json!({ "author": author, "number": number, "text": "" });
        service.client.append(1, &note).await.expect(201);
    }
    for (place, author) in authors.iter().enumerate() {
        let encoded: String = author.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let (seen, _) = walk(&service.client, &NOTES.at(1, &format!("?author={encoded}&limit=3"))).await;
        let expected: Vec<u64> = (1..=40).filter(|number| number % 4 == place as u64).collect();
        assert_eq!(seen, expected, "{author}");
    }
    // What is no text is not taken for U+FFFD.
    service.client.append(1, &json!({ "author": "\u{fffd}", "number": 41, "text": "" })).await.expect(201);
    let author = async |value: &str| service.client.get(&NOTES.at(1, &format!("?author={value}"))).await;
    assert_eq!(author("%EF%BF%BD").await.expect(200)["items"].as_array().map(Vec::len), Some(1));
    for (value, which) in [("%ff", ""), ("Ada%ff", ""), ("Ada&author=%C3", " (value 2 of 2)")] {
        let problem = author(value).await.problem(400, "invalid-parameter");
        let detail = format!("must be UTF-8 after percent-decoding{which}");
        assert_eq!(problem["errors"], json!([{ "parameter": "author", "detail": detail }]), "{value}");
    }
}

/// A property that may be null is filtered by its texts. It is no column of CSV, and the answer says so.
#[tokio::test(flavor = "multi_thread")]
async fn properties_that_may_be_null() {
    let directory = Directory::changed(NOTES, |notes| {
        notes["filters"] = json!(["author"]);
        let kinds = json!({ "type": ["string", "null"], "enum": ["debit", "credit", null] });
        notes["item"]["properties"]["author"] = kinds;
    });
    let mut setup = Setup::on(shared().await).of(NOTES.holding_any());
    setup.definitions = Some(directory.0.clone());
    let service = setup.start().await;
    let problem = service.client.get(&NOTES.at(1, "?author=null")).await.problem(400, "invalid-parameter");
    assert_eq!(problem["errors"][0]["detail"], "must be \"debit\" or \"credit\"", "{problem}");
    service.client.get(&NOTES.at(1, "?author=debit")).await.expect(200);
    let problem = service.client.get(&NOTES.at(1, "/export.csv")).await.problem(404, "not-found");
    let why = "because `author` may be null, and an empty cell is an absent property";
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(why)), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_filter_is_refused() {
    let service = of_trades(12).await;
    let tickers = |count: usize| (0..count).map(|n| format!("ticker=T{n}")).collect::<Vec<_>>().join("&");
    service.client.get(&TRADES.at(1, &format!("?{}", tickers(20)))).await.expect(200);
    let too_many = tickers(21);
    for (query, parameter) in [
        ("ticker=amd", "ticker"),
        ("ticker=", "ticker"),
        ("ticker=ABCDEFGHIJKLM", "ticker"),
        ("ticker=%FF", "ticker"),
        ("type=hold", "type"),
        ("ticker=AMD&ticker=MDB&ticker=AMD", "ticker"),
        ("ticker=AMD&ticker=", "ticker"),
        ("ticker=AMD&ticker=amd", "ticker"),
        ("ticker=AMD,MDB", "ticker"),
        ("ticker[]=AMD", "ticker[]"),
        (&too_many, "ticker"),
        ("ticker=AMD&fields=qty", "fields"),
        ("ticker=AMD&offset=0&from=2004-01-01T00:00:00Z", "offset"),
        ("qty=1", "qty"),
        ("price=1.5", "price"),
        ("ticker=AMD&page=1", "page"),
        ("ticker=AMD&offset=0", "offset"),
        ("ticker=AMD&after=3&asOf=12", "asOf"),
        ("ticker=AMD&limit=101", "limit"),
    ] {
        let path = format!("/v1/customers/1/trades?{query}");
        let problem = service.client.get(&path).await.problem(400, "invalid-parameter");
        assert_eq!(problem["errors"][0]["parameter"], parameter, "{path}: {problem}");
        assert_eq!(problem["errors"].as_array().map(Vec::len), Some(1), "{path}: {problem}");
    }
    for (query, detail) in [
        (&*too_many, "must not be given more than 20 times"),
        ("ticker=AMD&ticker=AMD", "must not have the same value twice"),
        ("ticker=AMD&ticker=amd", "(value 2 of 2)"),
        ("ticker=AMD,MDB", "for several values repeat the parameter"),
    ] {
        let problem =
            service.client.get(&TRADES.at(1, &format!("?{query}"))).await.problem(400, "invalid-parameter");
        let told = problem["errors"][0]["detail"].as_str().expect("a sentence");
        assert!(told.contains(detail), "{query}: {told}");
    }
    let path = "/v1/customers/1/trades?ticker=AMD";
    let ranged = service.client.send(Method::GET, path, |request| request.header("range", "items=0-9")).await;
    let problem = ranged.problem(400, "invalid-parameter");
    assert_eq!(problem["errors"][0]["parameter"], "Range", "{problem}");
    let elsewhere = service.client.get("/v1/customers/1/trades/export?ticker=AMD").await;
    elsewhere.problem(400, "invalid-parameter");
}

/// Each link of an answer repeats the filters, and a head that is too long ends the connection at a proxy.
#[tokio::test(flavor = "multi_thread")]
async fn links_repeat_no_long_filter() {
    let directory = Directory::changed(NOTES, |notes| {
        notes["filters"] = json!(["author", "text"]);
        for name in ["author", "text"] {
            notes["item"]["properties"][name] = json!({ "type": "string" });
        }
    });
    let mut setup = Setup::on(shared().await).of(NOTES.holding_any());
    setup.definitions = Some(directory.0.clone());
    let service = setup.start().await;
    let bytes = |count: usize| "%C3%A9".repeat(count / 2);
    let get = async |query: &str| service.client.get(&NOTES.at(1, &format!("?{query}&limit=1"))).await;
    for number in 1..=3 {
        service.client.append(1, &json!({ "author": "é".repeat(512), "number": number })).await.expect(201);
    }
    // Twenty values of about `count` bytes each. The name of the parameter counts with each value.
    let repeated =
        |count: usize| (10..30).map(|n| format!("author={n}{}", bytes(count))).collect::<Vec<_>>().join("&");
    for query in [
        format!("author={}", bytes(1024)),
        format!("author={}&text={}", bytes(24), bytes(1000)),
        repeated(40),
    ] {
        let answer = get(&query).await;
        answer.expect(200);
        let head: usize = answer.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        assert!(head < 16 * 1024, "{head} bytes");
    }
    for (query, parameter) in [
        (format!("author={}", bytes(1026)), "author"),
        (format!("author={}", "a".repeat(60_000)), "author"),
        (format!("author={}&text={}", bytes(1024), bytes(2)), "text"),
        (repeated(42), "author"),
        (format!("{}&text={}", repeated(40), bytes(34)), "text"),
    ] {
        let problem = get(&query).await.problem(400, "invalid-parameter");
        let [error] = &problem["errors"].as_array().expect("errors")[..] else { panic!("{problem}") };
        assert_eq!(error["parameter"], parameter);
        assert!(error["detail"].as_str().is_some_and(|detail| detail.contains("1024 bytes")), "{error}");
    }
    let described = service.client.get("/openapi.json").await.expect(200);
    let parameters =
        described["paths"]["/v1/rooms/{roomId}/notes"]["get"]["parameters"].as_array().expect("parameters");
    let text = parameters.iter().find(|parameter| parameter["name"] == "text").expect("a filter");
    assert_eq!((&text["style"], &text["explode"]), (&json!("form"), &json!(true)));
    let values = json!({
        "type": "array", "items": { "type": "string", "maxLength": 1024 },
        "minItems": 1, "maxItems": 20, "uniqueItems": true,
    });
    let mut schema = text["schema"].clone();
    schema.as_object_mut().expect("a schema").remove("examples");
    assert_eq!(schema, values);
}

/// Why filters have no index: the bytes of one on tickers, beside the bytes of the trades. 100 customers, 500
/// in a long run, have 200 trades each, whose tickers are drawn at random from 7, 500 or 5,000.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_would_cost_as_much_as_the_trades() {
    const TRADES_OF_EACH: u64 = 200;
    const PAGE_SIZE: u64 = TRADES.page_size;
    /// 2004-01-01T00:00:00Z
    const START: i64 = 1_072_915_200_000;
    let customers = amount(100, 500);
    println!("| Tickers | Bytes a trade | Of an index on owner, ticker and page, full pages only |");
    println!("|---|---|---|");
    for tickers in [7_u64, 500, 5_000] {
        let service = Service::start().await;
        let mut state = tickers;
        for customer in 1..=customers {
            // As appends leave them: an append of each customer, within a second.
            let now = DateTime::from_millis(START + customer as i64 * 1_000);
            let buckets = (0..TRADES_OF_EACH / PAGE_SIZE).map(|page| {
                let numbers = page * PAGE_SIZE + 1..=(page + 1) * PAGE_SIZE;
                let items: Vec<_> = numbers.map(|number| (number, now)).collect();
                let mut bucket =
                    TRADES.bucket(customer, START / 1000 + customer as i64 + page as i64, page + 1, &items);
                for trade in bucket.get_array_mut("history").expect("trades") {
                    // Knuth, MMIX.
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let ticker = format!("T{}", (state >> 33) % tickers);
                    trade.as_document_mut().expect("a trade").insert("ticker", ticker);
                }
                bucket
            });
            let buckets: Vec<_> = buckets.collect();
            let collection = service.database.collection::<Document>(TRADES.name);
            collection.insert_many(buckets).await.expect("valid buckets");
        }
        let index = doc! {
            "key": { "customerId": 1, "history.ticker": 1, "page": 1 }, "name": "tickers",
            "partialFilterExpression": { "count": 10 },
        };
        let made = doc! { "createIndexes": "trades", "indexes": [index] };
        service.database.run_command(made).await.expect("an index");
        let admin = service.database.client().database("admin");
        admin.run_command(doc! { "fsync": 1 }).await.expect("a checkpoint");
        let stats = service.database.run_command(doc! { "collStats": "trades" }).await.expect("statistics");
        let total = (customers * TRADES_OF_EACH) as f64;
        let bytes = |value: Option<&mongodb::bson::Bson>| {
            let value = value.expect("a number");
            value
                .as_f64()
                .or(value.as_i64().map(|n| n as f64))
                .or(value.as_i32().map(f64::from))
                .expect("bytes")
        };
        let data = bytes(stats.get("storageSize"))
            - bytes(stats.get_document("wiredTiger").ok().and_then(|tiger| {
                tiger.get_document("block-manager").ok()?.get("file bytes available for reuse")
            }));
        let index = bytes(stats.get_document("indexSizes").ok().and_then(|sizes| sizes.get("tickers")));
        println!("| {tickers} | {:.1} | {:.1} |", data / total, index / total);
        assert!(index > data / 2.0, "an index has become cheap: {index} bytes beside {data}");
    }
}
