//! What goes wrong with the database: not in time, deleted, or damaged.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use mongodb::bson::Bson;
use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::error::ErrorKind;
use pagebucket_model::domain::{Instant, PageNumber, Seq};

/// What a question to the database leads to. Each may end with [`Error::Unavailable`], [`Error::DiskFull`] or
/// [`Error::Internal`], and one that reads documents with [`Error::Corrupt`]. Sections about errors are only
/// where there is more to say.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with the database. The messages are for the log, never for a client: they may contain
/// the driver's message.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// No server answers at the moment; a later attempt may succeed. Nothing was stored.
    #[error("the database is unavailable: {0}")]
    Unavailable(#[source] Reason),
    /// Another process has changed what was read. A later attempt reads it again. Nothing was stored.
    #[error("another process was faster: {0}")]
    Overtaken(&'static str),
    /// The database has no room for what it was to do. A later attempt may succeed, once there is room.
    /// Nothing was stored.
    #[error("the disk of the database is full")]
    DiskFull,
    /// A document breaks one of the invariants 1 to 5.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// What is asked for was in the history once, and is deleted. Nothing was stored.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// A backup was restored, or last items were deleted by hand. Earlier positions mean nothing.
    #[error("the database has another epoch: a backup was restored, or items are lost")]
    OtherEpoch,
    /// A bug of ours, or an answer that this version does not understand.
    #[error("{0}")]
    Internal(#[source] Reason),
}

/// Why the database is unavailable, or why an answer is not understood.
#[derive(Debug, Clone)]
pub enum Reason {
    /// In our words.
    Words(Cow<'static, str>),
    /// The driver's error.
    Driver(Arc<mongodb::error::Error>),
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
    Erased {
        /// When it was erased, if its tombstone says so.
        at: Option<Instant>,
    },
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
    /// [`Error::Unavailable`], for this reason.
    pub fn unavailable(reason: impl Into<Reason>) -> Self {
        Self::Unavailable(reason.into())
    }

    /// [`Error::Internal`], for this reason.
    pub fn internal(reason: impl Into<Reason>) -> Self {
        Self::Internal(reason.into())
    }

    /// There was no answer within the deadline.
    pub(crate) fn no_answer() -> Self {
        Self::unavailable("no answer within the deadline")
    }

    /// Whether a later attempt may succeed without a change of anything else.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Overtaken(_))
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.write_str(words),
            // The rest of the error is its labels and the raw bytes of the reply.
            Self::Driver(error) => error.kind.fmt(f),
        }
    }
}

impl std::error::Error for Reason {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Words(_) => None,
            Self::Driver(error) => error.source(),
        }
    }
}

impl From<&'static str> for Reason {
    fn from(words: &'static str) -> Self {
        Self::Words(words.into())
    }
}

impl From<String> for Reason {
    fn from(words: String) -> Self {
        Self::Words(words.into())
    }
}

impl From<mongodb::error::Error> for Reason {
    fn from(error: mongodb::error::Error) -> Self {
        Self::Driver(Arc::new(error))
    }
}

impl From<mongodb::bson::error::Error> for Reason {
    fn from(error: mongodb::bson::error::Error) -> Self {
        Self::Words(error.to_string().into())
    }
}

impl Corruption {
    /// A field of a document, and what is wrong with it.
    pub fn new(id: impl Into<String>, field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { id: id.into(), field: field.into(), detail: detail.into() }
    }

    /// Of a document, by its `_id` if that is a string or an ObjectId.
    #[doc(hidden)]
    pub fn of(bucket: &RawDocument, field: &str, detail: &str) -> Self {
        let id = match bucket.get("_id") {
            Ok(Some(RawBsonRef::String(id))) => id.to_owned(),
            Ok(Some(RawBsonRef::ObjectId(id))) => id.to_hex(),
            _ => "without a readable _id".to_owned(),
        };
        Self::new(id, field, detail)
    }
}

/// NamespaceNotFound: the collection does not exist.
pub(crate) const NAMESPACE_NOT_FOUND: i32 = 26;

/// NamespaceExists: the collection exists.
pub(crate) const NAMESPACE_EXISTS: i32 = 48;

/// Unauthorized: the user of the database lacks a privilege.
pub(crate) const UNAUTHORIZED: i32 = 13;

/// A server does not know a command, a field of one, or a stage: CommandNotFound, CommandNotSupported,
/// NotImplemented, a field and a stage without a name of their own, and Amazon DocumentDB's "feature not
/// supported". No MongoDB that is not too old answers so.
pub(crate) const UNSUPPORTED: [i32; 6] = [59, 115, 238, 303, 40324, 40415];

/// BadValue: what a server answers to a filter with an operator that it does not know.
pub(crate) const BAD_VALUE: i32 = 2;

/// OutOfDiskSpace.
const OUT_OF_DISK_SPACE: i32 = 14031;

/// The system's message, which errors of the storage engine contain under other codes.
const NO_SPACE: &str = "No space left on device";

/// Whether an error of a statement or of a write concern, as a reply has it, tells of a full disk.
pub(crate) fn tells_of_full_disk(error: &Bson) -> bool {
    let Some(error) = error.as_document() else {
        return error.as_array().is_some_and(|errors| errors.iter().any(tells_of_full_disk));
    };
    let (code, message) = (error.get_i32("code").unwrap_or_default(), error.get_str("errmsg"));
    is_full_disk(code, message.unwrap_or_default())
}

fn is_full_disk(code: i32, message: &str) -> bool {
    code == OUT_OF_DISK_SPACE || message.contains(NO_SPACE)
}

/// Codes of errors that are temporary: the server, its role, its shards or its storage are changing, or a
/// time limit ran out. Source: mongo `src/mongo/base/error_codes.yml`, by category; a code with several
/// categories is listed under its first.
const TEMPORARY: [&[i32]; 8] = [
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
    // Without a category: WriteConflict, FailedToSatisfyReadPreference, ElectionInProgress,
    // TemporarilyUnavailable.
    &[112, 133, 216, 365],
    // A member that has just started: NotYetInitialized, before it has read its configuration, and
    // KeyNotFound, before it has read the keys that sign cluster times.
    &[94, 211],
    // UserNotFound, AuthenticationFailed: the back end of authentication may be unavailable.
    &[11, 18],
];

/// For the error of a command that stored nothing.
impl From<mongodb::error::Error> for Error {
    fn from(error: mongodb::error::Error) -> Self {
        match error.kind.as_ref() {
            ErrorKind::Command(command) if is_full_disk(command.code, &command.message) => Self::DiskFull,
            ErrorKind::Command(command) if command.code == UNAUTHORIZED => {
                Self::internal(missing_privilege(&command.message))
            }
            ErrorKind::Command(command) if !TEMPORARY.iter().any(|codes| codes.contains(&command.code)) => {
                Self::internal(error)
            }
            ErrorKind::InvalidArgument { .. }
            | ErrorKind::InvalidResponse { .. }
            | ErrorKind::Bson(_)
            | ErrorKind::Internal { .. } => Self::internal(error),
            _ => Self::unavailable(error),
        }
    }
}

/// What the user of the database may not do, from the server's message, which has the whole command: `not
/// authorized on pagebucket to execute command { find: "trades", filter: …`.
fn missing_privilege(message: &str) -> String {
    let command = message.split_once("command { ").and_then(|(_, command)| command.split(", ").next());
    match command.and_then(|command| command.split_once(": ")) {
        Some((command, collection)) => format!(
            "the user of the database lacks the privilege for `{command}` on {}: docs/how-to/mongodb.md has the role",
            collection.trim_matches('"')
        ),
        None => format!("the user of the database lacks a privilege: {message}"),
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
        for code in [
            63, 94, 133, 150, 211, 13388, 11601, 112, 24, 246, 6, 50, 91, 189, 262, 9001, 10107, 11600, 13436,
        ] {
            assert!(matches!(of(code), Error::Unavailable(_)), "{code}");
        }
        // BadValue, Unauthorized, IndexNotFound, DuplicateKey: asking again does not help.
        for code in [2, 13, 27, 11000] {
            assert!(matches!(of(code), Error::Internal(_)), "{code}");
        }
    }

    #[test]
    fn a_missing_privilege_is_one_sentence() {
        let message = r#"not authorized on pagebucket to execute command { find: "trades", filter: {}, lsid: { id: 1 } }"#;
        assert_eq!(
            missing_privilege(message),
            "the user of the database lacks the privilege for `find` on trades: docs/how-to/mongodb.md has the role"
        );
        assert_eq!(missing_privilege("not"), "the user of the database lacks a privilege: not");
    }

    #[test]
    fn a_full_disk_is_told_without_the_words_of_the_server() {
        assert_eq!(of(14031).to_string(), "the disk of the database is full");
        let error = |code: i32, errmsg: &str| Bson::from(doc! { "index": 0, "code": code, "errmsg": errmsg });
        for (error, tells) in [
            (error(14031, "words"), true),
            (error(8, "28: No space left on device"), true),
            (Bson::from(vec![error(8, "words"), error(14031, "words")]), true),
            (error(8, "words"), false),
            (Bson::from("words"), false),
        ] {
            assert_eq!(tells_of_full_disk(&error), tells, "{error}");
        }
    }
}
