//! What the benchmarks have in common: a mongod, servers with the same shell, load from connections in a closed loop,
//! blocks in turns, and tables of what came out.

pub mod block;
pub mod check;
pub mod client;
pub mod comparison;
pub mod customers;
pub mod history;
pub mod load;
pub mod machine;
pub mod mongod;
pub mod ours;
pub mod peers;
pub mod program;
pub mod report;
pub mod settings;
pub mod shell;
pub mod stats;
pub mod svg;
pub mod turns;

use std::process::ExitCode;
use std::time::Instant;

use tokio::signal::unix::{SignalKind, signal};

// As the server itself has it: what is measured is what is shipped.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Whatever goes wrong in a benchmark ends it.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// Runs a benchmark to its end, or to an interruption.
pub async fn program(run: impl Future<Output = Result<()>>) -> ExitCode {
    // `cargo test --all-targets` runs benchmarks without this flag, to see whether they start.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let began = Instant::now();
    // As in the program. Its log is left out: a line a request would measure the terminal.
    pagebucket::telemetry::measure();
    // An interruption drops the run, and with it the mongod and its directory.
    let ended = tokio::select! {
        ended = run => ended,
        () = interrupted() => Err("interrupted".into()),
    };
    match ended {
        Ok(()) => {
            eprintln!("bench: done in {:.0} s", began.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
