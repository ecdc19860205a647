//! Why the private mongod does not run. Each message says what to do.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use rustix::io::Errno;

use super::holder::Holder;

/// Why the private mongod does not run. The messages are for users.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No mongod was named, and none was found.
    #[error(
        "no mongod was found, neither in PATH nor at {}: run `scripts/fetch-mongod` to fetch one, or name one by \
         --mongod or MONGOD, or name a running database by --mongodb-uri or MONGODB_URI",
        cache.display()
    )]
    NotFound {
        /// Where `scripts/fetch-mongod` puts it.
        cache: PathBuf,
    },

    /// The named file is not a program.
    #[error(
        "--mongod or MONGOD names {}, which is not an executable file: correct it, or leave it out to search for a mongod",
        path.display()
    )]
    NotExecutable {
        /// As it was named.
        path: PathBuf,
    },

    /// The system refused to run it.
    #[error("{} could not be run ({source}): name another mongod by --mongod or MONGOD", path.display())]
    NotRun {
        /// The binary.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// Another pagebucket owns the data directory.
    #[error(
        "the data directory {} is in use by {}: stop that process or wait for its end, or name another directory by --data-dir",
        data_dir.display(),
        Holder::name(holder.as_ref())
    )]
    InUse {
        /// The directory.
        data_dir: PathBuf,
        /// Its owner, if known.
        holder: Option<Holder>,
    },

    /// A server owns the data directory, but its mongod cannot be joined.
    #[error(
        "{} uses the data directory {}, but its mongod was not primary within {seconds} s: see mongod.log there, or restart that server",
        Holder::name(holder.as_ref()),
        data_dir.display()
    )]
    NotJoined {
        /// The directory.
        data_dir: PathBuf,
        /// How long it was waited for, in seconds.
        seconds: u64,
        /// The server.
        holder: Option<Holder>,
    },

    /// A server owns the data directory, but its password file is missing.
    #[error(
        "{} uses the data directory {} without a password file there: restart that server",
        Holder::name(holder.as_ref()),
        data_dir.display()
    )]
    NoPassword {
        /// The directory.
        data_dir: PathBuf,
        /// The server.
        holder: Option<Holder>,
    },

    /// A directory that another user owns.
    #[error(
        "{} belongs to user id {owner}, and this process runs as user id {user}: run it as that user, change \
         the owner with `chown -R {user} {}`, or name another one by --data-dir",
        path.display(),
        path.display()
    )]
    NotOwned {
        /// The data directory, or `db` in it.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this process.
        user: u32,
    },

    /// A directory in which another user may replace any file.
    #[error(
        "{0} can be written to by other users: run `chmod go-w {0}`, or name another directory by --data-dir",
        path.display()
    )]
    WritableByOthers {
        /// The data directory, or `db` in it.
        path: PathBuf,
    },

    /// A directory that is a symbolic link to nothing.
    #[error(
        "{} is a symbolic link to {}, which does not exist: make that directory, or remove the link",
        path.display(),
        target.display()
    )]
    BrokenLink {
        /// The data directory, or `db` in it.
        path: PathBuf,
        /// As the link has it.
        target: PathBuf,
    },

    /// A link in the place of a file.
    #[error(
        "{} is a symbolic link, and files of a data directory are opened without following links: put the file itself \
         there, or remove the link",
        path.display()
    )]
    Link {
        /// The link.
        path: PathBuf,
    },

    /// A password or key that another user may have read or chosen.
    #[error(
        "{} can be read by other users, or belongs to one: remove it, and the next start of the server makes another",
        path.display()
    )]
    NotSecret {
        /// The file.
        path: PathBuf,
    },

    /// A mongod of an earlier run still uses the data, and cannot be shut down.
    #[error(
        "a mongod left behind by an earlier run (pid {pid}) still uses {} and does not answer: end it with `kill -9 {pid}`, then start again",
        data_dir.display()
    )]
    LeftBehind {
        /// The directory.
        data_dir: PathBuf,
        /// From mongod's own lock file.
        pid: String,
    },

    /// Another process has taken the port.
    #[error("another process has taken port {port} on 127.0.0.1 before mongod: start again")]
    PortTaken {
        /// On loopback.
        port: u16,
    },

    /// No port could be bound.
    #[error("no free port was found on 127.0.0.1 for mongod: see what this machine listens on (`ss -ltn`)")]
    NoPort,

    /// It ended before it was primary.
    #[error("mongod did not start ({status}): correct what its log names, {}{last_words}", log.display())]
    DidNotStart {
        /// How it ended.
        status: ExitStatus,
        /// Its whole log.
        log: PathBuf,
        /// The last errors in its log, each on a new line, indented.
        last_words: String,
    },

    /// It runs, but is not primary.
    #[error("mongod was not primary within {seconds} s and was stopped: see {}, then start again", log.display())]
    NotPrimary {
        /// How long it was waited for, in seconds.
        seconds: u64,
        /// Its whole log.
        log: PathBuf,
    },

    /// An operation on a file or a process failed.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// After "could not".
        action: &'static str,
        /// Of what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The driver refused our settings.
    #[error("no client for the private mongod could be made: {source}")]
    Client {
        /// What the driver said.
        source: mongodb::error::Error,
    },
}

impl Error {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match Errno::from_io_error(&source) {
            // The answer to a caller that does not follow links, for a path that ends in one.
            Some(Errno::LOOP) => Self::Link { path },
            _ => Self::Io { action, path, source },
        }
    }
}
