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

/// Codes that say "not now" rather than "never": the server, its role or its storage is changing,
/// or a time limit ran out. (mongo `src/mongo/base/error_codes.yml`, categories RetriableError,
/// ShutdownError, NotPrimaryError and ExceededTimeLimitError, and authentication, whose
/// back end may be away.)
const PASSING: [i32; 19] =
    [6, 7, 11, 18, 50, 89, 91, 134, 189, 202, 262, 317, 358, 9001, 10107, 11600, 11602, 13435, 13436];

impl Error {
    /// Of a command that stored nothing.
    pub(super) fn of(error: &mongodb::error::Error) -> Self {
        // The kind alone: the rest of an error is its labels and the whole reply, byte for byte.
        let said = error.kind.to_string();
        match error.kind.as_ref() {
            ErrorKind::Command(command) if !PASSING.contains(&command.code) => Self::Internal(said),
            ErrorKind::InvalidArgument { .. }
            | ErrorKind::InvalidResponse { .. }
            | ErrorKind::Bson(_)
            | ErrorKind::Internal { .. } => Self::Internal(said),
            _ => Self::Unavailable(said),
        }
    }
}

/// The server's code of an error, if the server made it.
pub(super) fn code(error: &mongodb::error::Error) -> Option<i32> {
    match error.kind.as_ref() {
        ErrorKind::Command(command) => Some(command.code),
        _ => None,
    }
}
