//! Why migrations cannot be applied.

use crate::mongo::Error;

/// Why migrations failed or do not fit this binary. Each message is one sentence for the operator.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// The text of an applied migration has changed since.
    #[error("migration {0} was changed after it was applied to this database")]
    Changed(String),
    /// The database has a migration that this binary lacks, with a lower number than this binary's latest.
    #[error("migration {0} was applied to this database, but is missing from this version")]
    Missing(String),
    /// The database has a migration with a higher number that is not marked compatible with older versions.
    #[error("this database is ahead: migration {0} needs a later version of pagebucket")]
    Ahead(String),
    /// Some migrations are not applied, and the caller must not apply them.
    #[error("migrations are pending: {0}; apply them with `pagebucket migrate`")]
    Pending(String),
    /// Another instance holds the lock for too long.
    #[error("another instance has been applying migrations for more than {0} s; is it stuck?")]
    Locked(u64),
    /// A file of this binary cannot be parsed. A test catches this.
    #[error("migration {name} is not well-formed: {detail}")]
    Malformed {
        /// The file's name.
        name: String,
        /// What is wrong, and where.
        detail: String,
    },
    /// A history of the database has another definition where definitions never change.
    #[error(
        "the history `{history}` of this database has the {member} {stored}, which cannot become {given}; a history keeps \
         what its pages depend on, so give the new one another name"
    )]
    Redefined {
        /// The history's name.
        history: String,
        /// The member of the definition.
        member: String,
        /// What the database remembers.
        stored: String,
        /// What is defined now.
        given: String,
    },
    /// The native time series of a history has another definition, and must be rebuilt.
    #[error(
        "the time series of `{history}` has the {member} {stored}, and not {given}; rebuild it with `pagebucket series rebuild`"
    )]
    SeriesRedefined {
        /// The history's name.
        history: String,
        /// The member of the definition.
        member: &'static str,
        /// What the time series has.
        stored: String,
        /// What is defined now.
        given: String,
    },
    /// The server does not know what a migration needs: it is no MongoDB, or an emulation of one.
    #[error(
        "the server has no {what}, without which pagebucket cannot work: use MongoDB 6.0 or later ({detail})"
    )]
    Lacks {
        /// What it lacks.
        what: &'static str,
        /// The server's answer.
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
