//! `pagebucket tail`, through the real binary.

use reqwest::Method;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::program::{Place, pagebucket, run};
use crate::harness::signal;
use crate::harness::{History, PATIENCE, Service, Setup, TRADES, shared, test_over};

/// `tail` of an owner, which says nothing but what is wrong.
fn tail(place: &Place, owner: &str, flags: &[&str]) -> Command {
    place.pagebucket("tail", &[&["--log", "error", "--owner", owner], flags].concat())
}

/// One that follows, and the lines that it prints.
fn follow(place: &Place, flags: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = tail(place, "1", &[&["-f"], flags].concat()).spawn().expect("to run");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    (child, lines)
}

async fn seq(lines: &mut Lines<BufReader<ChildStdout>>) -> u64 {
    let line =
        timeout(PATIENCE, lines.next_line()).await.expect("in time").expect("to read").expect("a line");
    let item: Value = serde_json::from_str(&line).expect("JSON");
    item["seq"].as_u64().expect("a number")
}

/// The status of its end, and what it says.
async fn ended(mut child: Child) -> (Option<i32>, String) {
    let status = timeout(PATIENCE, child.wait()).await.expect("the end in time").expect("its status");
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).await.expect("text");
    (status.code(), said)
}

test_over!(it_prints_the_last_items_as_an_export_does, ALL);
async fn it_prints_the_last_items_as_an_export_does(history: &'static History) {
    let service = Service::filled(history, 23).await;
    let place = Place::of_service(&service).await;
    let owner = history.id(1);
    let exported = run(&mut place.pagebucket("export", &["--owner", &owner])).await.out;
    let exported: Vec<_> = exported.lines().collect();
    assert_eq!(exported.len(), 23);
    for (flags, shown) in [
        (&[][..], 13..23),
        (&["-n", "1"], 22..23),
        (&["--items", "1000"], 0..23),
        (&["-n", "0"], 23..23),
        (&["--after", "3"], 3..23),
        (&["--after", "99"], 23..23),
    ] {
        let printed = run(&mut tail(&place, &owner, flags)).await;
        assert_eq!((printed.status, printed.err.as_str()), (Some(0), ""), "{printed:?}");
        assert_eq!(printed.out.lines().collect::<Vec<_>>(), exported[shown], "{flags:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_follows_until_a_signal() {
    let service = Service::filled(TRADES, 12).await;
    let (child, mut lines) = follow(&Place::of_service(&service).await, &["-n", "2"]);
    for number in 11..=12 {
        assert_eq!(seq(&mut lines).await, number);
    }
    // Another process takes these.
    service.client.append_all(1, 13..=44).await;
    for number in 13..=44 {
        assert_eq!(seq(&mut lines).await, number);
    }
    signal("INT", child.id().expect("it runs"));
    assert_eq!(ended(child).await, (Some(130), String::new()));
}

/// What it has printed may be lost, and its numbers given to others.
#[tokio::test(flavor = "multi_thread")]
async fn it_ends_when_a_backup_was_restored() {
    let service = Service::filled(TRADES, 3).await;
    let (child, mut lines) = follow(&Place::of_service(&service).await, &["--after", "2"]);
    assert_eq!(seq(&mut lines).await, 3);
    let store = Setup::on(shared().await).in_database(&service.database).store().await;
    store.renew_epoch().await.expect("to renew");
    let (status, said) = ended(child).await;
    assert!(status == Some(3) && said.contains("another epoch"), "{status:?}: {said}");
}

/// At once, although it has nothing more to print.
#[tokio::test(flavor = "multi_thread")]
async fn it_ends_when_its_output_is_closed() {
    let service = Service::filled(TRADES, 3).await;
    let (child, mut lines) = follow(&Place::of_service(&service).await, &["--after", "1"]);
    assert_eq!(seq(&mut lines).await, 2);
    drop(lines);
    assert_eq!(ended(child).await, (Some(0), String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_told() {
    let service = Service::filled(TRADES, 3).await;
    let place = Place::of_service(&service).await;
    let none = run(&mut tail(&place, "2", &[])).await;
    assert_eq!((none.status, none.out.as_str()), (Some(0), ""), "{none:?}");
    let (child, mut lines) = follow(&place, &[]);
    assert_eq!(seq(&mut lines).await, 1);
    let erase = service.client.send(Method::DELETE, &TRADES.owner_path(1), |request| request).await;
    assert!(erase.status.is_success(), "{erase:?}");
    let (status, said) = ended(child).await;
    assert!(status == Some(3) && said.contains("erased"), "{status:?}: {said}");
    assert!(run(&mut place.pagebucket("tail", &["--owner", "1"])).await.sentence(3).contains("erased"));
    let named = run(&mut tail(&place, "customers=1", &[])).await;
    assert!(named.sentence(3).contains("erased"));
    for (owner, why) in
        [("rooms=1", "the owners of trades are customers"), ("customers=x", "--owner must be")]
    {
        let refused = run(&mut tail(&place, owner, &[])).await;
        assert!(refused.sentence(2).contains(why), "{refused:?}");
    }
    for flags in [&["--owner", "x"][..], &["--owner", "1", "-n", "1", "--after", "1"], &[]] {
        assert_eq!(run(&mut place.pagebucket("tail", flags)).await.status, Some(2), "{flags:?}");
    }
    let missing = std::env::temp_dir().join(format!("pagebucket-missing-{}", std::process::id()));
    for command in [
        &["tail", "--owner", "1"][..],
        &["export", "--owner", "1"],
        &["verify"],
        &["erase", "--owner", "1"],
        &["erase", "--replay", "/dev/null"],
        &["migrate", "--renew-epoch"],
        &["keys", "list"],
        &["keys", "revoke", "backend"],
        &["histories"],
        &["series", "rebuild"],
    ] {
        let flags = [command, &["--data-dir", missing.to_str().expect("text")]].concat();
        let refused = run(&mut pagebucket(&flags)).await;
        let said = refused.sentence(2);
        assert!(said.contains("there is no such directory"), "{command:?}: {said}");
        assert!(!missing.exists(), "{command:?} makes nothing");
    }
}
