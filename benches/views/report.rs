//! `VIEWS.md`: what was expected and what was measured, then each part.

use std::fmt::Write;
use std::time::Duration;

use crate::harness::machine::Machine;
use crate::harness::report::{
    with_spread, write_circumstances, write_comparisons, write_expectations, write_workload,
};
use crate::harness::settings::Settings;
use crate::harness::stats::Spread;
use crate::harness::turns::{Outcome, Series, Summary};
use crate::preallocation::{self, Disk};
use crate::rates::LIMIT;
use crate::scenario::{Figures, PUBLISHED, Scenario};
use crate::views::PAGES;

/// What a run has found; what was not asked for is not there.
pub struct Findings {
    pub settings: Settings,
    pub machine: Machine,
    pub mongod: String,
    pub scenario: Option<Scenario>,
    pub rates: Vec<Outcome>,
    /// And how long preallocating an hour of all pages took.
    pub first_views: Option<(Outcome, Vec<(String, Duration)>)>,
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

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "# Page views: ours beside others\n")?;
        writeln!(text, "Written by `make bench`; `benches/views/main.rs` says how it measures.")?;
        if self.settings.quick {
            writeln!(text, "**A quick run, of few and short blocks: an indication, no more.**")?;
        }
        let scenario = self.scenario.iter().map(|scenario| &scenario.outcome);
        write_expectations(text, scenario.chain(&self.rates))?;
        write_circumstances(text, &self.settings, &self.machine, &format!("mongod {}", self.mongod))?;
        if let Some(scenario) = &self.scenario {
            write_scenario(text, scenario)?;
        }
        for outcome in &self.rates {
            write_rates(text, outcome)?;
        }
        if let Some((outcome, took)) = &self.first_views {
            write_workload(text, outcome)?;
            for (label, took) in took {
                let minutes = 60 * PAGES;
                let seconds = took.as_secs_f64();
                writeln!(
                    text,
                    "- {label}: an hour of {PAGES} pages, {minutes} minutes, made in {seconds:.1} s"
                )?;
            }
        }
        write_disk(text, &self.disk)
    }
}

fn write_scenario(text: &mut String, Scenario { outcome, rows, lateness }: &Scenario) -> std::fmt::Result {
    writeln!(
        text,
        "\n## {}\n\n4 processes, together 1,000 users a second, each of whom counts a view of one of 1,000 pages in one minute \
         and in a second of it by chance. An open loop: latency in ms, from the moment at which a view was to be sent. All \
         blocks of a contender as one. Without a word about it: majority and journal, and no preallocation. Errors are \
         views that were refused, not answered or not sent; lost and wrong are by a look into the database after each \
         block.\n",
        outcome.name
    )?;
    writeln!(text, "| | Mean | Std. dev. | p75 | p95 | p99 | Min | Max | Views | Errors | Lost | Wrong |")?;
    writeln!(text, "|---|---|---|---|---|---|---|---|---|---|---|---|")?;
    let figures = |Figures { mean, deviation, p75, p95, p99, min, max }: Figures| {
        [mean, deviation, p75, p95, p99, min, max].map(|value| format!("{value:.3}")).join(" | ")
    };
    let published = figures(PUBLISHED);
    writeln!(
        text,
        "| *published, of another machine: a laptop of 2015, MongoDB 3.0, a driver at w: 1* | {published} | 25000 | | | |"
    )?;
    for row in rows {
        let (lost, wrong) = outcome.of(&row.label).map_or((0, 0), faults);
        let figures = figures(row.figures);
        let (label, counted, errors) = (&row.label, row.counted, row.errors);
        writeln!(text, "| {label} | {figures} | {counted} | {errors} | {lost} | {wrong} |")?;
    }
    let (median, p99) = lateness;
    writeln!(
        text,
        "\nViews were sent {median:.3} ms (median) and {p99:.3} ms (p99) after they were due, because the load woke late or had no connection free: that is in all latencies.\n"
    )?;
    write_comparisons(text, outcome)
}

fn write_rates(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    writeln!(
        text,
        "\n## {}\n\n{} The highest rate at which p99 is below {LIMIT} ms and no view is refused, not answered or not sent: \
         median [quartiles] of the searches, one a round, and the latencies at that rate.\n",
        outcome.name, outcome.about
    )?;
    writeln!(text, "| | Views/s [quartiles] | Mean, ms | p50, ms | p95, ms | p99, ms | Lost | Wrong |")?;
    writeln!(text, "|---|---|---|---|---|---|---|---|")?;
    for series in &outcome.series {
        let spread = |of: fn(&Summary) -> f64| Spread::of(series.blocks.iter().map(of));
        let median = |of| spread(of).map_or(0.0, |spread| spread.median);
        let Some(rate) = spread(|block| block.rate) else { continue };
        let (lost, wrong) = faults(series);
        writeln!(
            text,
            "| {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {lost} | {wrong} |",
            series.label,
            with_spread(rate, |value| format!("{value:.0}")),
            median(|block| block.mean),
            median(|block| block.p50),
            median(|block| block.p95),
            median(|block| block.p99),
        )?;
    }
    writeln!(text)?;
    write_comparisons(text, outcome)
}

/// Views lost and counted wrongly.
fn faults(series: &Series) -> (u64, u64) {
    let verdicts = || series.blocks.iter().map(|block| block.verdict);
    (verdicts().map(|verdict| verdict.lost).sum(), verdicts().map(|verdict| verdict.wrong).sum())
}

fn write_disk(text: &mut String, disk: &[Disk]) -> std::fmt::Result {
    let Some(Disk { documents, .. }) = disk.first() else { return Ok(()) };
    let views = preallocation::VIEWS;
    writeln!(
        text,
        "\n## preallocation on disk\n\nBytes of a minute of a page in ours after {documents} of them ({PAGES} pages) with \
         {views} views each, and a checkpoint: the files of data and indexes. Of the data some is free to be used again. \
         Document: before compression.\n"
    )?;
    writeln!(text, "| | Document | Data | of which free | Indexes | Data and indexes |")?;
    writeln!(text, "|---|---|---|---|---|---|")?;
    for Disk { label, document, data, free, indexes, .. } in disk {
        let all = data + indexes;
        writeln!(text, "| {label} | {document:.0} | {data:.0} | {free:.0} | {indexes:.0} | {all:.0} |")?;
    }
    Ok(())
}
