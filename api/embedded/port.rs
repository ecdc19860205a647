//! The port of the private mongod: kept from start to start, new only when somebody else has it.

use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use rand::Rng;
use tokio::time::{sleep, timeout};
use tracing::info;

use super::error::Error;
use super::layout::{self, Layout};
use super::replica::POLL;

/// Below the range from which systems lend ports to outgoing connections (Linux from 32768, others from
/// 49152): a mongod that has been killed finds its port still free.
const RANGE: std::ops::Range<u16> = 20_000..30_000;

/// With half of the range taken, this many misses in a row are as good as impossible.
const TRIES: usize = 64;

/// How long a kept port may stay taken before it is given up: a mongod that ends lets go of its data
/// first and of its port a little later.
const LEAVING: Duration = Duration::from_secs(2);

/// The port of the last start, or a new one if there is none or somebody else has it.
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
    info!(taken = kept, port, "something else listens on mongod's former port, it gets another");
    Ok(port)
}

/// The port of the last start. A file that does not hold one counts as none: mongod's own configuration
/// is led to the new port, whatever the former one was.
pub(super) fn kept(layout: &Layout) -> Result<Option<u16>, Error> {
    let path = layout.port();
    match layout::file().read(true).open(&path).and_then(io::read_to_string) {
        Ok(text) => Ok(text.trim().parse().ok().filter(|port| *port != 0)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", &path, error)),
    }
}

pub(super) fn keep(layout: &Layout, port: u16) -> Result<(), Error> {
    let path = layout.port();
    let file = layout::file().write(true).create(true).truncate(true).open(&path);
    file.and_then(|mut file| writeln!(file, "{port}")).map_err(|error| Error::io("write", &path, error))
}

/// A port that nobody listens on.
fn new() -> Result<u16, Error> {
    let mut random = rand::rng();
    std::iter::repeat_with(|| random.random_range(RANGE))
        .take(TRIES)
        .find(|port| is_free(*port))
        .ok_or(Error::NoPort)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
