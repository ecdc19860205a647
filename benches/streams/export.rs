//! A whole history, as rows.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mongodb::IndexModel;
use mongodb::bson::{Document, doc};

use crate::files::{Directory, count_rows};
use crate::harness::Result;
use crate::harness::block::Block;
use crate::harness::check::{COLLECTION, Verdict};
use crate::harness::comparison::Comparison;
use crate::harness::comparison::Expected::{Nothing, Same};
use crate::harness::comparison::Metric::Rate;
use crate::harness::comparison::compare;
use crate::harness::history;
use crate::harness::mongod::Mongod;
use crate::harness::ours::Ours;
use crate::harness::program;
use crate::harness::settings::Settings;
use crate::harness::shell;
use crate::harness::turns::{Outcome, Summary, in_turns};
use crate::stream;
use crate::transfer::{self, Downloaded};

/// As `ONLY` names it.
pub const STAGE: &str = "export";

const NDJSON: &str = "ours, NDJSON";
const AGAIN: &str = "ours again, NDJSON";
const CSV: &str = "ours, CSV";
const COMMAND: &str = "ours, command";
const FLAT: &str = "flat, NDJSON";

const LABELS: [&str; 5] = [NDJSON, AGAIN, CSV, COMMAND, FLAT];

const OURS: &str = "bench_export_ours";
const PEER: &str = "bench_export_flat";

fn comparisons() -> Vec<Comparison> {
    vec![
        compare(NDJSON, Rate, FLAT, Nothing),
        compare(CSV, Rate, FLAT, Nothing),
        compare(COMMAND, Rate, FLAT, Nothing),
        compare(AGAIN, Rate, NDJSON, Same),
    ]
}

/// Who is asked.
struct Servers {
    ours: SocketAddr,
    flat: SocketAddr,
}

/// Writes the same history for both, and has it exported in all ways.
pub async fn run(mongod: &Mongod, directory: &Directory, settings: &Settings) -> Result<Outcome> {
    let pages = if settings.quick { 10_000 } else { 50_000 };
    eprintln!("bench: {STAGE}: writing histories");
    let store = Ours::prepare(mongod, OURS).await?;
    let ours_database = mongod.database(OURS).await?;
    history::write(&ours_database, history::ours, 1..=1, pages).await?;
    let ours = Ours::start(store, &[]).await?;
    let flat_database = mongod.database(PEER).await?;
    // It serves the order of arrival.
    let index = IndexModel::builder().keys(doc! { "customerId": 1, "_id": 1 }).build();
    flat_database.collection::<Document>(COLLECTION).create_index(index).await?;
    history::write(&flat_database, history::flat, 1..=1, pages).await?;
    let (flat, serving) = shell::serve(shell::layered(stream::routes(&flat_database))).await?;

    let servers = Servers { ours: ours.address, flat };
    let block = async |place: usize, _round: u64| {
        let label = LABELS[place];
        let exported = servers.export(label, mongod, directory).await;
        let exported = exported.and_then(|exported| judge(label, exported, pages * 10));
        exported.map_err(|error| format!("{label}: {error}").into())
    };
    let series = in_turns(STAGE, LABELS.map(str::to_owned), settings, block).await?;
    ours.stop().await?;
    serving.abort();
    ours_database.drop().await?;
    flat_database.drop().await?;
    Ok(Outcome {
        name: STAGE,
        about: "A whole history, written directly, of one customer.",
        unit: "trades",
        comparisons: comparisons(),
        series,
    })
}

impl Servers {
    async fn export(&self, label: &str, mongod: &Mongod, directory: &Directory) -> Result<Downloaded> {
        let path = || "/v1/customers/1/trades/export".to_owned();
        match label {
            FLAT => transfer::download(self.flat, path(), "application/x-ndjson").await,
            CSV => transfer::download(self.ours, path(), "text/csv").await,
            COMMAND => {
                let file = directory.file("export.ndjson");
                let name = file.to_str().ok_or("a path that is no text")?;
                let began = Instant::now();
                program::run(mongod, OURS, &["export", "--customer", "1", "-o", name]).await?;
                let took: Duration = began.elapsed();
                let (rows, last) = count_rows(&file)?;
                std::fs::remove_file(&file)?;
                Ok(Downloaded { rows, last, took })
            }
            _ => transfer::download(self.ours, path(), "application/x-ndjson").await,
        }
    }
}

/// # Errors
/// There are other rows than those of the history.
fn judge(label: &str, exported: Downloaded, trades: u64) -> Result<Summary> {
    let Downloaded { rows, last, took } = exported;
    let header = u64::from(label == CSV);
    // Its quantity is its number.
    let number = if label == CSV { format!(",{trades},") } else { format!("\"qty\":{trades},") };
    if rows != trades + header || !last.contains(&number) {
        return Err(format!("{rows} rows of {trades} trades, the last of them {last}").into());
    }
    Ok(Summary::new(&Block { measured: trades, length: took, ..Block::default() }, Verdict::default()))
}
