//! Ctrl-C during an import: it says so at once and sends nothing more, and its summary is exact.

use std::process::Output;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use super::{command, start_on, summary};
use crate::harness::signal;
use crate::harness::{Mongod, PATIENCE, Service, Setup, spawn};

/// More than are under way at once, directly or through a server.
const ROWS: u64 = 25_000;

/// A mongod whose commits take so long that most rows wait.
struct SlowMongod(Mongod);

impl SlowMongod {
    async fn configure(&self, mode: &str, data: Document) -> i32 {
        let configure = doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data };
        let configured = self.0.client().await.database("admin").run_command(configure).await;
        configured.expect("a fail point").get_i32("count").expect("how often it was met")
    }

    /// Makes commits slow, and returns how many were.
    async fn slow_down(&self, service: &Service) -> i32 {
        let namespace = format!("{}.trades", service.database.name());
        let data = doc! {
            "failCommands": ["update", "insert"], "namespace": namespace, "blockConnection": true, "blockTimeMS": 1_000
        };
        self.configure("alwaysOn", data).await
    }

    async fn until_slowed(&self, times: i32) {
        let wait = doc! { "waitForFailPoint": "failCommand", "timesEntered": times, "maxTimeMS": 60_000 };
        self.0.client().await.database("admin").run_command(wait).await.expect("commits");
    }
}

/// The rows below a header; the first is on line 2.
fn text() -> String {
    let rows: String = (1..=ROWS).map(|n| format!("AMD,{n},2004-01-09\n")).collect();
    format!("ticker,qty,date\n{rows}")
}

/// What it says when it is interrupted, before the number of the rows under way.
const STOPPING: &str = "stopping: rows that were read are not sent any more; waiting for ";

/// Interrupts it when some of its rows are under way. Returns how many it then waits for, and what it says at
/// its end.
async fn interrupted(mut running: Child, mongod: &SlowMongod, slowed: i32) -> (u64, Output) {
    let mut input = running.stdin.take().expect("it is piped");
    // It reads no more than it may hold.
    let writing = spawn(async move {
        let _ = input.write_all(text().as_bytes()).await;
        input
    });
    mongod.until_slowed(slowed + 2).await;
    signal("INT", running.id().expect("it runs"));
    let mut said = BufReader::new(running.stderr.take().expect("it is piped")).lines();
    let says = async {
        loop {
            let line = said.next_line().await.expect("text").expect("it says that it stops");
            if let Some(rows) = line.strip_prefix(STOPPING) {
                let rows = rows.split_once(" row").expect("a number of rows").0.replace(',', "");
                return rows.parse().expect("a number");
            }
        }
    };
    let waits_for = timeout(PATIENCE, says).await.expect("at once");
    spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
    mongod.configure("off", doc! {}).await;
    let output = timeout(PATIENCE, running.wait_with_output()).await.expect("it ends").expect("an output");
    writing.abort();
    (waits_for, output)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_under_way_is_not_sent() {
    let mongod = SlowMongod(Mongod::failing().await);
    let service = Setup::on(&mongod.0).start().await;
    let url = format!("http://{}", service.address());
    for (customer, through) in [(7, &[][..]), (8, &["--url", &url])] {
        let id = customer.to_string();
        let flags = [&["-", "--format", "csv", "--customer", &id][..], through].concat();
        let start = |flags: &[&str]| match through {
            [] => start_on(&mongod.0, &service, flags),
            _ => command(flags).spawn().expect("the binary runs"),
        };
        let slowed = mongod.slow_down(&service).await;
        let (waits_for, output) = interrupted(start(&flags), &mongod, slowed).await;
        // Rows that a server has read cannot be called back. There are no more than it answers in a second,
        // or 1,000.
        assert!(through.is_empty() || (1..=1_000).contains(&waits_for), "{waits_for}");
        let said = summary(&output, 130);
        let stored = service.stored(customer).await.numbers.len() as u64;
        assert!((1..ROWS).contains(&stored), "{stored}: {said}");
        assert!(said.starts_with(&format!("stored {} trades of 1 customer", grouped(stored))), "{said}");
        assert!(said.contains("\ninterrupted\n"), "{said}");
        // Through a server all that was read may be under way.
        assert!(!through.is_empty() || said.contains("\nread but not stored: "), "{said}");
        let from = format!("{}", stored + 2);
        assert!(said.ends_with(&format!("\nto go on: --from-line {from}\n")), "{said}");
        assert!(!said.contains("unknown"), "{said}");
        // What it says continues the import.
        let mut rest = start(&[&flags[..], &["--from-line", &from]].concat());
        let mut input = rest.stdin.take().expect("it is piped");
        input.write_all(text().as_bytes()).await.expect("it reads");
        drop(input);
        let output = timeout(Duration::from_secs(300), rest.wait_with_output()).await.expect("it ends");
        summary(&output.expect("an output"), 0);
        service.stored(customer).await.holds_exactly(1..=ROWS as i64);
    }
    drop(service);
    mongod.0.remove().await;
}

/// A number below a million as people read it.
fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    }
}
