//! How fast page views are counted: ours beside plain upserts, in the "time series" scenario of the MongoDB
//! schema-design literature and beyond it.
//!
//! `make bench` runs it, `make bench BENCH=views QUICK=1` alone and in a few minutes. It writes `benches/VIEWS.md`.
//!
//! # What is compared
//!
//! | Contender | What it is |
//! |---|---|
//! | ours | the real server, `pagebucket::server::Server`, by `POST /v1/page-views` with one view in each |
//! | ours again | the same in a database of its own: what differs between the two is noise |
//! | bare driver | one `updateOne` a view, without HTTP ([`upsert`]) |
//! | plain upsert | the same statement behind a minimal axum handler |
//! | plain upsert, our collection | the same with our validator and our second index, which the literature has not |
//! | w: 1 | acknowledged as published: in memory, and ours by a setting that only this benchmark has |
//! | preallocated | minutes are there, all zeros, before they are counted in |
//!
//! # How
//!
//! As the benchmark of appends: one private mongod, one process with all servers, the same shell around the peers, one
//! contender at a time under load, blocks in turns, ratios of blocks of one round. Besides:
//!
//! - **Open loop** ([`open_loop`]): views come evenly spread, whether or not those before them are answered, and latency runs
//!   from the moment at which a view was to be sent.
//! - **1,000 users a second in all** ([`scenario`]), 250 in each of 4 processes: the published sentence may also be read as
//!   1,000 in each. The processes are groups of connections, or drivers with connections of their own.
//! - **The highest rate** ([`rates`]) that each holds with p99 below 50 ms and no errors, by a search.
//! - **No validator in the peers' collection**, as the literature has it: this favours them. What it costs is a contender
//!   of its own.
//! - **Counted**: after each block the views stored are compared with those acknowledged, total and seconds ([`ledger`]).

mod contender;
mod ledger;
mod open_loop;
mod preallocation;
mod rates;
mod report;
mod scenario;
mod search;
mod upsert;
mod views;

#[path = "../harness/harness.rs"]
#[allow(dead_code, reason = "each benchmark uses what it needs of it")]
mod harness;

use std::process::ExitCode;

use harness::machine::Machine;
use harness::mongod::Mongod;
use harness::settings::Settings;
use report::Findings;

#[tokio::main]
async fn main() -> ExitCode {
    harness::program(run()).await
}

async fn run() -> harness::Result<()> {
    let settings = Settings::from_environment()?;
    let stages = [scenario::STAGE, rates::STAGE, preallocation::STAGE];
    if settings.leaves_out(&stages) {
        eprintln!("bench: none of the stages of views: {}", stages.join(", "));
        return Ok(());
    }
    eprintln!("bench: views, seed {}, {} rounds", settings.seed, settings.rounds);
    let machine = Machine::look();
    let mongod = Mongod::start().await?;
    let mut scenario = None;
    if settings.includes(scenario::STAGE) {
        scenario = Some(scenario::run(&mongod, &settings).await?);
    }
    let mut rates = Vec::new();
    if settings.includes(rates::STAGE) {
        rates = rates::run(&mongod, &settings).await?;
    }
    let (mut first_views, mut disk) = (None, Vec::new());
    if settings.includes(preallocation::STAGE) {
        first_views = Some(preallocation::first_views(&mongod, &settings).await?);
        disk = preallocation::disk(&mongod, &settings).await?;
    }
    let version = mongod.version().await?;
    mongod.remove().await?;
    let keep = settings.only.is_none();
    let findings = Findings { settings, machine, mongod: version, scenario, rates, first_views, disk };
    println!("{}", findings.text());
    if keep {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/VIEWS.md"), findings.text())?;
    }
    Ok(())
}
