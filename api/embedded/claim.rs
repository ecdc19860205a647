//! The ownership of a data directory: a lock of the kernel, and a line that names its holder.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;

use super::error::Error;
use super::holder::{Holder, Role};
use super::layout::{self, Layout};

pub(super) enum Claimed {
    Mine(Claim),
    /// Another process has it: `None` while it writes its line.
    Held(Option<Holder>),
}

/// Ownership of a data directory. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub(super) struct Claim {
    file: File,
    role: Role,
    layout: Layout,
}

pub(super) fn take(layout: &Layout, role: Role) -> Result<Claimed, Error> {
    let path = layout.lock();
    let failed = |source| Error::io("lock", &path, &source);
    let file =
        layout::file().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {
            let claim = Claim { file, role, layout: layout.clone() };
            claim.say(None)?;
            Ok(Claimed::Mine(claim))
        }
        Err(TryLockError::WouldBlock) => {
            let line = io::read_to_string(&file).map_err(failed)?;
            Ok(Claimed::Held(line.parse().ok()))
        }
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

impl Claim {
    /// Tells tools that the mongod behind `port` can be joined.
    pub(super) fn announce(&self, port: u16) -> Result<(), Error> {
        self.say(Some(port))
    }

    fn say(&self, port: Option<u16>) -> Result<(), Error> {
        let line = Holder { pid: std::process::id(), role: self.role, port }.to_string();
        self.file
            .set_len(0)
            .and_then(|()| self.file.write_all_at(line.as_bytes(), 0))
            .map_err(|source| Error::io("write", &self.layout.lock(), &source))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Otherwise the next owner would be taken for this one until it has written its line. An error does not
        // matter: closing the file releases the lock.
        let _ = self.file.set_len(0);
    }
}
