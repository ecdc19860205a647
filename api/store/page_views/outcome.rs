use crate::store::Error;

/// What a count that failed has counted.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct CountError {
    /// So many views are counted.
    pub counted: u64,
    /// So many may or may not be counted.
    pub unknown: u64,
    /// Which of those it was given are not counted, by their place, ascending.
    pub not_counted: Vec<usize>,
    /// Why it went no further.
    #[source]
    pub cause: CountCause,
}

/// Why views are not counted, or may not be.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CountCause {
    /// The database gave no answer to trust before the deadline.
    #[error("the outcome of a command is unknown")]
    OutcomeUnknown,
    /// More counters, of a page and second each, than may wait at once: it never fits.
    #[error("{counters} counters, and at most {most} may wait")]
    TooManyCounters {
        /// How many the request adds to.
        counters: usize,
        /// How many the queue holds.
        most: usize,
    },
    /// Too much is waiting to be counted, in all or in one page's minute, or this has waited for too long.
    #[error("too many views are waiting to be counted")]
    Overloaded,
    /// The database failed before anything more was sent to it, or refused it for good.
    #[error(transparent)]
    Database(#[from] Error),
}

/// What became of a request.
pub(super) type Counted = Result<(), CountCause>;
