//! How much uploads hold together, however many they are.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::NDJSON;
use super::wire::Upload;
use crate::commands::program::{PATIENCE, Place, Serving};
use crate::harness::{Harm, Proxy, Way, shared, tests, trade};

tests!["uploads::bounds":
    twelve_uploads_in_little_memory,
    two_hundred_uploads_in_little_memory,
];

/// Memory of a process that is backed by no file, in MiB.
fn anonymous_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line of it");
    line.trim_end_matches(" kB").trim().parse::<u64>().expect("kB") / 1024
}

async fn at_most(uploads: u64, mib: u64) {
    let proxy = Proxy::before(shared().await).await;
    let place = Place { uri: proxy.uri(), name: Place::new().await.name };
    let serving = place.serve(&["--log", "error", "--max-uploads", "200"]).await;
    serving.client.append(1, &trade(1)).await.expect(201);
    let idle = anonymous_memory(serving.pid());
    proxy.harm("update", Way::There, Harm::Hold, u32::MAX);
    let sent = Arc::new(AtomicU64::new(0));
    let mut writing = JoinSet::new();
    let mut readers = Vec::new();
    for upload in 0..uploads {
        let accept = if upload % 2 == 0 { NDJSON } else { "application/json" };
        let (read, mut write) = Upload::begin(serving.address, "/v1/trades", &[("Accept", accept)]).await.split();
        readers.push((accept, read));
        let sent = Arc::clone(&sent);
        writing.spawn(async move {
            let mut customer = (upload + 1) * 10_000_000;
            loop {
                let mut piece = String::new();
                for _ in 0..100 {
                    customer += 1;
                    writeln!(piece, r#"{{"customerId":{customer},"type":"buy","ticker":"MDB","qty":1,"price":"15.54","date":"2004-01-09T00:00:00Z"}}"#).unwrap();
                }
                if write.try_send(&piece).await.is_err() {
                    return;
                }
                sent.fetch_add(100, Ordering::Relaxed);
            }
        });
    }
    let mut reading = JoinSet::new();
    for (accept, mut read) in readers {
        if accept == NDJSON {
            reading.spawn(async move { while read.line().await.is_some() {} });
        } else {
            reading.spawn(async move { drop(read.head().await) });
        }
    }
    let begun = Instant::now();
    let mut most = 0;
    let mut last = (0, Instant::now());
    // Until no more is read.
    while last.1.elapsed() < Duration::from_secs(2) {
        let now = sent.load(Ordering::Relaxed);
        if now != last.0 {
            last = (now, Instant::now());
        }
        most = most.max(anonymous_memory(serving.pid()));
        if begun.elapsed() > Duration::from_secs(20) { break }
        assert!(begun.elapsed() < PATIENCE);
        sleep(Duration::from_millis(50)).await;
    }
    report(&serving).await;
    println!("{uploads} held: {idle} idle, {most} most, {} lines sent after {:?}", last.0, begun.elapsed());
    proxy.relent();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(std::env::var("SECS").map_or(20, |s| s.parse().unwrap())) {
        most = most.max(anonymous_memory(serving.pid()));
        sleep(Duration::from_millis(50)).await;
    }
    println!("{uploads} going on: {idle} idle, {most} most, {} lines sent", sent.load(Ordering::Relaxed));
    report(&serving).await;
    assert!(most <= idle + mib, "{idle} MiB before, {most} MiB");
}

async fn report(serving: &Serving) {
    let text = String::from_utf8(serving.client.get("/metrics").await.body).unwrap();
    for line in text.lines().filter(|l| l.starts_with("pagebucket_upload") || l.contains("queue") || l.starts_with("pagebucket_catalog_customers")) {
        println!("{line}");
    }
}

async fn twelve_uploads_in_little_memory() {
    at_most(12, 96).await;
}

async fn two_hundred_uploads_in_little_memory() {
    at_most(200, 256).await;
}
