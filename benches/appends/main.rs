//! How fast trades are appended: ours beside three ways of keeping the same trades in MongoDB.
//!
//! `make bench` runs it, `make bench QUICK=1` in under 3 minutes. It writes `benches/RESULTS.md`.
//!
//! # What is compared
//!
//! | Contender | What it is |
//! |---|---|
//! | ours | the real server, `pagebucket::server::Server` |
//! | ours again | the same in a database of its own: what differs between the two is noise |
//! | manual | the MongoDB manual's upsert ([`peers`]) |
//! | flat | one document a trade, with an index |
//! | timeseries | a native time-series collection |
//! | limits | a bare driver without HTTP: ours' statements, batched `insertMany`, `ping` ([`limits`]) |
//!
//! # How
//!
//! - **One mongod**, private to the run ([`mongod`]); one process with all servers; one at a time is under load.
//! - **The same shell**: peers stand behind the same hyper settings, axum layers, parser of trades and size of
//!   answer as ours ([`shell`]), with the same driver settings: pool 64, majority, journal.
//! - **Closed loop**: each connection sends its next request when the last is answered ([`load`]). The load comes
//!   from this process, from one thread with a runtime of its own: a child process would cost the same cycles of
//!   the same cores, and a scheduler shared with the servers would let them wake each other for free.
//! - **Short blocks in turns**: in each round all contenders of a workload have one block each, in shuffled
//!   order. A slow minute of the machine then slows all of them, and ratios are of blocks of one round ([`stats`]).
//! - **Counted**: after each block the trades stored are compared with those acknowledged ([`check`]).

mod block;
mod check;
mod client;
mod contender;
mod customers;
mod history;
mod limits;
mod load;
mod machine;
mod memory;
mod mongod;
mod ours;
mod peers;
mod report;
mod settings;
mod shell;
mod stage;
mod stats;
mod workloads;

use std::process::ExitCode;
use std::time::Instant;

use settings::Settings;
use tokio::signal::unix::{SignalKind, signal};

// As the server itself has it: what is measured is what is shipped.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Whatever goes wrong in a benchmark ends it.
type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

#[tokio::main]
async fn main() -> ExitCode {
    // `cargo test --all-targets` runs benchmarks without this flag, to see whether they start.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    // An interruption drops the run, and with it the mongod and its directory.
    let ended = tokio::select! {
        ended = run() => ended,
        () = interrupted() => Err("interrupted".into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
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

async fn run() -> Result<()> {
    let (began, settings) = (Instant::now(), Settings::from_environment()?);
    eprintln!("bench: seed {}, {} rounds", settings.seed, settings.rounds);
    // As in the program. Its log is left out: a line a request would measure the terminal.
    pagebucket::telemetry::measure();
    let machine = machine::Machine::look();
    let mongod = mongod::Mongod::start().await?;
    let mut workloads = Vec::new();
    for stage in workloads::stages(&settings) {
        if settings.includes(stage.name) {
            workloads.extend(stage::run(stage, &mongod, &settings).await?);
        }
    }
    let memory = if settings.includes(memory::STAGE) {
        Some(memory::measure(&mongod, &settings).await?)
    } else {
        None
    };
    let version = mongod.version().await?;
    mongod.remove().await?;
    let text = report::write(&settings, &machine, &version, &workloads, memory.as_ref());
    println!("{text}");
    eprintln!("bench: done in {:.0} s", began.elapsed().as_secs_f64());
    if settings.only.is_none() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/RESULTS.md"), text)?;
    }
    Ok(())
}
