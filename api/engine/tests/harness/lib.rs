//! What tests of the engine and of all above it stand on: mongods, wires that can be cut, histories, and what
//! must hold of what is stored. The tests beside it need no HTTP.

#![allow(missing_docs, reason = "only tests use it")]
#![allow(clippy::unwrap_used, reason = "a test that panics fails, and says where")]

pub mod engine;
mod filled;
mod history;
mod invariants;
pub mod markers;
mod mongod;
mod proxy;
mod replica_set;
pub mod rig;
mod setup;

use std::future::Future;
use std::io::Write;
use std::time::Duration;

use futures_util::future::FutureExt;
use tokio::task::JoinHandle;

pub use filled::{fill, fill_pages};
pub use history::{
    ALL, History, INVALID_ITEM, ITEM_NOT_FOUND, NOTES, READINGS, SERIES, TOTAL, TRACES, TRADES, same,
};
pub use invariants::{Stored, stored, try_stored};
pub use mongod::{Mongod, SteppedClock, free_port, mongod_on, shared};
pub use proxy::{Harm, Nth, Proxy, Way};
pub use replica_set::{ReplicaSet, Wires};
pub use setup::Setup;

/// Longer than anything that a test waits for takes on a slow machine: only a failure waits for it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// As `tokio::spawn`, but compiled once for each type of result, and not for each future.
pub fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(work.boxed())
}

/// How long each of the judged runs lasts: `FAULT_SECONDS`, 6 unless set, and 60 in a long run.
pub fn fault_seconds() -> Duration {
    let seconds = std::env::var("FAULT_SECONDS").map(|seconds| seconds.parse().expect("seconds"));
    Duration::from_secs(seconds.unwrap_or(amount(6, 60)))
}

/// How much of something a test needs: in a usual run, and in a long one (`make test-long`, which sets
/// `TEST_LONG`).
pub fn amount(usual: u64, long: u64) -> u64 {
    if std::env::var_os("TEST_LONG").is_some() { long } else { usual }
}

/// A test that runs once for each of these histories: `test_over!(answers, NOTES, TRADES);` above `async fn
/// answers(history: &'static History)` makes `answers::notes` and `answers::trades`.
///
/// `ALL` are those that differ in all: for tests of items, dates, sizes of pages. `SMALL` have small pages,
/// and both types of owners. A test of what no definition changes, such as headers, faults and races, runs
/// over one, mostly `NOTES`, whose pages end soonest.
#[macro_export]
macro_rules! test_over {
    ($test:ident, ALL) => { $crate::test_over!($test, TRADES, NOTES, READINGS); };
    ($test:ident, SMALL) => { $crate::test_over!($test, TRADES, NOTES); };
    ($test:ident, $($history:ident),+) => {
        mod $test { $( $crate::test_over!(@ $history, $test); )+ }
    };
    (@ TRADES, $test:ident) => { $crate::test_over!(@ trades, TRADES, $test); };
    (@ NOTES, $test:ident) => { $crate::test_over!(@ notes, NOTES, $test); };
    (@ READINGS, $test:ident) => { $crate::test_over!(@ readings, READINGS, $test); };
    (@ TRACES, $test:ident) => { $crate::test_over!(@ traces, TRACES, $test); };
    (@ $name:ident, $history:ident, $test:ident) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            super::$test($crate::$history).await;
        }
    };
}

/// All that a new database needs, in order: the migrations, which are what the directory holds, and the
/// history that is built in.
pub fn migrations() -> Vec<String> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../migrations");
    let files = std::fs::read_dir(directory).expect("the directory of migrations");
    let name = |path: std::path::PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let mut names: Vec<_> = files.map(|file| name(file.expect("a file").path())).collect();
    names.sort();
    names.push("history trades".to_owned());
    names
}

/// Sends a signal to a process.
pub fn signal(name: &str, pid: u32) {
    assert!(pid > 1, "a process of ours");
    let sent = std::process::Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.expect("kill runs").success(), "SIG{name} to {pid}");
}

/// Says that something cannot be tested here. Where the variable `CI` is set, the test fails: what
/// CI lets pass was tested.
pub fn skip(what: &str, why: &str) {
    assert!(std::env::var_os("CI").is_none(), "CI skips nothing: {what}: {why}");
    leave_out(what, why);
}

/// Says, here and in the closing lines of `scripts/test`, that something was not tested, which may be so in
/// CI, too.
pub fn leave_out(what: &str, why: &str) {
    println!("skipped: {what}: {why}");
    if let Some(list) = std::env::var_os("TEST_SKIPPED") {
        let list = std::fs::File::options().append(true).open(list);
        writeln!(list.expect("the list of scripts/test"), "skipped: {what}: {why}").expect("to write");
    }
}

/// Waits until `condition` holds, and fails the test when it does not in time.
pub async fn eventually<F: Future<Output = bool>>(
    what: &str,
    within: Duration,
    mut condition: impl FnMut() -> F,
) {
    let (began, often, seldom) =
        (tokio::time::Instant::now(), Duration::from_millis(20), Duration::from_millis(200));
    while !condition().await {
        let waited = began.elapsed();
        assert!(waited < within, "not within {within:?}: {what}");
        // Each question takes processor time from other tests, so what takes seconds is asked less often.
        tokio::time::sleep((waited / 10).clamp(often, seldom)).await;
    }
}
