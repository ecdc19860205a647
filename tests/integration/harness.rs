//! What the tests stand on: one runtime, one shared mongod, services on databases of their own.

mod client;
pub mod engine;
mod filled;
mod history;
mod invariants;
mod mongod;
mod proxy;
mod replica_set;
mod service;
pub mod share;
pub mod times;
pub mod tokens;

use std::future::Future;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use futures_util::future::{FutureExt, LocalBoxFuture};
use libtest_mimic::Trial;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

pub use client::{Answer, Client, trade, trade_at};
pub use filled::{fill, fill_pages};
pub use history::{
    ALL, ENABLED, History, INVALID_ITEM, ITEM_NOT_FOUND, NOTES, READINGS, SERIES, SMALL, TOTAL, TRACES,
    TRADES, same,
};
pub use invariants::{Stored, stored, try_stored};
pub use mongod::{Mongod, SteppedClock, free_port, mongod_on, shared};
pub use pagebucket_test_macros::{test, test_over};
pub use proxy::{Harm, Nth, Proxy, Way};
pub use replica_set::{ReplicaSet, Wires};
pub use service::{Service, Setup};

/// Longer than anything that a test waits for takes on a slow machine: only a failure waits for it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Far longer than any test takes, the seconds of fault aside: it ends a test that hangs.
fn longest_test() -> Duration {
    Duration::from_secs(amount(900, 5_000))
}

/// One runtime for all tests: a driver's client belongs to the runtime that made it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(4).enable_all().build().expect("a runtime")
});

static SKIPPED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A test by the name of its function.
pub fn trial<F>(name: impl Into<String>, test: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    boxed_trial(name.into(), Box::new(|| Box::pin(test())))
}

/// The same. What runs a test is compiled once, and not for the type of each test: that was two fifths of
/// what the compiler had to make.
fn boxed_trial(name: String, test: Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>) -> Trial {
    Trial::test(name.clone(), move || {
        let _running = times::Running::begin(name);
        RUNTIME.block_on(async {
            let longest = longest_test() + fault_seconds();
            let ended = tokio::time::timeout(longest, test()).await;
            ended.map_err(|_| format!("no end after {longest:?}").into())
        })
    })
}

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

/// A test that [`test`] has registered: the module and the name of its function, and what makes it.
pub struct Registered {
    pub module: &'static str,
    pub name: &'static str,
    pub trial: fn(String) -> Trial,
}

inventory::collect!(Registered);

/// A test that [`test_over`] has registered: also the histories that it is about, and what makes it for one
/// of them.
pub struct RegisteredOver {
    pub module: &'static str,
    pub name: &'static str,
    pub histories: &'static [&'static History],
    pub trial: fn(String, &'static History) -> Trial,
}

inventory::collect!(RegisteredOver);

/// What [`named`] says of a module.
pub struct Named {
    pub module: &'static str,
    pub name: &'static str,
}

inventory::collect!(Named);

/// The tests of this module, and of the modules below it, have this name before their own instead of the path
/// of their module: `named!("appends")`.
macro_rules! named {
    ($name:literal) => {
        inventory::submit! { $crate::harness::Named { module: module_path!(), name: $name } }
    };
}
pub(crate) use named;

/// Tests that take minutes, by the beginnings of their names. They begin first: the last one to end would
/// keep one processor busy and the others idle.
const LONGEST: &[&str] = &["browser::every_operation", "contract::", "upgrade::fields::"];

/// All tests of all modules, the longest first, then by name; those about histories once for each that is
/// enabled.
pub fn trials() -> Vec<Trial> {
    let plain =
        inventory::iter::<Registered>.into_iter().map(|test| (test.trial)(full_name(test.module, test.name)));
    let is_enabled = |history: &History| ENABLED.iter().any(|enabled| enabled.name == history.name);
    let over = inventory::iter::<RegisteredOver>.into_iter().flat_map(|test| {
        let enabled = test.histories.iter().filter(|history| is_enabled(history));
        let name = full_name(test.module, test.name);
        enabled.map(move |history| (test.trial)(format!("{name}::{}", history.name), history))
    });
    let mut trials: Vec<Trial> = plain.chain(over).collect();
    let is_long = |name: &str| LONGEST.iter().any(|begin| name.starts_with(begin));
    trials.sort_unstable_by_key(|trial| (!is_long(trial.name()), trial.name().to_owned()));
    trials
}

/// The name of a test: the path of its module without this crate, or as [`named`] says, then its own.
fn full_name(module: &str, name: &str) -> String {
    let is_above = |above: &str| {
        module.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let named = inventory::iter::<Named>.into_iter().filter(|named| is_above(named.module));
    let nearest = named.max_by_key(|named| named.module.len()).map(|named| named.name);
    let own = || module.split_once("::").map_or(module, |(_, path)| path);
    format!("{}::{name}", nearest.unwrap_or_else(own))
}

/// All that a new database needs, in order: the migrations, which are what the directory holds, and the
/// history that is built in.
pub fn migrations() -> Vec<String> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
    let files = std::fs::read_dir(directory).expect("the directory of migrations");
    let name = |path: std::path::PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let mut names: Vec<_> = files.map(|file| name(file.expect("a file").path())).collect();
    names.sort();
    names.push("history trades".to_owned());
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
    let (began, often, seldom) =
        (tokio::time::Instant::now(), Duration::from_millis(20), Duration::from_millis(200));
    while !condition().await {
        let waited = began.elapsed();
        assert!(waited < within, "not within {within:?}: {what}");
        // Each question takes processor time from other tests, so what takes seconds is asked less often.
        tokio::time::sleep((waited / 10).clamp(often, seldom)).await;
    }
}

/// Removes the shared mongod, and says which path the tests took.
pub fn finish() {
    let path = RUNTIME.block_on(mongod::remove_shared());
    println!("mongod: {path}");
    println!("{}", times::summary());
    let skipped = SKIPPED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    println!("skipped: {}", if skipped.is_empty() { "nothing".to_owned() } else { skipped.join("; ") });
}
