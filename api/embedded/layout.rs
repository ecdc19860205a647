//! The paths in a data directory, their permissions, and the errors, each of which says what to do.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Write permission for the group or for everyone.
const OTHERS_WRITE: u32 = 0o022;

/// The absolute paths of a data directory that exists, and that no other user can write to.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) root: PathBuf,
    pub(crate) port: PathBuf,
    pub(crate) password: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) db: PathBuf,
    /// The file that a running mongod keeps locked, with its pid inside.
    pub(crate) mongod_lock: PathBuf,
    pub(crate) log: PathBuf,
}

impl Layout {
    /// Makes the directory, for this user alone, if it is missing.
    ///
    /// # Errors
    /// It, or `db` in it, belongs to another user, can be written to by one, or cannot be made.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, EmbeddedError> {
        let root = directory(data_dir)?;
        let db = directory(&root.join("db"))?;
        let [port, password, key, log] =
            ["port", "password", "key", "mongod.log"].map(|name| root.join(name));
        Ok(Self { port, password, key, mongod_lock: db.join("mongod.lock"), log, db, root })
    }
}

/// Makes the directory if it is missing. Returns its path without links and dots, to compare mongod's
/// `dbPath` with it.
fn directory(path: &Path) -> Result<PathBuf, EmbeddedError> {
    let failed = |source| EmbeddedError::io("make the directory", path, &source);
    if let Ok(target) = fs::read_link(path)
        && !path.exists()
    {
        return Err(EmbeddedError::NotRun(format!(
            "{} is a symbolic link to {}, which does not exist: make that directory, or remove the link",
            path.display(),
            target.display()
        )));
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let path = fs::canonicalize(path).map_err(failed)?;
    let found = fs::metadata(&path).map_err(failed)?;
    let (owner, user) = (found.uid(), user());
    if owner != user {
        return Err(EmbeddedError::NotRun(format!(
            "{0} belongs to user id {owner}, and this process runs as user id {user}: run it as that user, change \
             the owner with `chown -R {user} {0}`, or name another one by --data-dir",
            path.display()
        )));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(EmbeddedError::NotRun(format!(
            "{0} can be written to by other users: run `chmod go-w {0}`, or name another directory by --data-dir",
            path.display()
        )));
    }
    Ok(path)
}

/// Options to open a file of a data directory: never through a symbolic link, and made for this user alone.
pub(crate) fn file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

/// Opens a file of a data directory to read and write it; makes it if it is missing.
pub(crate) fn own(path: &Path) -> io::Result<File> {
    file().read(true).write(true).create(true).truncate(false).open(path)
}

/// Replaces what is in a file.
pub(crate) fn rewrite(file: &File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all_at(text.as_bytes(), 0)
}

/// Opens a file of a data directory, if it is there.
pub(crate) fn existing(path: &Path) -> Result<Option<File>, EmbeddedError> {
    match file().read(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EmbeddedError::io("read", path, &error)),
    }
}

/// The effective user id of this process.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// What people are told first, whatever noticed it.
pub(crate) const DISK_FULL: &str = "the disk of the database is full";

/// Why the private mongod does not run.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// A sentence for the user, which says what to do.
    #[error("{0}")]
    NotRun(String),
    /// Another process has taken the port.
    #[error("another process has taken port {0} on 127.0.0.1 before mongod: start again")]
    PortTaken(u16),
}

impl EmbeddedError {
    /// `action` follows "could not".
    pub(crate) fn io(action: &str, path: &Path, source: &io::Error) -> Self {
        let path = path.display();
        // The answer to a caller that does not follow links, for a path that ends in one.
        Self::NotRun(if source.kind() == ErrorKind::StorageFull {
            format!("{DISK_FULL}: could not {action} {path}: make room there")
        } else if Errno::from_io_error(source) == Some(Errno::LOOP) {
            format!(
                "{path} is a symbolic link, and files of a data directory are opened without following links: put the \
                 file itself there, or remove the link"
            )
        } else {
            format!("could not {action} {path}: {source}")
        })
    }
}
