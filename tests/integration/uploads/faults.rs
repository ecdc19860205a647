//! Uploads that are cut, slow, stopped, or whose database dies: each ends with what was stored.

use std::time::Duration;

use serde_json::{Value, json};

use super::wire::Upload;
use super::{NDJSON, lines, of};
use crate::commands::program::{PATIENCE, Place};
use crate::harness::{Mongod, Service, Setup, eventually, history, shared, tests, trade};

tests!["uploads::faults":
    cut_in_the_middle,
    a_client_that_sends_nothing_more,
    a_client_that_takes_no_outcomes,
    a_client_that_hangs_up_leaves_what_it_sent,
    the_database_dies,
    the_database_dies_under_many,
    a_stopping_service_tells_what_is_stored,
    a_stopping_service_ends_an_upload_that_has_sent_nothing,
];

/// Uploads to one history whose answer is line by line, and not.
pub const ANSWERS: [&str; 2] = ["application/json", NDJSON];

/// The last line of an answer by lines, or the only one; and the outcomes before it.
pub async fn ending(mut read: super::wire::Reading) -> (Value, Vec<Value>) {
    let mut lines = Vec::new();
    while let Some(line) = read.line().await {
        lines.push(line);
    }
    let last = lines.pop().expect("an ending");
    match last.get("line") {
        None => (last.get("problem").unwrap_or(&last).clone(), lines),
        Some(_) => panic!("no ending: {last}"),
    }
}

/// Waits until the history holds so many.
async fn stored(service: &Service, customer: u64, count: u64) {
    eventually("they are stored", PATIENCE, async || {
        let customer = service.client.get(&format!("/v1/customers/{customer}")).await;
        customer.expect(200)["totalTrades"].as_u64() >= Some(count)
    })
    .await;
}

async fn cut_in_the_middle() {
    let service = Service::start().await;
    for (customer, accept) in (1..).zip(ANSWERS) {
        let path = format!("/v1/customers/{customer}/trades");
        let mut upload = Upload::begin(service.address(), &path, &[("Accept", accept)]).await;
        upload.send(&lines(1..=1_500)).await;
        // A trade that is whole, but not its line.
        let read = upload.cut(&format!("{}{}", lines([1_501]), trade(1_502))).await;
        let (problem, outcomes) = ending(read).await;
        assert_eq!(problem["type"], "/problems#partly-stored", "{problem}");
        assert!(problem["detail"].as_str().unwrap().starts_with("The body is incomplete."));
        assert_eq!(problem["stored"], 1_501, "{problem}");
        assert_eq!(problem["ranges"], json!([{ "firstSeq": 1, "lastSeq": 1_501 }]));
        assert_eq!(problem["notStoredLines"], json!([{ "first": 1_502 }]));
        assert!(problem.get("unknownLines").is_none(), "{problem}");
        assert_eq!(outcomes.len(), if accept == NDJSON { 1_501 } else { 0 });
        assert_eq!(history(&service.database, customer).await.quantities, (1..=1_501).collect::<Vec<_>>());
    }
    let upload = Upload::begin(service.address(), "/v1/customers/9/trades", &[]).await;
    let (problem, _) = ending(upload.cut("{").await).await;
    assert_eq!((&problem["type"], &problem["status"]), (&json!("/problems#malformed-json"), &json!(400)));
    assert!(problem["detail"].as_str().unwrap().ends_with("Nothing was stored."), "{problem}");
}

async fn a_client_that_sends_nothing_more() {
    let mut setup = Setup::on(shared().await);
    setup.args.body_timeout = 1;
    setup.args.write_timeout = 1;
    let service = setup.start().await;
    for (customer, accept) in (1..).zip(ANSWERS) {
        let path = format!("/v1/customers/{customer}/trades");
        let mut upload = Upload::begin(service.address(), &path, &[("Accept", accept)]).await;
        // Slow, but never for as long as a piece may take: longer in all.
        for qty in 1..=8 {
            upload.send(&lines([qty])).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        upload.send("{\"type\":").await;
        let (read, _write) = upload.split();
        let (problem, _) = ending(read).await;
        assert_eq!(problem["type"], "/problems#partly-stored", "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("came too slowly"), "{problem}");
        assert_eq!((&problem["stored"], &problem["notStoredLines"]), (&json!(8), &json!([{ "first": 9 }])));
        assert_eq!(history(&service.database, customer).await.quantities, (1..=8).collect::<Vec<_>>());
    }
    let (read, _write) = Upload::begin(service.address(), "/v1/customers/9/trades", &[]).await.split();
    let (problem, _) = ending(read).await;
    assert_eq!((&problem["type"], &problem["status"]), (&json!("/problems#body-timeout"), &json!(408)));
}

async fn a_client_that_takes_no_outcomes() {
    let mut setup = Setup::on(shared().await);
    setup.args.body_timeout = 1;
    setup.args.write_timeout = 1;
    let service = setup.start().await;
    let (read, mut write) =
        Upload::begin(service.address(), "/v1/customers/7/trades", &[("Accept", NDJSON)]).await.split();
    let piece = lines(1..=1_000);
    // It is not read for ever; then the connection ends.
    let sent = async {
        let mut sent = 0_u64;
        while write.try_send(&piece).await.is_ok() {
            sent += 1_000;
        }
        sent
    };
    let sent = tokio::time::timeout(PATIENCE, sent).await.expect("an end in time");
    drop(read);
    let total = service.client.get("/v1/customers/7").await.expect(200)["totalTrades"].as_u64().unwrap();
    assert!(0 < total && total <= sent, "{total} of {sent}");
}

async fn a_client_that_hangs_up_leaves_what_it_sent() {
    let service = Service::start().await;
    for (customer, accept) in (1..).zip(ANSWERS) {
        let path = format!("/v1/customers/{customer}/trades");
        let mut upload = Upload::begin(service.address(), &path, &[("Accept", accept)]).await;
        upload.send(&lines(1..=500)).await;
        stored(&service, customer, 1).await;
        drop(upload);
        stored(&service, customer, 500).await;
        assert_eq!(history(&service.database, customer).await.quantities, (1..=500).collect::<Vec<_>>());
    }
}

/// What an upload tells of its lines holds for what the database holds: of these histories by customer,
/// which begin empty. `sent` is the customer and the quantity of each line.
async fn told_exactly(service: &Service, problem: &Value, sent: &[(u64, u64)]) {
    let within = |lines: &Value, line: u64| {
        let ranges = lines.as_array().into_iter().flatten();
        ranges.into_iter().any(|range| {
            let last = range.get("last").map_or(u64::MAX, |last| last.as_u64().expect("a line"));
            (range["first"].as_u64().expect("a line")..=last).contains(&line)
        })
    };
    let mut customers: Vec<_> = sent.iter().map(|(customer, _)| *customer).collect();
    customers.sort_unstable();
    customers.dedup();
    let mut count = 0;
    for customer in customers {
        let found = history(&service.database, customer).await.quantities;
        for (line, (_, qty)) in (1..).zip(sent).filter(|(_, (whose, _))| *whose == customer) {
            let there = found.iter().filter(|found| **found == *qty as i64).count();
            if within(&problem["notStoredLines"], line) {
                assert_eq!(there, 0, "line {line} of customer {customer}: {problem}");
            } else if !within(&problem["unknownLines"], line) {
                assert_eq!(there, 1, "line {line} of customer {customer}: {problem}");
                count += 1;
            }
        }
    }
    assert_eq!(problem["stored"], count, "{problem}");
}

async fn the_database_dies() {
    for accept in ANSWERS {
        let mongod = Mongod::own().await;
        let service = Setup::on(&mongod).start().await;
        let upload = Upload::begin(service.address(), "/v1/customers/7/trades", &[("Accept", accept)]).await;
        let (read, mut write) = upload.split();
        let writing = tokio::spawn(async move {
            let mut qty = 0_u64;
            while write.try_send(&lines(qty + 1..=qty + 100)).await.is_ok() {
                qty += 100;
            }
            qty
        });
        stored(&service, 7, 1_000).await;
        mongod.kill().await;
        let (problem, outcomes) = ending(read).await;
        mongod.start().await;
        mongod.until_primary().await;
        let sent = writing.await.expect("no panic");
        let type_ = problem["type"].as_str().unwrap_or_default();
        assert!(["/problems#partly-stored", "/problems#outcome-unknown"].contains(&type_), "{problem}");
        let sent: Vec<_> = (1..=sent).map(|qty| (7, qty)).collect();
        told_exactly(&service, &problem, &sent).await;
        if accept == NDJSON {
            for (line, outcome) in (1..).zip(&outcomes) {
                assert_eq!(outcome["line"], line, "in order: {outcome}");
            }
            let good = outcomes.iter().filter(|outcome| outcome.get("seq").is_some()).count();
            assert_eq!(problem["stored"], good);
        }
        drop(service);
        mongod.remove().await;
    }
}

async fn the_database_dies_under_many() {
    let mongod = Mongod::own().await;
    let service = Setup::on(&mongod).start().await;
    let (read, mut write) = Upload::begin(service.address(), "/v1/trades", &[]).await.split();
    let line = |number: u64| (number % 37 + 1, number);
    let writing = tokio::spawn(async move {
        let mut number = 0_u64;
        loop {
            let piece: String = (number + 1..=number + 100).map(|n| of(line(n).0, line(n).1)).collect();
            if write.try_send(&piece).await.is_err() {
                return number;
            }
            number += 100;
        }
    });
    stored(&service, 1, 100).await;
    mongod.kill().await;
    let (problem, _) = ending(read).await;
    mongod.start().await;
    mongod.until_primary().await;
    let sent: Vec<_> = (1..=writing.await.expect("no panic")).map(line).collect();
    told_exactly(&service, &problem, &sent).await;
    assert_eq!(problem["customers"], 37, "{problem}");
    drop(service);
    mongod.remove().await;
}

async fn a_stopping_service_tells_what_is_stored() {
    for accept in ANSWERS {
        let place = Place::new().await;
        let serving = place.serve(&["--body-timeout", "20"]).await;
        let mut upload =
            Upload::begin(serving.address, "/v1/customers/7/trades", &[("Accept", accept)]).await;
        upload.send(&lines(1..=100)).await;
        let database = place.database().await;
        eventually("they are stored", PATIENCE, async || history(&database, 7).await.quantities.len() == 100)
            .await;
        let (read, mut write) = upload.split();
        serving.signal("TERM");
        // It goes on sending, for all it knows.
        let writing = tokio::spawn(async move {
            let mut qty = 100_u64;
            while write.try_send(&lines([qty + 1])).await.is_ok() {
                qty += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let (problem, _) = ending(read).await;
        assert_eq!(problem["type"], "/problems#partly-stored", "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("is stopping"), "{problem}");
        let stored = problem["stored"].as_u64().expect("a number");
        assert_eq!(problem["notStoredLines"], json!([{ "first": stored + 1 }]));
        writing.await.expect("no panic");
        let ended = serving.ended().await;
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert!(!ended.err.contains("still under way"), "{ended:?}");
        let found = history(&database, 7).await.quantities;
        assert_eq!(found, (1..=stored as i64).collect::<Vec<_>>());
    }
}

async fn a_stopping_service_ends_an_upload_that_has_sent_nothing() {
    let place = Place::new().await;
    let serving = place.serve(&[]).await;
    let mut upload = Upload::begin(serving.address, "/v1/customers/7/trades", &[("Accept", NDJSON)]).await;
    upload.head().await;
    serving.signal("TERM");
    serving.is_stopping().await;
    let (read, _write) = upload.split();
    let (problem, _) = ending(read).await;
    assert_eq!(problem["type"], "/problems#shutting-down", "{problem}");
    assert!(problem["detail"].as_str().unwrap().ends_with("Nothing was stored."), "{problem}");
    assert_eq!(problem["notStoredLines"], json!([{ "first": 1 }]));
    let ended = serving.ended().await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!ended.err.contains("still under way"), "{ended:?}");
}
