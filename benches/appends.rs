//! How fast trades are appended: ours beside three other ways to keep the same trades in MongoDB, and
//! PostgreSQL.

mod memory;
mod messages;
mod workloads;

use crate::harness::{APPENDS, Bench, Report, Result, Section};

pub const PARTS: [&str; 6] = ["customers", "keys", "history", "arrays", "messages", "memory"];

pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    for stage in workloads::stages(&bench.settings) {
        for outcome in stage.run(bench).await? {
            report.workload(&outcome, Section::of(&outcome, APPENDS));
        }
    }
    if bench.settings.includes("messages") {
        messages::measure(bench, report).await?;
    }
    if bench.settings.includes("memory") {
        memory::measure(bench, report).await?;
    }
    Ok(())
}
