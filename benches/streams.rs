//! How fast histories of any length come in and go out: ours beside flat documents.

mod export;
mod files;
mod flat;
mod import;
mod memory;
mod transfer;

use crate::harness::{
    Bench, LARGE_RATES, Outcome, Plot, Report, Result, Section, Series, grouped, plot_bars,
};

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
    if !outcomes.is_empty() {
        let svg = plot_bars("Trades a second, in and out", &outcomes.iter().map(bars).collect::<Vec<_>>())?;
        report.plot = Some(Plot { file: "trades-per-second.svg", alt: "Trades a second", svg });
    }
    if bench.settings.includes("memory") {
        memory::measure(bench, report).await?;
    }
    Ok(())
}

/// Median rates.
fn bars(outcome: &Outcome) -> (&str, Vec<(&str, f64)>) {
    let shown = outcome.series.iter().filter(|series| !series.label.starts_with("ours again"));
    let bar = |series: &'_ Series| series.spread(|block| block.rate).map_or(0.0, |rate| rate.median);
    (outcome.name, shown.map(|series| (series.label.as_str(), bar(series))).collect())
}
