//! One batch to the database, and again while it is away.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Row;
use super::pending::Batch;
use super::run::Options;
use crate::domain::{CustomerId, Seq, SeqRange, Totals, Trade, TradeDraft};
use crate::store::trades::{AppendError, Cause, Trades};
use crate::store::{COMMAND, Deadline, Error};

/// Where rows go.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The histories.
    pub trades: Trades,
    /// When it began: the date of rows that have none.
    pub began: crate::domain::Instant,
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// It is stored there.
    Stored(Seq),
    /// It is a trade, and is not stored.
    Refused(Refusal),
}

/// Why a trade is not stored where it stands, though the next one may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its customer's history can take no more buckets.
    HistoryExhausted,
    /// Its customer has had another request with the same key.
    KeyReused,
}

/// What became of a batch: that of its first rows is in `ends`, of the next `unknown` nothing is
/// known, and the rest is not stored.
#[derive(Debug)]
pub struct Sent {
    /// Whose rows they are.
    pub customer: CustomerId,
    /// The rows in their order.
    pub rows: Vec<Row>,
    /// What became of the first.
    pub ends: Vec<RowEnd>,
    /// How many of the next may or may not be stored.
    pub unknown: usize,
    /// What the customer's history holds, when all is stored.
    pub totals: Option<Totals>,
    /// Why not all has come to an end.
    pub failed: Option<Cause>,
}

/// Appends a batch. When the database is away for a passing reason and nothing is unknown, tries
/// again what is left, for as long as [`Options::patience`] says, or until `stop` says that it is over;
/// tells `waiting` why it waits.
pub(super) async fn send(
    to: Destination,
    Batch { customer, rows }: Batch,
    options: Options,
    stop: CancellationToken,
    waiting: UnboundedSender<&'static str>,
) -> Sent {
    let mut sent = Sent { customer, rows, ends: Vec::new(), unknown: 0, totals: None, failed: None };
    let mut give_up = Instant::now() + options.patience;
    let mut pause = Duration::from_millis(250);
    loop {
        let rest = sent.rows[sent.ends.len()..].iter().map(|row| row.draft.clone());
        let (ranges, result) = to.append(customer, rest).await;
        if !ranges.is_empty() {
            give_up = Instant::now() + options.patience;
        }
        sent.ends.extend(seqs(&ranges).map(RowEnd::Stored));
        let (unknown, cause) = match result {
            Ok(totals) => {
                sent.totals = Some(totals);
                return sent;
            }
            Err(failed) => failed,
        };
        if options.many
            && unknown == 0
            && let Some(refusal) = refusal(&cause)
        {
            sent.ends.resize(sent.rows.len(), RowEnd::Refused(refusal));
            return sent;
        }
        let passing = passing(&cause).filter(|_| unknown == 0 && Instant::now() + pause < give_up);
        let Some(why) = passing else {
            sent.unknown = unknown;
            sent.failed = Some(cause);
            return sent;
        };
        // Nobody listens once it is over.
        let _ = waiting.send(why);
        if timeout(pause, stop.cancelled()).await.is_ok() {
            sent.failed = Some(cause);
            return sent;
        }
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

impl Destination {
    /// Where the first rows are now; and what the history holds, or of how many more nothing is known, and
    /// why.
    async fn append(
        &self,
        customer: CustomerId,
        rows: impl Iterator<Item = TradeDraft>,
    ) -> (Vec<SeqRange>, Result<Totals, (usize, Cause)>) {
        let trades: Vec<Trade> = rows.map(|draft| draft.dated(self.began)).collect();
        match self.trades.append(customer, trades, Deadline::within(COMMAND)).await {
            Ok(appended) => (appended.ranges, Ok(appended.totals)),
            Err(AppendError { ranges, unknown, cause }) => (ranges, Err((unknown, cause))),
        }
    }
}

/// Each of them.
fn seqs(ranges: &[SeqRange]) -> impl Iterator<Item = Seq> {
    ranges.iter().flat_map(|range| (0..range.count() as usize).map(|index| range.first.plus(index)))
}

/// What is one customer's matter.
fn refusal(cause: &Cause) -> Option<Refusal> {
    match cause {
        Cause::SecondsExhausted(_) => Some(Refusal::HistoryExhausted),
        Cause::KeyReused => Some(Refusal::KeyReused),
        Cause::OutcomeUnknown | Cause::Overloaded | Cause::Contended | Cause::Database(_) => None,
    }
}

/// Why it is worth trying again, if it is: the cause itself, with the driver's words, is told when
/// that was in vain.
fn passing(cause: &Cause) -> Option<&'static str> {
    match cause {
        Cause::Contended => Some("too many others append to the same history"),
        Cause::Overloaded => Some("too many appends are waiting"),
        Cause::Database(Error::Unavailable(_)) => Some("it does not answer"),
        Cause::OutcomeUnknown
        | Cause::SecondsExhausted(_)
        | Cause::KeyReused
        | Cause::Database(Error::Corrupt(_) | Error::Internal(_)) => None,
    }
}
