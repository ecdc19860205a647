//! `GET …/export`: whole, resumable, and never silently cut short.

use serde_json::json;

/// Memory of a process that no file backs, in bytes (proc(5), "statm": resident without shared).
fn taken(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).expect("it runs");
    let pages = |nth| statm.split(' ').nth(nth).expect("pages").parse::<u64>().expect("a number");
    (pages(1) - pages(2)) * 4096
}

use crate::commands::program::{Place, run};
use crate::harness::{History, Service, fill, test_over};
/// Pages of one service, byte for byte.
async fn pages(service: &Service, owner: u64, count: u64) -> Vec<Vec<u8>> {
    let mut pages = Vec::new();
    for page in 1..=count {
        pages.push(service.client.get(&service.history.at(owner, &format!("/pages/{page}"))).await.body);
    }
    pages
}

/// Checks that an import of the export of owner 7 makes the same pages, so many, in another database.
async fn imported_it_gives_the_same(service: &Service, count: u64) {
    let history = service.history;
    let expected = pages(service, 7, count).await;
    for format in ["ndjson", "csv"] {
        if format == "csv" && history.columns.is_empty() {
            continue;
        }
        let rows = service.client.get(&history.at(7, &format!("/export.{format}"))).await.body;
        let name = format!("pagebucket-export-{}.{format}", service.database.name());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, rows).expect("to write");
        let other = Service::of(history).await;
        let place = Place::of_service(&other).await;
        let imported = run(&mut place.pagebucket("import", &[&file.to_string_lossy()])).await;
        std::fs::remove_file(&file).expect("to remove");
        assert_eq!(imported.status, Some(0), "{imported:?}");
        assert!(pages(&other, 7, count).await == expected, "{format}");
        let beyond = history.at(7, &format!("/pages/{}", count + 1));
        other.client.get(&beyond).await.problem(404, "page-not-found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_of_odd_trades_gives_the_same_pages() {
    let service = Service::start().await;
    let odd = json!([
        { "type": "sell", "ticker": "-A.1", "qty": 9_007_199_254_740_991_u64, "price": "0.00000001", "date": "0000-01-01T00:00:00Z" },
        { "type": "buy", "ticker": "ABCDEFGHIJKL", "qty": 1, "price": "9999999999999999999999999999999999", "date": "9999-12-31T23:59:59.999Z" },
        { "type": "buy", "ticker": "7203", "qty": 2, "price": "15.50", "date": "1969-12-31T23:59:59.001Z" },
        { "type": "buy", "ticker": "7203", "qty": 3 },
    ]);
    service.client.append(7, &odd).await.expect(201);
    imported_it_gives_the_same(&service, 1).await;
}

test_over!(an_import_of_it_gives_the_same_pages, ALL);
async fn an_import_of_it_gives_the_same_pages(history: &'static History) {
    let service = Service::of(history).await;
    for (number, date) in [(1, "0000-01-01T00:00:00Z"), (2, "9999-12-31T23:59:59.999Z")] {
        service.client.append(7, &history.item_at(number, date)).await.expect(201);
    }
    service.client.append_all(7, 3..=history.pages(12.5)).await;
    imported_it_gives_the_same(&service, 13).await;
}

test_over!(a_long_history_in_little_memory, TRADES);
async fn a_long_history_in_little_memory(history: &'static History) {
    const MOST: u64 = 32 * 1024 * 1024;
    // Their rows of JSON take more than that.
    let items = 450_000;
    let place = Place::of(history).await;
    // Migrates.
    place.serve(&[]).await.stop().await;
    let pages = items / history.page_size;
    fill(&place.database().await, history, 7, pages, history.page_size).await;
    let total = (pages * history.page_size) as usize;
    for rest in [".ndjson", ".csv", ".ndjson?from=2004-01-01T00:00:00Z"] {
        let serving = place.serve(&["--log", "warn"]).await;
        serving.client.total(7).await;
        let idle = taken(serving.pid());
        let encoding = if rest == ".ndjson" { "gzip" } else { "identity" };
        let request =
            reqwest::Client::new().get(serving.client.url(&history.at(7, &format!("/export{rest}"))));
        let mut response = request.header("accept-encoding", encoding).send().await.expect("an answer");
        let (mut most, mut rows, mut bytes) = (idle, 0, 0);
        while let Some(chunk) = response.chunk().await.expect("the rest") {
            rows += chunk.iter().filter(|byte| **byte == b'\n').count();
            bytes += chunk.len() as u64;
            most = most.max(taken(serving.pid()));
        }
        let over = most.saturating_sub(idle);
        println!("{rest}, {encoding}: {rows} line breaks, {} KiB over {} KiB idle", over / 1024, idle / 1024);
        assert!(encoding == "gzip" || rows == total + usize::from(rest == ".csv"), "{rows}");
        assert!(over < MOST, "{over} bytes over idle, {rest}");
        assert!(encoding == "gzip" || rest == ".csv" || bytes > MOST, "{bytes} bytes say nothing of {MOST}");
        serving.stop().await;
    }
    place.database().await.drop().await.expect("to drop it");
}
