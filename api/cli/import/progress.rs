//! How far an import is, on standard error: a bar on a terminal, a line every two seconds elsewhere.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use tokio::time::Instant;

use crate::import::BadRow;
use crate::ingest::{Report, RowEnd, Sent, Watch};

/// So many bad rows are shown; the rest is only counted.
const BAD_ROWS_SHOWN: u64 = 100;

const BETWEEN_LINES: Duration = Duration::from_secs(2);

/// While the database is away, it is said so often.
const BETWEEN_WAITS: Duration = Duration::from_secs(10);

/// Shows what [`Watch`] hears.
pub(super) struct Progress {
    started: Instant,
    /// Bytes of the file, where known.
    size: Option<u64>,
    /// `None` where standard error is no terminal.
    bar: Option<ProgressBar>,
    last_line: Instant,
    last_wait: Option<Instant>,
    bad_rows: u64,
}

impl Progress {
    /// `size`: bytes of the file, where known.
    pub(super) fn start(size: Option<u64>) -> Self {
        let bar = io::stderr().is_terminal().then(|| match size {
            Some(size) => {
                ProgressBar::new(size).with_style(style("{wide_bar} {percent:>3} %  {msg}, {eta} left"))
            }
            None => ProgressBar::new_spinner().with_style(style("{spinner} {elapsed}  {msg}")),
        });
        let started = Instant::now();
        Self { started, size, bar, last_line: started, last_wait: None, bad_rows: 0 }
    }

    /// Ends the bar; how long it all took.
    pub(super) fn finish(self) -> Duration {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if self.bad_rows > BAD_ROWS_SHOWN {
            self.line(format_args!("and {} more bad rows", HumanCount(self.bad_rows - BAD_ROWS_SHOWN)));
        }
        self.started.elapsed()
    }

    /// A server is asked once more.
    pub(super) fn trying_again(&self, why: &str) {
        self.line(format_args!("{why}; trying again"));
    }

    /// Nobody need read it: an error is not one of the import.
    fn line(&self, line: fmt::Arguments<'_>) {
        let write = || {
            let _ = writeln!(io::stderr(), "{line}");
        };
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl Watch<BadRow> for Progress {
    fn bad(&mut self, bad: BadRow) {
        self.bad_rows += 1;
        if self.bad_rows <= BAD_ROWS_SHOWN {
            self.line(format_args!("{bad}"));
        }
        if self.bad_rows == BAD_ROWS_SHOWN {
            self.line(format_args!("(further bad rows are only counted)"));
        }
    }

    fn sent(&mut self, sent: &Sent) {
        for (row, end) in sent.rows.iter().zip(&sent.ends) {
            if let RowEnd::Refused(refusal) = end {
                self.bad(BadRow { line: row.line, size: row.size, reason: refusal.to_string() });
            }
        }
    }

    fn progress(&mut self, report: &Report) {
        let elapsed = self.started.elapsed();
        let done = format!(
            "{} stored, {}/s",
            HumanCount(report.stored),
            HumanCount(per_second(report.stored, elapsed))
        );
        if let Some(bar) = &self.bar {
            bar.set_message(done);
            bar.set_position(report.bytes);
        } else if self.last_line.elapsed() >= BETWEEN_LINES {
            self.last_line = Instant::now();
            match self.size.filter(|_| report.bytes > 0) {
                Some(size) => {
                    let part = (report.bytes as f64 / size.max(1) as f64).min(1.0);
                    let left = elapsed.mul_f64((1.0 - part) / part);
                    self.line(format_args!("{done}, {:.0} %, {} left", part * 100.0, HumanDuration(left)));
                }
                None => self.line(format_args!("{done}")),
            }
        }
    }

    fn waiting(&mut self, why: &str) {
        if self.last_wait.is_none_or(|last| last.elapsed() > BETWEEN_WAITS) {
            self.last_wait = Some(Instant::now());
            self.line(format_args!("waiting for the database: {why}"));
        }
    }
}

/// Whole trades a second.
pub(in crate::cli) fn per_second(trades: u64, elapsed: Duration) -> u64 {
    (trades as f64 / elapsed.as_secs_f64().max(0.001)) as u64
}

/// A bar of this form.
pub(in crate::cli) fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
