//! How long a page takes, by how deep it lies.

use super::plot::{Line, plot};
use crate::harness::{Customers, Entry, Form, History, LATENCY, Outcome, Report, Section, Spread};
use crate::harness::{Timing, Work, Workload, compare, grouped};

/// Of customers 1, 2 and 3: the workload's name, the pages that are asked for, and the comparisons, in which
/// `@` is the last page.
const HISTORIES: [(&str, &[u64], &str); 3] = [
    ("depth, 100 pages", &[1, 50, 100], "flat@ / ours, cache off@; ours again@ / ours@"),
    (
        "depth, 10,000 pages",
        &[1, 5_000, 10_000],
        "flat@ / ours, cache off@ ≥ 50; mongoose-paginate-v2@ / ours, cache off@ ≥ 50; flat@ / ours@; \
         mongoose-paginate-v2@ / ours@; manual@ / ours, cache off@; flat, no totals@ / ours, cache off@; \
         keyset@ / ours, cache off@; PostgreSQL@ / ours@; PostgreSQL@ / ours, cache off@; ours again@ / ours@",
    ),
    (
        "depth, 100,000 pages",
        &[1, 10, 100, 1_000, 10_000, 50_000, 100_000],
        "ours, cache off@ / ours, cache off, page 1 ≤ 1.1; ours@ / ours, page 1 ≤ 1.1; ours, cache off, \
         page 50,000 / ours, cache off, page 1; flat, page 10,000 / ours, cache off, page 10,000; flat@ / \
         ours, cache off@; mongoose-paginate-v2@ / ours, cache off@; manual@ / ours, cache off@; flat, no \
         totals@ / ours, cache off@; ours again@ / ours@",
    ),
];

/// Their full pages.
pub const PAGES: &[History] = &[(1, 1, 100), (2, 2, 10_000), (DEEPEST.0, DEEPEST.0, DEEPEST.1)];

/// The customer with the longest history, and its pages.
pub const DEEPEST: (u64, u64) = (3, 100_000);

const CONTENDERS: [&str; 9] = [
    "ours",
    "ours again",
    "ours, cache off",
    "manual",
    "flat",
    "flat, no totals",
    "keyset",
    "PostgreSQL",
    "mongoose-paginate-v2",
];

fn label(contender: &str, page: u64) -> String {
    format!("{contender}, page {}", grouped(page))
}

pub fn workloads(timing: Timing) -> impl Iterator<Item = Workload> {
    (1..).zip(HISTORIES).map(move |(customer, (name, asked, compared))| {
        let entry = |contender: &'static str, page: u64| {
            let form = if contender == "keyset" { Form::Following } else { Form::Listed };
            let work = Work::Read { customers: Customers::one(customer), pages: page..=page, form };
            Entry { label: label(contender, page), contender, work }
        };
        let last = label("", asked[asked.len() - 1]);
        let of_all = |page: &u64| CONTENDERS.map(|contender| entry(contender, *page));
        Workload {
            part: "depth",
            name,
            about: "One connection asks for one page again and again, by its number, with totals except \
                    where it says otherwise: median latency in ms [quartiles]. Keyset goes by the trade \
                    before the page, has no totals, and could not find that trade by a page's number.",
            unit: "requests",
            connections: 1,
            timing,
            entries: asked.iter().flat_map(of_all).collect(),
            comparisons: compare(LATENCY, &compared.replace('@', &last)),
        }
    })
}

/// A contender's median latencies, by page.
pub type Row = (&'static str, Vec<(u64, Spread)>);

/// Median latencies by contender and page, without the contenders that did not run; `None` of other
/// workloads.
pub fn medians(outcome: &Outcome) -> Option<Vec<Row>> {
    let (_, asked, _) = HISTORIES.iter().find(|(name, ..)| *name == outcome.name)?;
    let of = |contender: &'static str| {
        let at = |page: &u64| Some((*page, outcome.of(&label(contender, *page))?.spread(|block| block.p50)?));
        (contender, asked.iter().filter_map(at).collect::<Vec<_>>())
    };
    Some(CONTENDERS.into_iter().map(of).filter(|(_, points)| !points.is_empty()).collect())
}

/// Adds a table with a row for each contender and a column for each page; and the plot, which is that of the
/// last and longest history in the end.
pub fn add(report: &mut Report, outcome: &Outcome, rows: &[Row]) -> Result<(), std::fmt::Error> {
    let mut section = Section::new(outcome.name, outcome.about.as_str(), &[]);
    let columns = rows.first().map_or(&[][..], |(_, points)| points);
    section.head = columns.iter().map(|(page, _)| format!("page {}", grouped(*page))).collect();
    for (contender, points) in rows {
        section.row(contender, points.iter().map(|(_, spread)| spread.show(|millis| format!("{millis:.2}"))));
    }
    section.compare(outcome);
    report.workload(outcome, section);
    let shown = rows.iter().filter(|(label, _)| *label != "ours again");
    let line = |(label, points): &Row| -> Line {
        (label, points.iter().map(|(page, spread)| (*page, spread.median)).collect())
    };
    let title = "A page of 1,000,000 trades, one connection: median latency by page";
    let svg = plot(title, &shown.map(line).collect::<Vec<_>>())?;
    report.plot = Some(("latency-by-depth.svg", svg));
    Ok(())
}
