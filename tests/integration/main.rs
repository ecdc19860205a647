//! All integration tests, in one binary, against a real mongod.
//!
//! It brings its own harness (libtest-mimic), because the shared mongod has to be removed after the last
//! test, also after a failed one. Flags are those of any Rust test: a filter, `--list`, `--test-threads`,
//! `--nocapture`. With `--test-threads=1` the line of each test tells its processor time, too.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, and says where")]
#![allow(unreachable_pub, reason = "no other crate can use a test")]
#![allow(clippy::unused_async, reason = "every test is one, so that `#[test]` has one form")]

mod harness;

mod adopt;
mod api_keys;
mod appends;
mod auth;
mod bad_input;
mod browser;
mod caching;
mod catalog;
mod commands;
mod concerns;
mod connections;
mod contract;
mod cost;
mod customers;
mod dates;
mod deleted;
mod embed;
mod embedded;
mod exactly_once;
mod expected_seq;
mod export;
mod failover;
mod faults;
mod filters;
mod histories;
mod import;
mod keys;
mod layering;
mod live;
mod markers;
mod metrics;
mod migrations;
mod offsets;
mod outage;
mod overload;
mod page_cache;
mod page_views;
mod properties;
mod rates;
mod readme;
mod role;
mod secondaries;
mod series;
mod service;
mod sharding;
mod snapshots;
mod summaries;
mod upgrade;
mod uploads;
mod windows;

use std::process::ExitCode;

fn main() -> ExitCode {
    // reqwest has TLS since `import --url` needs it, and asks for a provider also where no test needs TLS.
    rustls::crypto::ring::default_provider().install_default().expect("no provider is installed yet");
    let mut arguments = libtest_mimic::Arguments::from_args();
    // Half of their time tests wait, for an election, a deadline or another process. With 8 at once, two
    // processors are idle for a tenth of the time.
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let threads = *arguments.test_threads.get_or_insert((3 * processors + 2).min(32));
    let mut trials = harness::trials();
    harness::share::choose(&mut trials, &arguments);
    let chosen = trials.iter().filter(|trial| !arguments.is_filtered_out(trial)).count();
    harness::times::expect(chosen, threads == 1);
    let conclusion = libtest_mimic::run(&arguments, trials);
    harness::finish();
    conclusion.exit_code()
}
