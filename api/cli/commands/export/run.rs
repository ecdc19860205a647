//! From the database to a file, with a report at the end.

use std::io;
use std::time::Duration;

use pagebucket_engine::internal::COMMAND;
use pagebucket_engine::{Deadline, Engine, Error, Gone};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{DateRange, Limit, OwnerId, Position};
use pagebucket_streams::export::Writer;
use pagebucket_streams::patience::{OUTAGE, Patience};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::commands::exit::Signals;
use crate::commands::terminal::{ProgressLine, count, speed};

/// What to export, and as what.
pub(crate) struct ExportRequest {
    pub(crate) owners: ExportedOwners,
    pub(crate) dates: Option<DateRange>,
    pub(crate) writer: Writer,
}

pub(crate) enum ExportedOwners {
    One(OwnerId, Position),
    After(Option<OwnerId>),
}

/// What was exported.
#[derive(Debug, Default)]
pub(crate) struct ExportReport {
    pub(crate) items: u64,
    /// Number of owners whose items were written to the end.
    owners: u64,
    /// Number of owners that were erased meanwhile, in an export of all. Some of their items may be written.
    erased: u64,
    /// The owner whose items were not, and how far they are written.
    at: Option<(OwnerId, Position)>,
    /// The last owner whose items are complete, in an export of all.
    complete: Option<OwnerId>,
    all: bool,
    /// Why the export is incomplete.
    pub(crate) end: Option<ExportEnd>,
}

/// Why an export ended before its end.
#[derive(Debug)]
pub(crate) enum ExportEnd {
    Database(Error),
    Unwritable(io::Error),
    Interrupted,
}

/// An export under way.
pub(crate) struct Running<'a> {
    pub(crate) wanted: &'a ExportRequest,
    pub(crate) engine: &'a Engine,
    pub(crate) file: File,
    pub(crate) progress: &'a mut ProgressLine,
    /// Number of pages that were read.
    pub(crate) pages: u64,
    pub(crate) report: ExportReport,
}

impl Running<'_> {
    /// Exports until all is written, or something ends it.
    pub(crate) async fn run(mut self, signals: &mut Signals) -> ExportReport {
        self.report.all = matches!(self.wanted.owners, ExportedOwners::After(_));
        self.report.end = tokio::select! {
            ended = self.all() => ended.err(),
            () = signals.next() => Some(ExportEnd::Interrupted),
        };
        self.report
    }

    async fn all(&mut self) -> Result<(), ExportEnd> {
        let engine = self.engine;
        self.file.write_all(self.wanted.writer.header().as_bytes()).await.map_err(ExportEnd::Unwritable)?;
        match &self.wanted.owners {
            ExportedOwners::One(owner, after) => self.one(owner, *after).await?,
            ExportedOwners::After(after) => {
                let mut after = after.clone();
                if after.is_none() && self.wanted.dates.is_none() {
                    let pages = patiently(self.progress, async || {
                        engine.verifier().estimated_buckets(Deadline::within(COMMAND)).await
                    });
                    let pages = pages.await?;
                    self.progress.set_length(pages);
                }
                loop {
                    let some = patiently(self.progress, async || {
                        engine.reads().owners(after.clone(), Limit::MOST, Deadline::within(COMMAND)).await
                    });
                    let some = some.await?;
                    for (owner, _) in some.found {
                        self.what_is_there(&owner).await?;
                        after = Some(owner);
                        self.report.complete.clone_from(&after);
                    }
                    match some.more {
                        None => break,
                        more => after = more,
                    }
                }
            }
        }
        self.file.flush().await.map_err(ExportEnd::Unwritable)
    }

    /// Exports a history of many, from which pages may be deleted meanwhile.
    async fn what_is_there(&mut self, owner: &OwnerId) -> Result<(), ExportEnd> {
        let mut after = Position::BEGINNING;
        loop {
            match self.one(owner, after).await {
                Err(ExportEnd::Database(Error::Gone(Gone::Erased { .. }))) => {
                    self.report.erased += 1;
                    self.report.at = None;
                    return Ok(());
                }
                Err(ExportEnd::Database(Error::Gone(Gone::Retired { first_seq, .. }))) => {
                    after = Position::before(first_seq);
                }
                ended => return ended,
            }
        }
    }

    async fn one(&mut self, owner: &OwnerId, after: Position) -> Result<(), ExportEnd> {
        self.report.at = Some((owner.clone(), after));
        let (engine, dates) = (self.engine, self.wanted.dates);
        let export = patiently(self.progress, async || {
            engine.reads().export(owner.clone(), after, dates, Deadline::within(COMMAND)).await
        });
        let mut export = export.await?;
        let begin = export.position().get();
        if !self.report.all {
            self.progress.set_length(export.totals().items().saturating_sub(begin));
        }
        let mut rows = Vec::new();
        while let Some(batch) = patiently(self.progress, async || export.next().await).await? {
            rows.clear();
            let (mut items, mut last) = (0, None);
            for item in batch.items() {
                self.wanted.writer.write(owner, &item, &mut rows).map_err(ExportEnd::Database)?;
                (items, last) = (items + 1, Some(item.seq));
            }
            self.file.write_all(&rows).await.map_err(ExportEnd::Unwritable)?;
            // Until then the rows are only in a buffer of ours.
            self.file.flush().await.map_err(ExportEnd::Unwritable)?;
            self.report.items += items;
            if let Some(seq) = last {
                self.report.at = Some((owner.clone(), Position::behind(seq)));
            }
            self.pages += batch.pages() as u64;
            let done = if self.report.all { self.pages } else { export.position().get() - begin };
            self.progress.show(self.report.items, "exported", done);
        }
        self.report.at = None;
        self.report.owners += 1;
        Ok(())
    }
}

/// Asks the database until it answers, for [`OUTAGE`] after the first failure.
async fn patiently<T>(
    progress: &mut ProgressLine,
    mut ask: impl AsyncFnMut() -> Result<T, Error>,
) -> Result<T, ExportEnd> {
    let mut failing = None;
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let patience = failing.get_or_insert_with(|| Patience::of(OUTAGE));
        if !patience.allows(&error) {
            return Err(ExportEnd::Database(error));
        }
        progress.waiting("it does not answer");
        patience.pause().await;
    }
}

impl ExportReport {
    /// Some lines, the last without its line break.
    pub(crate) fn text(&self, definition: &Definition, took: Duration) -> String {
        let mut lines = vec![format!(
            "exported {} of {} in {}",
            count(self.items, definition.item.noun().one()),
            count(self.owners + u64::from(self.at.is_some()), &definition.owner.noun()),
            speed(self.items, took),
        )];
        if self.erased > 0 {
            let owners = count(self.erased, &definition.owner.noun());
            lines.push(format!("{owners} erased meanwhile: some of their items may be in the file"));
        }
        let Some(end) = &self.end else { return lines.join("\n") };
        lines.push(match end {
            ExportEnd::Database(error) => format!("stopped: {error}"),
            ExportEnd::Unwritable(error) => {
                format!("stopped: the rest of the file cannot be written: {error}")
            }
            ExportEnd::Interrupted => "interrupted".to_owned(),
        });
        let rest = |after: &OwnerId| format!("--after-owner {after}");
        let go_on = match (&self.at, &self.complete) {
            (Some((owner, at)), _) => {
                let at = match end {
                    ExportEnd::Database(Error::Gone(Gone::Erased { .. })) => return lines.join("\n"),
                    // The items between are gone.
                    ExportEnd::Database(Error::Gone(Gone::Retired { first_seq, .. })) => {
                        Position::before(*first_seq)
                    }
                    _ => *at,
                };
                let this = format!("--owner {owner} --after {}", at.get());
                if self.all { format!("{this}, then {}", rest(owner)) } else { this }
            }
            (None, Some(complete)) => rest(complete),
            (None, None) => "begin again".to_owned(),
        };
        lines.push(format!("to go on: {go_on}"));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_to_go_on() {
        let trades = Definition::trades();
        let text = |report: &ExportReport| report.text(&trades, Duration::from_millis(500));
        let whole = ExportReport { items: 9_367, owners: 1, ..ExportReport::default() };
        assert_eq!(text(&whole), "exported 9,367 trades of 1 customer in 0.500 s (18,734/s)");
        let text_of_all = text(&ExportReport { erased: 2, ..whole });
        assert!(
            text_of_all.ends_with("\n2 customers erased meanwhile: some of their items may be in the file")
        );
        let [seven, nine] = [7, 9].map(OwnerId::Integer);
        let at = Position::parse("4000").unwrap();
        let end = Some(ExportEnd::Interrupted);
        let cut = ExportReport {
            items: 4_000,
            at: Some((nine, at)),
            complete: Some(seven),
            end,
            ..ExportReport::default()
        };
        assert!(text(&cut).ends_with(": --owner 9 --after 4000"), "{}", text(&cut));
        let cut = ExportReport { all: true, ..cut };
        let said = text(&cut);
        assert!(said.ends_with(": --owner 9 --after 4000, then --after-owner 9"), "{said}");
        let between = ExportReport { at: None, ..cut };
        assert!(text(&between).ends_with(": --after-owner 7"));
    }
}
