//! From the database to a file, with a report at the end.

use std::io;
use std::time::Duration;

use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::cli::signals::Signals;
use crate::cli::terminal::{Progress, count, per_second, seconds};
use crate::domain::{CustomerId, DateRange, Limit, Position};
use crate::format::Format;
use crate::store::history::{Export, Trades};
use crate::store::{COMMAND, Deadline, Error};

/// What to export, and as what.
pub(super) struct Wanted {
    pub(super) customers: Customers,
    pub(super) dates: Option<DateRange>,
    pub(super) format: Format,
}

pub(super) enum Customers {
    One(CustomerId, Position),
    After(Option<CustomerId>),
}

/// How long an export waits for a database that does not answer, as an import does.
const PATIENCE: Duration = Duration::from_secs(60);
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

/// What was exported.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) trades: u64,
    /// Number of customers whose histories were written to the end.
    customers: u64,
    /// The customer whose history was not, and how far it is written.
    at: Option<(CustomerId, Position)>,
    /// The last customer whose history is complete, in an export of all.
    complete: Option<CustomerId>,
    all: bool,
    /// Why the export is incomplete.
    pub(super) end: Option<End>,
}

/// Why an export ended before its end.
#[derive(Debug)]
pub(super) enum End {
    Database(Error),
    Unwritable(io::Error),
    Interrupted,
}

/// Exports until all is written, or something ends it.
pub(super) async fn run(
    wanted: &Wanted,
    trades: &Trades,
    file: File,
    signals: &mut Signals,
    progress: &mut Progress,
) -> Report {
    let all = matches!(wanted.customers, Customers::After(_));
    let mut running = Running { wanted, trades, file, progress, report: Report { all, ..Report::default() } };
    let end = tokio::select! {
        ended = running.all() => ended.err(),
        () = signals.next() => Some(End::Interrupted),
    };
    running.report.end = end;
    running.report
}

struct Running<'a> {
    wanted: &'a Wanted,
    trades: &'a Trades,
    file: File,
    progress: &'a mut Progress,
    report: Report,
}

impl Running<'_> {
    async fn all(&mut self) -> Result<(), End> {
        self.file.write_all(self.wanted.format.header().as_bytes()).await.map_err(End::Unwritable)?;
        match self.wanted.customers {
            Customers::One(customer, after) => self.one(customer, after).await?,
            Customers::After(mut after) => loop {
                let mut patience = Patience::default();
                let some = loop {
                    match self.trades.customers(after, Limit::MOST, Deadline::within(COMMAND)).await {
                        Ok(some) => break some,
                        Err(error) => patience.after(error, self.progress).await?,
                    }
                };
                for (customer, _) in some.found {
                    self.one(customer, Position::BEGINNING).await?;
                    after = Some(customer);
                    self.report.complete = after;
                }
                if !some.more {
                    break;
                }
            },
        }
        self.file.flush().await.map_err(End::Unwritable)
    }

    async fn one(&mut self, customer: CustomerId, after: Position) -> Result<(), End> {
        self.report.at = Some((customer, after));
        let mut patience = Patience::default();
        let mut export: Export = loop {
            match self.trades.export(customer, after, self.wanted.dates, Deadline::within(COMMAND)).await {
                Ok(export) => break export,
                Err(error) => patience.after(error, self.progress).await?,
            }
        };
        if !self.report.all && self.wanted.dates.is_none() {
            self.progress.set_length(export.totals().trades().saturating_sub(after.get()));
        }
        let mut rows = Vec::new();
        loop {
            let mut patience = Patience::default();
            let batch = loop {
                match export.next().await {
                    Ok(batch) => break batch,
                    Err(error) => patience.after(error, self.progress).await?,
                }
            };
            if batch.is_empty() {
                break;
            }
            rows.clear();
            for (seq, trade) in &batch {
                self.wanted.format.write(customer, *seq, trade, &mut rows);
            }
            self.file.write_all(&rows).await.map_err(End::Unwritable)?;
            // Until then the rows are only in a buffer of ours.
            self.file.flush().await.map_err(End::Unwritable)?;
            self.report.trades += batch.len() as u64;
            self.report.at = batch.last().map(|(seq, _)| (customer, Position::behind(*seq)));
            self.progress.show(self.report.trades, "exported", self.report.trades);
        }
        self.report.at = None;
        self.report.customers += 1;
        Ok(())
    }
}

/// Patience with one question to the database.
#[derive(Default)]
struct Patience(Option<Instant>);

impl Patience {
    /// Waits before another attempt, if one is worthwhile.
    async fn after(&mut self, error: Error, progress: &mut Progress) -> Result<(), End> {
        let since = *self.0.get_or_insert_with(Instant::now);
        match error {
            Error::Unavailable(_) if since.elapsed() < PATIENCE => progress.waiting("it does not answer"),
            error => return Err(End::Database(error)),
        }
        tokio::time::sleep(BETWEEN_ATTEMPTS).await;
        Ok(())
    }
}

impl Report {
    /// Some lines, the last without its line break.
    pub(super) fn text(&self, took: Duration) -> String {
        let mut lines = vec![format!(
            "exported {} of {} in {} ({}/s)",
            count(self.trades, "trade"),
            count(self.customers + u64::from(self.at.is_some()), "customer"),
            seconds(took),
            indicatif::HumanCount(per_second(self.trades, took)),
        )];
        let Some(end) = &self.end else { return lines.remove(0) };
        lines.push(match end {
            End::Database(error) => format!("stopped: {error}"),
            End::Unwritable(error) => format!("stopped: the rest of the file cannot be written: {error}"),
            End::Interrupted => "interrupted".to_owned(),
        });
        let rest = |after: CustomerId| format!("--all --after-customer {after}");
        let go_on = match (self.at, self.complete) {
            (Some((customer, at)), _) => {
                let this = format!("--customer {customer} --after {}", at.get());
                if self.all { format!("{this}, then {}", rest(customer)) } else { this }
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
        let took = Duration::from_millis(500);
        let whole = Report { trades: 9_367, customers: 1, ..Report::default() };
        assert_eq!(whole.text(took), "exported 9,367 trades of 1 customer in 0.500 s (18,734/s)");
        let [seven, nine] = [7, 9].map(|id| CustomerId::new(id).unwrap());
        let at: Position = "4000".parse().unwrap();
        let end = Some(End::Interrupted);
        let cut =
            Report { trades: 4_000, at: Some((nine, at)), complete: Some(seven), end, ..Report::default() };
        assert!(cut.text(took).ends_with(": --customer 9 --after 4000"), "{}", cut.text(took));
        let cut = Report { all: true, ..cut };
        let said = cut.text(took);
        assert!(said.ends_with(": --customer 9 --after 4000, then --all --after-customer 9"), "{said}");
        let between = Report { at: None, ..cut };
        assert!(between.text(took).ends_with(": --all --after-customer 7"));
    }
}
