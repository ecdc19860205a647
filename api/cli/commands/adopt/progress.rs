//! What an adoption shows: its progress, its lag, and summaries.

use std::fmt::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use indicatif::HumanCount;
use pagebucket_model::definition::Definition;
use pagebucket_streams::adopt::{AdoptionWatch, Checked, Ended, Lag, NotStored, Plan};
use pagebucket_streams::ingest::{End, Report, StreamEvent, StreamWatch};
use tokio::time::Instant;

use crate::commands::terminal::{self, count, speed};

/// Refusals, and changes, that are shown one by one; the rest is only counted.
const SHOWN: u64 = 100;

/// Pause between two lines about the lag.
const BETWEEN_LAGS: Duration = Duration::from_secs(2);

/// Shows what an adoption tells.
pub(crate) struct AdoptionProgress {
    shown: terminal::ProgressLine,
    done: &'static str,
    owner: String,
    /// Items that were stored before: they count as progress.
    present: u64,
    refused: ShownLines,
    miscounted: ShownLines,
    changed: ShownLines,
    lag: Option<(Instant, Lag)>,
}

/// Lines of one kind.
struct ShownLines {
    what: &'static str,
    count: u64,
}

impl ShownLines {
    fn of(what: &'static str) -> Self {
        Self { what, count: 0 }
    }

    fn line(&mut self, shown: &terminal::ProgressLine, line: fmt::Arguments<'_>) {
        self.count += 1;
        if self.count <= SHOWN {
            shown.line(line);
        }
        if self.count == SHOWN {
            shown.line(format_args!("(further {} are only counted)", self.what));
        }
    }
}

impl AdoptionProgress {
    /// `size`: the position at the end, where known. `done`: what is done to items.
    pub(crate) fn start(definition: &Arc<Definition>, size: Option<u64>, done: &'static str) -> Self {
        Self {
            shown: terminal::ProgressLine::start(size.filter(|size| *size > 0)),
            done,
            owner: definition.owner.noun().to_string(),
            present: 0,
            refused: ShownLines::of("refused items"),
            miscounted: ShownLines::of("buckets with a wrong `count`"),
            changed: ShownLines::of("changes"),
            lag: None,
        }
    }

    /// Ends the bar, and returns how long it took.
    pub(crate) fn finish(self) -> Duration {
        self.shown.finish()
    }
}

impl StreamWatch<NotStored> for AdoptionProgress {
    fn hear(&mut self, event: StreamEvent<'_, NotStored>) {
        match event {
            StreamEvent::Came(_) => {}
            StreamEvent::Bad(bad) => match bad.why {
                NotStored::Present => self.present += 1,
                NotStored::Refused(refused) => {
                    self.refused.line(&self.shown, format_args!("refused: {refused}"));
                }
                NotStored::Miscounted(line) => self.miscounted.line(&self.shown, format_args!("{line}")),
            },
            StreamEvent::Sent(sent) => {
                for (_, refusal) in sent.refused() {
                    let owner = format!("{} {}", self.owner, sent.owner);
                    self.refused.line(&self.shown, format_args!("refused: an item of {owner}: {refusal}"));
                }
            }
            StreamEvent::Progress(report) if self.lag.is_none() => {
                self.shown.show(report.stored + self.present, self.done, report.bytes);
            }
            StreamEvent::Progress(_) => {}
            StreamEvent::Waiting(why) => self.shown.waiting(why),
            StreamEvent::Interrupted(rows) => self.shown.stopping(rows, ""),
        }
    }
}

impl AdoptionWatch for AdoptionProgress {
    fn line(&mut self, line: fmt::Arguments<'_>) {
        self.shown.line(line);
    }

    fn changed(&mut self, change: &str) {
        self.changed.line(&self.shown, format_args!("not applied: {change}"));
    }

    fn lag(&mut self, lag: Lag) {
        let is_due = self.lag.is_none_or(|(told, before)| {
            told.elapsed() >= BETWEEN_LAGS || (before.events == 0) != (lag.events == 0)
        });
        if is_due {
            self.lag = Some((Instant::now(), lag));
            let Lag { at, seconds, events, stored } = lag;
            let events = count(events as u64, "event");
            self.shown.line(format_args!(
                "{at} lag {seconds} s, {events}; stored {} since the copy",
                HumanCount(stored)
            ));
        }
    }
}

/// How the copy went.
pub(crate) fn copied(report: &Report, definition: &Definition, took: Duration) -> String {
    let (item, owner) = (definition.item.noun().one(), definition.owner.noun());
    let (more, owners) = (report.more_owners, count(report.owners.len() as u64, &owner));
    let mut text = format!(
        "stored {} of {}{owners} in {}",
        count(report.stored, item),
        if more { "more than " } else { "" },
        speed(report.stored, took)
    );
    match &report.end {
        None | Some(End::BadRow) => {}
        Some(End::Interrupted) => text += "\ninterrupted: run it again to continue",
        Some(End::Unreadable(error)) => {
            let _ = write!(text, "\nstopped: {error}\nto go on: run it again");
        }
        Some(End::Database(cause)) => {
            let _ = write!(text, "\nstopped: {cause}\nto go on: run it again");
        }
        Some(End::Server(words)) => {
            let _ = write!(text, "\nstopped: {words}");
        }
    }
    text
}

/// What became of the items.
pub(crate) fn summary(ended: &Ended, definition: &Definition, rejects: Option<&Path>) -> String {
    let (item, counts) = (definition.item.noun().one(), &ended.counts);
    let mut text = String::new();
    let mut line = |line: fmt::Arguments<'_>| {
        let _ = write!(text, "{}{line}", if text.is_empty() { "" } else { "\n" });
    };
    line(format_args!(
        "in all: stored {}, {} were stored before",
        count(counts.stored, item),
        HumanCount(counts.present)
    ));
    match rejects {
        Some(file) if counts.refused > 0 => {
            line(format_args!("refused {}: {}", count(counts.refused, item), file.display()));
        }
        _ => line(format_args!("refused {}", count(counts.refused, item))),
    }
    if counts.miscounted > 0 {
        line(format_args!("wrong `count`: {}", count(counts.miscounted, "bucket")));
    }
    if counts.changed > 0 {
        line(format_args!("not applied: {}", count(counts.changed, "change")));
    }
    text
}

/// What a dry run says.
pub(crate) fn planned(plan: &Plan, definition: &Definition, took: Duration) -> String {
    let (item, owner) = (definition.item.noun().one(), definition.owner.noun());
    let (items, owners) = (count(plan.items, item), count(plan.owners, &owner));
    let mut text = String::new();
    let mut line = |line: fmt::Arguments<'_>| {
        let _ = write!(text, "{}{line}", if text.is_empty() { "" } else { "\n" });
    };
    if !plan.complete {
        line(format_args!("interrupted: this is what was read"));
    }
    line(format_args!("would store {items} of {owners}"));
    line(format_args!("would refuse {}", count(plan.refused, item)));
    for (reason, times) in &plan.reasons {
        line(format_args!("  {}: {reason}", HumanCount(*times)));
    }
    if plan.miscounted > 0 {
        line(format_args!("wrong `count`: {}", count(plan.miscounted, "bucket")));
    }
    if !plan.largest.is_empty() {
        line(format_args!("the longest histories:"));
    }
    for (id, items) in &plan.largest {
        line(format_args!("  {owner} {id}: {}", count(*items, item)));
    }
    line(format_args!("read in {}", speed(plan.items + plan.refused, took)));
    // Reading and storing go on at once: the slower of both decides. How fast the database stores is not
    // known here.
    line(format_args!(
        "a copy takes at least about {:.1} s, as reading did, and several times as long where storing is slower",
        took.as_secs_f64()
    ));
    text
}

/// What a comparison found.
pub(crate) fn found(checked: &Checked, definition: &Definition, took: Duration) -> String {
    let (item, owner) = (definition.item.noun().one(), definition.owner.noun());
    let mut text = String::new();
    let mut line = |line: fmt::Arguments<'_>| {
        let _ = write!(text, "{}{line}", if text.is_empty() { "" } else { "\n" });
    };
    if !checked.complete {
        line(format_args!("interrupted: this is what was compared"));
    }
    line(format_args!(
        "{} of {} are the same in {}",
        count(checked.same, item),
        count(checked.owners, &owner),
        speed(checked.same, took)
    ));
    line(format_args!("{}", count(checked.differences, "difference")));
    if checked.late > 0 {
        line(format_args!("in the order of arrival, after later ones: {}", count(checked.late, item)));
    }
    if checked.mended > 0 {
        line(format_args!("stored as mended: {}", count(checked.mended, item)));
    }
    if checked.others > 0 {
        line(format_args!(
            "not compared, because the source does not have them: {} that others have appended",
            count(checked.others, item)
        ));
    }
    text
}
