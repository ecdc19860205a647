//! Keeps the child running, and stops it at the end.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

use super::claim::Claim;
use super::layout::Layout;
use super::process::Mongod;
use super::replica::Replica;

/// Time for a clean end. It is enough for a checkpoint of 512 MiB.
const STOP: Duration = Duration::from_secs(20);

/// The pause before a restart. The first is short, so that one `kill -9` is hardly noticed. It doubles each time the child
/// ends early, up to a pause at which a broken child costs nothing.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A child that has run for this time was sound: the next pause is the first again.
const SOUND: Duration = Duration::from_secs(60);

/// The task that owns the child and the claim on its data. Dropping it kills the child.
#[derive(Debug)]
pub(super) struct Supervisor {
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
}

impl Supervisor {
    pub(super) async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            error!(%error, "the supervisor of the private mongod failed");
        }
    }
}

/// What the supervisor owns. The fields are dropped in this order: the claim ends after the child.
pub(super) struct Watch {
    pub(super) mongod: Mongod,
    pub(super) replica: Replica,
    pub(super) binary: PathBuf,
    pub(super) layout: Layout,
    #[expect(dead_code, reason = "it is held")]
    pub(super) claim: Claim,
}

impl Watch {
    pub(super) fn start(self) -> Supervisor {
        let stop = CancellationToken::new();
        let task = AbortOnDropHandle::new(tokio::spawn(self.run(stop.clone())));
        Supervisor { stop, task }
    }

    async fn run(mut self, stop: CancellationToken) {
        let mut pause = FIRST_PAUSE;
        let mut is_primary = true;
        let mut since = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => return self.end().await,
                () = self.replica.until_primary(&self.layout.db), if !is_primary => {
                    info!("the private mongod is primary again");
                    is_primary = true;
                    continue;
                }
                ended = self.mongod.exited() => match ended {
                    Ok(status) => warn!(%status, "mongod ended by itself{}", self.mongod.last_words()),
                    Err(error) => warn!(%error, "mongod cannot be waited for"),
                },
            }
            if since.elapsed() > SOUND {
                pause = FIRST_PAUSE;
            }
            if self.revive(&mut pause, &stop).await.is_none() {
                return;
            }
            is_primary = false;
            since = Instant::now();
        }
    }

    /// Starts it again on the same port, which clients know. `None` if it is to stop instead.
    async fn revive(&mut self, pause: &mut Duration, stop: &CancellationToken) -> Option<()> {
        loop {
            stop.run_until_cancelled(sleep(*pause)).await?;
            *pause = (*pause * 2).min(LONGEST_PAUSE);
            match Mongod::spawn(&self.binary, &self.layout, self.replica.port) {
                Ok(mongod) => {
                    info!("mongod has been restarted");
                    self.mongod = mongod;
                    return Some(());
                }
                Err(error) => error!(%error, "mongod could not be restarted"),
            }
        }
    }

    async fn end(&mut self) {
        let ended = timeout(STOP, async {
            tokio::select! {
                ended = self.mongod.exited() => ended,
                never = self.replica.shut_down(&self.layout.db) => match never {},
            }
        });
        match ended.await {
            Ok(Ok(status)) => info!(%status, "the private mongod has stopped"),
            Ok(Err(error)) => warn!(%error, "mongod cannot be waited for"),
            Err(_) => {
                warn!(seconds = STOP.as_secs(), "mongod did not stop in time; it is killed");
                self.mongod.kill().await;
            }
        }
    }
}
