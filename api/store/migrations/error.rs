use crate::store::Error;

/// Why the migrations of a database and those of this binary do not go together. Each is one
/// sentence, fit to be shown to an operator.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// Its text is another than when it was applied.
    #[error("migration {0} was changed after it was applied to this database")]
    Changed(String),
    /// A lower number than this binary's latest, and this binary does not have it.
    #[error("migration {0} was applied to this database, but is missing from this version")]
    Missing(String),
    /// A higher number, not marked compatible with older versions.
    #[error("this database is ahead: migration {0} needs a later version of pagebucket")]
    Ahead(String),
    /// Some are to be applied, and the caller does not want that.
    #[error("migrations are pending: {0}; apply them with `pagebucket migrate`")]
    Pending(String),
    /// Somebody has held the lock for too long.
    #[error("another instance has been applying migrations for more than {0} s; is it stuck?")]
    Locked(u64),
    /// A file of this binary is not what the type says. Caught by a test.
    #[error("migration {name} is not well-formed: {detail}")]
    Malformed {
        /// The file's name.
        name: String,
        /// Where.
        detail: String,
    },
    /// A command was refused.
    #[error("migration {name} failed at `{command}`: {source}")]
    Failed {
        /// The file's name.
        name: String,
        /// The command's first field.
        command: String,
        /// The server's answer.
        source: Error,
    },
    /// The database failed.
    #[error(transparent)]
    Database(#[from] Error),
}
