//! The program itself, as users run it, in a process of its own.

use std::net::SocketAddr;
use std::process::{Output, Stdio};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::Result;
use super::mongod::Mongod;

/// `pagebucket serve` with its defaults. Dropping it kills it.
pub struct Program {
    pub address: SocketAddr,
    child: Child,
    pid: u32,
}

/// Any command of the program on a database, without what the environment would add to it.
fn command(mongod: &Mongod, database: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagebucket"));
    command
        .env_clear()
        .env("MONGODB_URI", mongod.uri())
        .env("PAGEBUCKET_DATABASE", database)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs one that ends by itself; what it wrote.
///
/// # Errors
/// It did not do all of it: then in its words.
pub async fn run(mongod: &Mongod, database: &str, arguments: &[&str]) -> Result<String> {
    let Output { status, stdout, stderr } = command(mongod, database).args(arguments).output().await?;
    let said = String::from_utf8_lossy(&stdout).into_owned();
    if !status.success() {
        let errors = String::from_utf8_lossy(&stderr);
        return Err(format!("pagebucket {}: {status}: {said}{errors}", arguments.join(" ")).into());
    }
    Ok(said)
}

impl Program {
    /// Starts it; it tells its address on its first line.
    pub async fn serve(mongod: &Mongod, database: &str) -> Result<Self> {
        let mut child = command(mongod, database)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            // Its log, a line a request.
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let line = BufReader::new(output).lines().next_line().await?.ok_or("the server did not start")?;
        let (_, address) = line.rsplit_once("http://").ok_or("no address")?;
        let pid = child.id().ok_or("the server has ended")?;
        Ok(Self { address: address.parse()?, child, pid })
    }

    /// What it has of memory now, in MiB.
    pub fn resident(&self) -> Result<f64> {
        self.status("VmRSS")
    }

    /// The most that it ever had, since its start, in MiB.
    pub fn most_resident(&self) -> Result<f64> {
        self.status("VmHWM")
    }

    /// A line of `/proc/PID/status`, which is in KiB, in MiB.
    fn status(&self, field: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let kib: f64 =
            line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("no such line")?.parse()?;
        Ok(kib / 1024.0)
    }

    pub async fn end(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }
}
