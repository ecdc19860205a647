//! A mongod that goes away while requests run, and comes back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::harness::markers::clock;
use crate::harness::{Client, History, Mongod, Service, Setup, eventually, test_over};

/// In milliseconds: how long the usual instance relies on what it knows of deleted pages.
const HOUR: i64 = 3_600_000;

/// What clients were told while the database went away.
#[derive(Default)]
struct Told {
    /// Number and `seq` of each item acknowledged.
    stored: Vec<(u64, u64)>,
    /// Numbers of items of which the outcome is unknown.
    unknown: BTreeSet<u64>,
    problems: u32,
}

/// Clients that append to owners 1 to 4, each with numbers of its own, until told to stop.
fn appending(client: &Client, stop: &Arc<AtomicBool>) -> JoinSet<Told> {
    let mut writers = JoinSet::new();
    for writer in 1..=16_u64 {
        let (client, stop) = (client.clone(), Arc::clone(stop));
        writers.spawn(async move {
            let mut told = Told::default();
            let mut number = writer * 1_000_000;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                let answer = client.append(writer % 4 + 1, &client.history.item(number)).await;
                match answer.status.as_u16() {
                    201 => {
                        told.stored.push((number, answer.json()["ranges"][0]["firstSeq"].as_u64().unwrap()));
                    }
                    503 => {
                        told.problems += 1;
                        let problem = answer.json();
                        if problem["type"] == "/problems#outcome-unknown" {
                            assert!(!answer.headers.contains_key("retry-after"), "{problem}");
                            told.unknown.insert(number);
                        } else {
                            let waited = problem["type"] == "/problems#overloaded";
                            answer.problem(503, if waited { "overloaded" } else { "database-unavailable" });
                            assert!(answer.headers.contains_key("retry-after"), "{problem}");
                        }
                    }
                    other => panic!("{other}: {}", String::from_utf8_lossy(&answer.body)),
                }
            }
            told
        });
    }
    writers
}

/// Invariants 1 to 6, with what clients were told.
async fn check(service: &Service, told: &[Told]) {
    let (mut stored, mut unknown) = (0, 0);
    for owner in 1..=4 {
        let there = service.stored(owner).await;
        let mut allowed = BTreeSet::new();
        for told in told {
            // An item's number says whose it is.
            let of = |number: u64| number / 1_000_000 % 4 + 1 == owner;
            for (number, seq) in told.stored.iter().filter(|(number, _)| of(*number)) {
                assert_eq!(
                    there.numbers.get(*seq as usize - 1),
                    Some(&(*number as i64)),
                    "acknowledged at {seq}"
                );
                allowed.insert(*number as i64);
                stored += 1;
            }
            for number in told.unknown.iter().filter(|number| of(**number)) {
                allowed.insert(*number as i64);
                unknown += 1;
            }
        }
        let found: BTreeSet<_> = there.numbers.iter().copied().collect();
        assert_eq!(found.len(), there.numbers.len(), "no item twice");
        assert!(found.is_subset(&allowed), "nothing that was told to be not stored is stored");
    }
    println!("{stored} acknowledged and stored, {unknown} unknown");
}

test_over!(ten_seconds_without_a_database, TRADES);
async fn ten_seconds_without_a_database(history: &'static History) {
    let mongod = Mongod::own().await;
    let mut setup = Setup::on(&mongod).of(history);
    let (clock, later) = clock();
    setup.clock = clock;
    let service = setup.start().await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers = appending(&service.client, &stop);
    let client = &service.client;
    client.append_all(9, 1..=history.pages(2.5)).await;
    let snapshot = format!("?after=0&limit=1&asOf={}", history.page_size);
    let from_memory = [history.at(9, "/pages/1"), history.at(9, &snapshot)];
    let tag = client.get(&from_memory[0]).await.header("etag").to_owned();
    client.get(&from_memory[1]).await.expect(200);
    let with_tag = |request: reqwest::RequestBuilder| request.header("if-none-match", &tag);
    let by_tag = || client.send(reqwest::Method::GET, &from_memory[0], with_tag);

    mongod.stop().await;
    let gone = Instant::now();
    for path in &from_memory {
        client.get(path).await.expect(200);
    }
    assert_eq!(by_tag().await.status, 304);
    // The instance may not rely any more on what it knows of deleted pages.
    later(HOUR);
    let (present, tagged) = (history.path(1), by_tag());
    let [page, snapshot, present] = [&from_memory[0], &from_memory[1], &present].map(|path| client.get(path));
    let (page, snapshot, tagged, present) = tokio::join!(page, snapshot, tagged, present);
    for answer in [page, snapshot, tagged, present] {
        answer.problem(503, "database-unavailable");
    }
    later(-HOUR);
    service.client.get("/readyz").await.problem(503, "database-unavailable");
    let refused = service.client.append(5, &history.item(1)).await;
    refused.problem(503, "database-unavailable");
    assert!(refused.headers.contains_key("retry-after"), "nothing was stored");
    service.client.get("/livez").await.expect(200);
    let rest = Duration::from_secs(10).saturating_sub(gone.elapsed());
    // The outage itself, which is to last for ten seconds: nothing is waited for.
    sleep(rest).await;
    mongod.start().await;

    let ready = || async { client.get("/readyz").await.status == 200 };
    eventually("ready again without a restart", Duration::from_secs(60), ready).await;
    let append = || async { client.append(5, &history.item(1)).await.status == 201 };
    eventually("an append after the outage", Duration::from_secs(60), append).await;
    stop.store(true, Ordering::Relaxed);
    let told: Vec<Told> = writers.join_all().await;
    let problems: u32 = told.iter().map(|told| told.problems).sum();
    // Few or none: what was under way when it went away is committed when it comes back.
    println!("ten seconds without a database: {problems} appends were answered 503");
    check(&service, &told).await;
    mongod.remove().await;
}

test_over!(killed_under_load, NOTES);
async fn killed_under_load(history: &'static History) {
    let mongod = Mongod::own().await;
    let service = Setup::on(&mongod).of(history).start().await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers = appending(&service.client, &stop);
    let client = &service.client;
    for round in 0..3 {
        let before = client.total(1).await;
        let under_load = || async { client.total(1).await > before + 20 };
        eventually("appends under way", Duration::from_secs(60), under_load).await;
        mongod.kill().await;
        mongod.start().await;
        let ready = || async {
            client.get("/readyz").await.status == 200
                && client.append(5, &history.item(round + 1)).await.status == 201
        };
        eventually("ready again", Duration::from_secs(60), ready).await;
    }
    stop.store(true, Ordering::Relaxed);
    let told: Vec<Told> = writers.join_all().await;
    check(&service, &told).await;
    mongod.remove().await;
}
