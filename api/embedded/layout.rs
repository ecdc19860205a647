//! The paths in a data directory, and their permissions.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::error::Error;

/// Write permission for the group or for everyone.
const OTHERS_WRITE: u32 = 0o022;

/// The absolute paths of a data directory that exists, and that no other user can write to.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) root: PathBuf,
    pub(super) lock: PathBuf,
    pub(super) port: PathBuf,
    pub(super) password: PathBuf,
    pub(super) key: PathBuf,
    pub(super) db: PathBuf,
    /// The file that a running mongod keeps locked, with its pid inside.
    pub(super) mongod_lock: PathBuf,
    pub(super) log: PathBuf,
    pub(super) former_log: PathBuf,
}

impl Layout {
    /// Makes the directory, for this user alone, if it is missing.
    ///
    /// # Errors
    /// It, or `db` in it, belongs to another user, can be written to by one, or cannot be made.
    pub(super) fn open(data_dir: &Path) -> Result<Self, Error> {
        let root = directory(data_dir)?;
        let db = directory(&root.join("db"))?;
        Ok(Self {
            lock: root.join("lock"),
            port: root.join("port"),
            password: root.join("password"),
            key: root.join("key"),
            mongod_lock: db.join("mongod.lock"),
            log: root.join("mongod.log"),
            former_log: root.join("mongod.log.1"),
            db,
            root,
        })
    }
}

/// Makes the directory if it is missing. Returns its path without links and dots, to compare mongod's `dbPath` with it.
fn directory(path: &Path) -> Result<PathBuf, Error> {
    let failed = |source| Error::io("make the directory", path, &source);
    if let Ok(target) = fs::read_link(path)
        && !path.exists()
    {
        return Err(Error::NotRun(format!(
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
        return Err(Error::NotRun(format!(
            "{0} belongs to user id {owner}, and this process runs as user id {user}: run it as that user, change \
             the owner with `chown -R {user} {0}`, or name another one by --data-dir",
            path.display()
        )));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(Error::NotRun(format!(
            "{0} can be written to by other users: run `chmod go-w {0}`, or name another directory by --data-dir",
            path.display()
        )));
    }
    Ok(path)
}

/// Options to open a file of a data directory: never through a symbolic link, and made for this user alone.
pub(super) fn file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

/// Opens a file of a data directory, if it is there.
pub(super) fn existing(path: &Path) -> Result<Option<File>, Error> {
    match file().read(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path, &error)),
    }
}

/// The effective user id of this process.
pub(super) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}
