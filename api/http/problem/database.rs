//! Problems of the database. The store's errors are mapped without a wildcard arm, so that a new one does not compile
//! until someone decides.

use super::content::Problem;
use super::kind::Kind;
use crate::store;

impl From<store::Error> for Problem {
    /// Of a request that stores nothing.
    fn from(error: store::Error) -> Self {
        let (kind, why) = logged(error);
        Self::new(kind, why)
    }
}

/// Logs what the client must not see, and says what it may.
pub(super) fn logged(error: store::Error) -> (Kind, &'static str) {
    match error {
        store::Error::Unavailable(why) => {
            tracing::warn!(why, "the database is unavailable");
            (Kind::DatabaseUnavailable, "The database does not answer.")
        }
        store::Error::Corrupt(corruption) => {
            tracing::error!(id = corruption.id, field = corruption.field, "{}", corruption.detail);
            (Kind::Internal, "A stored document is damaged. The server's log says which.")
        }
        store::Error::Internal(why) => {
            tracing::error!(why, "internal error");
            (Kind::Internal, "The server's log, under this request id, says more.")
        }
    }
}
