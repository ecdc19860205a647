//! All integration tests, in one binary, against a real mongod.
//!
//! It brings its own harness (libtest-mimic), because the shared mongod has to be removed after the
//! last test, also after a failed one. Flags are those of any Rust test: a filter, `--list`,
//! `--test-threads`, `--nocapture`.

mod harness;

mod appends;
mod embedded;
mod service;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = libtest_mimic::Arguments::from_args();
    let mut trials = Vec::new();
    trials.extend(appends::tests());
    trials.extend(embedded::tests());
    trials.extend(service::tests());
    let conclusion = libtest_mimic::run(&arguments, trials);
    harness::finish();
    conclusion.exit_code()
}
