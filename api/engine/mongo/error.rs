//! What goes wrong with the database: not in time, deleted, or damaged.

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::error::ErrorKind;
use pagebucket_model::domain::{PageNumber, Seq};

/// What a question to the database leads to.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with the database. The messages are for the log, never for a client: they may contain the
/// driver's message.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// No server answers at the moment; a later attempt may succeed. Nothing was stored.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// A document breaks one of the invariants 1 to 5.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// What is asked for was in the history once, and is deleted. Nothing was stored.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// A bug of ours, or an answer that this version does not understand.
    #[error("{0}")]
    Internal(String),
}

/// What became of pages that are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Gone {
    /// The pages before this one are deleted.
    #[error("the pages before page {first_page} are retired")]
    Retired {
        /// The first page that the history still has, or that the next append opens.
        first_page: PageNumber,
        /// The first item of that page.
        first_seq: Seq,
    },
    /// The owner is erased: its history has no pages and takes no appends.
    #[error("the owner is erased")]
    Erased,
}

/// Which field of a stored document is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bucket {id} is corrupt at {field}: {detail}")]
pub struct Corruption {
    /// The bucket's `_id`, or a description if it is unreadable.
    pub id: String,
    /// The field, such as `history.3.qty`.
    pub field: String,
    /// What is wrong with the field.
    pub detail: String,
}

impl Error {
    /// There was no answer within the deadline.
    pub(crate) fn no_answer() -> Self {
        Self::Unavailable("no answer within the deadline".to_owned())
    }
}

impl Corruption {
    /// A field of a document, and what is wrong with it.
    pub fn new(id: impl Into<String>, field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { id: id.into(), field: field.into(), detail: detail.into() }
    }

    /// Of a document, by its `_id` if that is a string or an ObjectId.
    pub(crate) fn of(bucket: &RawDocument, field: &str, detail: &str) -> Self {
        let id = match bucket.get("_id") {
            Ok(Some(RawBsonRef::String(id))) => id.to_owned(),
            Ok(Some(RawBsonRef::ObjectId(id))) => id.to_hex(),
            _ => "without a readable _id".to_owned(),
        };
        Self::new(id, field, detail)
    }
}

/// Codes of errors that are temporary: the server, its role, its shards or its storage are changing, or a time
/// limit ran out. Source: mongo `src/mongo/base/error_codes.yml`, by category; a code with several categories
/// is listed under its first.
const TEMPORARY: [&[i32]; 7] = [
    // RetriableError, NetworkError: hosts, shutdown, majority not yet known, limits of time and resources.
    &[6, 7, 89, 91, 134, 202, 262, 317, 358, 402, 407, 9001, 11600],
    // NotPrimaryError: elections. 10058 is the code in servers before 5.0.
    &[189, 10058, 10107, 11602, 13435, 13436],
    // NeedRetargettingError, and similar codes without a category: a mongos whose map of the shards is old.
    // StaleShardVersion, StaleEpoch, StaleDbVersion, StaleConfig.
    &[63, 150, 249, 13388],
    // SnapshotError: SnapshotTooOld, SnapshotUnavailable, StaleChunkHistory, MigrationConflict.
    &[239, 246, 250, 272],
    // Interruption: LockTimeout, MaxTimeMSExpired, CursorKilled, InterruptedDueToStorageChange, Interrupted.
    &[24, 50, 237, 355, 11601],
    // Without a category: WriteConflict, FailedToSatisfyReadPreference, ElectionInProgress, TemporarilyUnavailable.
    &[112, 133, 216, 365],
    // UserNotFound, AuthenticationFailed: the back end of authentication may be unavailable.
    &[11, 18],
];

/// For the error of a command that stored nothing.
impl From<mongodb::error::Error> for Error {
    fn from(error: mongodb::error::Error) -> Self {
        // Only the kind: the rest of the error is its labels and the raw bytes of the reply.
        let message = error.kind.to_string();
        match error.kind.as_ref() {
            ErrorKind::Command(command) if !TEMPORARY.iter().any(|codes| codes.contains(&command.code)) => {
                Self::Internal(message)
            }
            ErrorKind::InvalidArgument { .. }
            | ErrorKind::InvalidResponse { .. }
            | ErrorKind::Bson(_)
            | ErrorKind::Internal { .. } => Self::Internal(message),
            _ => Self::Unavailable(message),
        }
    }
}

/// The error's code, if the error came from the server.
pub(crate) fn code(error: &mongodb::error::Error) -> Option<i32> {
    match error.kind.as_ref() {
        ErrorKind::Command(command) => Some(command.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{deserialize_from_document, doc};
    use mongodb::error::CommandError;

    use super::*;

    fn of(code: i32) -> Error {
        let refused = doc! { "code": code, "codeName": "Name", "errmsg": "words" };
        let refused: CommandError = deserialize_from_document(refused).unwrap();
        mongodb::error::Error::from(ErrorKind::Command(refused)).into()
    }

    #[test]
    fn what_passes_is_unavailability_and_no_mistake_of_ours() {
        for code in [63, 133, 150, 13388, 11601, 112, 24, 246, 6, 50, 91, 189, 262, 9001, 10107, 11600, 13436]
        {
            assert!(matches!(of(code), Error::Unavailable(_)), "{code}");
        }
        // BadValue, Unauthorized, IndexNotFound, DuplicateKey: asking again does not help.
        for code in [2, 13, 27, 11000] {
            assert!(matches!(of(code), Error::Internal(_)), "{code}");
        }
    }
}
