//! The port of the private mongod. It stays the same unless another process has taken it.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use rand::Rng;
use tokio::time::{sleep, timeout};
use tracing::info;

use super::error::Error;
use super::layout::{self, Layout};
use super::replica::POLL;

/// Below the ephemeral ports of outgoing connections (Linux from 32768, others from 49152), so that a mongod that has been
/// killed finds its port free.
const RANGE: std::ops::Range<u16> = 20_000..30_000;

/// Number of random ports to try. Even with half of the range taken, that many failures are practically impossible.
const TRIES: usize = 64;

/// How long to wait for the kept port to become free: a mongod that ends releases its data first, and its port a little
/// later.
const LEAVING: Duration = Duration::from_secs(2);

/// The port of the last start. A new port at the first start, and if another process has taken the old one.
pub(super) async fn kept_or_new(layout: &Layout) -> Result<u16, Error> {
    let Some(kept) = kept(layout)? else { return new() };
    let free = async {
        while !is_free(kept) {
            sleep(POLL).await;
        }
    };
    if timeout(LEAVING, free).await.is_ok() {
        return Ok(kept);
    }
    let port = new()?;
    info!(taken = kept, port, "another process listens on mongod's former port; mongod gets a new one");
    Ok(port)
}

/// The port of the last start. A file without a valid port counts as none: the configuration of mongod is changed to the
/// new port in any case.
pub(super) fn kept(layout: &Layout) -> Result<Option<u16>, Error> {
    let Some(file) = layout::existing(&layout.port)? else { return Ok(None) };
    let text = io::read_to_string(file).map_err(|error| Error::io("read", &layout.port, &error))?;
    Ok(text.trim().parse().ok().filter(|port| *port != 0))
}

pub(super) fn keep(layout: &Layout, port: u16) -> Result<(), Error> {
    let path = &layout.port;
    let file = layout::file().write(true).create(true).truncate(true).open(path);
    file.and_then(|mut file| writeln!(file, "{port}")).map_err(|error| Error::io("write", path, &error))
}

/// A free port.
fn new() -> Result<u16, Error> {
    let mut random = rand::rng();
    std::iter::repeat_with(|| random.random_range(RANGE))
        .take(TRIES)
        .find(|port| is_free(*port))
        .ok_or_else(|| {
            let none = "no free port was found on 127.0.0.1 for mongod: see what this machine listens on (`ss -ltn`)";
            Error::NotRun(none.to_owned())
        })
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
