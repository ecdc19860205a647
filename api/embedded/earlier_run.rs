//! What an earlier start has left: its port, which stays the same unless another process has taken it, and
//! perhaps a mongod that still runs, because its server was killed.

use std::fs::TryLockError;
use std::future::pending;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use rand::Rng;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::layout::{self, EmbeddedError, Layout};
use super::replica::{POLL, Replica};
use super::secret::Secret;

/// Below the ephemeral ports of outgoing connections (Linux from 32768, others from 49152), so that a mongod
/// that has been killed finds its port free.
const RANGE: std::ops::Range<u16> = 20_000..30_000;

/// Number of random ports to try. Even with half of the range taken, that many failures are practically
/// impossible.
const TRIES: usize = 64;

/// How long to wait for the kept port to become free: a mongod that ends releases its data first, and its
/// port a little later.
const LEAVING: Duration = Duration::from_secs(2);

/// The port of the last start. A new port at the first start, and if another process has taken the old one.
/// The next start finds it here.
pub(crate) async fn port(layout: &Layout) -> Result<u16, EmbeddedError> {
    let free = async |port| {
        while !is_free(port) {
            sleep(POLL).await;
        }
    };
    let port = match kept_port(layout)? {
        Some(kept) if timeout(LEAVING, free(kept)).await.is_ok() => kept,
        kept => {
            let mut random = rand::rng();
            let mut ports = std::iter::repeat_with(|| random.random_range(RANGE)).take(TRIES);
            let port = ports.find(|port| is_free(*port)).ok_or_else(|| {
                let none = "no free port was found on 127.0.0.1 for mongod: see what this machine listens on (`ss -ltn`)";
                EmbeddedError::NotRun(none.to_owned())
            })?;
            if let Some(taken) = kept {
                info!(
                    taken,
                    port, "another process listens on mongod's previous port; mongod gets a new one"
                );
            }
            port
        }
    };
    let path = &layout.port;
    let file = layout::file().write(true).create(true).truncate(true).open(path);
    file.and_then(|mut file| writeln!(file, "{port}"))
        .map_err(|error| EmbeddedError::io("write", path, &error))?;
    Ok(port)
}

/// The port of the last start. A file without a valid port counts as none: the configuration of mongod is
/// changed to the new port in any case.
fn kept_port(layout: &Layout) -> Result<Option<u16>, EmbeddedError> {
    let Some(file) = layout::existing(&layout.port)? else { return Ok(None) };
    let text = io::read_to_string(file).map_err(|error| EmbeddedError::io("read", &layout.port, &error))?;
    Ok(text.trim().parse().ok().filter(|port| *port != 0))
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Time to answer and to end. An idle mongod takes a second, one with many changes in its cache some more; a
/// frozen one never ends.
const END: Duration = Duration::from_secs(20);

/// Shuts down a mongod that still uses the data. Only for the owner of the data directory.
///
/// # Errors
///
/// It cannot be shut down. It is not killed by its pid, because in another container that shares
/// the directory the pid may belong to another process.
pub(crate) async fn end_mongod(layout: &Layout, key: &Secret) -> Result<(), EmbeddedError> {
    if !is_mongod_there(layout)? {
        return Ok(());
    }
    warn!("a mongod of an earlier run still uses the data; it is shut down and replaced");
    let gone = async {
        while is_mongod_there(layout)? {
            sleep(POLL).await;
        }
        Ok(())
    };
    let ask = async {
        let Some(port) = kept_port(layout)? else { return pending().await };
        match Replica::at(port, key).await?.shut_down(&layout.db).await {}
    };
    let ended = timeout(END, async {
        tokio::select! {
            gone = gone => gone,
            failed = ask => failed,
        }
    });
    if let Ok(gone) = ended.await {
        return gone;
    }
    let lock = layout::file().read(true).open(&layout.mongod_lock);
    let pid = lock.and_then(io::read_to_string).unwrap_or_default();
    let pid = if pid.trim().is_empty() { "unknown" } else { pid.trim() };
    Err(EmbeddedError::NotRun(format!(
        "a mongod left behind by an earlier run (pid {pid}) still uses {} and does not answer: end it with \
         `kill -9 {pid}`, then start again",
        layout.root.display()
    )))
}

/// Whether a mongod uses the data, on any port: it then holds the lock.
pub(crate) fn is_mongod_there(layout: &Layout) -> Result<bool, EmbeddedError> {
    let Some(file) = layout::existing(&layout.mongod_lock)? else { return Ok(false) };
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(EmbeddedError::io("look at", &layout.mongod_lock, &error)),
    }
}
