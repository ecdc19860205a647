//! Placing trades: read the tail, plan, commit, and again after a refusal.

use std::sync::Arc;

use mongodb::bson::Timestamp;
use tokio::sync::{Mutex, MutexGuard};

use super::reply::Verdict;
use super::session::Commit;
use super::tail::Tail;
use super::{SecondsExhausted, Trades, statement};
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
    /// Too many others were appending to the same history.
    #[error("too many appends to one history")]
    Contended,
    /// See [`SecondsExhausted`].
    #[error(transparent)]
    SecondsExhausted(#[from] SecondsExhausted),
    /// The database failed before anything more was sent to it.
    #[error(transparent)]
    Database(#[from] Error),
}

/// Refusals after which an append gives up. With `n` processes appending to one customer an attempt
/// wins once in `n` times, so that ten processes lose so often in a row once in 10^4 appends.
const MOST_ATTEMPTS: u32 = 100;

/// Whose turn it is to append to a history, within this process.
///
/// Without turns, of `n` writers to one customer all but one are refused each time, and the work
/// grows as `n`². Customers share a lock by chance alone; a lock is held for one append.
#[derive(Debug)]
pub(super) struct Turns(Box<[Mutex<()>]>);

impl Default for Turns {
    fn default() -> Self {
        Self((0..1024).map(|_| Mutex::new(())).collect())
    }
}

impl Turns {
    /// In order of arrival.
    async fn take(&self, customer: CustomerId) -> MutexGuard<'_, ()> {
        // Fibonacci hashing (Knuth, TAOCP 6.4), so that ids with a common stride spread.
        let hash = customer.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
        self.0[hash as usize].lock().await
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
        let deadline = deadline.or_within(COMMAND);
        let (this, count) = (self.clone(), trades.len());
        let work = tokio::spawn(async move { this.append_in_turn(customer, &trades, deadline).await });
        // The work bounds itself by the deadline; only a panic of ours is left to be caught here.
        work.await.unwrap_or_else(|panic| {
            let cause = Error::Internal(format!("an append ended early: {panic}")).into();
            Err(AppendError { ranges: Vec::new(), unknown: count, cause })
        })
    }

    async fn append_in_turn(
        &self,
        customer: CustomerId,
        trades: &[Trade],
        deadline: Deadline,
    ) -> Result<Appended, AppendError> {
        let mut placed = Placed::default();
        let turn = tokio::time::timeout(deadline.remaining(), self.0.turns.take(customer));
        let Ok(_turn) = turn.await else {
            return Err(placed.failed(0, Cause::Contended));
        };
        let mut refused_at = None;
        for attempt in 0..MOST_ATTEMPTS {
            match self.place(customer, &trades[placed.count..], refused_at, deadline).await {
                Ok(Placement { ranges, refused: None }) => return Ok(placed.with(ranges).done()),
                Ok(Placement { ranges, refused: Some(at) }) => {
                    placed = placed.with(ranges);
                    refused_at = at;
                }
                Err(Failure { ranges, unknown, cause }) => {
                    return Err(placed.with(ranges).failed(unknown, cause));
                }
            }
            if deadline.passed() {
                break;
            }
            deadline.back_off(attempt).await;
        }
        Err(placed.failed(0, Cause::Contended))
    }

    /// One attempt: a known tail, a plan, a commit.
    async fn place(
        &self,
        customer: CustomerId,
        trades: &[Trade],
        refused_at: Option<Timestamp>,
        deadline: Deadline,
    ) -> Result<Placement, Failure> {
        let tail: Option<Tail> =
            self.known_tail(customer, refused_at, deadline).await.map_err(Failure::of)?;
        let statements = statement::plan(customer, tail, trades, self.0.clock.now()).map_err(Failure::of)?;
        let command = statement::command(&statements, trades, deadline.remaining_millis());
        let sessions = Arc::clone(&self.0.sessions);
        let commit = sessions.commit(self.0.database.clone(), command, statements.len(), deadline).await;
        let stored = |count: usize| statements[..count].iter().map(statement::Statement::range).collect();
        match commit {
            Commit::Answered(Verdict::Stored) => {
                Ok(Placement { ranges: stored(statements.len()), refused: None })
            }
            Commit::Answered(Verdict::Refused { stored: count, at }) => {
                tracing::debug!(%customer, count, "a stale tail: an append was refused");
                Ok(Placement { ranges: stored(count), refused: Some(at) })
            }
            Commit::Answered(Verdict::Malformed { stored: count, detail }) => {
                let cause = Error::Internal(format!("the validator refuses our own bucket: {detail}")).into();
                Err(Failure { ranges: stored(count), unknown: 0, cause })
            }
            Commit::Answered(Verdict::Unknown(_)) | Commit::Unknown => {
                Err(Failure { ranges: Vec::new(), unknown: trades.len(), cause: Cause::OutcomeUnknown })
            }
            Commit::NotSent(error) => Err(Failure::of(error)),
        }
    }
}

/// What one commit has done.
struct Placement {
    ranges: Vec<SeqRange>,
    /// Whether, and when, a statement was refused.
    refused: Option<Option<Timestamp>>,
}

/// Why one commit went no further, and what it has done.
struct Failure {
    ranges: Vec<SeqRange>,
    unknown: usize,
    cause: Cause,
}

impl Failure {
    /// Before anything was sent.
    fn of(cause: impl Into<Cause>) -> Self {
        Self { ranges: Vec::new(), unknown: 0, cause: cause.into() }
    }
}

/// What of an append is stored so far.
#[derive(Default)]
struct Placed {
    ranges: Vec<SeqRange>,
    count: usize,
}

impl Placed {
    fn with(mut self, ranges: Vec<SeqRange>) -> Self {
        for range in ranges {
            self.count += range.count() as usize;
            match self.ranges.last_mut() {
                Some(last) if last.last.plus(1) == range.first => last.last = range.last,
                _ => self.ranges.push(range),
            }
        }
        self
    }

    fn done(self) -> Appended {
        let totals = Totals::ending_with(self.ranges.last().map(|range| range.last));
        Appended { ranges: self.ranges, totals }
    }

    fn failed(self, unknown: usize, cause: Cause) -> AppendError {
        AppendError { ranges: self.ranges, unknown, cause }
    }
}
