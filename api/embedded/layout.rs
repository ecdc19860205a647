//! Where things are in a data directory.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::Error;

/// The absolute paths of a data directory that exists.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Makes the directory where it is missing, readable by this user alone.
    pub(super) fn open(data_dir: &Path) -> Result<Self, Error> {
        let failed = |source| Error::io("make the data directory", data_dir, source);
        DirBuilder::new().recursive(true).mode(0o700).create(data_dir.join("db")).map_err(failed)?;
        // Without links and dots, because mongod's own word for its dbPath is compared with ours.
        Ok(Self { root: fs::canonicalize(data_dir).map_err(failed)? })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub(super) fn port(&self) -> PathBuf {
        self.root.join("port")
    }

    pub(super) fn db(&self) -> PathBuf {
        self.root.join("db")
    }

    /// The file that a running mongod keeps locked, with its pid inside.
    pub(super) fn mongod_lock(&self) -> PathBuf {
        self.db().join("mongod.lock")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.root.join("mongod.log")
    }

    pub(super) fn former_log(&self) -> PathBuf {
        self.root.join("mongod.log.1")
    }
}
