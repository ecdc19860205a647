//! A file of trades into a new database.

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::files::{Directory, Trades};
use crate::harness::Result;
use crate::harness::block::Block;
use crate::harness::check::{self, Shape};
use crate::harness::comparison::Comparison;
use crate::harness::comparison::Expected::{AtLeast, Nothing, Same};
use crate::harness::comparison::Metric::Rate;
use crate::harness::comparison::compare;
use crate::harness::customers::Customers;
use crate::harness::mongod::Mongod;
use crate::harness::ours::Ours;
use crate::harness::peers::Peer;
use crate::harness::program;
use crate::harness::settings::Settings;
use crate::harness::turns::{Outcome, Summary, in_turns};
use crate::insert;
use crate::transfer;

/// Whose trades the file holds.
pub struct Workload {
    /// As `ONLY` names it.
    pub key: &'static str,
    name: &'static str,
    about: &'static str,
    /// More than one: each trade is of one of them by chance.
    customers: u64,
}

/// The least that an import is expected to do of what flat does.
const EXPECTED: f64 = 0.6;

const OURS: &str = "ours";
const AGAIN: &str = "ours again";
const KEYED: &str = "ours with a key";
const UPLOAD: &str = "ours, upload";
const FLAT: &str = "flat";
const FLAT_4: &str = "flat, 4 at once";

/// How trades come in.
#[derive(Clone, Copy)]
enum Way {
    /// `pagebucket import`.
    Command { keyed: bool },
    /// One request.
    Upload,
    /// So many `insertMany` under way at once.
    InsertMany { at_once: usize },
}

const WAYS: [(&str, Way); 6] = [
    (OURS, Way::Command { keyed: false }),
    (AGAIN, Way::Command { keyed: false }),
    (KEYED, Way::Command { keyed: true }),
    (UPLOAD, Way::Upload),
    (FLAT, Way::InsertMany { at_once: 1 }),
    (FLAT_4, Way::InsertMany { at_once: 4 }),
];

/// In the order in which they run.
pub fn workloads() -> [Workload; 2] {
    [
        Workload {
            key: "import-one",
            name: "import, one customer",
            about: "A file of NDJSON, all of one customer's trades, into a new database.",
            customers: 1,
        },
        Workload {
            key: "import-many",
            name: "import, 10,000 customers",
            about: "A file of NDJSON, each trade of one of 10,000 customers by chance, into a new database.",
            customers: 10_000,
        },
    ]
}

fn comparisons() -> Vec<Comparison> {
    vec![
        compare(OURS, Rate, FLAT, AtLeast(EXPECTED)),
        compare(UPLOAD, Rate, FLAT, AtLeast(EXPECTED)),
        compare(KEYED, Rate, OURS, Nothing),
        compare(KEYED, Rate, FLAT, Nothing),
        compare(OURS, Rate, FLAT_4, Nothing),
        compare(AGAIN, Rate, OURS, Same),
    ]
}

/// Writes the file, and has it stored in all ways.
pub async fn run(
    workload: Workload,
    mongod: &Mongod,
    directory: &Directory,
    settings: &Settings,
) -> Result<Outcome> {
    let Workload { key, name, about, customers } = workload;
    let count = if settings.quick { 50_000 } else { 150_000 };
    let many = (customers > 1).then_some(Customers::Uniform(1..=customers));
    let path = directory.file(&format!("{key}.ndjson"));
    let trades = Trades::write(path, many.as_ref(), count, &mut StdRng::seed_from_u64(settings.seed))?;
    let database = format!("bench_{}", key.replace('-', "_"));
    let labels = WAYS.map(|(label, _)| label.to_owned());
    let block = async |place: usize, _round: u64| {
        let (label, way) = WAYS[place];
        way.block(mongod, &database, &trades).await.map_err(|error| format!("{label}: {error}").into())
    };
    let series = in_turns(name, labels, settings, block).await?;
    std::fs::remove_file(&trades.path)?;
    Ok(Outcome { name, about, unit: "trades", comparisons: comparisons(), series })
}

impl Way {
    /// Stores the file in a new database, and drops that.
    async fn block(self, mongod: &Mongod, name: &str, trades: &Trades) -> Result<Summary> {
        let database = mongod.database(name).await?;
        let (shape, (told, length)) = match self {
            Self::Command { keyed } => {
                Ours::prepare(mongod, name).await?;
                (Shape::Buckets, command(mongod, name, trades, keyed).await?)
            }
            Self::Upload => {
                let ours = Ours::start(Ours::prepare(mongod, name).await?, &[]).await?;
                let uploaded = transfer::upload(ours.address, trades).await?;
                ours.stop().await?;
                (Shape::Buckets, uploaded)
            }
            Self::InsertMany { at_once } => {
                Peer::flat(&database).await?;
                (Shape::Flat, insert::all(&database, trades, at_once).await?)
            }
        };
        if told != trades.count() {
            return Err(format!("{told} trades of {} were stored", trades.count()).into());
        }
        let mut block = Block { measured: told, length, ..Block::default() };
        block.appended(&trades.quantities, true);
        let verdict = check::judge(&database, shape, trades.quantities.start, &block).await?;
        database.drop().await?;
        Ok(Summary::new(&block, verdict))
    }
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
    let said = program::run(mongod, database, &arguments).await?;
    let took = began.elapsed();
    let number = said.strip_prefix("stored ").and_then(|rest| rest.split(' ').next());
    let stored = number.and_then(|number| number.replace(',', "").parse().ok());
    Ok((stored.ok_or_else(|| format!("it says nothing of what it has stored: {said}"))?, took))
}
