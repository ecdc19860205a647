//! The table of `tests/data/statement-costs.md`: what each kind of statement costs on the versions of mongod
//! that tests run on.

use std::time::Duration;

use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::options::ReadConcern;
use serde_json::json;

use super::{many_pages, profiled_in};
use crate::harness::{Setup, TRADES, amount, eventually, fill, shared, trade};

const PAGE: &str = include_str!("../../../../tests/data/statement-costs.md");

/// A statement as the profiler saw it: its kind, the keys and documents that it examined, and its plan.
fn told(entry: &Document) -> (String, String) {
    let number =
        |counter| entry.get(counter).and_then(Bson::as_i64).or(entry.get_i32(counter).ok().map(i64::from));
    let number = |counter| number(counter).unwrap_or(0);
    let command = entry.get_document("command").ok().and_then(|command| command.keys().next());
    let operation = match entry.get_str("op").expect("an operation") {
        "command" | "query" => command.expect("a command"),
        operation => operation,
    };
    let plan = entry.get_str("planSummary").unwrap_or("no plan");
    let cost = format!("{} + {}, `{plan}`", number("keysExamined"), number("docsExamined"));
    (operation.to_owned(), cost)
}

/// Prints a line for each statement, and compares it with the table, if it is of this version.
#[tokio::test(flavor = "multi_thread")]
async fn each_statement_costs_what_the_table_says() {
    // The table is of a usual run.
    if many_pages() != amount(1_000, 0) {
        return;
    }
    let mut setup = Setup::on(shared().await).of(TRADES);
    setup.config.api.page_cache = 0;
    setup.config.house_every = Duration::from_secs(3_600);
    let service = setup.start().await;
    fill(&service.database, TRADES, 1, many_pages(), TRADES.page_size).await;
    let client = &service.client;
    // A trade every ten seconds: a tile of them is shorter than its pages.
    let dense = |number: i64| {
        let date = DateTime::from_millis(1_700_000_100_000 + number * 10_000);
        json!({ "type": "buy", "ticker": "MDB", "qty": 1, "date": date.try_to_rfc3339_string().expect("a date") })
    };
    for numbers in [0..700, 700..1_300] {
        client.append(3, &numbers.map(dense).collect()).await.expect(201);
    }
    let tiles = service.database.collection::<Document>("summary_tiles");
    eventually("tiles are made", Duration::from_secs(60), async || {
        client.get(&TRADES.at(3, "/summary?by=1M")).await.expect(200);
        // As a majority has them, which is what summaries read.
        let made = tiles.count_documents(doc! { "customerId": 3_i64 }).read_concern(ReadConcern::majority());
        made.await.expect("an answer") == 2
    })
    .await;
    // Now the instance knows the dates of all of them.
    client.get(&TRADES.at(3, "/summary?by=1M")).await.expect(200);
    client.append_once(2, "key", &trade(1)).await.expect(201);

    let mut lines = Vec::new();
    for (what, collection, request) in [
        ("an append that opens a page", "trades", None),
        ("an append into a page", "trades", None),
        ("a full page", "trades", Some("/pages/500")),
        ("a page of a listing", "trades", Some("?page=500")),
        ("a page near the end, newest first", "trades", Some("?page=998&order=desc")),
        ("an item", "trades", Some("/5000")),
        ("a window of 25 items", "trades", Some("?after=4995&limit=25")),
        ("the newest 10 items", "trades", Some("?order=desc&limit=10")),
        ("10 items at an offset", "trades", Some("?offset=5000&limit=10")),
        ("a day", "trades", Some("?from=2004-06-01T00:00:00Z&to=2004-06-02T00:00:00Z")),
        ("a summary from two tiles", "summary_tiles", Some("/summary?by=1M")),
        ("a repeat of a key", "idempotency_keys", None),
    ] {
        println!("{what}");
        let seen = profiled_in(&service, collection, async {
            match request {
                Some(request) if collection == "summary_tiles" => {
                    client.get(&TRADES.at(3, request)).await.expect(200)
                }
                Some(request) => client.get(&TRADES.at(1, request)).await.expect(200),
                None if collection == "trades" => client.append(1, &trade(1)).await.expect(201),
                None => client.append_once(2, "key", &trade(1)).await.expect(201),
            };
        })
        .await;
        lines.extend(seen.iter().map(told).map(|(operation, cost)| (format!("{what}: {operation}"), cost)));
    }

    let build = service.database.run_command(doc! { "buildInfo": 1 }).await.expect("an answer");
    let version = build.get_str("version").expect("a version");
    let mut rows = PAGE.lines().skip_while(|line| !line.starts_with("| Statement |"));
    let cells =
        |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let head = cells(rows.next().unwrap_or_default());
    for (statement, cost) in &lines {
        println!("{}", json!([version, statement, cost]));
    }
    if !head[1].contains(version) {
        return;
    }
    let rows = rows.skip(1).take_while(|row| row.starts_with('|')).map(cells);
    let documented: Vec<_> = rows.map(|row| (row[0].clone(), row[1].clone())).collect();
    assert_eq!(lines, documented);
}
