//! What an import shows: its progress, and a summary at the end.

use std::fmt::Write;
use std::time::Duration;

use indicatif::HumanCount;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::Totals;
use pagebucket_model::item::Noun;
use pagebucket_streams::ingest::{Bad, End, Report, StreamEvent, StreamWatch};

use crate::commands::terminal::{self, count, speed};

/// Bad rows that are shown one by one; the rest is only counted.
const BAD_ROWS_SHOWN: u64 = 100;

/// Shows what [`StreamWatch`] hears.
pub(crate) struct ImportProgress {
    pub(crate) shown: terminal::ProgressLine,
    bad_rows: u64,
}

impl ImportProgress {
    /// `size`: bytes of the file, where known.
    pub(crate) fn start(size: Option<u64>) -> Self {
        Self { shown: terminal::ProgressLine::start(size), bad_rows: 0 }
    }

    /// Ends the bar, and returns how long the import took.
    pub(crate) fn finish(self) -> Duration {
        if self.bad_rows > BAD_ROWS_SHOWN {
            let more = HumanCount(self.bad_rows - BAD_ROWS_SHOWN);
            self.shown.line(format_args!("and {more} more bad rows"));
        }
        self.shown.finish()
    }

    fn bad(&mut self, bad: &Bad<String>) {
        self.bad_rows += 1;
        if self.bad_rows <= BAD_ROWS_SHOWN {
            self.shown.line(format_args!("{bad}"));
        }
        if self.bad_rows == BAD_ROWS_SHOWN {
            self.shown.line(format_args!("(further bad rows are only counted)"));
        }
    }
}

impl StreamWatch<String> for ImportProgress {
    fn hear(&mut self, event: StreamEvent<'_, String>) {
        match event {
            StreamEvent::Came(_) => {}
            StreamEvent::Bad(bad) => self.bad(&bad),
            StreamEvent::Sent(sent) => {
                for (row, refusal) in sent.refused() {
                    self.bad(&Bad { line: row.line, size: row.size, why: refusal.to_string() });
                }
            }
            StreamEvent::Progress(report) => self.shown.show(report.stored, "stored", report.bytes),
            StreamEvent::Waiting(why) => self.shown.waiting(why),
            StreamEvent::Interrupted(rows) => self.shown.stopping(rows, ""),
        }
    }
}

/// Number of owners with rows of unknown outcome that are named.
const UNKNOWN_SHOWN: usize = 20;

/// The summary of an import: some lines, the last without its line break.
pub(crate) fn text(report: &Report, definition: &Definition, took: Duration, keyed: bool) -> String {
    let (item, owner_noun) = (definition.item.noun().one(), &*definition.owner.noun());
    let owners = match report.owners.len() {
        0 => String::new(),
        number if report.more_owners => format!(" of more than {}", count(number as u64, owner_noun)),
        number => format!(" of {}", count(number as u64, owner_noun)),
    };
    let mut text = format!(
        "stored {}{owners} in {}\nrefused {}",
        count(report.stored, item),
        speed(report.stored, took),
        count(report.refused, "row"),
    );
    let mut line = |line: std::fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        let _ = write!(text, "\n{line}");
    };
    if let (Some((owner, last)), 1) = (&report.last, report.owners.len()) {
        let totals = Totals::ending_with(definition.page_size, Some(*last));
        let (items, pages) = (count(totals.items(), item), count(totals.pages(), "page"));
        line(format_args!("{owner_noun} {owner} now has {items} on {pages}"));
    }
    let Some(end) = &report.end else {
        if report.read + report.refused == 0 {
            line(format_args!("there were no rows to import"));
        }
        return text;
    };
    match end {
        End::BadRow => line(format_args!("stopped at the first bad row; what came before it is stored")),
        End::Interrupted => line(format_args!("interrupted")),
        End::Unreadable(error) => line(format_args!("stopped: the rest of the file cannot be read: {error}")),
        End::Database(cause) => line(format_args!("stopped: {cause}")),
        End::Server(words) => line(format_args!("stopped: {words}")),
    }
    for unknown in report.unknown.iter().take(UNKNOWN_SHOWN) {
        let (first, last) = unknown.lines;
        let (rows, owner) = (count(unknown.rows, "row"), &unknown.owner);
        line(format_args!("unknown whether stored: {rows} of {owner_noun} {owner}, lines {first} to {last}"));
    }
    if let Some(more @ 1..) = report.unknown.len().checked_sub(UNKNOWN_SHOWN) {
        line(format_args!("and rows of {}", count(more as u64, &format!("more {owner_noun}"))));
    }
    if report.left() > 0 {
        line(format_args!("read but not stored: {}", count(report.left(), "row")));
    }
    match report.resume {
        _ if keyed => line(format_args!("to go on: run it again with the same --key")),
        Some(from) => line(format_args!("to go on: --from-line {from}")),
        None if report.unknown.is_empty() => line(format_args!(
            "no line separates stored rows from others, because rows of several {} were imported at once: an import with \
             --key can be continued",
            Noun::of_name(owner_noun).many()
        )),
        None => line(format_args!(
            "look into those histories before going on: importing rows again that are stored doubles them"
        )),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagebucket_model::domain::{OwnerId, Seq};
    use pagebucket_streams::ingest::Unknown;

    #[test]
    fn says_what_is_stored_and_how_to_go_on() {
        let (took, trades) = (Duration::from_millis(500), Definition::trades());
        let text = |report: &Report| text(report, &trades, took, false);
        assert_eq!(
            text(&Report::default()),
            "stored 0 trades in 0.500 s (0/s)\nrefused 0 rows\nthere were no rows to import"
        );
        let owner = OwnerId::Integer(7);
        let report = Report {
            read: 2_003,
            stored: 1_000,
            refused: 1,
            unknown: vec![Unknown { owner: owner.clone(), rows: 1_000, lines: (1_002, 2_001) }],
            last: Some((owner, Seq::new(9_367).unwrap())),
            end: Some(End::Interrupted),
            ..Report::default()
        };
        assert_eq!(
            text(&report),
            "stored 1,000 trades in 0.500 s (2,000/s)\nrefused 1 row\ninterrupted\n\
             unknown whether stored: 1,000 rows of customer 7, lines 1002 to 2001\n\
             read but not stored: 3 rows\n\
             look into those histories before going on: importing rows again that are stored doubles them"
        );
        let report = Report { end: Some(End::BadRow), resume: Some(12), ..Report::default() };
        assert!(text(&report).ends_with("is stored\nto go on: --from-line 12"));
    }
}
