//! How far an export is, on standard error: a bar on a terminal, a line every two seconds elsewhere.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar};
use tokio::time::Instant;

use crate::cli::import::{per_second, style};

const BETWEEN_LINES: Duration = Duration::from_secs(2);

/// While the database is away, it is said so often.
const BETWEEN_WAITS: Duration = Duration::from_secs(10);

/// What is shown.
pub(super) struct Progress {
    started: Instant,
    /// `None` where standard error is no terminal.
    bar: Option<ProgressBar>,
    last_line: Instant,
    last_wait: Option<Instant>,
}

impl Progress {
    pub(super) fn start() -> Self {
        let spinner = || ProgressBar::new_spinner().with_style(style("{spinner} {elapsed}  {msg}"));
        let started = Instant::now();
        Self { started, bar: io::stderr().is_terminal().then(spinner), last_line: started, last_wait: None }
    }

    /// There are so many trades in all.
    pub(super) fn of(&mut self, trades: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(trades);
            bar.set_style(style("{wide_bar} {percent:>3} %  {msg}, {eta} left"));
        }
    }

    /// So many are written.
    pub(super) fn exported(&mut self, trades: u64) {
        let rate = HumanCount(per_second(trades, self.started.elapsed()));
        let done = format!("{} exported, {rate}/s", HumanCount(trades));
        if let Some(bar) = &self.bar {
            bar.set_message(done);
            bar.set_position(trades);
        } else if self.last_line.elapsed() >= BETWEEN_LINES {
            self.last_line = Instant::now();
            say(format_args!("{done}"));
        }
    }

    /// The database is away.
    pub(super) fn waiting(&mut self) {
        if self.last_wait.is_none_or(|last| last.elapsed() > BETWEEN_WAITS) {
            self.last_wait = Some(Instant::now());
            let line = || say(format_args!("waiting for the database: it does not answer"));
            match &self.bar {
                Some(bar) => bar.suspend(line),
                None => line(),
            }
        }
    }

    /// Ends the bar; how long it all took.
    pub(super) fn finish(self) -> Duration {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.started.elapsed()
    }
}

/// Nobody need read it: an error is not one of the export.
pub(super) fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}
