//! The outcome of an append.

use super::statement::SecondsExhausted;
use crate::history::dedup::{LineRefusal, Placed};
use pagebucket_model::domain::{Seq, SeqRange};

use crate::group_commit::Full;
use crate::mongo::Error;

/// How far an append has come: the outcome of its first items, in order. The rest is not stored, unless an
/// [`AppendError`] says that the outcome of some of it is unknown.
#[derive(Debug, Default)]
pub struct Progress {
    pub(crate) placed: Placed,
    /// Whether this attempt has stored any of them. An earlier attempt has stored the others.
    pub(crate) stored: bool,
    /// How far the search of a keyed append has come: no other item of the request is at or before this `seq`.
    pub(crate) looked: u64,
}

impl Progress {
    /// Items that an earlier attempt has stored in these ranges.
    pub fn replayed(ranges: Vec<SeqRange>) -> Self {
        let count = ranges.iter().map(SeqRange::count).sum::<u64>() as usize;
        Self { placed: Placed { ranges, count, refused: Vec::new() }, ..Self::default() }
    }

    /// The addresses of the stored items, in order: one range, unless another writer appended between two of the
    /// buckets.
    pub fn ranges(&self) -> &[SeqRange] {
        &self.placed.ranges
    }

    /// The outcome of each: its address, or why a line of a keyed upload is not stored.
    pub fn ends(&self) -> impl Iterator<Item = Result<Seq, LineRefusal>> {
        self.placed.ends(self.placed.ranges.iter().flat_map(SeqRange::seqs))
    }

    /// The last sequence number of the history right after the last stored item.
    pub fn last_seq(&self) -> Option<Seq> {
        self.placed.ranges.last().map(|range| range.last)
    }

    /// Whether an earlier attempt had stored all of it.
    pub fn is_replayed(&self) -> bool {
        !self.stored
    }
}

/// What became of an append.
pub type Appended = Result<Progress, AppendError>;

/// How far a failed append came, and why it failed.
///
/// The items form three groups, in order: first those of `progress`, then `unknown` items that may or may not be
/// stored, then the rest, which is not stored.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct AppendError {
    /// The outcome of the first items.
    pub progress: Progress,
    /// How many items may or may not be stored.
    pub unknown: usize,
    /// Why the append failed.
    #[source]
    pub cause: Cause,
}

impl AppendError {
    /// An append that has stored nothing.
    pub(crate) fn nothing(cause: impl Into<Cause>) -> Self {
        Self::after(Placed::default(), 0, cause)
    }

    /// An append that has stored nothing after what earlier attempts have placed, except that the next `unknown` items
    /// may be stored.
    pub(crate) fn after(placed: Placed, unknown: usize, cause: impl Into<Cause>) -> Self {
        Self { progress: Progress { placed, ..Progress::default() }, unknown, cause: cause.into() }
    }
}

/// Why an append failed.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The database gave no final answer before the deadline.
    #[error("the outcome of a commit is unknown")]
    OutcomeUnknown,
    /// Too many items are waiting to be committed.
    #[error("too many appends are waiting")]
    Overloaded,
    /// The append waited too long for a commit, or had less time left than a commit needs
    /// ([`COMMIT`](crate::mongo::COMMIT)).
    #[error("it could not be committed in time")]
    Late,
    /// Another request has the same key.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// Other writers were faster to append to the same history, too often in a row. Or too many items of this
    /// history wait.
    #[error("too many appends to one history")]
    Contended,
    /// See [`SecondsExhausted`].
    #[error(transparent)]
    SecondsExhausted(#[from] SecondsExhausted),
    /// The database failed before the rest of the items was sent.
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
