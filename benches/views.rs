//! How fast page views are counted: ours beside plain upserts, in the "time series" scenario of the MongoDB
//! schema-design literature and beyond it.

mod contender;
mod ledger;
mod open_loop;
mod preallocation;
mod rates;
mod scenario;
mod upsert;
mod view;

use crate::harness::{Bench, Report, Result};

pub const PARTS: [&str; 3] = ["latency", "rates", "preallocation"];

pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    if bench.settings.includes("latency") {
        scenario::run(bench, report).await?;
    }
    if bench.settings.includes("rates") {
        rates::run(bench, report).await?;
    }
    if bench.settings.includes("preallocation") {
        preallocation::disk(bench, report).await?;
    }
    Ok(())
}
