//! `READS.md`: what was expected and what was measured, then every workload.

use std::fmt::Write;

use crate::depth;
use crate::disk::{self, Disk};
use crate::harness::machine::Machine;
use crate::harness::report::{
    grouped, write_circumstances, write_comparisons, write_expectations, write_workload, yes_or_no,
};
use crate::harness::settings::Settings;
use crate::harness::turns::Outcome;
use crate::plot::{self, Line};
use crate::workloads::AGAIN;

/// The plot's file, beside the report.
pub const PLOT: &str = "latency-by-depth.svg";

/// What a run has found.
pub struct Findings {
    pub settings: Settings,
    pub machine: Machine,
    pub versions: String,
    /// Whether the libraries from npm were left out.
    pub without_npm: bool,
    pub outcomes: Vec<Outcome>,
    pub disk: Vec<Disk>,
}

impl Findings {
    /// The whole text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    /// Latency against depth in the longest of the histories; `None` when that was not measured.
    pub fn plot(&self) -> Option<String> {
        let rows = self.outcomes.iter().rev().find_map(depth::medians)?;
        let shown = rows.iter().filter(|(label, _)| *label != AGAIN);
        let lines = shown.map(|(label, points)| Line {
            label,
            points: points.iter().map(|(page, spread)| (*page, spread.median)).collect(),
        });
        let lines: Vec<Line<'_>> = lines.collect();
        Some(plot::draw("A page of 1,000,000 trades, one connection: median latency by page", &lines))
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "# Reads: ours beside others\n")?;
        writeln!(text, "Written by `make bench`; `benches/reads/main.rs` says how it measures.")?;
        if self.settings.quick {
            writeln!(text, "**A quick run, of few and short blocks: an indication, no more.**")?;
        }
        if self.without_npm {
            writeln!(
                text,
                "**Without mongoose-paginate-v2 and mongo-cursor-pagination: there was no Node.js to run them.**"
            )?;
        }
        write_expectations(text, &self.outcomes)?;
        for (by, ratio) in self.disk_ratios() {
            let (most, holds) = (disk::EXPECTED, yes_or_no(ratio <= disk::EXPECTED));
            writeln!(
                text,
                "| disk, trades {by} | bytes a trade, ours / flat | ≤ {most} | {ratio:.2} | {holds} | |"
            )?;
        }
        write_circumstances(text, &self.settings, &self.machine, &self.versions)?;
        let (by_depth, others): (Vec<_>, Vec<_>) =
            self.outcomes.iter().partition(|outcome| depth::medians(outcome).is_some());
        if !by_depth.is_empty() {
            writeln!(text, "\n![Median latency by page]({PLOT})")?;
        }
        for outcome in by_depth {
            depth::write(text, outcome)?;
            write_comparisons(text, outcome)?;
        }
        for outcome in others {
            write_workload(text, outcome)?;
        }
        self.write_disk(text)
    }

    /// Ours as a share of flat, for each way in which the trades came.
    fn disk_ratios(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.disk.chunks_exact(2).map(|pair| (pair[0].by, pair[0].total() / pair[1].total()))
    }

    fn write_disk(&self, text: &mut String) -> std::fmt::Result {
        let Some(Disk { trades, .. }) = self.disk.first() else { return Ok(()) };
        writeln!(
            text,
            "\n## disk\n\nBytes a trade after {} trades over 10,000 customers, sent over HTTP by 64 connections, and a \
             checkpoint: the files of data and indexes. Of the data some is free to be used again: pages that were \
             rewritten. Documents: before compression. Flat with its indexes on `_id` and `{{customerId, date}}`.\n",
            grouped(*trades)
        )?;
        writeln!(text, "| | Trades came | Documents | Data | of which free | Indexes | Data and indexes |")?;
        writeln!(text, "|---|---|---|---|---|---|---|")?;
        for disk in &self.disk {
            let Disk { label, by, documents, data, free, indexes, .. } = disk;
            writeln!(
                text,
                "| {label} | {by} | {documents:.1} | {data:.1} | {free:.1} | {indexes:.1} | {:.1} |",
                disk.total()
            )?;
        }
        Ok(())
    }
}
