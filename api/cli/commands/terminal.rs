//! What a command writes for people: lines on standard output, progress on standard error.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use pagebucket_model::item::Noun;
use tokio::time::Instant;

use super::exit::Failure;

/// Pause between two lines of progress, where standard error is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(2);

/// Pause between two lines about a database that does not answer.
const BETWEEN_WAITS: Duration = Duration::from_secs(10);

/// Writes a line on standard output. A closed output is not an error: the exit status says the rest.
pub(crate) fn print(line: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Writes a whole document on standard output.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let written = io::stdout().lock().write_all(text.as_bytes());
    written.map_err(|error| Failure::Usage(format!("cannot write to standard output: {error}")))
}

/// Standard output as a file, so that a slow reader of it does not delay a signal.
///
/// # Errors
/// It is closed.
pub(crate) fn output() -> Result<tokio::fs::File, Failure> {
    let out = io::stdout().as_fd().try_clone_to_owned();
    let out = out.map_err(|error| Failure::Usage(format!("standard output: {error}")))?;
    Ok(tokio::fs::File::from_std(File::from(out)))
}

/// Writes a line on standard error.
pub(crate) fn print_error(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A number with its noun: "1 trade", "2,000 trades".
pub(crate) fn count(number: u64, noun: &str) -> String {
    let noun = Noun::of_name(noun);
    format!("{} {}", HumanCount(number), if number == 1 { noun.one() } else { noun.many() })
}

/// How long a command took, in seconds with three decimals below one second, else with one; and how many
/// items a second.
pub(crate) fn speed(items: u64, took: Duration) -> String {
    let (seconds, rate) = (took.as_secs_f64(), HumanCount(per_second(items, took)));
    if seconds < 1.0 { format!("{seconds:.3} s ({rate}/s)") } else { format!("{seconds:.1} s ({rate}/s)") }
}

/// Items per second, rounded down.
fn per_second(items: u64, elapsed: Duration) -> u64 {
    (items as f64 / elapsed.as_secs_f64().max(0.001)) as u64
}

/// How far a command is, on standard error: a bar on a terminal, a line every two seconds elsewhere.
pub(crate) struct ProgressLine {
    /// Hidden where standard error is no terminal.
    bar: ProgressBar,
    /// Position at the end, where it is known from the start.
    total: Option<u64>,
    last_line: Instant,
    last_wait: Option<Instant>,
}

impl ProgressLine {
    /// `total`: the position at the end, where it is known.
    pub(crate) fn start(total: Option<u64>) -> Self {
        let bar = ProgressBar::new_spinner().with_style(style("{spinner} {elapsed}  {msg}"));
        let mut progress = Self { bar, total: None, last_line: Instant::now(), last_wait: None };
        total.into_iter().for_each(|total| progress.set_length(total));
        progress
    }

    /// Turns the spinner of a terminal into a bar of this length.
    pub(crate) fn set_length(&mut self, total: u64) {
        self.total = Some(total);
        self.bar.set_length(total);
        self.bar.set_style(style("{wide_bar} {percent:>3} %  {msg}, {eta} left"));
    }

    /// Shows that `items` items are `done`, such as "stored", at this position.
    pub(crate) fn show(&mut self, items: u64, done: &str, position: u64) {
        let elapsed = self.bar.elapsed();
        let message = format!("{} {done}, {}/s", HumanCount(items), HumanCount(per_second(items, elapsed)));
        if !self.bar.is_hidden() {
            self.bar.set_message(message);
            self.bar.set_position(position);
        } else if self.last_line.elapsed() >= BETWEEN_LINES {
            self.last_line = Instant::now();
            match self.total.filter(|_| position > 0) {
                Some(total) => {
                    let part = (position as f64 / total.max(1) as f64).min(1.0);
                    let left = HumanDuration(elapsed.mul_f64((1.0 - part) / part));
                    self.line(format_args!("{message}, {:.0} %, {left} left", part * 100.0));
                }
                None => self.line(format_args!("{message}")),
            }
        }
    }

    /// Says why the command waits for the database, at most every ten seconds.
    pub(crate) fn waiting(&mut self, why: &str) {
        if self.last_wait.is_none_or(|last| last.elapsed() > BETWEEN_WAITS) {
            self.last_wait = Some(Instant::now());
            self.line(format_args!("waiting for the database: {why}"));
        }
    }

    /// Says what the first interrupt does, which is to wait for these rows, and `more`.
    pub(crate) fn stopping(&self, under_way: usize, more: &str) {
        let rows = count(under_way as u64, "row");
        self.line(format_args!(
            "stopping: rows that were read are not sent any more; waiting for {rows} under way{more}"
        ));
    }

    /// Writes a line on standard output, which may be the terminal that has the bar.
    pub(crate) fn print(&self, line: fmt::Arguments<'_>) {
        self.bar.suspend(|| print(line));
    }

    /// Writes a line above the bar.
    pub(crate) fn line(&self, line: fmt::Arguments<'_>) {
        self.bar.suspend(|| print_error(line));
    }

    /// Ends the bar, and returns how long the command took.
    pub(crate) fn finish(self) -> Duration {
        let took = self.bar.elapsed();
        self.bar.finish_and_clear();
        took
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
