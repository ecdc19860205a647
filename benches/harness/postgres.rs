//! The run's own PostgreSQL, for the suites in which it is a contender, with its data in a temporary
//! directory.

use std::fs::{File, metadata, read_to_string};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio_postgres::{Client, Config, NoTls};

use super::Result;
use super::peers::Pool;

/// As much as mongod's cache. All else is as `initdb` leaves it, with `fsync` and `synchronous_commit` on.
const CACHE: &str = "shared_buffers=2GB";

/// A running server. Dropping it ends it and removes its directory.
pub struct Postgres {
    child: Child,
    directory: PathBuf,
    port: u16,
}

impl Postgres {
    /// Starts the one whose programs are in the directory that `POSTGRES` names; `None` without it.
    pub async fn start() -> Result<Option<Self>> {
        let Some(programs) = std::env::var_os("POSTGRES").filter(|path| !path.is_empty()) else {
            return Ok(None);
        };
        let programs = PathBuf::from(programs);
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let directory = std::env::temp_dir().join(format!("pagebucket-bench-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let log = File::create(directory.join("postgres.log"))?;
        let user = unprivileged()?;
        if let Some((uid, gid)) = user {
            chown(&directory, Some(uid), Some(gid))?;
        }
        let command = |program: &str| -> Result<Command> {
            let mut command = Command::new(programs.join(program));
            if let Some((uid, gid)) = user {
                command.uid(uid).gid(gid);
            }
            command.current_dir(&directory).env_clear().stdin(Stdio::null());
            command.stdout(log.try_clone()?).stderr(log.try_clone()?);
            command.arg("-D").arg(directory.join("data"));
            Ok(command)
        };
        let initdb = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
        if !command("initdb")?.args(initdb).status().await?.success() {
            return Err(read_to_string(directory.join("postgres.log"))?.into());
        }
        let child = command("postgres")?
            .args(["-p", &port.to_string(), "-c", CACHE, "-c", "max_connections=400"])
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="])
            .spawn()?;
        let mut postgres = Self { child, directory, port };
        postgres.wait().await?;
        Ok(Some(postgres))
    }

    /// Until it answers.
    async fn wait(&mut self) -> Result<()> {
        let began = Instant::now();
        while let Err(error) = connect(&self.config("postgres")).await {
            if self.child.try_wait()?.is_some() || began.elapsed() > Duration::from_secs(60) {
                let log = read_to_string(self.directory.join("postgres.log"))?;
                return Err(format!("PostgreSQL does not answer: {error}\n{log}").into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    pub fn config(&self, database: &str) -> Config {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).user("postgres").dbname(database);
        config
    }

    /// A new database without trades, and so many connections to it.
    pub async fn database(&self, name: &str, connections: usize) -> Result<Pool> {
        // As PostgreSQL itself reads a name that is not quoted.
        let name = name.to_lowercase();
        connect(&self.config("postgres")).await?.batch_execute(&format!("create database {name}")).await?;
        Pool::open(self.config(&name), connections).await
    }

    pub async fn version(&self) -> Result<String> {
        let shown = connect(&self.config("postgres")).await?.query_one("show server_version", &[]).await?;
        Ok(shown.try_get::<_, String>(0)?.split(' ').next().unwrap_or_default().to_owned())
    }

    /// Of the process that the others are children of.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // An immediate shutdown: without a checkpoint, but with the end of all processes.
        if let Some(id) = self.child.id().and_then(|id| Pid::from_raw(id as i32)) {
            kill_process(id, Signal::QUIT).ok();
        }
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < Duration::from_secs(10) {
            sleep(Duration::from_millis(10));
        }
        std::fs::remove_dir_all(&self.directory).ok();
    }
}

/// A connection, which lives as long as its client.
pub async fn connect(config: &Config) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The user `postgres` and its group, if this is root: then PostgreSQL refuses to run.
fn unprivileged() -> Result<Option<(u32, u32)>> {
    use std::os::unix::fs::MetadataExt;
    if metadata(Path::new("/proc/self"))?.uid() != 0 {
        return Ok(None);
    }
    let users = read_to_string("/etc/passwd")?;
    let user = users.lines().find_map(|line| line.strip_prefix("postgres:"));
    let user = user.ok_or("PostgreSQL does not run as root, and there is no user postgres")?;
    let mut ids = user.split(':').skip(1).map_while(|id| id.parse().ok());
    Ok(ids.next().zip(ids.next()))
}
