//! `STREAMS.md`: what was expected and what was measured, then every workload.

use std::fmt::{Result, Write};

use crate::harness::machine::Machine;
use crate::harness::report::{
    grouped, with_spread, write_circumstances, write_comparisons, write_expectations, yes_or_no,
};
use crate::harness::settings::Settings;
use crate::harness::stats::Spread;
use crate::harness::turns::Outcome;
use crate::memory::Memory;
use crate::plot::{self, Bar, Group};

/// The plot's file, beside the report.
pub const PLOT: &str = "trades-per-second.svg";

/// What a run has found.
pub struct Findings {
    pub settings: Settings,
    pub machine: Machine,
    pub versions: String,
    pub outcomes: Vec<Outcome>,
    pub memory: Vec<Memory>,
}

impl Findings {
    /// The whole text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    /// Median rates.
    pub fn plot(&self) -> String {
        let group = |outcome: &'_ Outcome| Group {
            title: outcome.name,
            bars: outcome
                .series
                .iter()
                .filter(|series| !series.label.starts_with("ours again"))
                .filter_map(|series| {
                    let rate = Spread::of(series.blocks.iter().map(|block| block.rate))?.median;
                    Some(Bar { label: series.label.clone(), value: rate })
                })
                .collect(),
        };
        let groups: Vec<Group> = self.outcomes.iter().map(group).collect();
        plot::draw("Trades a second, in and out", &groups)
    }

    fn write(&self, text: &mut String) -> Result {
        writeln!(text, "# Streams: ours beside flat documents\n")?;
        writeln!(text, "Written by `make bench`; `benches/streams/main.rs` says how it measures.")?;
        if self.settings.quick {
            writeln!(text, "**A quick run, of few and short blocks: an indication, no more.**")?;
        }
        write_expectations(text, &self.outcomes)?;
        for memory in &self.memory {
            let Some(most) = memory.expected else { continue };
            let (over, holds) = (memory.over(), yes_or_no(memory.over() <= most));
            let (what, trades) = (memory.what, grouped(memory.trades));
            writeln!(
                text,
                "| memory, {what}, {trades} trades | over idle, at most | ≤ {most} MiB | {over:.0} MiB | {holds} | |"
            )?;
        }
        write_circumstances(text, &self.settings, &self.machine, &self.versions)?;
        if !self.outcomes.is_empty() {
            writeln!(text, "\n![Trades a second]({PLOT})")?;
        }
        for outcome in &self.outcomes {
            write_workload(text, outcome)?;
        }
        self.write_memory(text)
    }

    fn write_memory(&self, text: &mut String) -> Result {
        let Some(Memory { trades, .. }) = self.memory.first() else { return Ok(()) };
        writeln!(
            text,
            "\n## memory\n\nA server process of its own for each, {} trades in one request: MiB resident.\n",
            grouped(*trades)
        )?;
        writeln!(text, "| | Idle | At most | Over idle |\n|---|---|---|---|")?;
        for memory in &self.memory {
            let (what, over) = (memory.what, memory.over());
            writeln!(text, "| {what} | {:.0} | {:.0} | {over:.0} |", memory.idle, memory.peak)?;
        }
        Ok(())
    }
}

/// Rates and verdicts, and all comparisons. A block is one request or command: it has no latencies.
fn write_workload(text: &mut String, outcome: &Outcome) -> Result {
    let trades = outcome.series.iter().flat_map(|series| &series.blocks).map(|block| block.measured).max();
    let trades = grouped(trades.unwrap_or_default());
    writeln!(text, "\n## {}\n\n{} {trades} trades.\n", outcome.name, outcome.about)?;
    writeln!(text, "| | Trades/s [quartiles] | Lost | Wrong |\n|---|---|---|---|")?;
    for series in &outcome.series {
        let Some(rate) = Spread::of(series.blocks.iter().map(|block| block.rate)) else { continue };
        let total = |of: fn(&_) -> u64| series.blocks.iter().map(of).sum::<u64>();
        let (lost, wrong) = (total(|block| block.verdict.lost), total(|block| block.verdict.wrong));
        let rate = with_spread(rate, |value| grouped(value.round() as u64));
        writeln!(text, "| {} | {rate} | {lost} | {wrong} |", series.label)?;
    }
    writeln!(text)?;
    write_comparisons(text, outcome)
}
