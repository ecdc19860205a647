//! Sends one batch to the database, again if that fails for a passing reason.

use std::fmt;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::pending::Batch;
use super::stream::{Options, Row};
use crate::domain::{IdempotencyKey, OwnerId, Seq};
use crate::item::Item;
use crate::store::Error;
use crate::store::history::{
    AppendError, Cause, Engine, LineRefusal, Progress, UploadedSoFar, Waiting, weight,
};

/// The destination of rows.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The histories.
    pub engine: Engine,
    /// The key under which the stream may be sent again: stored rows are found, and the rest continues.
    pub key: Option<IdempotencyKey>,
    /// When the stream began: the date of rows without one, unless the same key was used earlier.
    pub began: crate::domain::Instant,
}

/// The outcome of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// It is stored at this address.
    Stored(Seq),
    /// It is an item, and is not stored.
    Refused(Refusal),
}

/// Why an item is not stored, though the next one may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its owner's history can take no more buckets.
    HistoryExhausted,
    /// Its owner has had another request with the same key.
    KeyReused,
    /// See [`LineRefusal`].
    Line(LineRefusal),
}

impl fmt::Display for Refusal {
    /// A sentence without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HistoryExhausted => "its owner's history can take no more pages",
            Self::KeyReused => "its owner has had another request with the same `Idempotency-Key`",
            Self::Line(LineRefusal::Differs) => {
                "it differs from the line that an earlier upload with the same `Idempotency-Key` has stored"
            }
            Self::Line(LineRefusal::OutOfOrder) => {
                "an earlier upload with the same `Idempotency-Key` has not stored it, but later lines: send it with \
                 another key, or none"
            }
            Self::Line(LineRefusal::BeyondNumbers) => {
                "only the first 4,294,967,295 lines may have an `Idempotency-Key`"
            }
        })
    }
}

/// The outcome of a batch: `ends` has those of the first rows, the next `unknown` rows have an unknown outcome, and the
/// others are not stored.
#[derive(Debug)]
pub struct Sent {
    /// The owner.
    pub owner: OwnerId,
    /// The rows in their order.
    pub rows: Vec<Row>,
    /// The outcomes of the first rows.
    pub ends: Vec<RowEnd>,
    /// Number of the next rows, which may or may not be stored.
    pub unknown: usize,
    /// The last sequence number of the owner's history, if all rows are stored.
    pub last: Option<Seq>,
    /// Why some rows have no outcome.
    pub failed: Option<Cause>,
    /// The progress of a keyed upload.
    pub(super) so_far: Option<UploadedSoFar>,
}

/// Memory of a batch under way, in bytes: its rows, with memory for all that the vector has, their copies on the way to
/// the database, and a constant part.
pub(super) fn bytes_under_way(rows: &Vec<Row>, keyed: bool) -> usize {
    let (batch, copies) = if keyed { (KEYED, 3) } else { (UNKEYED, 1) };
    let heap: usize = rows.iter().map(Row::heap).sum();
    batch + rows.capacity() * (size_of::<Row>() + copies * size_of::<Item>()) + heap * (1 + copies)
}

/// How many of the rows one append may have, at least one: their memory in its queue is bounded by `most` bytes.
fn part(rows: &[Row], most: usize) -> usize {
    let mut bytes = 0;
    let fits = rows.iter().take_while(|row| {
        bytes += weight(std::iter::once(row.draft.size()));
        bytes <= most
    });
    fits.count().max(1)
}

/// The constant part: the future that sends the batch, and its request in a queue. A test compares it.
const UNKEYED: usize = 4 * 1024;
const KEYED: usize = 10 * 1024;

/// Appends a batch. If that fails for a passing reason and no outcome is unknown, it sends the rest again, for
/// [`Options::patience`] or until `stop`, and tells `waiting` why it waits.
pub(super) async fn send(
    to: Destination,
    Batch { owner, rows }: Batch,
    so_far: Option<UploadedSoFar>,
    options: Options,
    stop: CancellationToken,
    waiting: UnboundedSender<&'static str>,
) -> Sent {
    let so_far = so_far.or_else(|| Some(UploadedSoFar::nothing(owner.clone(), to.key.clone()?)));
    let mut sent = Sent { owner, rows, ends: Vec::new(), unknown: 0, last: None, failed: None, so_far };
    let mut give_up = Instant::now() + options.patience;
    let mut pause = Duration::from_millis(250);
    let mut looked_for = false;
    let mut room = Waiting { stop: stop.clone(), waited: Duration::ZERO };
    let most = to.engine.most_of_an_upload();
    loop {
        let rest = &sent.rows[sent.ends.len()..];
        let part = &rest[..part(rest, most)];
        let appended = match &mut sent.so_far {
            // In a box, because it would be most of the memory of a batch without a key.
            Some(so_far) => Box::pin(to.append_lines(so_far, part, &mut room)).await,
            None => to.append(&sent.owner, part, &mut room).await,
        };
        let (progress, failed) = match appended {
            Ok(progress) => (progress, None),
            Err(AppendError { progress, unknown, cause }) => (progress, Some((unknown, cause))),
        };
        // Time spent waiting for other uploads does not count.
        give_up += std::mem::take(&mut room.waited);
        let before = sent.ends.len();
        sent.ends.extend(progress.ends().map(RowEnd::of));
        if sent.ends.len() > before {
            give_up = Instant::now() + options.patience;
        }
        let Some((unknown, cause)) = failed else {
            if !progress.is_replayed() {
                sent.last = progress.last_seq();
            }
            if sent.ends.len() < sent.rows.len() {
                continue;
            }
            return sent;
        };
        if options.many
            && unknown == 0
            && let Some(refusal) = refusal(&cause)
        {
            sent.ends.resize(sent.rows.len(), RowEnd::Refused(refusal));
            return sent;
        }
        // With a key an unknown outcome is looked up, at least once, even if that takes longer than the patience.
        let known = unknown == 0 || sent.so_far.is_some();
        if unknown > 0 && !std::mem::replace(&mut looked_for, true) {
            give_up = Instant::now() + options.patience;
        }
        let passing =
            passing(&cause, sent.so_far.is_some()).filter(|_| known && Instant::now() + pause < give_up);
        let Some(why) = passing else {
            sent.unknown = unknown;
            sent.failed = Some(cause);
            return sent;
        };
        // The receiver is gone once the stream has ended.
        let _ = waiting.send(why);
        if timeout(pause, stop.cancelled()).await.is_ok() {
            sent.unknown = unknown;
            sent.failed = Some(cause);
            return sent;
        }
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

impl Destination {
    async fn append(
        &self,
        owner: &OwnerId,
        rows: &[Row],
        room: &mut Waiting,
    ) -> Result<Progress, AppendError> {
        let items = rows.iter().map(|row| row.draft.dated(self.began)).collect();
        self.engine.append_part(owner.clone(), items, room).await
    }

    async fn append_lines(
        &self,
        so_far: &mut UploadedSoFar,
        rows: &[Row],
        room: &mut Waiting,
    ) -> Result<Progress, AppendError> {
        let lines = rows.iter().map(|row| (row.line, row.draft.clone()));
        self.engine.append_lines(so_far, lines, self.began, room).await
    }
}

impl RowEnd {
    fn of(end: Result<Seq, LineRefusal>) -> Self {
        end.map_or_else(|refusal| Self::Refused(Refusal::Line(refusal)), Self::Stored)
    }
}

/// A cause that concerns one owner only.
fn refusal(cause: &Cause) -> Option<Refusal> {
    match cause {
        Cause::SecondsExhausted(_) => Some(Refusal::HistoryExhausted),
        Cause::KeyReused => Some(Refusal::KeyReused),
        Cause::OutcomeUnknown | Cause::Overloaded | Cause::Late | Cause::Contended | Cause::Database(_) => {
            None
        }
    }
}

/// Why another attempt is worthwhile, if it is. The cause itself, with the driver's words, is reported when all attempts
/// have failed.
fn passing(cause: &Cause, keyed: bool) -> Option<&'static str> {
    match cause {
        Cause::OutcomeUnknown if keyed => Some("it gave no answer to trust"),
        Cause::Contended => Some("too many others append to the same history"),
        Cause::Overloaded | Cause::Late => Some("too many appends are waiting"),
        Cause::Database(Error::Unavailable(_)) => Some("it does not answer"),
        Cause::OutcomeUnknown
        | Cause::SecondsExhausted(_)
        | Cause::KeyReused
        | Cause::Database(Error::Corrupt(_) | Error::Internal(_)) => None,
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
                Batch,
                Option<UploadedSoFar>,
                Options,
                CancellationToken,
                UnboundedSender<&'static str>,
            ) -> F,
        ) -> usize {
            size_of::<F>()
        }
        fn appending<'a, F: Future + 'a>(
            _: impl Fn(&'a Destination, &'a mut UploadedSoFar, &'a [Row], &'a mut Waiting) -> F,
        ) -> usize {
            size_of::<F>()
        }
        let (unkeyed, keyed) =
            (sending(send), appending(|to, so_far, rows, room| to.append_lines(so_far, rows, room)));
        // What is left is for the request, where it waits for its committer, and for its part of a command.
        assert!(unkeyed + 2048 <= UNKEYED && unkeyed + keyed + 2048 <= KEYED, "{unkeyed}, {keyed}");
    }
}
