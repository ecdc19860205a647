//! The ownership of a data directory: a lock of the kernel, and a line that names its holder.

use std::fs::{File, TryLockError};
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use derive_more::Display;

use super::layout::{self, EmbeddedError, Layout};

/// The kind of process that calls [`start`](super::start).
#[derive(Debug, Display, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Refuses a data directory that is in use.
    #[display("server")]
    Server,
    /// An import, a migration or an export: joins the mongod of a running server, else runs its own. Refuses
    /// a directory that another tool owns, because the mongod of that tool ends with it.
    #[display("tool")]
    Tool,
}

/// The owner of a data directory. As a text it is one line, `PID ROLE PORT`, the port `-` until it is known.
/// The line break shows that the line is complete.
#[derive(Debug, Display, Clone, Copy, PartialEq, Eq)]
#[display("{pid} {role} {}\n", port.map_or_else(|| "-".to_owned(), |port| port.to_string()))]
pub(crate) struct Holder {
    pub(crate) pid: u32,
    pub(crate) role: Role,
    /// The port of its mongod, once that has been primary.
    pub(crate) port: Option<u16>,
}

impl Holder {
    pub(crate) fn name(holder: Option<&Self>) -> String {
        match holder {
            Some(Self { pid, role: Role::Server, .. }) => format!("another `pagebucket serve` (pid {pid})"),
            Some(Self { pid, role: Role::Tool, .. }) => {
                format!("a pagebucket import, export or migration (pid {pid})")
            }
            None => "another process".to_owned(),
        }
    }
}

impl FromStr for Holder {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let words: Vec<_> = line.strip_suffix('\n').ok_or(())?.split(' ').collect();
        let [pid, role, port] = words[..] else { return Err(()) };
        let role = [Role::Server, Role::Tool].into_iter().find(|known| known.to_string() == role);
        Ok(Self { pid: pid.parse().map_err(drop)?, role: role.ok_or(())?, port: port.parse().ok() })
    }
}

/// Ownership of a data directory. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub(crate) struct Claim {
    file: File,
    role: Role,
    path: PathBuf,
}

/// Who has a data directory.
#[derive(Debug)]
pub(crate) enum Claimed {
    /// This process.
    Ours(Claim),
    /// Another process: `None` while it writes its line.
    By(Option<Holder>),
}

/// Claims the directory, unless another process has it.
pub(crate) fn take(layout: &Layout, role: Role) -> Result<Claimed, EmbeddedError> {
    let path = layout.root.join("lock");
    let failed = |source| EmbeddedError::io("lock", &path, &source);
    let file = layout::own(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {
            let claim = Claim { file, role, path };
            claim.announce(None)?;
            Ok(Claimed::Ours(claim))
        }
        Err(TryLockError::WouldBlock) => {
            Ok(Claimed::By(io::read_to_string(&file).map_err(failed)?.parse().ok()))
        }
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

impl Claim {
    /// Writes the holder's line. A port tells tools that the mongod behind it can be joined.
    pub(crate) fn announce(&self, port: Option<u16>) -> Result<(), EmbeddedError> {
        let line = Holder { pid: std::process::id(), role: self.role, port }.to_string();
        layout::rewrite(&self.file, &line).map_err(|source| EmbeddedError::io("write", &self.path, &source))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Otherwise the next owner would be taken for this one until it has written its line. An error does
        // not matter: closing the file releases the lock.
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
