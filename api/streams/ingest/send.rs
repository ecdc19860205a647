//! Sends one batch to the database, again if that fails for a passing reason.

use std::time::Duration;

use derive_more::Display;
use pagebucket_engine::appends::{Append, AppendCause, AppendError, LineRefusal, Once};
use pagebucket_engine::internal::{APPEND_ONCE, COMMAND, IdentifiedSoFar, Waiting, weight};
use pagebucket_engine::{Deadline, Engine, Error, Gone};
use pagebucket_model::domain::{IdempotencyKey, OwnerId, Seq};
use pagebucket_model::item::Draft;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::pending::{RowBatch, SoFar};
use super::stream::{Row, StreamOptions};

/// The destination of rows.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The histories.
    pub engine: Engine,
    /// The key under which the stream may be sent again: stored rows are found, and the rest continues.
    pub key: Option<IdempotencyKey>,
    /// When the stream began: the date of rows without one, unless the same key was used earlier.
    pub began: pagebucket_model::domain::Instant,
}

/// Why an item is not stored, though the next one may be: a sentence without a full stop.
#[derive(Debug, Display, Clone, Copy, PartialEq, Eq)]
pub enum RowRefusal {
    /// Its owner's history can take no more buckets.
    #[display("its owner's history can take no more pages")]
    HistoryExhausted,
    /// Its owner has had another request with the same key.
    #[display("its owner has had another request with the same `Idempotency-Key`")]
    KeyReused,
    /// Its owner is erased, or what an earlier attempt has stored is retired.
    Gone(Gone),
    /// See [`LineRefusal`].
    Line(LineRefusal),
}

/// What became of a row that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOutcome {
    /// It is stored durably, with this sequence number.
    Stored(Seq),
    /// It is not stored, though it is an item.
    Refused(RowRefusal),
    /// It may or may not be stored.
    Unknown,
    /// It is not stored, because the stream ended before.
    NotStored,
}

/// A batch that has ended.
#[derive(Debug)]
pub struct Sent {
    /// The owner.
    pub owner: OwnerId,
    /// The rows in their order.
    pub(crate) rows: Vec<Row>,
    /// Their outcomes, one for each row; while the batch is under way, those of the first rows.
    outcomes: Vec<RowOutcome>,
    /// The last sequence number of the owner's history, if all rows are stored.
    pub(crate) last: Option<Seq>,
    /// Why some rows are unknown or not stored.
    pub(crate) failed: Option<AppendCause>,
    /// What the owner's next batch needs, if rows are stored once.
    pub(crate) so_far: Option<SoFar>,
}

impl Sent {
    /// Nothing is sent yet.
    pub(crate) fn nothing_of(RowBatch { owner, rows, so_far }: RowBatch) -> Self {
        Self { owner, rows, outcomes: Vec::new(), last: None, failed: None, so_far }
    }

    /// The rows in their order, each with its outcome.
    pub fn outcomes(&self) -> impl Iterator<Item = (&Row, RowOutcome)> {
        self.rows.iter().zip(self.outcomes.iter().copied())
    }

    /// The rows that are refused, in their order.
    pub fn refused(&self) -> impl Iterator<Item = (&Row, RowRefusal)> {
        self.outcomes().filter_map(|(row, outcome)| match outcome {
            RowOutcome::Refused(refusal) => Some((row, refusal)),
            RowOutcome::Stored(_) | RowOutcome::Unknown | RowOutcome::NotStored => None,
        })
    }

    /// Gives the next `count` rows this outcome.
    pub(crate) fn settle(&mut self, count: usize, outcome: RowOutcome) {
        self.outcomes.resize(self.outcomes.len() + count, outcome);
    }

    /// Gives all rows that have no outcome yet this one.
    pub(crate) fn settle_rest(&mut self, outcome: RowOutcome) {
        self.outcomes.resize(self.rows.len(), outcome);
    }
}

/// Memory of a batch under way, in bytes: its rows, with memory for all that the vector has, their copies on
/// the way to the database, and a constant part.
pub(crate) fn bytes_under_way(rows: &Vec<Row>, keyed: bool) -> usize {
    let once = keyed || rows.first().is_some_and(|row| row.source_key.is_some());
    let (batch, copies) = if once { (KEYED, 3) } else { (UNKEYED, 1) };
    let heap: usize = rows.iter().map(Row::heap).sum();
    batch + rows.capacity() * (size_of::<Row>() + copies * size_of::<Draft>()) + heap * (1 + copies)
}

/// How many of the rows one append may have, at least one: their memory in its queue is bounded by `most`
/// bytes.
fn part(rows: &[Row], most: usize) -> usize {
    let mut bytes = 0;
    let fits = rows.iter().take_while(|row| {
        bytes += weight(std::iter::once(row.draft.size()));
        bytes <= most
    });
    fits.count().max(1)
}

/// The constant part: the future that sends the batch, and its request in a queue. A test compares it.
const UNKEYED: usize = 4 * 1024 + 256;
const KEYED: usize = UNKEYED + APPEND_ONCE;

/// Appends a batch. If that fails for a passing reason and no outcome is unknown, it sends the rest again,
/// for [`StreamOptions::patience`] or until `stop`, and tells `waiting` why it waits.
pub(crate) async fn send(
    to: Destination,
    mut batch: RowBatch,
    options: StreamOptions,
    stop: CancellationToken,
    waiting: UnboundedSender<&'static str>,
) -> Sent {
    batch.so_far = batch.so_far.or_else(|| match &to.key {
        Some(key) => Some(SoFar::Lines(key.clone(), None)),
        None => {
            batch.rows.first()?.source_key.as_ref().map(|_| SoFar::Identified(IdentifiedSoFar::default()))
        }
    });
    let mut sent = Sent::nothing_of(batch);
    let mut give_up = Instant::now() + options.patience;
    let mut pause = Duration::from_millis(250);
    let mut looked_for = false;
    let mut for_room = Waiting { stop: stop.clone(), waited: Duration::ZERO };
    let most = to.engine.appends().most_of_an_upload();
    loop {
        let rest = &sent.rows[sent.outcomes.len()..];
        let part = &rest[..part(rest, most)];
        let once = sent.so_far.as_mut().map(|so_far| once(so_far, part));
        let (owner, items) = (sent.owner.clone(), part.iter().map(|row| row.draft.clone()).collect());
        let append = Append::new(owner, items, to.began, Deadline::within(COMMAND));
        let appended =
            to.engine.appends().append(Append { once, waiting: Some(&mut for_room), ..append }).await;
        let (progress, failed) = match appended {
            Ok(progress) => (progress, None),
            Err(AppendError { progress, unknown, cause }) => (progress, Some((unknown, cause))),
        };
        // Time spent waiting for other uploads does not count.
        give_up += std::mem::take(&mut for_room.waited);
        let before = sent.outcomes.len();
        sent.outcomes.extend(progress.ends().map(|end| match end {
            Ok(seq) => RowOutcome::Stored(seq),
            Err(refusal) => RowOutcome::Refused(RowRefusal::Line(refusal)),
        }));
        if sent.outcomes.len() > before {
            give_up = Instant::now() + options.patience;
        }
        let Some((unknown, cause)) = failed else {
            if !progress.is_replayed() {
                sent.last = progress.last_seq();
            }
            if sent.outcomes.len() < sent.rows.len() {
                continue;
            }
            return sent;
        };
        let passing = passing(&cause, sent.so_far.is_some());
        if options.many
            && unknown == 0
            && let Err(Some(refusal)) = passing
        {
            sent.settle_rest(RowOutcome::Refused(refusal));
            return sent;
        }
        // With a key an unknown outcome is looked up, at least once, even if that takes longer than the
        // patience.
        let known = unknown == 0 || sent.so_far.is_some();
        if unknown > 0 && !std::mem::replace(&mut looked_for, true) {
            give_up = Instant::now() + options.patience;
        }
        let is_worthwhile = known && !stop.is_cancelled() && Instant::now() + pause < give_up;
        if let Some(why) = passing.ok().filter(|_| is_worthwhile) {
            // The receiver is gone once the stream has ended.
            let _ = waiting.send(why);
            if timeout(pause, stop.cancelled()).await.is_err() {
                pause = (pause * 2).min(Duration::from_secs(5));
                continue;
            }
        }
        sent.settle(unknown, RowOutcome::Unknown);
        sent.settle_rest(RowOutcome::NotStored);
        sent.failed = Some(cause);
        return sent;
    }
}

/// How rows are stored once, however often they are sent.
fn once<'a>(so_far: &'a mut SoFar, rows: &[Row]) -> Once<'a> {
    match so_far {
        SoFar::Lines(key, so_far) => {
            Once::Lines { key, numbers: rows.iter().map(|row| row.line).collect(), so_far }
        }
        SoFar::Identified(so_far) => {
            let keys = rows.iter().filter_map(|row| row.source_key.as_deref().cloned());
            Once::Identified { keys: keys.collect(), so_far }
        }
    }
}

/// Why another attempt is worthwhile, if it is; otherwise, if the cause concerns one owner only, what its
/// rows are told. The cause itself, with the driver's words, is reported when all attempts have failed.
fn passing(cause: &AppendCause, keyed: bool) -> Result<&'static str, Option<RowRefusal>> {
    match cause {
        AppendCause::OutcomeUnknown if keyed => Ok("it gave no answer to trust"),
        AppendCause::Contended => Ok("too many others append to the same history"),
        AppendCause::Overloaded | AppendCause::ClientOverloaded | AppendCause::Late => {
            Ok("too many appends are waiting")
        }
        AppendCause::Database(Error::Unavailable(_) | Error::Overtaken(_)) => Ok("it does not answer"),
        AppendCause::Database(Error::DiskFull) => Ok("its disk is full"),
        AppendCause::SecondsExhausted(_) => Err(Some(RowRefusal::HistoryExhausted)),
        AppendCause::KeyReused => Err(Some(RowRefusal::KeyReused)),
        // No row expects a total.
        AppendCause::UnexpectedTotal(_)
        | AppendCause::OutcomeUnknown
        | AppendCause::Database(Error::OtherEpoch | Error::Corrupt(_) | Error::Internal(_)) => Err(None),
        AppendCause::Database(Error::Gone(gone)) => Err(Some(RowRefusal::Gone(*gone))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_what_it_is_counted_for() {
        fn sending<F: Future>(
            _: impl Fn(
                Destination,
                RowBatch,
                StreamOptions,
                CancellationToken,
                UnboundedSender<&'static str>,
            ) -> F,
        ) -> usize {
            size_of::<F>()
        }
        // What is left is for the request, where it waits for its committer, and for its part of a command.
        let unkeyed = sending(send);
        assert!(unkeyed + 2048 <= UNKEYED, "{unkeyed}");
    }
}
