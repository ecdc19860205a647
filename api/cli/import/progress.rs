//! What an import shows while it runs.

use std::time::Duration;

use indicatif::HumanCount;

use crate::cli::terminal;
use crate::import::BadRow;
use crate::ingest::{Event, RowEnd, Watch};

/// Bad rows that are shown one by one; the rest is only counted.
const BAD_ROWS_SHOWN: u64 = 100;

/// Shows what [`Watch`] hears.
pub(super) struct Progress {
    shown: terminal::Progress,
    bad_rows: u64,
}

impl Progress {
    /// `size`: bytes of the file, where known.
    pub(super) fn start(size: Option<u64>) -> Self {
        Self { shown: terminal::Progress::start(size), bad_rows: 0 }
    }

    /// Ends the bar, and returns how long the import took.
    pub(super) fn finish(self) -> Duration {
        if self.bad_rows > BAD_ROWS_SHOWN {
            let more = HumanCount(self.bad_rows - BAD_ROWS_SHOWN);
            self.shown.line(format_args!("and {more} more bad rows"));
        }
        self.shown.finish()
    }

    fn bad(&mut self, bad: &BadRow) {
        self.bad_rows += 1;
        if self.bad_rows <= BAD_ROWS_SHOWN {
            self.shown.line(format_args!("{bad}"));
        }
        if self.bad_rows == BAD_ROWS_SHOWN {
            self.shown.line(format_args!("(further bad rows are only counted)"));
        }
    }

    /// The upload is sent again.
    pub(super) fn trying_again(&self, why: &str) {
        self.shown.line(format_args!("{why}; trying again"));
    }
}

impl Watch<BadRow> for Progress {
    fn hear(&mut self, event: Event<'_, BadRow>) {
        match event {
            Event::Came(_) => {}
            Event::Bad(bad) => self.bad(&bad),
            Event::Sent(sent) => {
                for (row, end) in sent.rows.iter().zip(&sent.ends) {
                    if let RowEnd::Refused(refusal) = end {
                        self.bad(&BadRow { line: row.line, size: row.size, reason: refusal.to_string() });
                    }
                }
            }
            Event::Progress(report) => self.shown.show(report.stored, "stored", report.bytes),
            Event::Waiting(why) => self.shown.waiting(why),
        }
    }
}
