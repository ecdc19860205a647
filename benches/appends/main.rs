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
//! | manual | the MongoDB manual's upsert ([`harness::peers`]) |
//! | flat | one document a trade, with an index |
//! | ours with keys | ours, with a fresh `Idempotency-Key` in each request |
//! | flat with trade ids | flat that keeps the same key as the trade's id, under a unique index |
//! | timeseries | a native time-series collection |
//! | limits | a bare driver without HTTP: ours' statements, batched `insertMany`, `ping` ([`limits`]) |
//!
//! # How
//!
//! - **One mongod**, private to the run ([`harness::mongod`]); one process with all servers; one at a time is under load.
//! - **The same shell**: peers stand behind the same hyper settings, axum layers, parser of trades and size of
//!   answer as ours ([`harness::shell`]), with the same driver settings: pool 64, majority, journal.
//! - **Closed loop**: each connection sends its next request when the last is answered ([`harness::load`]). The load comes
//!   from this process, from one thread with a runtime of its own: a child process would cost the same cycles of
//!   the same cores, and a scheduler shared with the servers would let them wake each other for free.
//! - **Short blocks in turns**: in each round all contenders of a workload have one block each, in shuffled
//!   order. A slow minute of the machine then slows all of them, and ratios are of blocks of one round ([`harness::stats`]).
//! - **Counted**: after each block the trades stored are compared with those acknowledged ([`harness::check`]).

mod contender;
mod limits;
mod memory;
mod report;
mod stage;
mod workloads;

#[path = "../harness/harness.rs"]
#[allow(dead_code, reason = "each benchmark uses what it needs of it")]
mod harness;

use std::process::ExitCode;

use harness::machine::Machine;
use harness::mongod::Mongod;
use harness::settings::Settings;

#[tokio::main]
async fn main() -> ExitCode {
    harness::program(run()).await
}

async fn run() -> harness::Result<()> {
    let settings = Settings::from_environment()?;
    let stages = workloads::stages(&settings);
    let names: Vec<&str> = stages.iter().map(|stage| stage.name).chain([memory::STAGE]).collect();
    if settings.leaves_out(&names) {
        eprintln!("bench: none of the stages of appends: {}", names.join(", "));
        return Ok(());
    }
    eprintln!("bench: appends, seed {}, {} rounds", settings.seed, settings.rounds);
    let machine = Machine::look();
    let mongod = Mongod::start().await?;
    let mut outcomes = Vec::new();
    for stage in stages {
        if settings.includes(stage.name) {
            outcomes.extend(stage::run(stage, &mongod, &settings).await?);
        }
    }
    let memory = if settings.includes(memory::STAGE) {
        Some(memory::measure(&mongod, &settings).await?)
    } else {
        None
    };
    let version = mongod.version().await?;
    mongod.remove().await?;
    let text = report::write(&settings, &machine, &version, &outcomes, memory.as_ref());
    println!("{text}");
    if settings.only.is_none() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/RESULTS.md"), text)?;
    }
    Ok(())
}
