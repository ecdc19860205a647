//! What the tests stand on: one runtime, one shared mongod, services on databases of their own.

mod client;
mod filled;
mod invariants;
mod mongod;
mod proxy;
mod replica_set;
mod service;

use std::future::Future;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use libtest_mimic::Trial;
use tokio::runtime::Runtime;

pub use client::{Answer, Client, seqs, trade, trade_at};
pub use filled::{fill, fill_pages};
pub use invariants::{History, history, try_history};
pub use mongod::{Mongod, free_port, shared};
pub use proxy::{Harm, Nth, Proxy, Way};
pub use replica_set::{ReplicaSet, Wires};
pub use service::{Service, Setup};

/// Longer than the slowest test takes on a slow machine, the seconds of fault aside: a test that hangs
/// must end.
const LONGEST_TEST: Duration = Duration::from_secs(300);

/// One runtime for all tests: a driver's client belongs to the runtime that made it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(4).enable_all().build().expect("a runtime")
});

static SKIPPED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A test by the name of its function.
pub fn trial<F>(name: &'static str, test: fn() -> F) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    Trial::test(name, move || {
        RUNTIME.block_on(async {
            let longest = LONGEST_TEST + fault_seconds();
            let ended = tokio::time::timeout(longest, test()).await;
            ended.map_err(|_| format!("no end after {longest:?}").into())
        })
    })
}

/// How long each of the judged runs lasts: `FAULT_SECONDS`, 10 unless set.
pub fn fault_seconds() -> Duration {
    let seconds = std::env::var("FAULT_SECONDS").map(|seconds| seconds.parse().expect("seconds"));
    Duration::from_secs(seconds.unwrap_or(10))
}

/// A test that [`tests`] has registered: its name, and what makes it.
pub struct Registered(pub &'static str, pub fn(&'static str) -> Trial);

inventory::collect!(Registered);

/// All tests of all modules, by name.
pub fn trials() -> Vec<Trial> {
    let mut registered: Vec<_> = inventory::iter::<Registered>.into_iter().collect();
    registered.sort_unstable_by_key(|Registered(name, _)| *name);
    registered.into_iter().map(|Registered(name, trial)| trial(name)).collect()
}

/// The tests of a module, by name: `tests!["appends": one, another]`.
macro_rules! tests {
    ($module:literal: $($test:ident),* $(,)?) => {
        $(inventory::submit! {
            $crate::harness::Registered(concat!($module, "::", stringify!($test)), |name| $crate::harness::trial(name, $test))
        })*
    };
}
pub(crate) use tests;

/// The names of this version's migrations, in order: what the directory holds.
pub fn migrations() -> Vec<String> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
    let files = std::fs::read_dir(directory).expect("the directory of migrations");
    let name = |path: std::path::PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let mut names: Vec<_> = files.map(|file| name(file.expect("a file").path())).collect();
    names.sort();
    names
}

/// Says that something cannot be tested here. Where the variable `CI` is set, the test fails: what
/// CI lets pass was tested.
pub fn skip(what: &str, why: &str) {
    assert!(std::env::var_os("CI").is_none(), "CI skips nothing: {what}: {why}");
    leave_out(what, why);
}

/// Says, here and in the closing lines, that something was not tested, which may be so in CI, too.
pub fn leave_out(what: &str, why: &str) {
    println!("skipped: {what}: {why}");
    SKIPPED.lock().expect("no test panics here").push(format!("{what}: {why}"));
}

/// Waits until `condition` holds, and fails the test when it does not in time.
pub async fn eventually<F: Future<Output = bool>>(
    what: &str,
    within: Duration,
    mut condition: impl FnMut() -> F,
) {
    let deadline = tokio::time::Instant::now() + within;
    while !condition().await {
        assert!(tokio::time::Instant::now() < deadline, "not within {within:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Removes the shared mongod, and says which path the tests took.
pub fn finish() {
    let path = RUNTIME.block_on(mongod::remove_shared());
    println!("mongod: {path}");
    let skipped = SKIPPED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    println!("skipped: {}", if skipped.is_empty() { "nothing".to_owned() } else { skipped.join("; ") });
}
