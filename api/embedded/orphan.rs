//! A mongod that a killed server has left running.

use std::convert::Infallible;
use std::fs::TryLockError;
use std::future::pending;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tracing::warn;

use super::error::Error;
use super::layout::{self, Layout};
use super::port;
use super::replica::{POLL, Replica};
use super::secret::Secret;

/// Time to answer and to end. An idle mongod takes a second, one with many changes in its cache some more; a frozen one
/// never ends.
const END: Duration = Duration::from_secs(20);

/// Shuts down a mongod that still uses the data. Only for the owner of the data directory.
///
/// # Errors
///
/// It cannot be shut down. It is not killed by its pid, because in another container that shares
/// the directory the pid may belong to another process.
pub(super) async fn end(layout: &Layout, key: &Secret) -> Result<(), Error> {
    if !is_there(layout)? {
        return Ok(());
    }
    warn!("a mongod of an earlier run still uses the data; it is shut down and replaced");
    let ask = async {
        match port::kept(layout)? {
            Some(port) => shut_down(port, &layout.db, key).await,
            None => pending().await,
        }
    };
    let ended = timeout(END, async {
        tokio::select! {
            gone = gone(layout) => gone,
            failed = ask => failed.map(|never| match never {}),
        }
    });
    if let Ok(gone) = ended.await {
        return gone;
    }
    let lock = layout::file().read(true).open(&layout.mongod_lock);
    let pid = lock.and_then(io::read_to_string).unwrap_or_default();
    let pid = if pid.trim().is_empty() { "unknown" } else { pid.trim() };
    Err(Error::NotRun(format!(
        "a mongod left behind by an earlier run (pid {pid}) still uses {} and does not answer: end it with \
         `kill -9 {pid}`, then start again",
        layout.root.display()
    )))
}

/// Asks with and without authentication: an earlier version ran mongod without it.
async fn shut_down(port: u16, db: &Path, key: &Secret) -> Result<Infallible, Error> {
    let (ours, former) = (Replica::at(port, Some(key))?, Replica::at(port, None)?);
    let (never, _) = tokio::join!(ours.shut_down(db), former.shut_down(db));
    Ok(never)
}

async fn gone(layout: &Layout) -> Result<(), Error> {
    while is_there(layout)? {
        sleep(POLL).await;
    }
    Ok(())
}

/// Whether a mongod uses the data, on any port: it then holds the lock.
pub(super) fn is_there(layout: &Layout) -> Result<bool, Error> {
    let Some(file) = layout::existing(&layout.mongod_lock)? else { return Ok(false) };
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(Error::io("look at", &layout.mongod_lock, &error)),
    }
}
