//! Memory of a server process of its own while a long history leaves it, and while as many trades come in.

use std::net::SocketAddr;

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::files::{Directory, Trades};
use crate::harness::Result;
use crate::harness::client::Client;
use crate::harness::customers::Customers;
use crate::harness::history;
use crate::harness::mongod::Mongod;
use crate::harness::program::Program;
use crate::harness::settings::Settings;
use crate::transfer;

/// As `ONLY` names it.
pub const STAGE: &str = "memory";

const DATABASE: &str = "bench_memory";

/// The customer with the long history.
const LONG: u64 = 20_000;

/// In MiB.
pub struct Memory {
    pub what: &'static str,
    pub trades: u64,
    /// After the first request.
    pub idle: f64,
    /// The most that it ever had, since its start.
    pub peak: f64,
    /// The most that it may have over idle.
    pub expected: Option<f64>,
}

impl Memory {
    pub fn over(&self) -> f64 {
        self.peak - self.idle
    }
}

/// The most over idle while trades go out.
const EXPECTED: f64 = 32.0;

/// What a server is asked for.
enum Work {
    Export(&'static str),
    Upload(Trades),
}

/// Has a new server process do each of them.
pub async fn measure(mongod: &Mongod, directory: &Directory, settings: &Settings) -> Result<Vec<Memory>> {
    let trades = if settings.quick { 100_000 } else { 1_000_000 };
    let mut rng = StdRng::seed_from_u64(settings.seed);
    let many = Customers::Uniform(1..=10_000);
    let mut file = |name, customers| Trades::write(directory.file(name), customers, trades, &mut rng);
    let work = [
        ("export, NDJSON", Work::Export("application/x-ndjson"), Some(EXPECTED)),
        ("export, CSV", Work::Export("text/csv"), Some(EXPECTED)),
        ("upload, one customer", Work::Upload(file("memory-one.ndjson", None)?), None),
        ("upload, 10,000 customers", Work::Upload(file("memory-many.ndjson", Some(&many))?), None),
    ];
    eprintln!("bench: {STAGE}: writing a history");
    crate::harness::ours::Ours::prepare(mongod, DATABASE).await?;
    let database = mongod.database(DATABASE).await?;
    history::write(&database, history::ours, LONG..=LONG, trades / 10).await?;
    let mut measured = Vec::new();
    for (what, work, expected) in work {
        eprintln!("bench: {STAGE}: {what}");
        let server = Program::serve(mongod, DATABASE).await?;
        Client::new(server.address).get("/v1/customers/1", "").await?;
        let idle = server.resident()?;
        let done = work.run(server.address).await?;
        if done != trades {
            return Err(format!("{what}: {done} trades of {trades}").into());
        }
        let peak = server.most_resident()?;
        server.end().await?;
        measured.push(Memory { what, trades, idle, peak, expected });
    }
    database.drop().await?;
    Ok(measured)
}

impl Work {
    /// How many trades went through.
    async fn run(&self, server: SocketAddr) -> Result<u64> {
        match self {
            Self::Export(accept) => {
                let path = format!("/v1/customers/{LONG}/trades/export");
                let rows = transfer::download(server, path, accept).await?.rows;
                Ok(rows - u64::from(*accept == "text/csv"))
            }
            Self::Upload(trades) => {
                let (stored, _) = transfer::upload(server, trades).await?;
                std::fs::remove_file(&trades.path)?;
                Ok(stored)
            }
        }
    }
}
