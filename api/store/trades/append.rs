//! An append, from its queue to its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use mongodb::bson::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::committer::Message;
use super::measure::QUEUED;
use super::{SecondsExhausted, Trades};
use crate::domain::{CustomerId, SeqRange, Totals, Trade};
use crate::store::{COMMAND, Deadline, Error};

/// What an append has stored: all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Where the trades are, in their order: one range, unless another writer came between two
    /// buckets.
    pub ranges: Vec<SeqRange>,
    /// What the history held right after the last of them.
    pub totals: Totals,
}

/// What an append that failed has stored.
///
/// The trades fall into three runs, in their order: those stored in `ranges`, then `unknown` of
/// which nothing is known, then the rest, which is not stored.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct AppendError {
    /// Where those that are stored are; empty when none is.
    pub ranges: Vec<SeqRange>,
    /// How many may or may not be stored.
    pub unknown: usize,
    /// Why it went no further.
    #[source]
    pub cause: Cause,
}

/// Why an append went no further.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The database gave no answer to trust before the deadline.
    #[error("the outcome of a commit is unknown")]
    OutcomeUnknown,
    /// Too many trades are waiting to be committed, or these have waited for too long.
    #[error("too many appends are waiting")]
    Overloaded,
    /// Others were quicker to append to the same history, too often in a row.
    #[error("too many appends to one history")]
    Contended,
    /// See [`SecondsExhausted`].
    #[error(transparent)]
    SecondsExhausted(#[from] SecondsExhausted),
    /// The database failed before anything more was sent to it.
    #[error(transparent)]
    Database(#[from] Error),
}

/// How long an append may wait for its first commit. Long enough for a queue that is full, short
/// enough to leave a commit most of its own time.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A committer answers before the deadline of a request; this much later nobody believes it.
const GRACE: Duration = Duration::from_secs(1);

const WAITING: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// Trades on their way to the end of one history.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) customer: CustomerId,
    pub(super) deadline: Deadline,
    /// When a statement of it was refused, in the cluster's time.
    pub(super) refused_at: Option<Timestamp>,
    /// How often one was.
    pub(super) attempts: u32,
    /// Whether it must not be merged with others.
    pub(super) alone: bool,
    trades: Vec<Trade>,
    ranges: Vec<SeqRange>,
    placed: usize,
    state: Arc<AtomicU8>,
    answer: oneshot::Sender<Result<Appended, AppendError>>,
    /// Its place in the queue, given back with the answer.
    _room: Room,
}

/// Room in the queues for so many trades, for as long as this lives.
#[derive(Debug)]
struct Room {
    trades: usize,
    _permit: OwnedSemaphorePermit,
}

impl Room {
    fn new(trades: usize, permit: OwnedSemaphorePermit) -> Self {
        metrics::gauge!(QUEUED).increment(trades as f64);
        Self { trades, _permit: permit }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        metrics::gauge!(QUEUED).decrement(self.trades as f64);
    }
}

impl Trades {
    /// Stores trades at the end of a history, in their order; at least one trade.
    ///
    /// It goes on to its end when the caller stops waiting. `deadline` is shortened to one
    /// command's.
    ///
    /// # Errors
    /// See [`AppendError`]; what it does not call unknown is stored exactly once, or not at all.
    pub async fn append(
        &self,
        customer: CustomerId,
        trades: Vec<Trade>,
        deadline: Deadline,
    ) -> Result<Appended, AppendError> {
        let count = trades.len();
        let refused = |unknown, cause| Err(AppendError { ranges: Vec::new(), unknown, cause });
        let permit = Arc::clone(&self.0.room).try_acquire_many_owned(count.try_into().unwrap_or(u32::MAX));
        let Ok(permit) = permit else {
            return refused(0, Cause::Overloaded);
        };
        let deadline = deadline.or_within(COMMAND);
        let state = Arc::new(AtomicU8::new(WAITING));
        let (answer, mut answered) = oneshot::channel();
        let request = Request {
            customer,
            deadline,
            refused_at: None,
            attempts: 0,
            alone: false,
            trades,
            ranges: Vec::new(),
            placed: 0,
            state: Arc::clone(&state),
            answer,
            _room: Room::new(count, permit),
        };
        if self.committer(customer).send(Message::Append(request)).is_err() {
            return refused(0, Error::Internal("a committer has ended".to_owned()).into());
        }
        let wait = LONGEST_WAIT.min(deadline.remaining());
        if let Ok(answer) = tokio::time::timeout(wait, &mut answered).await {
            return answer.unwrap_or_else(|_lost| refused(count, Cause::OutcomeUnknown));
        }
        if state.compare_exchange(WAITING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return refused(0, Cause::Overloaded);
        }
        match tokio::time::timeout(deadline.remaining() + GRACE, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => refused(count, Cause::OutcomeUnknown),
        }
    }
}

impl Request {
    /// Takes it out of the queue for good; false when its client was told that it waited too long.
    pub(super) fn take(&self) -> bool {
        match self.state.compare_exchange(WAITING, TAKEN, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(state) => state == TAKEN,
        }
    }

    /// The trades still to be placed.
    pub(super) fn rest(&self) -> &[Trade] {
        &self.trades[self.placed..]
    }

    pub(super) fn is_placed(&self) -> bool {
        self.rest().is_empty()
    }

    /// The next trades are stored there.
    pub(super) fn place(&mut self, range: SeqRange) {
        self.placed += range.count() as usize;
        match self.ranges.last_mut() {
            Some(last) if last.last.plus(1) == range.first => last.last = range.last,
            _ => self.ranges.push(range),
        }
    }

    /// Answers: all is stored. A client that has hung up is not there to be told.
    pub(super) fn succeed(self) {
        let totals = Totals::ending_with(self.ranges.last().map(|range| range.last));
        let _ = self.answer.send(Ok(Appended { ranges: self.ranges, totals }));
    }

    /// Answers: no more is stored than is placed, but for the next `unknown` trades.
    pub(super) fn fail(self, unknown: usize, cause: Cause) {
        let _ = self.answer.send(Err(AppendError { ranges: self.ranges, unknown, cause }));
    }
}
