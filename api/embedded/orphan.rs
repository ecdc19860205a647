//! A mongod left behind by a server that died without a chance to stop it.

use std::fs::{self, File, TryLockError};
use std::future::pending;
use std::io::ErrorKind;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tracing::warn;

use super::layout::Layout;
use super::replica::Replica;
use super::{Error, POLL, port};

/// How long it has to answer and to end. An idle mongod takes a second, one with a cache full of changes
/// some more; one that is frozen never ends.
const END: Duration = Duration::from_secs(20);

/// Returns when no mongod runs on the data any more. To be called by the owner of the data directory.
///
/// # Errors
///
/// [`Error::LeftBehind`] when there is one that cannot be shut down. It is not killed by its pid, because
/// across containers that share a directory a pid can be somebody else's.
pub(super) async fn end(layout: &Layout) -> Result<(), Error> {
    if !is_there(layout)? {
        return Ok(());
    }
    warn!("a mongod of an earlier run is still on the data; it is shut down and replaced");
    let replica = port::kept(layout)?.map(Replica::at).transpose()?;
    let db = layout.db();
    let ask = async {
        match &replica {
            Some(replica) => replica.shut_down(&db).await,
            None => pending().await,
        }
    };
    let ended = timeout(END, async {
        tokio::select! {
            gone = gone(layout) => gone,
            never = ask => match never {},
        }
    });
    if let Ok(gone) = ended.await {
        return gone;
    }
    let pid = fs::read_to_string(layout.mongod_lock()).unwrap_or_default();
    let pid = if pid.trim().is_empty() { "unknown" } else { pid.trim() }.to_owned();
    Err(Error::LeftBehind { data_dir: layout.root().to_owned(), pid })
}

async fn gone(layout: &Layout) -> Result<(), Error> {
    while is_there(layout)? {
        sleep(POLL).await;
    }
    Ok(())
}

/// Whether any mongod, on whatever port, has the data: it holds a lock that ends with it.
pub(super) fn is_there(layout: &Layout) -> Result<bool, Error> {
    let path = layout.mongod_lock();
    let failed = |source| Error::io("look at", &path, source);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}
