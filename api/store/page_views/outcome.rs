use crate::store::Error;
use crate::store::group_commit::Unanswered;

/// How far a failed count came, and why it failed.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct CountError {
    /// The number of views that are counted.
    pub counted: u64,
    /// The number of views that may or may not be counted.
    pub unknown: u64,
    /// The indexes, ascending, of the given views that are not counted.
    pub not_counted: Vec<usize>,
    /// Why not all views are known to be counted.
    #[source]
    pub cause: CountCause,
}

/// Why views are not counted, or may not be.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CountCause {
    /// The database gave no final answer before the deadline.
    #[error("the outcome of a command is unknown")]
    OutcomeUnknown,
    /// The request adds to more counters (one for each page and second) than may wait at once. It never fits.
    #[error("{counters} counters, and at most {most} may wait")]
    TooManyCounters {
        /// How many counters the request adds to.
        counters: usize,
        /// How many counters the queue holds.
        most: usize,
    },
    /// Too many views wait, in total or for one minute of a page, or these views have waited too long.
    #[error("too many views are waiting to be counted")]
    Overloaded,
    /// The database failed before the views were sent to it, or it refused them permanently.
    #[error(transparent)]
    Database(#[from] Error),
}

impl From<Unanswered> for CountCause {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::NotSent(error) => error.into(),
            Unanswered::Unknown => Self::OutcomeUnknown,
        }
    }
}

/// The outcome of a request.
pub(super) type Counted = Result<(), CountCause>;
