//! How fast histories of any length come in and go out: ours beside flat documents.

mod export;
mod files;
mod flat;
mod import;
mod memory;
mod transfer;

use crate::harness::{Bench, LARGE_RATES, Report, Result, Section, grouped};

pub const PARTS: [&str; 4] = ["import-one", "import-many", "export", "memory"];

pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut outcomes = import::run(bench).await?;
    if bench.settings.includes("export") {
        outcomes.push(export::run(bench).await?);
    }
    for outcome in &outcomes {
        let blocks = outcome.series.iter().flat_map(|series| &series.blocks);
        let trades = blocks.map(|block| block.measured).max().unwrap_or_default();
        let mut section = Section::of(outcome, LARGE_RATES);
        section.about = format!("{} {} trades.", section.about, grouped(trades));
        report.workload(outcome, section);
    }
    if bench.settings.includes("memory") {
        memory::measure(bench, report).await?;
    }
    Ok(())
}
