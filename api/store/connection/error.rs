use mongodb::error::{Error as DriverError, ErrorKind};

use crate::store::error::code;

/// Why a database cannot be used. Each is one sentence, fit to be shown to an operator.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The connection string is none, or an option in it is wrong.
    #[error("the MongoDB connection string is not usable: {0}")]
    InvalidUri(String),
    /// Nobody answers.
    #[error("no MongoDB server answers at {hosts}; is it running, and may this machine reach it? ({detail})")]
    Unreachable {
        /// Host and port of each server asked, without user or password.
        hosts: String,
        /// The driver's own words.
        detail: String,
    },
    /// It answers, but not to us.
    #[error("the MongoDB server refuses the user or password of the connection string")]
    Unauthorized,
    /// Clustered collections are missing or incomplete there.
    #[error("the MongoDB server is version {0}, and pagebucket needs 6.0 or later")]
    TooOld(String),
    /// Somebody else's collection, or one made by an older version of ours.
    #[error(
        "the collection `trades` of this database is not clustered on _id; name another --database, or move that collection away"
    )]
    NotClustered,
    /// Somebody has dropped it.
    #[error(
        "the collection `{0}` is missing from this database, though its migrations are applied; restore it from a \
         backup, or, to begin with an empty one, stop every instance, drop the collection `migrations` and run \
         `pagebucket migrate`"
    )]
    Missing(&'static str),
    /// One that somebody has made or changed by hand.
    #[error(
        "the collection `{collection}` of this database has no {guard} as its migrations make it, so that nothing \
         keeps two writers apart; stop every instance, drop the collection `migrations` and run \
         `pagebucket migrate`, which makes what is missing"
    )]
    Unguarded {
        /// Its name.
        collection: &'static str,
        /// What it lacks.
        guard: &'static str,
    },
    /// It answered something that we do not understand.
    #[error("the MongoDB server gave an unexpected answer: {0}")]
    Unexpected(String),
}

/// What the driver's error means to an operator; `hosts` are those that were asked.
pub(in crate::store) fn describe(error: &DriverError, hosts: &str) -> ConnectError {
    match (error.kind.as_ref(), code(error)) {
        (ErrorKind::Authentication { .. }, _) | (_, Some(13 | 18)) => ConnectError::Unauthorized,
        (ErrorKind::ServerSelection { .. } | ErrorKind::Io(_) | ErrorKind::DnsResolve { .. }, _) => {
            ConnectError::Unreachable { hosts: hosts.to_owned(), detail: error.kind.to_string() }
        }
        (kind, _) => ConnectError::Unexpected(kind.to_string()),
    }
}
