//! A private mongod for a machine without a MongoDB server: a replica set of one node on loopback. It is a
//! child process, and keeps all its files in one data directory.
//!
//! | In the data directory | |
//! |---|---|
//! | `lock` | locked (`flock`) by the process that owns the directory; contains its pid, its role and mongod's port |
//! | `port` | the port of the last start, which the next one uses again |
//! | `password` | of the user `pagebucket`, who has all rights |
//! | `key` | mongod's key file |
//! | `db/` | mongod's own files, with a `mongod.lock` that a running mongod locks in the same way |
//! | `mongod.log` | mongod's log; the previous one is `mongod.log.1` |
//!
//! **Ownership.** The kernel releases both locks when their process ends, so a crash leaves no stale lock,
//! and no pid is guessed. `lock` decides which pagebucket owns the directory. `db/mongod.lock` decides
//! whether a mongod runs: if one does although `lock` was free, a killed server has left it (`kill -9`), and
//! it is shut down before ours starts. It is not adopted, because only a child can be waited for, restarted
//! and killed.
//!
//! **Identity.** Any process may listen on a port. A mongod is only configured, joined or shut down after it
//! has named our `db/` as its `dbPath`.
//!
//! **Interrupted starts.** A start reads the state of mongod (no set, a set under another port, a set without
//! a primary) and continues from there, so the next start completes one that was interrupted. The child is
//! killed if [`start`] fails or an [`Embedded`] is dropped without [`Embedded::stop`]: the journal makes that
//! safe, and nothing is left running.
//!
//! **Access.** Every user of the machine can reach the port, so mongod requires a password. Password and key
//! are random. The first start makes them, also for data of a version that had none, and only their owner can
//! read the files. This process controls mongod with the key, which is not part of the data; clients use the
//! password, which each start sets. So the next start replaces either file if it is lost.
//!
//! pagebucket refuses a data directory that another user owns or can write to, because that user could put
//! any file there. The directory itself and `db` may be symbolic links to directories that satisfy the same
//! rule. Files in the data directory are opened without following links.
//!
//! It never names the engine. Its errors name flags of the program, because its users read them.

mod binary;
mod claim;
mod earlier_run;
mod layout;
mod process;
mod replica;
mod secret;

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, error, info};

pub use self::binary::find as find_mongod;
pub use self::claim::Role;
pub use self::layout::EmbeddedError;

use self::claim::{Claim, Claimed, Holder};
use self::layout::Layout;
use self::process::{Mongod, Supervised};
use self::replica::{POLL, Replica};
use self::secret::{Secret, Secrets};

/// Maximum time until mongod is primary. An ordinary start takes one second. In the worst case mongod waits
/// 30 s for an answer from another process on its former port, which still fits.
const START: Duration = Duration::from_secs(60);

/// Maximum time that `lock` may be empty: its owner writes it right after locking.
const ANNOUNCE: Duration = Duration::from_secs(2);

/// Maximum number of starts of mongod when another process takes its port or its data each time.
const TRIES: usize = 3;

/// Starts a task by its name, and reports its panic.
pub type StartTask = fn(&'static str, BoxFuture<'static, ()>) -> JoinHandle<()>;

/// Data directory and program of the private mongod.
#[derive(Debug, Clone)]
pub struct Options {
    /// The data directory. It is made, for this user only, if it does not exist.
    pub data_dir: PathBuf,
    /// The program that `--mongod` or `MONGOD` names. Without it PATH and the project's cache are searched.
    pub mongod: Option<PathBuf>,
    /// Starts the task that watches mongod.
    pub start_task: StartTask,
}

/// A mongod that is primary: a child of this process, or of the server that owns the data directory.
///
/// A child of this process is restarted with the same data and port when it ends by itself.
#[derive(Debug)]
#[must_use = "dropping it kills the mongod"]
pub struct Embedded {
    uri: Secret,
    /// The task that owns the child and the claim on its data, and what stops it. Dropping it kills the
    /// child.
    supervisor: Option<(CancellationToken, AbortOnDropHandle<()>)>,
}

/// Starts the private mongod, or for a [`Role::Tool`] joins that of a running server, and waits until it is
/// primary (60 s at most).
///
/// # Errors
///
/// Each [`EmbeddedError`] is a sentence for the user. Nothing is left running after one.
pub async fn start(options: &Options, role: Role) -> Result<Embedded, EmbeddedError> {
    let began = Instant::now();
    let binary = match binary::find(options.mongod.as_deref()) {
        // There is no server to join either, and no reason to make an empty directory.
        Err(error) if !options.data_dir.exists() => return Err(error),
        found => found,
    };
    let layout = Layout::open(&options.data_dir)?;
    let directory = layout.root.display().to_string();
    loop {
        let holder = match claim::take(&layout, role)? {
            Claimed::Ours(claim) => {
                return own(&binary?, layout, claim, began + START, options.start_task).await;
            }
            Claimed::By(holder) => holder,
        };
        let name = Holder::name(holder.as_ref());
        match (role, &holder) {
            (Role::Tool, Some(Holder { role: Role::Server, port, .. })) => {
                if let Some(port) = port {
                    let Some(secrets) = Secrets::kept(&layout)? else {
                        return Err(EmbeddedError::NotRun(format!(
                            "{name} uses the data directory {directory} without a password file there: restart that server"
                        )));
                    };
                    if Replica::at(*port, &secrets.key).await?.is_primary_of(&layout.db).await {
                        info!(port, "joined the mongod of the running server");
                        return Ok(Embedded { uri: uri(*port, &secrets.password), supervisor: None });
                    }
                }
            }
            // The owner has just locked it, and will write its line next.
            (_, None) if began.elapsed() < ANNOUNCE => {}
            _ => {
                return Err(EmbeddedError::NotRun(format!(
                    "the data directory {directory} is in use by {name}: stop that process or wait for its end, or name \
                     another directory by --data-dir"
                )));
            }
        }
        if began.elapsed() > START {
            return Err(EmbeddedError::NotRun(format!(
                "{name} uses the data directory {directory}, but its mongod was not primary within {} s: see mongod.log \
                 there, or restart that server",
                START.as_secs()
            )));
        }
        sleep(POLL).await;
    }
}

impl Embedded {
    /// `mongodb://pagebucket:PASSWORD@127.0.0.1:PORT/?directConnection=true`; the same for as long as this
    /// lives.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri.0
    }

    /// Shuts down a mongod of this process, cleanly within 20 s, else by force. A joined one goes on running.
    pub async fn stop(self) {
        let Some((stop, task)) = self.supervisor else { return };
        stop.cancel();
        if let Err(error) = task.await {
            error!(%error, "the supervisor of the private mongod failed");
        }
    }
}

async fn own(
    binary: &Path,
    layout: Layout,
    claim: Claim,
    deadline: Instant,
    start_task: StartTask,
) -> Result<Embedded, EmbeddedError> {
    let secrets = Secrets::kept_or_new(&layout)?;
    let mut tries = 1;
    let (port, (mongod, replica)) = loop {
        earlier_run::end_mongod(&layout, &secrets.key).await?;
        let port = earlier_run::port(&layout).await?;
        let mongod = Mongod::spawn(binary, &layout, port)?;
        match until_primary(mongod, port, &layout, &secrets, deadline).await {
            // Another process has taken the port; or the child of a start that was killed right after the
            // spawn has taken the data.
            Err(error)
                if tries < TRIES
                    && (matches!(error, EmbeddedError::PortTaken(_))
                        || earlier_run::is_mongod_there(&layout)?) =>
            {
                tries += 1;
            }
            ready => break (port, ready?),
        }
    };
    claim.announce(Some(port))?;
    let password = layout.password.clone();
    info!(port, password_file = %password.display(), mongod = %binary.display(), "the private mongod is primary");
    let (stop, binary) = (CancellationToken::new(), binary.to_owned());
    let watch = Supervised { mongod, replica, binary, layout, claim }.run(stop.clone());
    let task = start_task("private-mongod", Box::pin(watch));
    let supervisor = Some((stop, AbortOnDropHandle::new(task)));
    Ok(Embedded { uri: uri(port, &secrets.password), supervisor })
}

/// Takes the child, so that it is killed on every error.
async fn until_primary(
    mut mongod: Mongod,
    port: u16,
    layout: &Layout,
    secrets: &Secrets,
    deadline: Instant,
) -> Result<(Mongod, Replica), EmbeddedError> {
    let replica = Replica::at(port, &secrets.key).await?;
    let ready = async {
        replica.until_primary(&layout.db).await;
        replica.admit(&secrets.password).await;
    };
    let outcome = tokio::select! {
            status = mongod.exited() => Err(mongod.why_it_ended(status?, port)),
            ready = timeout_at(deadline, ready) => {
                let (seconds, log) = (START.as_secs(), layout.log.display());
                ready.map_err(|_| EmbeddedError::NotRun(format!(
                    "mongod was not primary within {seconds} s and was stopped: see {log}, then start again"
    )))
            }
        };
    if let Err(error) = &outcome {
        debug!(%error, "this start of mongod failed");
        mongod.kill().await;
    }
    outcome.map(|()| (mongod, replica))
}

fn uri(port: u16, password: &Secret) -> Secret {
    let (user, Secret(password)) = (replica::USER, password);
    Secret(format!("mongodb://{user}:{password}@127.0.0.1:{port}/?directConnection=true"))
}
