//! Uploads that are cut, slow, stopped, or whose database dies: each ends with what was stored.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::commands::program::Place;
use crate::harness::uploads::wire::Upload;
use crate::harness::uploads::{ANSWERS, BY_LINE};
use crate::harness::{
    History, Mongod, PATIENCE, Service, Setup, eventually, shared, spawn, stored, test_over,
};

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
async fn until_stored(service: &Service, owner: u64, count: u64) {
    eventually("they are stored", PATIENCE, async || service.client.total(owner).await >= count).await;
}

test_over!(cut_in_the_middle, TRADES);
async fn cut_in_the_middle(history: &'static History) {
    let service = Service::of(history).await;
    for (owner, answer) in (1..).zip(ANSWERS) {
        let path = history.at(owner, answer);
        let mut upload = Upload::begin(service.address(), &path, &[]).await;
        upload.send(&history.lines(1..=1_500)).await;
        // An item that is whole, but not its line.
        let read = upload.cut(&format!("{}{}", history.lines([1_501]), history.item(1_502))).await;
        let (problem, outcomes) = ending(read).await;
        assert_eq!(problem["type"], "/problems#partly-stored", "{problem}");
        assert!(problem["detail"].as_str().unwrap().starts_with("The body is incomplete."));
        assert_eq!(problem["stored"], 1_501, "{problem}");
        assert_eq!(problem["ranges"], json!([{ "firstSeq": 1, "lastSeq": 1_501 }]));
        assert_eq!(problem["notStoredLines"], json!([{ "first": 1_502 }]));
        assert!(problem.get("unknownLines").is_none(), "{problem}");
        assert_eq!(outcomes.len(), if answer == BY_LINE { 1_501 } else { 0 });
        assert_eq!(service.stored(owner).await.numbers, (1..=1_501).collect::<Vec<_>>());
    }
    let upload = Upload::begin(service.address(), &history.uploads(9), &[]).await;
    let (problem, _) = ending(upload.cut("{").await).await;
    assert_eq!((&problem["type"], &problem["status"]), (&json!("/problems#malformed-json"), &json!(400)));
    assert!(problem["detail"].as_str().unwrap().ends_with("Nothing was stored."), "{problem}");
}

test_over!(a_client_that_sends_nothing_more, TRADES);
async fn a_client_that_sends_nothing_more(history: &'static History) {
    let mut setup = Setup::on(shared().await).of(history);
    setup.config.api.body_timeout = Duration::from_secs(2);
    setup.config.server.write_timeout = Duration::from_secs(2);
    let service = setup.start().await;
    for (owner, answer) in (1..).zip(ANSWERS) {
        let path = history.at(owner, answer);
        let mut upload = Upload::begin(service.address(), &path, &[]).await;
        // Slow, but never for as long as a piece may take: longer in all.
        for number in 1..=8 {
            upload.send(&history.lines([number])).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        upload.send("{\"number\":").await;
        let (read, _write) = upload.split();
        let (problem, _) = ending(read).await;
        assert_eq!(problem["type"], "/problems#partly-stored", "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("came too slowly"), "{problem}");
        assert_eq!((&problem["stored"], &problem["notStoredLines"]), (&json!(8), &json!([{ "first": 9 }])));
        assert_eq!(service.stored(owner).await.numbers, (1..=8).collect::<Vec<_>>());
    }
    let (read, _write) = Upload::begin(service.address(), &history.uploads(9), &[]).await.split();
    let (problem, _) = ending(read).await;
    assert_eq!((&problem["type"], &problem["status"]), (&json!("/problems#body-timeout"), &json!(408)));
}

test_over!(a_database_that_is_away_makes_no_client_slow, TRADES);
/// A client that waits for outcomes before it sends more is not slow: the time in which nothing can be stored
/// is the server's.
async fn a_database_that_is_away_makes_no_client_slow(history: &'static History) {
    let mongod = Mongod::own().await;
    let mut setup = Setup::on(&mongod).of(history);
    setup.config.api.body_timeout = Duration::from_secs(1);
    let service = setup.start().await;
    mongod.stop().await;
    let upload = Upload::begin(service.address(), &history.at(7, BY_LINE), &[]).await;
    let (mut read, mut write) = upload.split();
    write.send(&history.lines(1..=10)).await;
    read.head().await;
    let early = tokio::time::timeout(Duration::from_secs(4), read.line()).await;
    assert!(early.is_err(), "an end while the database is away: {early:?}");
    mongod.start().await;
    mongod.until_primary().await;
    for line in 1..=10 {
        let outcome = read.line().await.expect("an outcome");
        assert_eq!((&outcome["line"], outcome.get("problem")), (&json!(line), None), "{outcome}");
    }
    // From now on it is the client's time again.
    let (problem, _) = ending(read).await;
    assert!(problem["detail"].as_str().unwrap_or_default().contains("came too slowly"), "{problem}");
    assert_eq!(service.stored(7).await.numbers, (1..=10).collect::<Vec<_>>());
    drop(service);
    mongod.remove().await;
}

test_over!(a_client_that_takes_no_outcomes, TRADES);
async fn a_client_that_takes_no_outcomes(history: &'static History) {
    let mut setup = Setup::on(shared().await).of(history);
    setup.config.api.body_timeout = Duration::from_secs(1);
    setup.config.server.write_timeout = Duration::from_secs(1);
    let service = setup.start().await;
    let (read, mut write) = Upload::begin(service.address(), &history.outcomes(7), &[]).await.split();
    let piece = history.lines(1..=1_000);
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
    let total = service.client.total(7).await;
    assert!(0 < total && total <= sent, "{total} of {sent}");
}

test_over!(a_client_that_hangs_up_leaves_what_it_sent, TRADES);
async fn a_client_that_hangs_up_leaves_what_it_sent(history: &'static History) {
    let service = Service::of(history).await;
    for (owner, answer) in (1..).zip(ANSWERS) {
        let path = history.at(owner, answer);
        let mut upload = Upload::begin(service.address(), &path, &[]).await;
        // So few that the server reads them in one piece: it reads no more of a connection that it cannot
        // write to.
        upload.send(&history.lines(1..=50)).await;
        until_stored(&service, owner, 1).await;
        drop(upload);
        until_stored(&service, owner, 50).await;
        assert_eq!(service.stored(owner).await.numbers, (1..=50).collect::<Vec<_>>());
    }
}

/// The ranges of lines that a problem names, in order; the last may be open.
fn ranges(lines: &Value) -> Vec<(u64, u64)> {
    let line = |of: &Value| of.as_u64().expect("a line");
    let mut ranges: Vec<_> = lines
        .as_array()
        .into_iter()
        .flatten()
        .map(|range| (line(&range["first"]), range.get("last").map_or(u64::MAX, line)))
        .collect();
    ranges.sort_unstable();
    ranges
}

/// What an upload tells of its lines holds for what the database holds: of these histories by owner, which
/// begin empty. `sent` is the owner and the number of each line. Returns how many owners have lines that are
/// told as stored.
async fn told_exactly(service: &Service, problem: &Value, sent: &[(u64, u64)]) -> usize {
    let (not_stored, unknown) = (ranges(&problem["notStoredLines"]), ranges(&problem["unknownLines"]));
    let within = |ranges: &[(u64, u64)], line: u64| {
        let before = ranges.partition_point(|(first, _)| *first <= line);
        before.checked_sub(1).is_some_and(|at| line <= ranges[at].1)
    };
    let mut owners: Vec<_> = sent.iter().map(|(owner, _)| *owner).collect();
    owners.sort_unstable();
    owners.dedup();
    let (mut count, mut with_items) = (0, 0);
    for owner in owners {
        let before = count;
        let mut found: HashMap<i64, usize> = HashMap::new();
        for number in service.stored(owner).await.numbers {
            *found.entry(number).or_default() += 1;
        }
        for (line, (_, number)) in (1..).zip(sent).filter(|(_, (whose, _))| *whose == owner) {
            let there = found.get(&(*number as i64)).copied().unwrap_or_default();
            if within(&not_stored, line) {
                assert_eq!(there, 0, "line {line} of owner {owner}: {problem}");
            } else if !within(&unknown, line) {
                assert_eq!(there, 1, "line {line} of owner {owner}: {problem}");
                count += 1;
            }
        }
        with_items += usize::from(count > before);
    }
    assert_eq!(problem["stored"], count, "{problem}");
    with_items
}

test_over!(the_database_dies, TRADES);
async fn the_database_dies(history: &'static History) {
    // Most of their time they wait for a database that is away.
    let died = async |answer: &str| {
        let mongod = Mongod::own().await;
        let service = Setup::on(&mongod).of(history).start().await;
        let upload = Upload::begin(service.address(), &history.at(7, answer), &[]).await;
        let (read, mut write) = upload.split();
        let writing = spawn(async move {
            let mut number = 0_u64;
            while write.try_send(&history.lines(number + 1..=number + 100)).await.is_ok() {
                number += 100;
            }
            number
        });
        until_stored(&service, 7, 1_000).await;
        mongod.kill().await;
        let (problem, outcomes) = ending(read).await;
        mongod.start().await;
        mongod.until_primary().await;
        let sent = writing.await.expect("no panic");
        let type_ = problem["type"].as_str().unwrap_or_default();
        assert!(["/problems#partly-stored", "/problems#outcome-unknown"].contains(&type_), "{problem}");
        let sent: Vec<_> = (1..=sent).map(|number| (7, number)).collect();
        told_exactly(&service, &problem, &sent).await;
        if answer == BY_LINE {
            for (line, outcome) in (1..).zip(&outcomes) {
                assert_eq!(outcome["line"], line, "in order: {outcome}");
            }
            let good = outcomes.iter().filter(|outcome| outcome.get("seq").is_some()).count();
            assert_eq!(problem["stored"], good);
        }
        drop(service);
        mongod.remove().await;
    };
    join_all(ANSWERS.map(died)).await;
}

test_over!(the_database_dies_under_many, TRADES);
async fn the_database_dies_under_many(history: &'static History) {
    let mongod = Mongod::own().await;
    let service = Setup::on(&mongod).of(history).start().await;
    let (read, mut write) = Upload::begin(service.address(), &history.of_many(), &[]).await.split();
    let line = |number: u64| (number % 37 + 1, number);
    // A client that goes on sending until the connection ends may lose a part of a long answer with it: the
    // kernel drops what is still to be sent when a connection is closed whose bytes were not all read.
    let killed = Arc::new(AtomicBool::new(false));
    let has_sent_enough = Arc::clone(&killed);
    let writing = spawn(async move {
        let mut number = 0_u64;
        while !has_sent_enough.load(Ordering::Relaxed) {
            let piece: String =
                (number + 1..=number + 100).map(|n| history.line_of(line(n).0, line(n).1)).collect();
            write.try_send(&piece).await.expect("it is read or waits");
            number += 100;
        }
        // The body has no end.
        (number, write)
    });
    until_stored(&service, 1, 100).await;
    mongod.kill().await;
    killed.store(true, Ordering::Relaxed);
    let (problem, _) = ending(read).await;
    mongod.start().await;
    mongod.until_primary().await;
    let (last, _write) = writing.await.expect("no panic");
    let sent: Vec<_> = (1..=last).map(line).collect();
    let owners = told_exactly(&service, &problem, &sent).await;
    assert_eq!(*history.owners_of(&problem), owners, "{problem}");
    drop(service);
    mongod.remove().await;
}

test_over!(a_stopping_service_tells_what_is_stored, TRADES);
async fn a_stopping_service_tells_what_is_stored(history: &'static History) {
    for answer in ANSWERS {
        let place = Place::of(history).await;
        let serving = place.serve(&["--body-timeout", "20"]).await;
        let mut upload = Upload::begin(serving.address, &history.at(7, answer), &[]).await;
        upload.send(&history.lines(1..=100)).await;
        let database = place.database().await;
        eventually("they are stored", PATIENCE, async || {
            stored(&database, history, 7).await.numbers.len() == 100
        })
        .await;
        let (read, mut write) = upload.split();
        serving.signal("TERM");
        // It goes on sending, for all it knows.
        let writing = spawn(async move {
            let mut number = 100_u64;
            while write.try_send(&history.lines([number + 1])).await.is_ok() {
                number += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let (problem, _) = ending(read).await;
        assert_eq!(problem["type"], "/problems#partly-stored", "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("is stopping"), "{problem}");
        let told = problem["stored"].as_u64().expect("a number");
        assert_eq!(problem["notStoredLines"], json!([{ "first": told + 1 }]));
        writing.await.expect("no panic");
        let ended = serving.ended().await;
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert!(!ended.err.contains("still under way"), "{ended:?}");
        let found = stored(&database, history, 7).await.numbers;
        assert_eq!(found, (1..=told as i64).collect::<Vec<_>>());
    }
}

test_over!(a_stopping_service_ends_an_upload_that_has_sent_nothing, TRADES);
async fn a_stopping_service_ends_an_upload_that_has_sent_nothing(history: &'static History) {
    let place = Place::of(history).await;
    let serving = place.serve(&[]).await;
    let mut upload = Upload::begin(serving.address, &history.outcomes(7), &[]).await;
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
