//! A file of trades into a new database.

use std::time::{Duration, Instant};

use super::files::Trades;
use super::{flat, transfer};
use crate::harness::{Bench, Block, Layout, Mongod, Outcome, RATE, Result, Server, Storage, Summary};
use crate::harness::{compare, run_program};

/// Of `pagebucket import`, of one request, of so many `insertMany` under way at once, and of `COPY`: the last
/// one is left out where it is not installed.
const LABELS: [&str; 7] =
    ["ours", "ours again", "ours with a key", "ours, upload", "flat", "flat, 4 at once", "PostgreSQL"];

/// Writes a file for each workload, and has it stored in all ways.
pub async fn run(bench: &Bench) -> Result<Vec<Outcome>> {
    let count = if bench.settings.quick { 50_000 } else { 150_000 };
    let labels = if bench.postgres.is_some() { &LABELS[..] } else { &LABELS[..6] };
    let mut outcomes = Vec::new();
    for (part, name, customers, whose) in [
        ("import-one", "import, one customer", 1, "all of one customer's trades"),
        ("import-many", "import, 10,000 customers", 10_000, "each trade of a random one of 10,000 customers"),
    ] {
        if !bench.settings.includes(part) {
            continue;
        }
        let trades = Trades::write(bench, &format!("{part}.ndjson"), customers, count)?;
        let database = format!("bench_{}", part.replace('-', "_"));
        let block = async |place: usize, _| store(labels[place], bench, &database, &trades).await;
        let compared = "ours / flat ≥ 1.3; ours, upload / flat ≥ 1.3; ours with a key / ours; ours with a \
                        key / flat; ours / flat, 4 at once; ours / PostgreSQL ≥ 1; ours, upload / PostgreSQL; ours again / ours";
        let about = format!("A file of NDJSON, {whose}, into a new database.");
        let outcome = Outcome::new(name, &about, "trades", compare(RATE, compared));
        outcomes.push(outcome.in_turns(labels, &bench.settings, block).await?);
    }
    Ok(outcomes)
}

/// Stores the file in a new database, and drops that.
async fn store(label: &str, bench: &Bench, name: &str, trades: &Trades) -> Result<Summary> {
    let mongod = &bench.mongod;
    let layout = match label {
        "PostgreSQL" => None,
        "flat" | "flat, 4 at once" => Some(Layout::Flat("date")),
        _ => Some(Layout::Ours),
    };
    let storage = Storage::create(bench, layout, name, 1).await?;
    let (told, length) = match (label, &storage) {
        ("flat", Storage::Mongo(_, database)) => flat::insert(database, trades, 1).await?,
        ("flat, 4 at once", Storage::Mongo(_, database)) => flat::insert(database, trades, 4).await?,
        (_, Storage::Postgres(pool)) => flat::copy(pool, trades).await?,
        ("ours, upload", _) => {
            let ours = Server::ours(mongod.store(name).await?, |_| ()).await?;
            let uploaded = transfer::upload(ours.address, trades).await?;
            ours.stop().await?;
            uploaded
        }
        _ => command(mongod, name, trades, label == "ours with a key").await?,
    };
    if told != trades.count() {
        return Err(format!("{told} trades of {} were stored", trades.count()).into());
    }
    let mut block = Block { measured: told, length, ..Block::default() };
    block.appended(&trades.quantities, true);
    let verdict = storage.judge(trades.quantities.start, &block).await?;
    storage.drop_database().await?;
    Ok(Summary::new(block, verdict))
}

/// How many trades the program says that it has stored, and how long it took from its start to its end.
async fn command(mongod: &Mongod, database: &str, trades: &Trades, keyed: bool) -> Result<(u64, Duration)> {
    let path = trades.path.to_str().ok_or("a path that is no text")?;
    let customer = trades.customer.map(|customer| customer.to_string());
    let mut arguments = vec!["import", path];
    if let Some(customer) = &customer {
        arguments.extend(["--customer", customer]);
    }
    if keyed {
        arguments.extend(["--key", "bench"]);
    }
    let began = Instant::now();
    let said = run_program(mongod, database, &arguments).await?;
    let took = began.elapsed();
    let number = said.strip_prefix("stored ").and_then(|rest| rest.split(' ').next());
    let stored = number.and_then(|number| number.replace(',', "").parse().ok());
    Ok((stored.ok_or_else(|| format!("it does not say what it has stored: {said}"))?, took))
}
