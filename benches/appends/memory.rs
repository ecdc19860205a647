//! Memory of a server process of its own, with many customers known and under load.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::harness::Result;
use crate::harness::customers::Customers;
use crate::harness::load::{self, Append, Load};
use crate::harness::mongod::Mongod;
use crate::harness::program::Program;
use crate::harness::settings::{Settings, Timing};

/// As `ONLY` names it.
pub const STAGE: &str = "memory";

const CUSTOMERS: u64 = 100_000;
const DATABASE: &str = "bench_memory";

/// The most that it may have, in MiB.
pub const EXPECTED: f64 = 96.0;

/// In MiB.
pub struct Memory {
    pub customers: u64,
    /// Right after its start.
    pub idle: f64,
    /// The median of samples under load.
    pub resident: f64,
    /// The most that it ever had, since its start.
    pub peak: f64,
}

/// Starts `pagebucket serve`, sends it a trade for each customer, and looks at it under load.
pub async fn measure(mongod: &Mongod, settings: &Settings) -> Result<Memory> {
    eprintln!("bench: {STAGE}: a trade for each of {CUSTOMERS} customers");
    let server = Program::serve(mongod, DATABASE).await?;
    let idle = server.resident()?;
    let at_most = Timing { warm_up: Duration::ZERO, measured: Duration::from_secs(15) };
    // More connections than elsewhere, to be done sooner; a quick run goes on with those that it has reached.
    let touch = Load {
        connections: 256,
        task: Append { trades: 1, customers: Customers::each(1..=CUSTOMERS), keyed: false },
        timing: settings.quick.then_some(at_most),
        seed: settings.seed,
    };
    let touched = load::run(server.address, touch).await?;
    let timing = Timing { warm_up: Duration::ZERO, measured: Duration::from_secs(3) };
    let customers = Customers::Uniform(1..=touched.acknowledged.count.max(1));
    let under_load = Load {
        connections: 64,
        task: Append { trades: 1, customers, keyed: false },
        timing: Some(timing),
        seed: settings.seed,
    };
    let load: JoinHandle<_> = tokio::spawn(load::run(server.address, under_load));
    let mut samples = Vec::new();
    while !load.is_finished() {
        samples.push(server.resident()?);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    load.await??;
    let peak = server.most_resident()?;
    server.end().await?;
    mongod.database(DATABASE).await?.drop().await?;
    samples.sort_unstable_by(f64::total_cmp);
    let resident = samples.get(samples.len() / 2).copied().unwrap_or(peak);
    Ok(Memory { customers: touched.acknowledged.count, idle, resident, peak })
}
