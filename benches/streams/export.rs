//! A whole history, as rows.

use std::time::{Duration, Instant};

use super::flat;
use super::transfer::{Rows, download};
use crate::harness::{Bench, Block, Layout, Outcome, RATE, Result, Server, Summary, Verdict};
use crate::harness::{compare, run_program, write_history};

const LABELS: [&str; 5] =
    ["ours, NDJSON", "ours again, NDJSON", "ours, CSV", "ours, command", "flat, NDJSON"];

/// Writes the same history for both, and has it exported in all ways.
pub async fn run(bench: &Bench) -> Result<Outcome> {
    let mongod = &bench.mongod;
    let pages = if bench.settings.quick { 10_000 } else { 50_000 };
    let trades = pages * 10;
    eprintln!("bench: export: writing histories");
    let mut databases = Vec::new();
    // The index serves the order of arrival.
    for (name, layout) in [("bench_export_ours", Layout::Ours), ("bench_export_flat", Layout::Flat("_id"))] {
        let database = layout.create(mongod, name).await?;
        write_history(&database, layout, (1, 1, pages)).await?;
        databases.push(database);
    }
    let name = databases[0].name();
    let ours = Server::ours(mongod.store(name).await?, |_| ()).await?;
    let flat = Server::peer(flat::routes(&databases[1]), true).await?;
    let block = async |place: usize, _| {
        let (rows, length) = match LABELS[place] {
            "flat, NDJSON" => download(flat.address, 1, "ndjson").await?,
            "ours, CSV" => download(ours.address, 1, "csv").await?,
            "ours, command" => command(bench, name).await?,
            _ => download(ours.address, 1, "ndjson").await?,
        };
        // A trade's quantity is its number.
        let (header, number) = match LABELS[place] {
            "ours, CSV" => (1, format!(",{trades},")),
            _ => (0, format!("\"qty\":{trades},")),
        };
        let (count, last) = (rows.count, rows.last());
        if count != trades + header || !last.contains(&number) {
            return Err(format!("{count} rows of {trades} trades, the last of them {last}").into());
        }
        Ok(Summary::new(Block { measured: trades, length, ..Block::default() }, Verdict::default()))
    };
    let compared = "ours, NDJSON / flat, NDJSON; ours, CSV / flat, NDJSON; ours, command / flat, NDJSON; \
                    ours again, NDJSON / ours, NDJSON";
    let about = "A whole history, written directly, of one customer.";
    let outcome = Outcome::new("export", about, "trades", compare(RATE, compared));
    let outcome = outcome.in_turns(LABELS, &bench.settings, block).await?;
    ours.stop().await?;
    flat.stop().await?;
    for database in databases {
        database.drop().await?;
    }
    Ok(outcome)
}

/// By the program into a file.
async fn command(bench: &Bench, database: &str) -> Result<(Rows, Duration)> {
    let file = bench.mongod.file("export.ndjson");
    let path = file.to_str().ok_or("a path that is no text")?;
    let began = Instant::now();
    run_program(&bench.mongod, database, &["export", "--customer", "1", "-o", path]).await?;
    let took = began.elapsed();
    let mut rows = Rows::default();
    rows.add(&std::fs::read(&file)?);
    std::fs::remove_file(&file)?;
    Ok((rows, took))
}
