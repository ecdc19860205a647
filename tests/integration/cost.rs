//! What appends and reads cost the database, by its own counters: never by the clock.

use std::sync::{Arc, Mutex};

use futures_util::TryStreamExt;
use mongodb::bson::{Document, doc};
use pagebucket::store::history::MOST_SKIPPED;
use serde_json::json;

use crate::harness::{Service, Setup, history, shared, tests, trade};

tests!["cost":
    an_append_behind_ten_thousand_pages,
    any_page_of_ten_thousand,
    any_window_of_ten_thousand_pages,
    every_statement_names_its_customer,
];

const PAGES: i64 = 10_000;

/// Writes a history of 10,000 full pages at once, as appends would have left it.
async fn fill(service: &Service, customer: i64) {
    let trades = service.database.collection::<Document>("trades");
    let date = mongodb::bson::DateTime::from_millis(1_073_606_400_000);
    for from in (1..=PAGES).step_by(1000) {
        let buckets = (from..from + 1000).map(|page| {
            let history: Vec<Document> = (1..=10)
                .map(|place| {
                    doc! { "type": "buy", "ticker": "MDB", "qty": (page - 1) * 10 + place, "date": date }
                })
                .collect();
            doc! {
                "_id": format!("{customer}_{:010}", 1_073_606_400 + page), "customerId": customer, "page": page,
                "count": 10, "first": date, "last": date, "history": history,
            }
        });
        trades.insert_many(buckets).await.expect("valid buckets");
    }
}

/// Runs `work` with the profiler on, and returns what it saw of `trades`.
pub async fn profiled<F: Future<Output = ()>>(service: &Service, work: F) -> Vec<Document> {
    profiled_in(service, "trades", work).await
}

/// The same of another collection.
pub async fn profiled_in<F: Future<Output = ()>>(
    service: &Service,
    collection: &str,
    work: F,
) -> Vec<Document> {
    service.database.run_command(doc! { "profile": 2 }).await.expect("to profile");
    work.await;
    service.database.run_command(doc! { "profile": 0 }).await.expect("to end profiling");
    let profile = service.database.collection::<Document>("system.profile");
    let ns = format!("{}.{collection}", service.database.name());
    let seen: Vec<Document> =
        profile.find(doc! { "ns": ns }).await.expect("a profile").try_collect().await.expect("a profile");
    profile.drop().await.expect("to drop the profile");
    assert!(!seen.is_empty(), "the profiler saw nothing");
    seen
}

pub fn sum(seen: &[Document], counter: &str) -> i64 {
    let value = |entry: &Document| {
        entry.get_i32(counter).map(i64::from).or_else(|_| entry.get_i64(counter)).unwrap_or(0)
    };
    seen.iter().map(value).sum()
}

/// At most 2 keys and 2 documents in all its statements: into a full tail, and into one with room.
async fn an_append_behind_ten_thousand_pages() {
    let service = Service::start().await;
    fill(&service, 1).await;
    for (turn, what) in ["opens a page", "fills a page"].into_iter().enumerate() {
        let seen = profiled(&service, async {
            let body = service.client.append(1, &trade(1)).await.expect(201);
            assert_eq!(body["ranges"][0]["firstSeq"], PAGES * 10 + 1 + turn as i64);
        })
        .await;
        let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
        println!(
            "an append behind 10,000 pages, {what}: {keys} keys, {documents} documents, {} statements",
            seen.len()
        );
        assert!(keys <= 2 && documents <= 2, "{seen:?}");
    }
    let history = history(&service.database, 1).await;
    assert_eq!(history.ids.len() as i64, PAGES + 1);
}

/// Whatever its number. Besides its own bucket a page examines at most 2 keys and 2 documents; one that is
/// so near an end that it is reached by skipping, so many documents more. Nothing is remembered here.
async fn any_page_of_ten_thousand() {
    let service = without_memory().await;
    let near = MOST_SKIPPED as i64;
    let pages = [1, 2, near + 1, near + 2, 50, 5_000, PAGES - near - 1, PAGES - near, PAGES - 1, PAGES];
    println!("page of 10,000: keys and documents of its own address, and as a listing");
    for page in pages {
        let mut costs = Vec::new();
        for (path, skips) in [
            (format!("/v1/customers/1/trades/pages/{page}"), page - 1 <= near),
            (format!("/v1/customers/1/trades/{}", page * 10), page - 1 <= near),
            (format!("/v1/customers/1/trades?page={page}"), page - 1 <= near || PAGES - page <= near),
            (
                format!("/v1/customers/1/trades?page={page}&order=desc"),
                page - 1 <= near || PAGES - page <= near,
            ),
        ] {
            let seen = profiled(&service, async {
                let body = service.client.get(&path).await.expect(200);
                assert_eq!(body["page"], page);
                let highest = body["items"].as_array().map_or(body["seq"].clone(), |items| {
                    items.iter().map(|item| item["seq"].as_u64().unwrap()).max().unwrap().into()
                });
                assert_eq!(highest, page * 10);
            })
            .await;
            let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
            let besides = 2 + if skips { near } else { 0 };
            assert!(keys <= 2 && documents <= 1 + besides, "{path}: {keys} keys, {documents} documents");
            costs.push(format!("{keys} + {documents}"));
        }
        println!("{page}: {}, {}", costs[0], costs[2]);
    }
}

async fn without_memory() -> Service {
    let mut setup = Setup::on(shared().await);
    setup.args.page_cache = 0;
    let service = setup.start().await;
    fill(&service, 1).await;
    service
}

/// The tail, and of the rest only the buckets that hold what is shown.
async fn any_window_of_ten_thousand_pages() {
    let service = without_memory().await;
    for cursor in [0, 5, 10, 49_995, 50_000, 99_900, 99_985, 99_990, 99_999, 100_000] {
        for limit in [1, 10, 25, 100] {
            for (path, first, last) in [
                (format!("after={cursor}&limit={limit}"), cursor + 1, (cursor + limit).min(PAGES * 10)),
                (format!("before={}&limit={limit}", cursor + 1), (cursor + 1 - limit).max(1), cursor),
            ] {
                let path = format!("/v1/customers/1/trades?{path}");
                let seen = profiled(&service, async {
                    let body = service.client.get(&path).await.expect(200);
                    assert_eq!(
                        body["items"].as_array().map_or(0, Vec::len) as i64,
                        (last - first + 1).max(0),
                        "{path}"
                    );
                })
                .await;
                let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
                let own = if last < first { 0 } else { (last - 1) / 10 - (first - 1) / 10 + 1 };
                // A window of one bucket is a page.
                let skipped = if own == 1 { MOST_SKIPPED as i64 } else { 0 };
                assert!(
                    seen.len() <= 2 && keys <= own + 1 && documents <= own + 1 + skipped,
                    "{path}: {keys} keys, {documents} documents for {own} buckets"
                );
            }
        }
    }
}

/// `customerId` by equality or `$in`, in every find, aggregate and update on `trades`.
async fn every_statement_names_its_customer() {
    let seen = Arc::new(Mutex::new(Vec::<(String, Document)>::new()));
    let watch = Arc::clone(&seen);
    let setup = Setup::on(shared().await).observed(move |name, command| {
        if command.get_str(name).is_ok_and(|collection| collection == "trades") {
            watch.lock().expect("no test panics here").push((name.to_owned(), command.clone()));
        }
    });
    let service = setup.start().await;
    let many: Vec<_> = (1..=75).map(trade).collect();
    service.client.append(4, &json!(many)).await.expect(201);
    service.client.append(4, &trade(1)).await.expect(201);
    for path in [
        "",
        "/trades",
        "/trades?order=desc",
        "/trades?page=5",
        "/trades?page=7",
        "/trades/pages/6",
        "/trades/33",
        "/trades?limit=100",
        "/trades?after=5&limit=3",
        "/trades?from=2004-01-01T00:00:00Z",
    ] {
        service.client.get(&format!("/v1/customers/4{path}")).await.expect(200);
    }
    let seen = seen.lock().expect("no test panics here");
    let mut counted = 0;
    for (name, command) in seen.iter() {
        let filters: Vec<&Document> = match name.as_str() {
            "find" => vec![command.get_document("filter").expect("a filter")],
            "update" => {
                let updates = command.get_array("updates").expect("updates");
                updates
                    .iter()
                    .map(|update| update.as_document().unwrap().get_document("q").expect("q"))
                    .collect()
            }
            "aggregate" => {
                let stages = command.get_array("pipeline").expect("a pipeline");
                vec![stages[0].as_document().unwrap().get_document("$match").expect("it begins with $match")]
            }
            // Migrations: they make the collection, and look at no trade.
            "create" | "collMod" | "createIndexes" => continue,
            other => panic!("{other} on trades: {command}"),
        };
        for filter in filters {
            let by = filter.get("customerId").expect("customerId");
            let by_list = by.as_document().is_some_and(|condition| condition.contains_key("$in"));
            assert!(by.as_i64() == Some(4) || by_list, "{command}");
            counted += 1;
        }
    }
    assert!(counted >= 8 + 2 + 8, "all statements were seen: {counted}");
}
