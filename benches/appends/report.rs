//! `RESULTS.md`: what was expected and what was measured, then every workload.

use std::fmt::Write;

use crate::machine::Machine;
use crate::memory::{self, Memory};
use crate::settings::Settings;
use crate::stage::{Comparison, Expected, Metric, Outcome, Series, Summary};
use crate::stats::Spread;

/// The whole text.
pub fn write(
    settings: &Settings,
    machine: &Machine,
    mongod: &str,
    outcomes: &[Outcome],
    memory: Option<&Memory>,
) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_all(&mut text, settings, machine, mongod, outcomes, memory);
    text
}

fn write_all(
    text: &mut String,
    settings: &Settings,
    machine: &Machine,
    mongod: &str,
    outcomes: &[Outcome],
    memory: Option<&Memory>,
) -> std::fmt::Result {
    writeln!(text, "# Appends: ours beside others\n")?;
    writeln!(text, "Written by `make bench`; `benches/appends/main.rs` says how it measures.")?;
    if settings.quick {
        writeln!(text, "**A quick run, of few and short blocks: an indication, no more.**")?;
    }
    write_expectations(text, outcomes, memory)?;
    write_circumstances(text, settings, machine, mongod)?;
    for outcome in outcomes {
        write_workload(text, outcome)?;
    }
    if let Some(Memory { customers, idle, resident, peak }) = memory {
        writeln!(text, "\n## memory\n")?;
        writeln!(
            text,
            "A server process of its own, after a trade for each of {customers} customers, 64 connections uniform over \
             them: {resident:.0} MiB resident (median under load), {peak:.0} MiB at most, {idle:.0} MiB before the first \
             request."
        )?;
    }
    Ok(())
}

fn write_expectations(text: &mut String, outcomes: &[Outcome], memory: Option<&Memory>) -> std::fmt::Result {
    writeln!(
        text,
        "\n| Work | Compared | Expected | Measured: median [quartiles] | Holds | Ours again / ours |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|")?;
    for outcome in outcomes {
        let same = |comparison: &&Comparison| matches!(comparison.expected, Expected::Same);
        let noise = outcome.workload.comparisons.iter().find(same).and_then(|same| ratio(outcome, same));
        let noise = noise.map_or_else(String::new, |noise| with_spread(noise, significant));
        for comparison in &outcome.workload.comparisons {
            let Some(ratio) = ratio(outcome, comparison) else { continue };
            let Some((expected, holds)) = comparison.expected.judge(ratio.median) else { continue };
            let (name, what) = (outcome.workload.name, describe(comparison, outcome.workload.trades));
            let ratio = with_spread(ratio, significant);
            writeln!(text, "| {name} | {what} | {expected} | {ratio} | {} | {noise} |", yes_or_no(holds))?;
        }
    }
    if let Some(memory) = memory {
        let holds = yes_or_no(memory.peak <= memory::EXPECTED);
        let (customers, peak, most) = (memory.customers, memory.peak, memory::EXPECTED);
        writeln!(
            text,
            "| memory, {customers} customers | ours, most resident | ≤ {most} MiB | {peak:.0} MiB | {holds} | |"
        )?;
    }
    Ok(())
}

fn write_circumstances(
    text: &mut String,
    settings: &Settings,
    machine: &Machine,
    mongod: &str,
) -> std::fmt::Result {
    let Machine { date, cores, processor, memory_gib, kernel, load, rustc, commit } = machine;
    let (quick, seed, rounds) =
        (if settings.quick { " QUICK=1" } else { "" }, settings.seed, settings.rounds);
    let (profile, version) =
        (if cfg!(debug_assertions) { "dev" } else { "release" }, env!("CARGO_PKG_VERSION"));
    writeln!(
        text,
        "\nRatios are of blocks of the same round. What holds is judged by the median; \"ours again\" shows how far two \
         that are the same differ.\n"
    )?;
    writeln!(
        text,
        "- Machine: {cores} cores, {processor}, {memory_gib:.1} GiB, Linux {kernel}; load {load} at the start"
    )?;
    writeln!(
        text,
        "- Versions: pagebucket {version} ({commit}, {profile} profile), mongod {mongod}, {rustc}"
    )?;
    writeln!(text, "- Command: `make bench{quick} SEED={seed}`, {rounds} rounds, {date}")
}

fn write_workload(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let workload = &outcome.workload;
    writeln!(text, "\n## {}\n\n{}\n", workload.name, workload.about)?;
    writeln!(text, "| | Trades/s [quartiles] | p50, ms | p95, ms | p99, ms | Failed | Lost | Wrong |")?;
    writeln!(text, "|---|---|---|---|---|---|---|---|")?;
    for series in &outcome.series {
        let median =
            |of: fn(&Summary) -> f64| Spread::of(series.blocks.iter().map(of)).map_or(0.0, |s| s.median);
        let Some(rate) = Spread::of(series.blocks.iter().map(|block| block.rate)) else { continue };
        let total = |of: fn(&Summary) -> u64| series.blocks.iter().map(of).sum::<u64>();
        writeln!(
            text,
            "| {} | {} | {:.2} | {:.2} | {:.2} | {:.1} % | {} | {} |",
            series.label,
            with_spread(rate, |value| format!("{value:.0}")),
            median(|block| block.p50),
            median(|block| block.p95),
            median(|block| block.p99),
            100.0 * median(|block| block.failed),
            total(|block| block.verdict.lost),
            total(|block| block.verdict.wrong),
        )?;
    }
    writeln!(text)?;
    for comparison in &workload.comparisons {
        if let Some(ratio) = ratio(outcome, comparison) {
            writeln!(
                text,
                "- {}: {}",
                describe(comparison, workload.trades),
                with_spread(ratio, significant)
            )?;
        }
    }
    let late: u64 = outcome.series.iter().flat_map(|s| &s.blocks).map(|b| b.verdict.unacknowledged).sum();
    if late > 0 {
        writeln!(text, "- {late} trades were stored though the client was told otherwise")?;
    }
    Ok(())
}

fn ratio(outcome: &Outcome, comparison: &Comparison) -> Option<Spread> {
    let values = |label| {
        let of = |block: &Summary| match comparison.metric {
            Metric::Rate => block.rate,
            Metric::Latency => block.p50,
        };
        outcome.of(label).map(|Series { blocks, .. }| blocks.iter().map(of).collect::<Vec<f64>>())
    };
    Spread::of_ratios(&values(comparison.subject)?, &values(comparison.against)?)
}

fn describe(comparison: &Comparison, trades: u64) -> String {
    let metric = match comparison.metric {
        Metric::Rate if trades > 1 => "trades/s",
        Metric::Rate => "appends/s",
        Metric::Latency => "median latency",
    };
    format!("{metric}, {} / {}", comparison.subject, comparison.against)
}

fn with_spread(spread: Spread, number: impl Fn(f64) -> String) -> String {
    format!("{} [{}, {}]", number(spread.median), number(spread.lower), number(spread.upper))
}

/// Two digits behind the point where they mean something.
fn significant(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}

fn yes_or_no(holds: bool) -> &'static str {
    if holds { "yes" } else { "**no**" }
}

impl Expected {
    /// What is expected, and whether it is so; `None` where nothing is.
    fn judge(self, ratio: f64) -> Option<(String, bool)> {
        match self {
            Self::AtLeast(least) => Some((format!("≥ {least}"), ratio >= least)),
            Self::AtMost(most) => Some((format!("≤ {most}"), ratio <= most)),
            Self::Same | Self::Nothing => None,
        }
    }
}
