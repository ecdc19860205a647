//! Why the private mongod does not run. Each message says what to do.

use std::io;
use std::path::Path;

use rustix::io::Errno;

/// Why the private mongod does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A sentence for the user, which says what to do.
    #[error("{0}")]
    NotRun(String),
    /// Another process has taken the port.
    #[error("another process has taken port {0} on 127.0.0.1 before mongod: start again")]
    PortTaken(u16),
}

impl Error {
    /// `action` follows "could not".
    pub(super) fn io(action: &str, path: &Path, source: &io::Error) -> Self {
        let path = path.display();
        // The answer to a caller that does not follow links, for a path that ends in one.
        Self::NotRun(if Errno::from_io_error(source) == Some(Errno::LOOP) {
            format!(
                "{path} is a symbolic link, and files of a data directory are opened without following links: put the \
                 file itself there, or remove the link"
            )
        } else {
            format!("could not {action} {path}: {source}")
        })
    }
}
