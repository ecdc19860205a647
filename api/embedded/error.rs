//! What can keep the private mongod from being there, each as a sentence that says what to do.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use rustix::io::Errno;

use super::holder::Holder;

/// Why there is no private mongod. Every message is meant for the user as it stands.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing was named and nothing was found.
    #[error(
        "no mongod was found, neither in PATH nor at {}: run `scripts/fetch-mongod` to fetch one, or name one by \
         --mongod or MONGOD, or name a running database by --mongodb-uri or MONGODB_URI",
        cache.display()
    )]
    NotFound {
        /// Where `scripts/fetch-mongod` puts it.
        cache: PathBuf,
    },

    /// What was named is not a program.
    #[error(
        "--mongod or MONGOD names {}, which is not an executable file: correct it, or leave it out to have a mongod looked for",
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
        "the data directory {} is in use by {}: stop that one or wait for its end, or name another directory by --data-dir",
        data_dir.display(),
        Holder::name(holder.as_ref())
    )]
    InUse {
        /// The directory.
        data_dir: PathBuf,
        /// Its owner, as far as it has said who it is.
        holder: Option<Holder>,
    },

    /// A server owns the data directory, but its mongod is not there to be joined.
    #[error(
        "{} uses the data directory {}, but its mongod was not primary within {seconds} s: see mongod.log there, or restart that server",
        Holder::name(holder.as_ref()),
        data_dir.display()
    )]
    NotJoined {
        /// The directory.
        data_dir: PathBuf,
        /// How long it was waited for.
        seconds: u64,
        /// The server.
        holder: Option<Holder>,
    },

    /// A server owns the data directory, but without the files that open its mongod.
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

    /// A directory of another user's.
    #[error(
        "{} belongs to user id {owner}, and this process runs as user id {user}: run it as that user, hand the \
         directory over with `chown -R {user} {}`, or name another one by --data-dir",
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

    /// A mongod of an earlier run is still on the data and cannot be shut down.
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

    /// Somebody else listens on the port that was free a moment ago.
    #[error("port {port} on 127.0.0.1 was taken before mongod could have it: start again")]
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

    /// It runs, and is not primary.
    #[error("mongod was not primary within {seconds} s and was stopped: see {}, then start again", log.display())]
    NotPrimary {
        /// How long it was waited for.
        seconds: u64,
        /// Its whole log.
        log: PathBuf,
    },

    /// A file or a process of ours.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// After "could not".
        action: &'static str,
        /// Of what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The driver made no client of our fixed settings.
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
