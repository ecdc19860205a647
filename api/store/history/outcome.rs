//! What became of an append.

use super::dedup::{LineRefusal, Placed};
use super::statement::SecondsExhausted;
use crate::domain::{Seq, SeqRange, Totals};
use crate::store::Error;
use crate::store::group_commit::Full;

/// How far an append has come: what became of its first trades, in their order. The rest is not stored, unless an
/// [`AppendError`] says that the outcome of some of it is unknown.
#[derive(Debug, Default)]
pub struct Progress {
    pub(super) placed: Placed,
    /// Whether this attempt has stored any of them; an earlier one has stored the others.
    pub(super) stored: bool,
    /// How far its search has come, where it has a key: no other trade of the request is at or before this `seq`.
    pub(super) looked: u64,
}

impl Progress {
    /// Trades that an earlier attempt has stored in these ranges.
    pub fn replayed(ranges: Vec<SeqRange>) -> Self {
        let count = ranges.iter().map(SeqRange::count).sum::<u64>() as usize;
        Self { placed: Placed { ranges, count, refused: Vec::new() }, ..Self::default() }
    }

    /// Where the stored ones are, in their order: one range, unless another writer came between two buckets.
    pub fn ranges(&self) -> &[SeqRange] {
        &self.placed.ranges
    }

    /// What became of each: its address, or why a line of a keyed upload is not stored.
    pub fn ends(&self) -> impl Iterator<Item = Result<Seq, LineRefusal>> {
        self.placed.ends(self.placed.ranges.iter().flat_map(SeqRange::seqs))
    }

    /// What the history held right after the last of the stored ones.
    pub fn totals(&self) -> Totals {
        Totals::ending_with(self.placed.ranges.last().map(|range| range.last))
    }

    /// Whether an earlier attempt had stored all of it.
    pub fn is_replayed(&self) -> bool {
        !self.stored
    }
}

/// An append that was not stored whole: its first trades have come as far as `progress` says, of the next `unknown` the
/// outcome is unknown, and the rest is not stored.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct AppendError {
    /// What became of the first trades.
    pub progress: Progress,
    /// How many of the next may or may not be stored.
    pub unknown: usize,
    /// Why it went no further.
    #[source]
    pub cause: Cause,
}

impl AppendError {
    /// Of an append that has stored nothing.
    pub(super) fn nothing(cause: impl Into<Cause>) -> Self {
        Self { progress: Progress::default(), unknown: 0, cause: cause.into() }
    }
}

/// Why an append went no further.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The database gave no answer to trust before the deadline.
    #[error("the outcome of a commit is unknown")]
    OutcomeUnknown,
    /// Too many trades are waiting to be committed.
    #[error("too many appends are waiting")]
    Overloaded,
    /// It waited too long for a commit, or had less time left than a commit needs ([`COMMIT`](crate::store::COMMIT)).
    #[error("it could not be committed in time")]
    Late,
    /// Another request has the same key.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// Others were quicker to append to the same history, too often in a row; or more of its trades wait
    /// than may of one history.
    #[error("too many appends to one history")]
    Contended,
    /// See [`SecondsExhausted`].
    #[error(transparent)]
    SecondsExhausted(#[from] SecondsExhausted),
    /// The database failed before anything more was sent to it.
    #[error(transparent)]
    Database(#[from] Error),
}

impl From<Full> for Cause {
    fn from(full: Full) -> Self {
        match full {
            Full::Queue => Self::Overloaded,
            Full::Key => Self::Contended,
        }
    }
}
