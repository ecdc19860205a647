//! Why a database cannot be used.

use mongodb::error::{Error as DriverError, ErrorKind};

use crate::mongo::error::{Error, code};

/// Why a database cannot be used. Each message is one sentence for the operator.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The connection string or an option in it is invalid.
    #[error("the MongoDB connection string is not usable: {0}")]
    InvalidUri(String),
    /// No server answers.
    #[error("no MongoDB server answers at {hosts}; is it running, and may this machine reach it? ({detail})")]
    Unreachable {
        /// Host and port of each server that was tried, without user or password.
        hosts: String,
        /// The driver's message.
        detail: String,
    },
    /// The server refuses the credentials, or the user lacks a privilege.
    #[error("the MongoDB server refuses the user or password of the connection string")]
    Unauthorized,
    /// The server is older than 6.0, where clustered collections are missing or incomplete.
    #[error("the MongoDB server is version {0}, and pagebucket needs 6.0 or later")]
    TooOld(String),
    /// A collection with the name of a history belongs to another program.
    #[error(
        "the collection `{0}` of this database was not created by pagebucket; name another --database, or move that collection away"
    )]
    Foreign(String),
    /// A collection was dropped after its migrations were applied.
    #[error(
        "the collection `{0}` is missing from this database, though its migrations are applied; restore it from a \
         backup, or, to begin with an empty one, stop every instance, drop the collection `migrations` and run \
         `pagebucket migrate`"
    )]
    Missing(String),
    /// A collection was created or changed by hand and lacks a guard.
    #[error(
        "the collection `{collection}` of this database has no {guard} as its migrations create it, so two \
         writers at once can corrupt it; stop every instance, drop the collection `migrations` and run \
         `pagebucket migrate`, which creates what is missing"
    )]
    Unguarded {
        /// Name of the collection.
        collection: String,
        /// What the collection lacks.
        guard: String,
    },
    /// The server gave an answer that this version does not understand.
    #[error("the MongoDB server gave an unexpected answer: {0}")]
    Unexpected(String),
}

impl From<Error> for ConnectError {
    fn from(error: Error) -> Self {
        Self::Unexpected(error.to_string())
    }
}

/// What the driver's error means to an operator. `hosts` are the servers that were tried.
pub(crate) fn describe(error: &DriverError, hosts: &str) -> ConnectError {
    match (error.kind.as_ref(), code(error)) {
        (ErrorKind::Authentication { .. }, _) | (_, Some(13 | 18)) => ConnectError::Unauthorized,
        (ErrorKind::ServerSelection { .. } | ErrorKind::Io(_) | ErrorKind::DnsResolve { .. }, _) => {
            ConnectError::Unreachable { hosts: hosts.to_owned(), detail: error.kind.to_string() }
        }
        (kind, _) => ConnectError::Unexpected(kind.to_string()),
    }
}
