//! The password and the key of the private mongod: random, made once, in files that only this user can read.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::layout::{self, EmbeddedError, Layout};

/// Random bytes in a secret. It is written in hexadecimal digits, which fit in a key file and in a URI.
const BYTES: usize = 32;

/// All permissions of the group and of everyone.
const OTHERS: u32 = 0o077;

/// A text that `Debug` does not show.
#[derive(Clone, derive_more::Debug)]
#[debug("Secret(..)")]
pub(crate) struct Secret(pub(crate) String);

/// The secrets of a data directory.
#[derive(Debug, Clone)]
pub(crate) struct Secrets {
    /// Of the user of clients.
    pub(crate) password: Secret,
    /// Of the members of the replica set, and of the process that controls mongod.
    pub(crate) key: Secret,
}

impl Secrets {
    /// Makes those that are missing. Only for the owner of the data directory.
    pub(crate) fn kept_or_new(layout: &Layout) -> Result<Self, EmbeddedError> {
        Ok(Self { password: kept_or_new(&layout.password)?, key: kept_or_new(&layout.key)? })
    }

    /// `None` unless both are there.
    pub(crate) fn kept(layout: &Layout) -> Result<Option<Self>, EmbeddedError> {
        let (password, key) = (kept(&layout.password)?, kept(&layout.key)?);
        Ok(password.zip(key).map(|(password, key)| Self { password, key }))
    }
}

fn kept(path: &Path) -> Result<Option<Secret>, EmbeddedError> {
    layout::existing(path)?.map_or(Ok(None), |file| read(&file, path))
}

fn kept_or_new(path: &Path) -> Result<Secret, EmbeddedError> {
    let failed = |source| EmbeddedError::io("write", path, &source);
    let file = layout::own(path).map_err(failed)?;
    if let Some(secret) = read(&file, path)? {
        return Ok(secret);
    }
    let secret = Secret(rand::random::<[u8; BYTES]>().iter().map(|byte| format!("{byte:02x}")).collect());
    layout::rewrite(&file, &format!("{}\n", secret.0)).and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(secret)
}

/// `None` for a file without a whole secret, as a crash may leave it.
fn read(file: &File, path: &Path) -> Result<Option<Secret>, EmbeddedError> {
    let failed = |source| EmbeddedError::io("read", path, &source);
    let found = file.metadata().map_err(failed)?;
    if found.uid() != layout::user() || found.mode() & OTHERS != 0 {
        return Err(EmbeddedError::NotRun(format!(
            "{} can be read by other users, or belongs to one: remove it, and the next start of the server makes another",
            path.display()
        )));
    }
    let text = io::read_to_string(file).map_err(failed)?;
    let text = text.trim_end();
    let whole = text.len() == 2 * BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    Ok(whole.then(|| Secret(text.to_owned())))
}
