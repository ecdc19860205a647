//! How fast pages are read: ours beside other ways of having the same pages from MongoDB.
//!
//! `make bench` runs it, `make bench BENCH=reads QUICK=1` alone and in a few minutes. It writes `benches/READS.md`, and a
//! plot beside it ([`plot`]).
//!
//! # What is compared
//!
//! | Contender | What it is |
//! |---|---|
//! | ours | the real server, `pagebucket::server::Server`, with its defaults |
//! | ours again | the same a second time: what differs between the two is noise |
//! | ours, cache off | `--page-cache 0` |
//! | manual | the MongoDB manual's buckets: a regex on `_id`, sort, skip ([`readers`]) |
//! | flat | one document a trade: skip and limit, and a count for the totals |
//! | flat, no totals | the same without the count |
//! | keyset | the same documents by a cursor |
//! | mongoose-paginate-v2, mongo-cursor-pagination | libraries from npm behind Fastify, on flat's documents ([`fastify`]) |
//! | find by _id | a handler that does only this, behind our layers and behind none ([`minimal`]) |
//! | static | a handler that has the bytes in memory |
//!
//! # How
//!
//! As the benchmark of appends: one private mongod, one contender at a time under load from connections in a closed
//! loop, short blocks in turns, ratios of blocks of one round. Besides:
//!
//! - **Histories are written directly** ([`histories`]), in full pages: each contender's documents as it would have left
//!   them. They fit into mongod's cache: no time is a disk's.
//! - **Answers are looked at**: the first of each connection in each block must show the trades that were asked for,
//!   and every walk must end where it should. A wrong answer ends the run.
//! - **The load shares the cores** with what it measures, so a ratio of throughputs is that of client and server
//!   together, as a client on the same machine sees them.
//! - **Fastify's servers are processes of their own**, one each, in Node's one thread: a second would have a
//!   second core. Of latencies with one connection this says nothing.

mod contender;
mod depth;
mod disk;
mod fastify;
mod histories;
mod minimal;
mod plot;
mod readers;
mod reading;
mod report;
mod stage;
mod workloads;

#[path = "../harness/harness.rs"]
#[allow(dead_code, reason = "each benchmark uses what it needs of it")]
mod harness;

use std::path::Path;
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
    let stages = workloads::stages(&settings);
    let workloads = stages.iter().flat_map(|stage| &stage.workloads);
    let mut keys: Vec<&str> = workloads.map(|workload| workload.key).chain([disk::STAGE]).collect();
    keys.dedup();
    if settings.leaves_out(&keys) {
        eprintln!("bench: none of the workloads of reads: {}", keys.join(", "));
        return Ok(());
    }
    eprintln!("bench: reads, seed {}, {} rounds", settings.seed, settings.rounds);
    let without_npm = fastify::installed().is_none();
    if without_npm {
        eprintln!(
            "bench: NPM_PEERS is not set: mongoose-paginate-v2 and mongo-cursor-pagination are left out"
        );
    }
    let machine = Machine::look();
    let mongod = Mongod::start().await?;
    let mut outcomes = Vec::new();
    for stage in stages {
        outcomes.extend(stage::run(stage, &mongod, &settings).await?);
    }
    let disk =
        if settings.includes(disk::STAGE) { disk::measure(&mongod, &settings).await? } else { Vec::new() };
    let mut versions = format!("mongod {}", mongod.version().await?);
    if !without_npm {
        versions = format!("{versions}, {}", fastify::versions().await?);
    }
    mongod.remove().await?;
    let keep = settings.only.is_none();
    let findings = Findings { settings, machine, versions, without_npm, outcomes, disk };
    println!("{}", findings.text());
    if keep {
        let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
        std::fs::write(benches.join("READS.md"), findings.text())?;
        if let Some(plot) = findings.plot() {
            std::fs::write(benches.join(report::PLOT), plot)?;
        }
    }
    Ok(())
}
