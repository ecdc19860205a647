use mongodb::error::ErrorKind;

/// What can go wrong with the database. Its texts are for the log, never for a client: they may
/// hold the driver's words.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// No server answers now; asking again later may help. Nothing was stored.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// A document is not what invariants 1 to 5 say.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// Our mistake, or a server's answer that we do not understand.
    #[error("{0}")]
    Internal(String),
}

/// Where a document of ours is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bucket {id} is corrupt at {field}: {detail}")]
pub struct Corruption {
    /// The bucket's `_id`, as far as it could be read.
    pub id: String,
    /// The field, such as `history.3.qty`.
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
}

/// Codes that say "not now" rather than "never": the server, its role, its shards or its storage are
/// changing, or a time limit ran out. (mongo `src/mongo/base/error_codes.yml`, by category; a code
/// stands with the first of its own.)
const PASSING: [&[i32]; 7] = [
    // RetriableError, NetworkError: hosts, shutdown, majority not yet known, limits of time and resources.
    &[6, 7, 89, 91, 134, 202, 262, 317, 358, 402, 407, 9001, 11600],
    // NotPrimaryError: elections. 10058 is what servers before 5.0 called it.
    &[189, 10058, 10107, 11602, 13435, 13436],
    // NeedRetargettingError, and its like without a category: a mongos whose map of the shards is old.
    // StaleShardVersion, StaleEpoch, StaleDbVersion, StaleConfig.
    &[63, 150, 249, 13388],
    // SnapshotError: SnapshotTooOld, SnapshotUnavailable, StaleChunkHistory, MigrationConflict.
    &[239, 246, 250, 272],
    // Interruption: LockTimeout, MaxTimeMSExpired, CursorKilled, InterruptedDueToStorageChange, Interrupted.
    &[24, 50, 237, 355, 11601],
    // Without a category: WriteConflict, FailedToSatisfyReadPreference, ElectionInProgress, TemporarilyUnavailable.
    &[112, 133, 216, 365],
    // UserNotFound, AuthenticationFailed: the back end of authentication may be away.
    &[11, 18],
];

fn passes(code: i32) -> bool {
    PASSING.iter().any(|codes| codes.contains(&code))
}

/// Of a command that stored nothing.
impl From<&mongodb::error::Error> for Error {
    fn from(error: &mongodb::error::Error) -> Self {
        // The kind alone: the rest of an error is its labels and the whole reply, byte for byte.
        let said = error.kind.to_string();
        match error.kind.as_ref() {
            ErrorKind::Command(command) if !passes(command.code) => Self::Internal(said),
            ErrorKind::InvalidArgument { .. }
            | ErrorKind::InvalidResponse { .. }
            | ErrorKind::Bson(_)
            | ErrorKind::Internal { .. } => Self::Internal(said),
            _ => Self::Unavailable(said),
        }
    }
}

/// Of a command that stored nothing.
impl From<mongodb::error::Error> for Error {
    fn from(error: mongodb::error::Error) -> Self {
        Self::from(&error)
    }
}

/// The server's code of an error, if the server made it.
pub(super) fn code(error: &mongodb::error::Error) -> Option<i32> {
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
