//! The ownership of a data directory: a lock of the kernel, and a line that names its holder.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::str::FromStr;

use super::error::Error;
use super::layout::{self, Layout};

/// The kind of process that calls [`start`](super::start).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Refuses a data directory that is in use.
    Server,
    /// An import, a migration or an export: joins the mongod of a running server, else runs its own. Refuses a directory
    /// that another tool owns, because the mongod of that tool ends with it.
    Tool,
}

/// The owner of a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its kind.
    pub role: Role,
    /// The port of its mongod, once that has been primary.
    pub port: Option<u16>,
}

impl Holder {
    pub(super) fn name(holder: Option<&Self>) -> String {
        match holder {
            Some(Self { pid, role: Role::Server, .. }) => format!("another `pagebucket serve` (pid {pid})"),
            Some(Self { pid, role: Role::Tool, .. }) => {
                format!("a pagebucket import, export or migration (pid {pid})")
            }
            None => "another process".to_owned(),
        }
    }
}

/// One line, `PID ROLE PORT`, the port `-` until it is known. The line break shows that the line is complete.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Server => "server",
            Role::Tool => "tool",
        };
        match self.port {
            Some(port) => writeln!(f, "{} {role} {port}", self.pid),
            None => writeln!(f, "{} {role} -", self.pid),
        }
    }
}

impl FromStr for Holder {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let mut words = line.strip_suffix('\n').ok_or(())?.split(' ');
        let mut word = || words.next().ok_or(());
        let pid = word()?.parse().map_err(drop)?;
        let role = match word()? {
            "server" => Role::Server,
            "tool" => Role::Tool,
            _ => return Err(()),
        };
        let port = match word()? {
            "-" => None,
            port => Some(port.parse().map_err(drop)?),
        };
        Ok(Self { pid, role, port })
    }
}

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
    path: PathBuf,
}

pub(super) fn take(layout: &Layout, role: Role) -> Result<Claimed, Error> {
    let path = &layout.lock;
    let failed = |source| Error::io("lock", path, &source);
    let file =
        layout::file().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {
            let claim = Claim { file, role, path: path.clone() };
            claim.announce(None)?;
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
    /// Writes the holder's line. A port tells tools that the mongod behind it can be joined.
    pub(super) fn announce(&self, port: Option<u16>) -> Result<(), Error> {
        let line = Holder { pid: std::process::id(), role: self.role, port }.to_string();
        self.file
            .set_len(0)
            .and_then(|()| self.file.write_all_at(line.as_bytes(), 0))
            .map_err(|source| Error::io("write", &self.path, &source))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Otherwise the next owner would be taken for this one until it has written its line. An error does not
        // matter: closing the file releases the lock.
        let _ = self.file.set_len(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_its_holder_again() {
        for holder in [
            Holder { pid: 1, role: Role::Server, port: None },
            Holder { pid: 4_194_304, role: Role::Tool, port: Some(27_017) },
        ] {
            assert_eq!(holder.to_string().parse(), Ok(holder));
        }
    }

    #[test]
    fn half_a_line_names_nobody() {
        let line = Holder { pid: 123, role: Role::Server, port: Some(20_001) }.to_string();
        for end in 0..line.len() {
            assert_eq!(line[..end].parse::<Holder>(), Err(()), "{:?}", &line[..end]);
        }
    }
}
