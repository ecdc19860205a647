//! How many uploads there may be, how slow they may be, and how much they hold together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::faults::ending;
use super::wire::{Upload, Writing};
use super::{ANSWERS, BY_LINE};
use super::{lines, upload};
use crate::commands::program::{Place, Serving};
use crate::harness::{Harm, PATIENCE, Proxy, Setup, TRADES, Way, eventually, shared, spawn, trade};

const UPLOADS: &str = "/v1/customers/7/trades/upload";

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_has_one_of_the_places_of_uploads() {
    let mut setup = Setup::on(shared().await);
    (setup.config.api.max_requests, setup.config.api.max_uploads) = (1, 1);
    let service = setup.start().await;
    let client = &service.client;
    for (before, answer) in ANSWERS.into_iter().enumerate() {
        let mut first = Upload::begin(service.address(), &TRADES.at(7, answer), &[]).await;
        first.send(&lines([1])).await;
        // Its answer has begun, perhaps, and it is under way all the same.
        if answer == BY_LINE {
            assert!(first.line().await.is_some());
        }
        // Not another upload, which could take the place.
        eventually("it has the place", PATIENCE, async || service.stored(7).await.numbers.len() > before)
            .await;
        let refused = upload(client, UPLOADS, lines([2])).await;
        let problem = refused.problem(503, "overloaded");
        assert_eq!(problem["detail"], "Too many uploads are under way.");
        assert_eq!(refused.header("retry-after"), "1");
        // The place of another request is free.
        client.get("/v1/customers/7").await.expect(200);
        client.append(8, &trade(1)).await.expect(201);
        first.end().await;
        while first.line().await.is_some() {}
        eventually("the place is free", PATIENCE, async || upload(client, UPLOADS, "\n").await.status == 200)
            .await;
    }
    assert_eq!(service.stored(7).await.numbers, [1, 1]);
}

/// Sends this again and again, until the server has closed the connection.
async fn trickle(mut write: Writing, piece: &str) {
    while write.try_send(piece).await.is_ok() {
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_uploads_end_and_keep_nobody_out() {
    // The last three are lines that are refused, however many bytes they have; one comes in halves.
    let (half, bad) = ("x".repeat(600), format!("{}\n", "x".repeat(600)));
    let pieces = ["\n", "  ", "x", "\r\n", "{}\n", &bad, &(bad.clone() + &half)].map(str::to_owned);
    let count = pieces.len();
    let mut setup = Setup::on(shared().await);
    // One client has a quarter.
    setup.config.api.max_requests = 4;
    setup.config.api.max_uploads = 4 * (count + 1);
    // Long enough for all of them to have their places at once, on a busy machine too.
    setup.config.api.body_timeout = Duration::from_secs(10);
    let service = setup.start().await;
    let client = &service.client;
    // Slow, but fair: a line now and then, for longer than the others last.
    let mut fair = Upload::begin(service.address(), &TRADES.outcomes(1), &[]).await;
    fair.head().await;
    let others_ended = CancellationToken::new();
    let ends = others_ended.clone();
    let fair = spawn(async move {
        let mut sent = 0;
        while sent < 10 || !ends.is_cancelled() {
            sent += 1;
            fair.send(&lines([sent])).await;
            assert_eq!(fair.line().await, Some(json!({ "line": sent, "seq": sent })));
            sleep(Duration::from_millis(300)).await;
        }
        fair.end().await;
        assert_eq!(fair.line().await, None, "it ends well");
        sent
    });

    let mut slow = JoinSet::new();
    for (number, piece) in pieces.into_iter().enumerate() {
        let (address, path) = (service.address(), TRADES.at(7, ANSWERS[number % 2]));
        slow.spawn(async move {
            loop {
                let mut upload = Upload::begin(address, &path, &[]).await;
                // One has stored something.
                if number == 0 {
                    upload.send(&lines([1])).await;
                }
                let (read, write) = upload.split();
                let (ended, ()) = tokio::join!(ending(read), trickle(write, &piece));
                // The upload that asks for a place, below, may have had the last one.
                if ended.0["type"] != "/problems#overloaded" {
                    return (number, ended.0);
                }
            }
        });
    }
    eventually("they have the places", PATIENCE, async || {
        upload(client, "/v1/trades/upload", "\n").await.status == 503
    })
    .await;
    let (mut appended, mut ended) = (0, 0);
    while ended < count {
        while let Some(slow) = slow.try_join_next() {
            let (number, problem) = slow.expect("no panic");
            let detail = problem["detail"].as_str().expect("a detail");
            assert!(detail.contains("came too slowly"), "{problem}");
            if number == 0 {
                assert_eq!(problem["type"], "/problems#partly-stored", "{problem}");
                assert_eq!(
                    (&problem["stored"], &problem["notStoredLines"][0]["last"]),
                    (&json!(1), &json!(null))
                );
            } else {
                assert_eq!(
                    (&problem["type"], &problem["status"]),
                    (&json!("/problems#body-timeout"), &json!(408))
                );
            }
            ended += 1;
        }
        appended += 1;
        client.get("/v1/customers/7/trades").await.expect(200);
        client.append(8, &trade(appended)).await.expect(201);
        assert_eq!(client.get("/docs/").await.status, 200);
        sleep(Duration::from_millis(300)).await;
    }
    others_ended.cancel();
    let sent = fair.await.expect("no panic");
    for (customer, trades) in [(1, sent), (7, 1), (8, appended)] {
        service.stored(customer).await.holds_exactly(1..=trades as i64);
    }
}

/// For longer than a client may take.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_the_server_is_not_slow() {
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::on(shared().await);
    setup.connection.uri = proxy.uri();
    setup.config.api.body_timeout = Duration::from_secs(1);
    let service = setup.start().await;
    proxy.harm("write", Way::There, Harm::Hold, u32::MAX);
    let all = 1..=10_000_u64;
    let (mut read, mut write) = Upload::begin(service.address(), UPLOADS, &[]).await.split();
    let writing = async {
        for part in [1..=5_000, 5_001..=10_000] {
            write.send(&lines(part)).await;
        }
        write.end().await;
    };
    let fault = async {
        sleep(Duration::from_secs(4)).await;
        proxy.relent();
    };
    let (summary, (), ()) = tokio::join!(read.line(), writing, fault);
    assert_eq!(summary.expect("a summary")["stored"], 10_000);
    service.stored(7).await.holds_exactly(all.map(|qty| qty as i64));
}

#[tokio::test(flavor = "multi_thread")]
async fn twelve_of_many_customers_take_little_memory() {
    take_at_most(96, 12, 40_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_of_many_customers_take_little_memory() {
    take_at_most(256, 200, 3_000).await;
}

/// Uploads of `lines` lines each, every line of another customer, take at most `mib` MiB in a server of their
/// own: while nothing is stored, so that they hold as much as they may, and after that, when each of them
/// goes on.
async fn take_at_most(mib: u64, uploads: u64, lines: u64) {
    /// Outcomes that each of them gets: of two hundred, more than each can have read while nothing was
    /// stored.
    const OUTCOMES: u64 = 250;
    let proxy = Proxy::before(shared().await).await;
    let place = Place { history: TRADES, uri: proxy.uri(), name: Place::new().await.name };
    // One client has a quarter.
    let serving = place.serve(&["--log", "error", "--max-uploads", &(4 * uploads).to_string()]).await;
    serving.client.append(1, &trade(1)).await.expect(201);
    let idle = anonymous_memory(serving.pid());
    let most = Arc::new(AtomicU64::new(idle));
    let (pid, seen) = (serving.pid(), Arc::clone(&most));
    let watching = spawn(async move {
        loop {
            seen.fetch_max(anonymous_memory(pid), Ordering::Relaxed);
            sleep(Duration::from_millis(20)).await;
        }
    });

    proxy.harm("write", Way::There, Harm::Hold, u32::MAX);
    let (mut writing, mut reading) = (JoinSet::new(), JoinSet::new());
    let outcomes: Arc<[AtomicU64]> = (0..uploads).map(|_| AtomicU64::new(0)).collect();
    for number in 0..uploads {
        let upload = Upload::begin(serving.address, "/v1/trades/upload.ndjson", &[]).await;
        let (mut read, mut write) = upload.split();
        writing.spawn(async move {
            let trade =
                r#""type":"buy","ticker":"MDB","qty":1,"price":"15.54","date":"2004-01-09T00:00:00Z""#;
            for customers in (1..=lines).collect::<Vec<_>>().chunks(500) {
                let line = |customer| format!("{{\"customerId\":{},{trade}}}\n", number * lines + customer);
                write.send(&customers.iter().map(line).collect::<String>()).await;
            }
            write.end().await;
            // Its end would half close the connection.
            write
        });
        let outcomes = Arc::clone(&outcomes);
        reading.spawn(async move {
            while let Some(outcome) = read.line().await {
                assert!(outcome.get("seq").is_some(), "{outcome}");
                outcomes[number as usize].fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let read = until_no_more_is_read(&serving).await;
    let held = most.load(Ordering::Relaxed);
    proxy.relent();
    eventually("each goes on", 2 * PATIENCE, async || {
        outcomes.iter().all(|outcomes| outcomes.load(Ordering::Relaxed) >= OUTCOMES)
    })
    .await;
    watching.abort();
    let most = most.load(Ordering::Relaxed);
    println!(
        "{uploads} uploads: {idle} MiB before, at most {held} MiB with {read} lines waiting, {most} MiB in all"
    );
    assert!(most <= idle + mib, "{idle} MiB before, {most} MiB");
}

/// The memory of a process that no file is behind, in MiB.
fn anonymous_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0 kB");
    line.trim_end_matches(" kB").trim().parse::<u64>().expect("kB") / 1024
}

/// How many lines uploads have read when they stop reading; not much longer than they may be kept from
/// storing.
async fn until_no_more_is_read(serving: &Serving) -> u64 {
    let begun = Instant::now();
    let (mut read, mut since) = (0, Instant::now());
    while since.elapsed() < Duration::from_secs(1) && begun.elapsed() < Duration::from_secs(15) {
        let exposition = String::from_utf8(serving.client.get("/metrics").await.body).expect("text");
        let name = "pagebucket_upload_lines_read_total ";
        let now = exposition
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map_or(0, |count| count.parse().expect("a number"));
        if now != read {
            (read, since) = (now, Instant::now());
        }
        sleep(Duration::from_millis(50)).await;
    }
    read
}
