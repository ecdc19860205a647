//! A private mongod for a machine that has no other: a single-node replica set on loopback, run as a
//! child of the server, with everything it writes under one data directory.
//!
//! | In the data directory | |
//! |---|---|
//! | `lock` | locked (`flock`) by the process that owns the directory; says its pid, role and mongod's port |
//! | `port` | the port of the last start, used again by the next one |
//! | `password` | of the user `pagebucket`, who may do everything |
//! | `key` | mongod's key file |
//! | `db/` | mongod's own files, with a `mongod.lock` that a running mongod locks in the same way |
//! | `mongod.log` | what mongod says; an earlier one is kept as `mongod.log.1` |
//!
//! **Who may write.** Both locks belong to the kernel and end with their process, so no crash leaves a
//! stale one, and no pid is ever guessed at. Our `lock` decides which pagebucket owns the directory.
//! `db/mongod.lock` decides whether a mongod is there: one that is while `lock` was free was left by a
//! server that died (`kill -9`), and is shut down before ours starts. It is replaced rather than adopted,
//! because a child can be waited for, restarted and killed, and a stranger cannot.
//!
//! **Whom we talk to.** A port can be anybody's. Before a mongod is configured, joined or shut down it has
//! to name our `db/` as its `dbPath`.
//!
//! **Half-way.** Every state on the way to a primary (no set yet, a set under another port, a set without
//! a primary) is read from the mongod and led on from there, so a start that dies anywhere is finished by
//! the next one. Until [`start`] returns, and whenever an [`Embedded`] is dropped without
//! [`Embedded::stop`], the child is killed: its journal makes that safe, and nothing is left running.
//!
//! **Who may reach it.** Every user of the machine reaches the port, so mongod asks for a password. Password and
//! key are random. The first start makes them, also on data from a version that had none, and only their owner can
//! read the files. This process controls mongod by the key, which is not part of the data; clients use the password,
//! which each start sets. So the next start replaces either file when it is lost.
//!
//! A data directory that another user owns or can write to is refused, because that user could put any file there.
//! The directory itself and `db` may be symbolic links, to directories for which the same holds. Files in the data
//! directory are opened without following links.

mod binary;
mod claim;
mod error;
mod holder;
mod layout;
mod orphan;
mod port;
mod process;
mod replica;
mod secret;
mod supervisor;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, info};

pub use self::binary::find as find_mongod;
pub use self::error::Error;
pub use self::holder::{Holder, Role};

use self::claim::{Claim, Claimed};
use self::layout::Layout;
use self::process::Mongod;
use self::replica::{POLL, Replica};
use self::secret::{Secret, Secrets};
use self::supervisor::Supervisor;

/// How long a start may take until its mongod is primary, all steps together. An ordinary start takes
/// one second; the worst one, when mongod asks a silent stranger on its former port for 30 s whether it
/// is itself, still fits.
const START: Duration = Duration::from_secs(60);

/// How long an owner may leave `lock` unreadable: it writes it right after locking.
const ANNOUNCE: Duration = Duration::from_secs(2);

/// How often mongod is run when each time somebody takes its port or its data just before it does.
const TRIES: usize = 3;

/// Where the private mongod lives and which binary it runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Everything is below it; made, for this user only, where it does not exist.
    pub data_dir: PathBuf,
    /// The binary as `--mongod` or `MONGOD` names it; without it PATH and the project's cache are searched.
    pub mongod: Option<PathBuf>,
}

/// A mongod that is primary: our own child, or that of the server whose data directory this is.
///
/// An own child is supervised: when it ends by itself it is started again, on the same data and port.
#[derive(Debug)]
#[must_use = "dropping it kills the mongod"]
pub struct Embedded {
    uri: Secret,
    supervisor: Option<Supervisor>,
}

/// Starts the private mongod, or for a [`Role::Tool`] joins the one of a running server, and waits until
/// it is primary (60 s at most).
///
/// # Errors
///
/// Each [`Error`] is a sentence for the user. Nothing is left running after one.
pub async fn start(options: &Options, role: Role) -> Result<Embedded, Error> {
    let began = Instant::now();
    let binary = match binary::find(options.mongod.as_deref()) {
        // Nobody to join either, and no reason to leave an empty directory behind.
        Err(error) if !options.data_dir.exists() => return Err(error),
        found => found,
    };
    let layout = Layout::open(&options.data_dir)?;
    loop {
        let holder = match claim::take(&layout, role)? {
            Claimed::Mine(claim) => return own(&binary?, layout, claim, began + START).await,
            Claimed::Held(holder) => holder,
        };
        match (role, &holder) {
            (Role::Tool, Some(Holder { role: Role::Server, port, .. })) => {
                if let Some(port) = port {
                    let Some(secrets) = Secrets::kept(&layout)? else {
                        return Err(Error::NoPassword { data_dir: layout.root().to_owned(), holder });
                    };
                    if Replica::at(*port, Some(&secrets.key))?.is_primary_of(layout.db()).await {
                        info!(port, "joined the mongod of the running server");
                        return Ok(Embedded { uri: uri(*port, &secrets.password), supervisor: None });
                    }
                }
            }
            // It has been locked this instant and says next by whom.
            (_, None) if began.elapsed() < ANNOUNCE => {}
            _ => return Err(Error::InUse { data_dir: layout.root().to_owned(), holder }),
        }
        if began.elapsed() > START {
            let (data_dir, seconds) = (layout.root().to_owned(), START.as_secs());
            return Err(Error::NotJoined { data_dir, seconds, holder });
        }
        sleep(POLL).await;
    }
}

impl Embedded {
    /// `mongodb://pagebucket:PASSWORD@127.0.0.1:PORT/?directConnection=true`; the same for as long as this lives.
    #[must_use]
    pub fn uri(&self) -> &str {
        self.uri.expose()
    }

    /// Shuts an own mongod down, cleanly within 20 s and by force after that; leaves a joined one alone.
    pub async fn stop(self) {
        if let Some(supervisor) = self.supervisor {
            supervisor.stop().await;
        }
    }
}

async fn own(binary: &Path, layout: Layout, claim: Claim, deadline: Instant) -> Result<Embedded, Error> {
    let secrets = Secrets::kept_or_new(&layout)?;
    let mut tries = 1;
    let (port, (mongod, replica)) = loop {
        orphan::end(&layout, &secrets.key).await?;
        let port = port::kept_or_new(&layout).await?;
        port::keep(&layout, port)?;
        let mongod = Mongod::spawn(binary, &layout, port)?;
        match until_primary(mongod, port, &layout, &secrets, deadline).await {
            // Somebody has the port since; or the child of a start that was killed right after the spawn
            // has come to life and has the data.
            Err(error)
                if tries < TRIES
                    && (matches!(error, Error::PortTaken { .. }) || orphan::is_there(&layout)?) =>
            {
                tries += 1;
            }
            ready => break (port, ready?),
        }
    };
    claim.announce(port)?;
    let password = layout.password();
    info!(port, password_file = %password.display(), mongod = %binary.display(), "the private mongod is primary");
    let supervisor = Supervisor::watch(binary.to_owned(), layout, claim, mongod, replica);
    Ok(Embedded { uri: uri(port, &secrets.password), supervisor: Some(supervisor) })
}

/// Takes the child, so that it is killed with every way out but the good one.
async fn until_primary(
    mut mongod: Mongod,
    port: u16,
    layout: &Layout,
    secrets: &Secrets,
    deadline: Instant,
) -> Result<(Mongod, Replica), Error> {
    let replica = Replica::at(port, Some(&secrets.key))?;
    let ready = async {
        replica.until_primary(layout.db()).await;
        replica.admit(&secrets.password).await;
    };
    let outcome = tokio::select! {
        status = mongod.exited() => Err(mongod.why_it_ended(status?, port)),
        ready = timeout_at(deadline, ready) => {
            ready.map_err(|_| Error::NotPrimary { seconds: START.as_secs(), log: layout.log() })
        }
    };
    match outcome {
        Ok(()) => Ok((mongod, replica)),
        Err(error) => {
            debug!(%error, "this start of mongod failed");
            mongod.kill().await;
            Err(error)
        }
    }
}

fn uri(port: u16, password: &Secret) -> Secret {
    let (user, password) = (replica::USER, password.expose());
    Secret::new(format!("mongodb://{user}:{password}@127.0.0.1:{port}/?directConnection=true"))
}
