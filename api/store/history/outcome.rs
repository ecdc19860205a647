//! What became of an append.

use super::statement::SecondsExhausted;
use crate::domain::{SeqRange, Totals};
use crate::store::Error;
use crate::store::group_commit::Full;

/// What an append has stored: all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Where the trades are, in their order: one range, unless another writer came between two
    /// buckets.
    pub ranges: Vec<SeqRange>,
    /// What the history held right after the last of them.
    pub totals: Totals,
    /// Whether an earlier request with the same key had stored all of it.
    pub replayed: bool,
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
