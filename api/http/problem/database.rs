//! Problems of the database. The store's errors are mapped without a wildcard arm, so that a new one does not compile
//! until someone decides.

use super::content::Problem;
use super::kind::Kind;
use crate::store;

impl From<store::Error> for Problem {
    /// For a request that stores nothing.
    fn from(error: store::Error) -> Self {
        let (kind, why) = why(&error);
        Self::new(kind, why).logging(move || log(&error))
    }
}

/// The kind and the text that a client may see for `error`.
pub(super) fn why(error: &store::Error) -> (Kind, &'static str) {
    match error {
        store::Error::Unavailable(_) => (Kind::DatabaseUnavailable, "The database does not answer."),
        store::Error::Corrupt(_) => {
            (Kind::Internal, "A stored document is damaged. The server's log says which.")
        }
        store::Error::Internal(_) => {
            (Kind::Internal, "The server's log has the details under this request id.")
        }
    }
}

/// Logs the details of `error`.
pub(super) fn log(error: &store::Error) {
    match error {
        store::Error::Unavailable(why) => tracing::warn!(why, "the database is unavailable"),
        store::Error::Corrupt(corruption) => {
            tracing::error!(id = corruption.id, field = corruption.field, "{}", corruption.detail);
        }
        store::Error::Internal(why) => tracing::error!(why, "internal error"),
    }
}
