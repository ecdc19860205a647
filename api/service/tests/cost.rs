//! What appends and reads cost the database, by its own counters: never by the clock.

mod table;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::join_all;
use jiff::Timestamp;
use mongodb::bson::{Document, doc};
use pagebucket_engine::internal::MOST_SKIPPED;
use serde_json::json;

use crate::harness::{History, Service, Setup, amount, eventually, fill, shared, test_over, trade};

/// Far more than a statement may examine. Counts are the same for more.
fn many_pages() -> u64 {
    amount(1_000, 10_000)
}

/// Runs `work` with the profiler on, and returns what it saw of the history's collection.
pub async fn profiled<F: Future<Output = ()>>(service: &Service, work: F) -> Vec<Document> {
    profiled_in(service, service.history.name, work).await
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

test_over!(an_append_behind_many_pages, SMALL);
/// At most 2 keys and 2 documents in all its statements: into a full tail, and into one with room.
async fn an_append_behind_many_pages(history: &'static History) {
    let (service, pages) = (Service::of(history).await, many_pages());
    fill(&service.database, history, 1, pages, history.page_size).await;
    for (turn, what) in ["opens a page", "fills a page"].into_iter().enumerate() {
        let seen = profiled(&service, async {
            let body = service.client.append(1, &history.item(1)).await.expect(201);
            assert_eq!(body["ranges"][0]["firstSeq"], pages * history.page_size + 1 + turn as u64);
        })
        .await;
        let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
        println!(
            "an append behind {pages} pages, {what}: {keys} keys, {documents} documents, {} statements",
            seen.len()
        );
        assert!(keys <= 2 && documents <= 2, "{seen:?}");
    }
    assert_eq!(service.stored(1).await.ids.len() as u64, pages + 1);
}

test_over!(any_page_of_many, SMALL);
/// Whatever its number. Besides its own bucket a page examines at most 2 keys and 2 documents; one that is
/// so near an end that it is reached by skipping, so many documents more. Nothing is remembered here.
async fn any_page_of_many(history: &'static History) {
    let service = without_memory(history).await;
    let (near, all) = (MOST_SKIPPED, many_pages());
    println!("page of {all}: keys and documents of its own address, and as a listing");
    for page in [1, 2, near + 1, near + 2, 50, all / 2, all - near - 1, all - near, all - 1, all] {
        let mut costs = Vec::new();
        for (path, skips) in [
            (format!("/pages/{page}"), page - 1 <= near),
            (format!("/{}", page * history.page_size), page - 1 <= near),
            (format!("?page={page}"), page - 1 <= near || all - page <= near),
            (format!("?page={page}&order=desc"), page - 1 <= near || all - page <= near),
        ] {
            let path = history.at(1, &path);
            let seen = profiled(&service, async {
                let body = service.client.get(&path).await.expect(200);
                assert_eq!(body["page"], page);
                let highest = body["items"].as_array().map_or(body["seq"].clone(), |items| {
                    items.iter().map(|item| item["seq"].as_u64().unwrap()).max().unwrap().into()
                });
                assert_eq!(highest, page * history.page_size);
            })
            .await;
            let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
            let besides = 2 + if skips { near as i64 } else { 0 };
            assert!(keys <= 2 && documents <= 1 + besides, "{path}: {keys} keys, {documents} documents");
            costs.push(format!("{keys} + {documents}"));
        }
        println!("{page}: {}, {}", costs[0], costs[2]);
    }
}

async fn without_memory(history: &'static History) -> Service {
    let mut setup = Setup::on(shared().await).of(history);
    setup.config.api.page_cache = 0;
    let service = setup.start().await;
    fill(&service.database, history, 1, many_pages(), history.page_size).await;
    service
}

test_over!(any_window_of_many_pages, SMALL);
/// The tail, and of the rest only the buckets that hold what is shown.
async fn any_window_of_many_pages(history: &'static History) {
    let service = without_memory(history).await;
    let (size, total) = (history.page_size, many_pages() * history.page_size);
    let middle = total / 2;
    for cursor in [
        0,
        size / 2,
        size,
        middle - size / 2,
        middle,
        total - 100,
        total - size * 3 / 2,
        total - size,
        total - 1,
        total,
    ] {
        for limit in [1, 10, 25, 100] {
            for (path, first, last) in [
                (format!("after={cursor}&limit={limit}"), cursor + 1, (cursor + limit).min(total)),
                (
                    format!("before={}&limit={limit}", cursor + 1),
                    (cursor + 1).saturating_sub(limit).max(1),
                    cursor,
                ),
            ] {
                let path = history.at(1, &format!("?{path}"));
                let seen = profiled(&service, async {
                    let body = service.client.get(&path).await.expect(200);
                    assert_eq!(
                        body["items"].as_array().map_or(0, Vec::len) as u64,
                        (last + 1).saturating_sub(first),
                        "{path}"
                    );
                })
                .await;
                let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
                let own = if last < first {
                    0
                } else {
                    (history.page_of(last) - history.page_of(first) + 1) as i64
                };
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

test_over!(any_offset_of_many, READINGS);
/// A seek, not a skip over the items before it: the last of a hundred thousand items, in a long run of a
/// million, cost what the first ones do.
async fn any_offset_of_many(history: &'static History) {
    let total = amount(100_000, 1_000_000);
    let mut setup = Setup::on(shared().await).of(history);
    setup.config.api.page_cache = 0;
    let service = setup.start().await;
    let (pages, size) = (total.div_ceil(history.page_size), history.page_size);
    fill(&service.database, history, 1, pages, total - (pages - 1) * size).await;
    let as_of = format!("&asOf={total}");
    println!("offset of {total}: keys and documents in either order, and as of that moment");
    for offset in [0, total / 10, total / 2, total - total / 10, total - 10] {
        let mut costs = Vec::new();
        for more in ["", "&order=desc", &as_of, &format!("{as_of}&order=desc")] {
            let path = history.at(1, &format!("?offset={offset}&limit=10{more}"));
            let seen = profiled(&service, async {
                let answer = service.client.get(&path).await;
                answer.expect(200);
                let range = format!("items {offset}-{}/{total}", offset + 9);
                assert_eq!(answer.header("content-range"), range, "{path}");
            })
            .await;
            let (keys, documents) = (sum(&seen, "keysExamined"), sum(&seen, "docsExamined"));
            // The tail and at most two pages, each by its number or as the first of its order.
            assert!(
                seen.len() <= 2 && keys <= 4 && documents <= 3,
                "{path}: {keys} keys, {documents} documents"
            );
            costs.push(format!("{keys} + {documents}"));
        }
        println!("{offset}: {}", costs.join(", "));
    }
}

/// The tiles of its span, however many the history has, and those of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_summary_of_a_history_of_many_tiles() {
    const TILES: i64 = 20;
    let mut setup = Setup::on(shared().await);
    setup.config.house_every = Duration::from_secs(3_600);
    let service = setup.start().await;
    let client = &service.client;
    // One every ten seconds, so that a tile is of less than two hours.
    let trade = |seq: i64| {
        let date = Timestamp::from_second(1_700_000_100 + seq * 10).expect("a date").to_string();
        json!({ "type": "buy", "ticker": "MDB", "qty": 1, "price": "2.5", "date": date })
    };
    let tiles = service.database.collection::<Document>("summary_tiles");
    for owner in [1, 2, 3] {
        for part in (0..=TILES * 640).collect::<Vec<_>>().chunks(1_000) {
            client
                .append(owner, &json!(part.iter().copied().map(trade).collect::<Vec<_>>()))
                .await
                .expect(201);
        }
        let all = format!("/v1/customers/{owner}/trades/summary?by=1M");
        eventually("its tiles are made", Duration::from_secs(60), async || {
            client.get(&all).await;
            let count = tiles.count_documents(doc! { "customerId": owner as i64 }).await;
            count.expect("an answer") == TILES as u64
        })
        .await;
        // Now the instance knows the dates of all of them.
        client.get(&all).await.expect(200);
    }
    let span = "from=2023-11-15T02:00:00Z&to=2023-11-15T02:15:00Z";
    for (query, count, most) in [
        (format!("by=15m&{span}"), 90, 1),
        ("by=1M".to_owned(), TILES * 640 + 1, TILES),
        (format!("by=15m&{span}&limit=9"), 90, 1),
    ] {
        let path = format!("/v1/customers/2/trades/summary?{query}");
        // It may learn of the last tile now, from a server that is slow.
        client.get(&path).await.expect(200);
        let seen = profiled_in(&service, "summary_tiles", async {
            assert_eq!(client.get(&path).await.expect(200)["points"][0]["count"], count, "{query}");
        })
        .await;
        let documents = sum(&seen, "docsExamined");
        println!("a summary from {most} of {TILES} tiles: {documents} documents");
        // A scan of a clustered collection looks at the document after its end.
        assert!(documents <= most + 1, "{query}: {seen:?}");
    }
}

/// Two documents for each record: those of other keys lie between them.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_of_many_keys() {
    let service = Service::start().await;
    let client = &service.client;
    for part in (1..=500).collect::<Vec<u64>>().chunks(50) {
        let appends = part.iter().map(|number| async move {
            client.append_once(*number, &format!("key-{number}"), &trade(*number)).await.expect(201)
        });
        join_all(appends).await;
    }
    let mut found_together = false;
    while !found_together {
        let seen = profiled_in(&service, "idempotency_keys", async {
            let repeats = (1..=50).map(|number| async move {
                client.append_once(number, &format!("key-{number}"), &trade(number)).await.expect(201)
            });
            join_all(repeats).await;
        })
        .await;
        let is_read =
            |entry: &&Document| ["query", "command"].contains(&entry.get_str("op").unwrap_or_default());
        let reads: Vec<_> = seen.iter().filter(is_read).cloned().collect();
        let documents = sum(&reads, "docsExamined");
        assert!((50..=2 * 50).contains(&documents), "{documents}: {reads:?}");
        found_together = reads.len() < 50;
    }
}

test_over!(every_statement_names_its_owner, ALL);
/// The owner by equality or `$in`, in every find, aggregate and update on the history's collection, and in
/// every inserted document.
async fn every_statement_names_its_owner(history: &'static History) {
    let seen = Arc::new(Mutex::new(Vec::<(String, Document)>::new()));
    let watch = Arc::clone(&seen);
    let setup = Setup::on(shared().await).of(history).observed(move |name, command| {
        if command.get_str(name).is_ok_and(|collection| collection == history.name) {
            watch.lock().expect("no test panics here").push((name.to_owned(), command.clone()));
        }
    });
    let service = setup.start().await;
    service.client.append_all(4, 1..=history.pages(7.5)).await;
    service.client.append(4, &history.item(1)).await.expect(201);
    let window = format!("?after={}&limit=3", history.pages(0.5));
    for path in [
        "",
        "?order=desc",
        "?page=5",
        "?page=7",
        "/pages/6",
        "/13",
        "?limit=100",
        &window,
        "?from=2004-01-01T00:00:00Z",
    ] {
        service.client.get(&history.at(4, path)).await.expect(200);
    }
    service.client.total(4).await;
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
            "insert" => {
                let documents = command.get_array("documents").expect("documents");
                documents.iter().map(|document| document.as_document().expect("a document")).collect()
            }
            "aggregate" => {
                let stages = command.get_array("pipeline").expect("a pipeline");
                vec![stages[0].as_document().unwrap().get_document("$match").expect("it begins with $match")]
            }
            // Migrations: they make the collection, and look at no item.
            "create" | "collMod" | "createIndexes" => continue,
            other => panic!("{other}: {command}"),
        };
        for filter in filters {
            let by = filter.get(history.owner_field).expect("the owner");
            let by_list = by.as_document().is_some_and(|condition| condition.contains_key("$in"));
            assert!(*by == history.owner_bson(4) || by_list, "{command}");
            counted += 1;
        }
    }
    assert!(counted >= 8 + 2 + 8, "all statements were seen: {counted}");
}
