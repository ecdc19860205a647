//! A suite's report: expectations and their ratios, what it ran on, and a table for each workload.

use pagebucket_model::domain::Clock;

use super::{Outcome, P99, Series, Settings, Summary, grouped, machine, output};

/// Written as Markdown.
pub struct Report {
    title: &'static str,
    began: String,
    machine: String,
    /// What a reader must know before the first number.
    pub notes: Vec<String>,
    /// Beside pagebucket, mongod and Rust.
    pub versions: String,
    /// A file beside the report, and what is written to it: an SVG.
    pub plot: Option<(&'static str, String)>,
    expectations: Vec<String>,
    pub sections: Vec<Section>,
}

/// A heading, a paragraph, a table and lines below it.
pub struct Section {
    pub title: String,
    pub about: String,
    /// Titles of the table's columns after the first, whose cells are labels. Without any there is no table.
    pub head: Vec<String>,
    /// As many cells as columns, the label included.
    pub rows: Vec<Vec<String>>,
    pub lines: Vec<String>,
}

/// A column of a table with a row for each series: its title, in which `UNIT` is what a rate counts, and a
/// cell.
pub type Column = (&'static str, fn(&Series) -> String);

/// The columns of most workloads.
pub const CLOSED_LOOP: &[Column] = &[RATES, P50, P95, P99_MS, FAILED, LOST, WRONG];

/// Of the open loop's rates.
pub const RATES_AND_LATENCIES: &[Column] = &[RATES, MEAN_MS, P50, P95, P99_MS, LOST, WRONG];

/// Of blocks that are one request or command: these have no latencies.
pub const LARGE_RATES: &[Column] =
    &[("UNIT/s [quartiles]", |series| rates(series, |rate| grouped(rate.round() as u64))), LOST, WRONG];

/// Of appends. Processor time is of all processes but the load's.
pub const APPENDS: &[Column] = &[RATES, P50, P95, P99_MS, PROCESSOR, FAILED, LOST, WRONG];

const PROCESSOR: Column = ("Processor, µs a request: server + database", |series| {
    let (server, database) = (median(series, |block| block.server), median(series, |block| block.database));
    format!("{server:.0} + {database:.0}")
});
const RATES: Column = ("UNIT/s [quartiles]", |series| rates(series, |rate| format!("{rate:.0}")));
const MEAN_MS: Column = ("Mean, ms", |series| millis(series, |block| block.mean));
const P50: Column = ("p50, ms", |series| millis(series, |block| block.p50));
const P95: Column = ("p95, ms", |series| millis(series, |block| block.p95));
const P99_MS: Column = ("p99, ms", |series| millis(series, P99.1));
const FAILED: Column = ("Failed", |series| format!("{:.1} %", 100.0 * median(series, |block| block.failed)));
const LOST: Column = ("Lost", |series| series.total(|verdict| verdict.lost).to_string());
const WRONG: Column = ("Wrong", |series| series.total(|verdict| verdict.wrong).to_string());

fn rates(series: &Series, number: fn(f64) -> String) -> String {
    series.spread(|block| block.rate).map_or_else(String::new, |rate| rate.show(number))
}

fn median(series: &Series, of: fn(&Summary) -> f64) -> f64 {
    series.spread(of).map_or(0.0, |spread| spread.median)
}

fn millis(series: &Series, of: fn(&Summary) -> f64) -> String {
    format!("{:.2}", median(series, of))
}

impl Section {
    pub fn new(title: impl Into<String>, about: impl Into<String>, head: &[&str]) -> Self {
        let head = head.iter().map(|&head| head.to_owned()).collect();
        Self { title: title.into(), about: about.into(), head, rows: Vec::new(), lines: Vec::new() }
    }

    /// A row for each series, and a line for each comparison.
    pub fn of(outcome: &Outcome, columns: &[Column]) -> Self {
        let mut section = Self::new(outcome.name, outcome.about.as_str(), &[]);
        let unit = format!("{}{}", outcome.unit[..1].to_uppercase(), &outcome.unit[1..]);
        section.head = columns.iter().map(|(head, _)| head.replace("UNIT", &unit)).collect();
        for series in &outcome.series {
            section.row(&series.label, columns.iter().map(|(_, cell)| cell(series)));
        }
        section.compare(outcome);
        let late: u64 = outcome.series.iter().map(|series| series.total(|v| v.unacknowledged)).sum();
        if late > 0 {
            section.lines.push(format!("- {late} were stored although the client was told otherwise"));
        }
        section
    }

    pub fn row(&mut self, label: &str, cells: impl IntoIterator<Item = String>) {
        self.rows.push([label.to_owned()].into_iter().chain(cells).collect());
    }

    /// A line for each comparison.
    pub fn compare(&mut self, outcome: &Outcome) {
        self.lines.extend(outcome.comparisons.iter().filter_map(|comparison| {
            Some(format!("- {}: {}", comparison.describe(outcome.unit), comparison.ratio(outcome)?))
        }));
    }

    fn text(&self) -> String {
        let mut parts = vec![format!("## {}", self.title), self.about.clone()];
        if !self.head.is_empty() {
            let head = format!("| | {} |\n|---|{}", self.head.join(" | "), "---|".repeat(self.head.len()));
            let rows = self.rows.iter().map(|cells| row(cells));
            parts.push([head].into_iter().chain(rows).collect::<Vec<_>>().join("\n"));
        }
        if !self.lines.is_empty() {
            parts.push(self.lines.join("\n"));
        }
        parts.join("\n\n")
    }
}

/// Empty cells have one space.
fn row(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    format!("| {} |", cells.join(" | ")).replace("|  ", "| ")
}

impl Report {
    pub fn new(title: &'static str) -> Self {
        Self {
            title,
            began: Clock::system().now().to_string(),
            machine: machine(),
            notes: Vec::new(),
            versions: String::new(),
            plot: None,
            expectations: Vec::new(),
            sections: Vec::new(),
        }
    }

    /// Says which contenders are missing.
    pub fn leave_out(&mut self, note: &str) {
        eprintln!("bench: {note}");
        self.notes.push(note.to_owned());
    }

    /// A section for a workload, and a row for each of its expectations.
    pub fn workload(&mut self, outcome: &Outcome, section: Section) {
        let mut same = outcome.comparisons.iter().filter(|comparison| comparison.shows_noise());
        let noise = same.next().and_then(|same| same.ratio(outcome));
        let noise = noise.map_or_else(String::new, |noise| noise.to_string());
        for comparison in &outcome.comparisons {
            let Some(ratio) = comparison.ratio(outcome) else { continue };
            let Some((expected, holds)) = comparison.judge(ratio.median) else { continue };
            let what = comparison.describe(outcome.unit);
            self.expect([outcome.name, &what, expected, &ratio.to_string()], holds, &noise);
        }
        self.sections.push(section);
    }

    /// A row of the table of expectations: the work, what is compared, what is expected and what was
    /// measured.
    pub fn expect(&mut self, cells: [&str; 4], holds: bool, noise: &str) {
        let holds = if holds { "yes" } else { "**no**" };
        self.expectations.push(row(&[&cells[..], &[holds, noise]].concat()));
    }

    /// The whole text.
    pub fn text(&self, settings: &Settings, mongod: &str) -> String {
        let Self { title, began, machine, notes, versions, plot, expectations, sections } = self;
        let Settings { quick, seed, rounds, .. } = settings;
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        let (version, commit) =
            (env!("CARGO_PKG_VERSION"), output("git", &["describe", "--always", "--dirty"]));
        let (rustc, command) = (output("rustc", &["--version"]), if *quick { " QUICK=1" } else { "" });
        let quick = quick.then_some("A quick run, of few and short blocks: an indication, no more.");
        let notes =
            quick.into_iter().chain(notes.iter().map(String::as_str)).map(|note| format!("\n**{note}**"));
        let notes = notes.collect::<String>();
        let expectations: String = expectations.iter().map(|row| format!("{row}\n")).collect();
        let plot = plot.iter().map(|(file, _)| format!("![Median latency by page]({file})"));
        let parts: Vec<String> = plot.chain(sections.iter().map(Section::text)).collect();
        let parts = parts.join("\n\n");
        format!(
            "# {title}

Written by `make bench`; [README.md](README.md) says how it measures.{notes}

| Work | Compared | Expected | Measured: median [quartiles] | Holds | Ours again / ours |
|---|---|---|---|---|---|
{expectations}
Ratios are of blocks of the same round. What holds is judged by the median; \"ours again\" shows how far two that are the \
same differ.

- Machine: {machine}
- Versions: pagebucket {version} ({commit}, {profile} profile), mongod {mongod}{versions}, {rustc}
- Command: `make bench{command} SEED={seed}`, {rounds} rounds, {began}

{parts}
"
        )
    }
}
