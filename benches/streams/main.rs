//! How fast histories of any length come in and go out: ours beside flat documents.
//!
//! `make bench` runs it, `make bench BENCH=streams QUICK=1` alone and in two minutes. It writes `benches/STREAMS.md`, and a
//! plot beside it ([`plot`]).
//!
//! # What is compared
//!
//! | Contender | What it is |
//! |---|---|
//! | ours | `pagebucket import`, a process of its own as users run it, from its start to its end |
//! | ours again | the same once more: what differs between the two is noise |
//! | ours with a key | the same with `--key`, by which it could be continued |
//! | ours, upload | the same file as the body of one request to the real server |
//! | flat | as `mongoimport` does: `insertMany` of 1,000 documents, unordered, one after the other ([`insert`]) |
//! | flat, 4 at once | the same as with `--numInsertionWorkers 4` |
//! | ours, NDJSON; ours, CSV | an export over HTTP |
//! | ours, command | `pagebucket export` to a file, a process of its own |
//! | flat, NDJSON | a cursor on the same trades, streamed by a handler that does only this ([`stream`]) |
//!
//! # How
//!
//! As the benchmark of appends: one private mongod, one contender at a time, blocks in turns, ratios of blocks of one
//! round. Besides:
//!
//! - **A block is a whole file**, into a new database, or a whole history, out of one that was written directly.
//! - **The same file, the same reader**: flat's rows are read by `pagebucket::import`, ahead and in a thread of their own,
//!   as ours are. It is in this process and connected beforehand, which favours it; ours is started, and connects,
//!   within its time.
//! - **The same promise**: majority and journal, for flat and for ours.
//! - **Counted**: after each import the trades stored are compared with those of the file ([`harness::check`]); of each
//!   export the rows are counted, and the last must be the history's last.
//! - **Memory** is that of a server in a process of its own ([`memory`]).

mod export;
mod files;
mod import;
mod insert;
mod memory;
mod plot;
mod report;
mod stream;
mod transfer;

#[path = "../harness/harness.rs"]
#[allow(dead_code, reason = "each benchmark uses what it needs of it")]
mod harness;

use std::path::Path;
use std::process::ExitCode;

use files::Directory;
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
    let imports = import::workloads();
    let keys: Vec<&str> =
        imports.iter().map(|workload| workload.key).chain([export::STAGE, memory::STAGE]).collect();
    if settings.leaves_out(&keys) {
        eprintln!("bench: none of the stages of streams: {}", keys.join(", "));
        return Ok(());
    }
    eprintln!("bench: streams, seed {}, {} rounds", settings.seed, settings.rounds);
    let machine = Machine::look();
    let mongod = Mongod::start().await?;
    let directory = Directory::new()?;
    let mut outcomes = Vec::new();
    for workload in imports {
        if settings.includes(workload.key) {
            outcomes.push(import::run(workload, &mongod, &directory, &settings).await?);
        }
    }
    if settings.includes(export::STAGE) {
        outcomes.push(export::run(&mongod, &directory, &settings).await?);
    }
    let memory = match settings.includes(memory::STAGE) {
        true => memory::measure(&mongod, &directory, &settings).await?,
        false => Vec::new(),
    };
    let versions = format!("mongod {}", mongod.version().await?);
    mongod.remove().await?;
    let keep = settings.only.is_none();
    let findings = Findings { settings, machine, versions, outcomes, memory };
    println!("{}", findings.text());
    if keep {
        let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
        std::fs::write(benches.join("STREAMS.md"), findings.text())?;
        std::fs::write(benches.join(report::PLOT), findings.plot())?;
    }
    Ok(())
}
