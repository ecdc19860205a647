//! The summary of an import, on standard output.

use std::fmt::Write;
use std::time::Duration;

use indicatif::HumanCount;

use crate::cli::terminal::{self, count, per_second, seconds};
use crate::ingest::{Customers, End, Report};

/// Writes the summary.
pub(super) fn print(report: &Report, took: Duration, keyed: bool) {
    terminal::print(format_args!("{}", text(report, took, keyed)));
}

/// Number of customers with rows of unknown outcome that are named.
const UNKNOWN_SHOWN: usize = 20;

/// Some lines, the last without its line break.
fn text(report: &Report, took: Duration, keyed: bool) -> String {
    let mut text = format!(
        "stored {}{} in {} ({}/s)\nrefused {}",
        count(report.stored, "trade"),
        customers(report),
        seconds(took),
        HumanCount(per_second(report.stored, took)),
        count(report.refused, "row"),
    );
    let mut line = |line: std::fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        let _ = write!(text, "\n{line}");
    };
    if let (Some((customer, totals)), 1) = (report.last, report.customers.count()) {
        let (trades, pages) = (count(totals.trades(), "trade"), count(totals.pages(), "page"));
        line(format_args!("customer {customer} now has {trades} on {pages}"));
    }
    let Some(end) = &report.end else { return text };
    match end {
        End::BadRow => line(format_args!("stopped at the first bad row; what came before it is stored")),
        End::Interrupted => line(format_args!("interrupted")),
        End::Unreadable(error) => line(format_args!("stopped: the rest of the file cannot be read: {error}")),
        End::Database(cause) => line(format_args!("stopped: {cause}")),
        End::Server(words) => line(format_args!("stopped: {words}")),
    }
    for unknown in report.unknown.iter().take(UNKNOWN_SHOWN) {
        let (first, last) = unknown.lines;
        let (rows, customer) = (count(unknown.rows, "row"), unknown.customer);
        line(format_args!("unknown whether stored: {rows} of customer {customer}, lines {first} to {last}"));
    }
    if let Some(more @ 1..) = report.unknown.len().checked_sub(UNKNOWN_SHOWN) {
        line(format_args!("and rows of {}", count(more as u64, "more customer")));
    }
    if report.left() > 0 {
        line(format_args!("read but not stored: {}", count(report.left(), "row")));
    }
    match report.resume {
        _ if keyed => line(format_args!("to go on: run it again with the same --key")),
        Some(from) => line(format_args!("to go on: --from-line {from}")),
        None if report.unknown.is_empty() => line(format_args!(
            "no line separates stored rows from others, because several customers were imported at once"
        )),
        None => line(format_args!(
            "look into those histories before going on: importing rows again that are stored doubles them"
        )),
    }
    text
}

fn customers(report: &Report) -> String {
    match report.customers.count() {
        0 => String::new(),
        _ if report.customers.more() => {
            format!(" of more than {} customers", HumanCount(Customers::MOST as u64))
        }
        number => format!(" of {}", count(number as u64, "customer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{CustomerId, Seq, Totals};
    use crate::ingest::Unknown;

    #[test]
    fn says_what_is_stored_and_how_to_go_on() {
        let took = Duration::from_millis(500);
        assert_eq!(text(&Report::default(), took, false), "stored 0 trades in 0.500 s (0/s)\nrefused 0 rows");
        let customer = CustomerId::new(7).unwrap();
        let totals = Totals::ending_with(Some(Seq::new(9_367).unwrap()));
        let report = Report {
            read: 2_003,
            stored: 1_000,
            refused: 1,
            unknown: vec![Unknown { customer, rows: 1_000, lines: (1_002, 2_001) }],
            last: Some((customer, totals)),
            end: Some(End::Interrupted),
            ..Report::default()
        };
        assert_eq!(
            text(&report, took, false),
            "stored 1,000 trades in 0.500 s (2,000/s)\nrefused 1 row\ninterrupted\n\
             unknown whether stored: 1,000 rows of customer 7, lines 1002 to 2001\n\
             read but not stored: 3 rows\n\
             look into those histories before going on: importing rows again that are stored doubles them"
        );
        let report = Report { end: Some(End::BadRow), resume: Some(12), ..Report::default() };
        assert!(text(&report, took, false).ends_with("is stored\nto go on: --from-line 12"));
    }
}
