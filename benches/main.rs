//! How fast pagebucket is beside other ways to keep the same data, and what grows with it: eight suites,
//! each with a report beside this file. `benches/README.md` says what they compare and how, and which
//! variables `make bench` reads.

#![allow(unreachable_pub, reason = "no other crate can use a benchmark")]

mod appends;
mod grow;
mod harness;
mod live;
mod reads;
mod series;
mod streams;
mod summaries;
mod views;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use harness::{Bench, Mongod, Postgres, Report, Result, Settings};
use tokio::signal::unix::{SignalKind, signal};

// As the server itself has it: what is measured is what is shipped.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Name, report, title, and parts as `ONLY` names them.
const SUITES: [(&str, &str, &str, &[&str]); 8] = [
    ("appends", "RESULTS.md", "Appends: ours beside others", &appends::PARTS),
    ("reads", "READS.md", "Reads: ours beside others", &reads::PARTS),
    ("streams", "STREAMS.md", "Streams: ours beside flat documents", &streams::PARTS),
    ("views", "VIEWS.md", "Page views: ours beside others", &views::PARTS),
    ("summaries", "SUMMARIES.md", "Summaries: ours beside aggregations", &summaries::PARTS),
    ("series", "SERIES.md", "Time series: ours beside aggregations", &series::PARTS),
    ("live", "LIVE.md", "Live streams: ours beside change streams", &live::PARTS),
    ("grow", "GROW.md", "Growth: what more owners cost", &grow::PARTS),
];

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --all-targets` runs benchmarks without this flag, to see whether they start.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let began = Instant::now();
    // As in the program. Its log is left out: a line for each request would measure the terminal.
    pagebucket_service::measure();
    let suites = arguments.into_iter().filter(|argument| !argument.starts_with("--")).collect();
    // An interruption drops the run, and with it the mongod and its directory.
    let ended = tokio::select! {
        ended = run(suites) => ended,
        _ = interrupted() => Err("interrupted".into()),
    };
    if let Err(error) = ended {
        eprintln!("bench: {error}");
        return ExitCode::FAILURE;
    }
    eprintln!("bench: done in {:.0} s", began.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}

/// Runs these suites, or all of them when none is named.
async fn run(asked: Vec<String>) -> Result<()> {
    let settings = Settings::from_environment()?;
    if let Some(unknown) = asked.iter().find(|asked| SUITES.iter().all(|(name, ..)| name != asked)) {
        let suites = SUITES.map(|(name, ..)| name).join(", ");
        return Err(format!("there is no suite {unknown}: {suites}").into());
    }
    let mut suites = SUITES.to_vec();
    suites.retain(|(name, ..)| asked.is_empty() || asked.iter().any(|asked| asked == name));
    suites.retain(|(.., parts)| parts.iter().any(|part| settings.includes(part)));
    if suites.is_empty() {
        return Err("ONLY names no part of these suites: see benches/README.md".into());
    }
    for (name, file, title, _) in suites {
        eprintln!("bench: {name}, seed {}, {} rounds", settings.seed, settings.rounds);
        let mut report = Report::new(title);
        let has_rows = matches!(name, "appends" | "reads" | "streams");
        let postgres = if has_rows { Postgres::start().await? } else { None };
        match &postgres {
            Some(postgres) => report.versions = format!(", PostgreSQL {}", postgres.version().await?),
            None if has_rows => report.leave_out("Without PostgreSQL: it is not installed."),
            None => {}
        }
        let cache = if name == "grow" { grow::CACHE } else { "2" };
        let bench = Bench { settings: settings.clone(), mongod: Mongod::start(cache).await?, postgres };
        match name {
            "appends" => appends::run(&bench, &mut report).await?,
            "reads" => reads::run(&bench, &mut report).await?,
            "streams" => streams::run(&bench, &mut report).await?,
            "summaries" => summaries::run(&bench, &mut report).await?,
            "series" => series::run(&bench, &mut report).await?,
            "grow" => grow::run(&bench, &mut report).await?,
            "live" => live::run(&bench, &mut report).await?,
            _ => views::run(&bench, &mut report).await?,
        }
        let text = report.text(&settings, &bench.mongod.version().await?);
        bench.mongod.remove().await?;
        println!("{text}");
        if settings.only.is_none() {
            let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
            std::fs::write(benches.join(file), text)?;
            if let Some((file, svg)) = report.plot {
                std::fs::write(benches.join(file), svg)?;
            }
        }
    }
    Ok(())
}

async fn interrupted() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}
