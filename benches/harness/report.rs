//! Tables: what was expected and measured, what it ran on, and each workload.

use std::fmt::{Result, Write};

use super::comparison::{Comparison, Expected};
use super::machine::Machine;
use super::settings::Settings;
use super::stats::Spread;
use super::turns::{Outcome, Summary};

/// Head of the table of expectations, and a row for each of the workloads'.
pub fn write_expectations<'a>(text: &mut String, outcomes: impl IntoIterator<Item = &'a Outcome>) -> Result {
    writeln!(
        text,
        "\n| Work | Compared | Expected | Measured: median [quartiles] | Holds | Ours again / ours |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|")?;
    for outcome in outcomes {
        let same = |comparison: &&Comparison| matches!(comparison.expected, Expected::Same);
        let noise = outcome.comparisons.iter().find(same).and_then(|same| same.ratio(outcome));
        let noise = noise.map_or_else(String::new, |noise| with_spread(noise, significant));
        for comparison in &outcome.comparisons {
            let Some(ratio) = comparison.ratio(outcome) else { continue };
            let Some((expected, holds)) = comparison.expected.judge(ratio.median) else { continue };
            let (name, what) = (outcome.name, comparison.describe(outcome.unit));
            let ratio = with_spread(ratio, significant);
            writeln!(text, "| {name} | {what} | {expected} | {ratio} | {} | {noise} |", yes_or_no(holds))?;
        }
    }
    Ok(())
}

/// Machine, versions and command.
pub fn write_circumstances(
    text: &mut String,
    settings: &Settings,
    machine: &Machine,
    versions: &str,
) -> Result {
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
    writeln!(text, "- Versions: pagebucket {version} ({commit}, {profile} profile), {versions}, {rustc}")?;
    writeln!(text, "- Command: `make bench{quick} SEED={seed}`, {rounds} rounds, {date}")
}

/// Name and description of a workload, its series, and all its comparisons.
pub fn write_workload(text: &mut String, outcome: &Outcome) -> Result {
    let capital = outcome.unit.chars().next().map(|first| first.to_ascii_uppercase());
    let unit: String = capital.into_iter().chain(outcome.unit.chars().skip(1)).collect();
    writeln!(text, "\n## {}\n\n{}\n", outcome.name, outcome.about)?;
    writeln!(text, "| | {unit}/s [quartiles] | p50, ms | p95, ms | p99, ms | Failed | Lost | Wrong |")?;
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
    write_comparisons(text, outcome)?;
    let late: u64 = outcome.series.iter().flat_map(|s| &s.blocks).map(|b| b.verdict.unacknowledged).sum();
    if late > 0 {
        writeln!(text, "- {late} trades were stored though the client was told otherwise")?;
    }
    Ok(())
}

/// A line for each.
pub fn write_comparisons(text: &mut String, outcome: &Outcome) -> Result {
    for comparison in &outcome.comparisons {
        if let Some(ratio) = comparison.ratio(outcome) {
            let what = comparison.describe(outcome.unit);
            writeln!(text, "- {what}: {}", with_spread(ratio, significant))?;
        }
    }
    Ok(())
}

pub fn with_spread(spread: Spread, number: impl Fn(f64) -> String) -> String {
    format!("{} [{}, {}]", number(spread.median), number(spread.lower), number(spread.upper))
}

/// Two digits behind the point where they mean something.
pub fn significant(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}

pub fn yes_or_no(holds: bool) -> &'static str {
    if holds { "yes" } else { "**no**" }
}

/// With commas between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
