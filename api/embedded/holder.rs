//! The owner of a data directory, as a line in the lock file.

use std::fmt;
use std::str::FromStr;

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
