//! How long a page takes, by how deep it lies.

use std::fmt::Write;

use crate::harness::comparison::Comparison;
use crate::harness::comparison::Expected::{AtLeast, AtMost, Nothing, Same};
use crate::harness::comparison::Metric::Latency;
use crate::harness::comparison::compare;
use crate::harness::report::grouped;
use crate::harness::settings::Settings;
use crate::harness::stats::Spread;
use crate::harness::turns::Outcome;
use crate::reading::Reading;
use crate::stage::{Entry, Workload};
use crate::workloads::{AGAIN, FLAT, KEYSET, MANUAL, MONGOOSE, OURS, SKIPPING, UNCACHED};

/// A history, and the pages that are asked for.
pub struct History {
    name: &'static str,
    pub pages: u64,
    asked: &'static [u64],
}

/// Of customers 1, 2 and 3.
pub const HISTORIES: [History; 3] = [
    History { name: "depth, 100 pages", pages: 100, asked: &[1, 50, 100] },
    History { name: "depth, 10,000 pages", pages: 10_000, asked: &[1, 5_000, 10_000] },
    History {
        name: "depth, 100,000 pages",
        pages: 100_000,
        asked: &[1, 10, 100, 1_000, 10_000, 50_000, 100_000],
    },
];

/// The customer with the longest, and its pages.
pub const DEEPEST: (u64, u64) = (3, 100_000);

const CONTENDERS: [&str; 8] = [OURS, AGAIN, UNCACHED, MANUAL, FLAT, SKIPPING, KEYSET, MONGOOSE];

const ABOUT: &str = "One connection asks for one page again and again, by its number, with totals but where it says otherwise: \
                     median latency in ms [quartiles]. Keyset goes by the trade before the page, has no totals, and could \
                     not find that trade by a page's number.";

fn label(contender: &str, page: u64) -> String {
    format!("{contender}, page {}", grouped(page))
}

pub fn workload(customer: u64, history: History, settings: &Settings) -> Workload {
    let entry = |contender: &'static str, page: u64| Entry {
        label: label(contender, page),
        contender,
        reading: if contender == KEYSET {
            Reading::Following { customer, page }
        } else {
            Reading::Page { customer, page }
        },
    };
    let of_all = |page: &u64| CONTENDERS.map(|contender| entry(contender, *page));
    Workload {
        key: "depth",
        name: history.name,
        about: ABOUT,
        unit: "requests",
        connections: 1,
        timing: settings.short_timing(),
        entries: history.asked.iter().flat_map(of_all).collect(),
        comparisons: comparisons(history.pages),
    }
}

fn comparisons(pages: u64) -> Vec<Comparison> {
    let at = |subject, page, against, other_page, expected| {
        compare(label(subject, page), Latency, label(against, other_page), expected)
    };
    let mut comparisons = match pages {
        10_000 => vec![
            at(FLAT, pages, UNCACHED, pages, AtLeast(50.0)),
            at(MONGOOSE, pages, UNCACHED, pages, AtLeast(50.0)),
            at(FLAT, pages, OURS, pages, Nothing),
            at(MONGOOSE, pages, OURS, pages, Nothing),
            at(MANUAL, pages, UNCACHED, pages, Nothing),
            at(SKIPPING, pages, UNCACHED, pages, Nothing),
            at(KEYSET, pages, UNCACHED, pages, Nothing),
        ],
        100_000 => vec![
            at(UNCACHED, pages, UNCACHED, 1, AtMost(1.1)),
            at(OURS, pages, OURS, 1, AtMost(1.1)),
            at(UNCACHED, pages / 2, UNCACHED, 1, Nothing),
            at(FLAT, 10_000, UNCACHED, 10_000, Nothing),
            at(FLAT, pages, UNCACHED, pages, Nothing),
            at(MONGOOSE, pages, UNCACHED, pages, Nothing),
            at(MANUAL, pages, UNCACHED, pages, Nothing),
            at(SKIPPING, pages, UNCACHED, pages, Nothing),
        ],
        _ => vec![at(FLAT, pages, UNCACHED, pages, Nothing)],
    };
    comparisons.push(at(AGAIN, pages, OURS, pages, Same));
    comparisons
}

/// A contender's median latencies, by page.
pub type Row = (&'static str, Vec<(u64, Spread)>);

/// Median latencies by contender and page; the contenders that did not run have none.
pub fn medians(outcome: &Outcome) -> Option<Vec<Row>> {
    let history = HISTORIES.iter().find(|history| history.name == outcome.name)?;
    let of = |contender: &'static str| {
        let at = |page: &u64| {
            let blocks = &outcome.of(&label(contender, *page))?.blocks;
            Some((*page, Spread::of(blocks.iter().map(|block| block.p50))?))
        };
        (contender, history.asked.iter().filter_map(at).collect::<Vec<_>>())
    };
    let rows = CONTENDERS.into_iter().map(of).filter(|(_, points)| !points.is_empty());
    Some(rows.collect())
}

/// A table of them: a row for each contender, a column for each page.
pub fn write(text: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let Some(rows) = medians(outcome) else { return Ok(()) };
    let Some((_, columns)) = rows.first() else { return Ok(()) };
    writeln!(text, "\n## {}\n\n{}\n", outcome.name, outcome.about)?;
    let pages = columns.iter().map(|(page, _)| format!(" page {} |", grouped(*page)));
    writeln!(text, "| |{}", pages.collect::<String>())?;
    writeln!(text, "|---|{}", "---|".repeat(columns.len()))?;
    for (contender, points) in &rows {
        let cells = points
            .iter()
            .map(|(_, Spread { lower, median, upper })| format!(" {median:.2} [{lower:.2}, {upper:.2}] |"));
        writeln!(text, "| {contender} |{}", cells.collect::<String>())?;
    }
    writeln!(text)
}
