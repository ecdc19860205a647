//! Keeps the child running, until it is told to end it.

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

/// How long a clean end may take. A checkpoint of 512 MiB of changed cache fits.
const STOP: Duration = Duration::from_secs(20);

/// The pause before a restart: short, since one `kill -9` should hardly be felt, doubled each time a child
/// does not last, up to a pause at which a broken one costs nothing.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A child that has run for so long was sound: its end starts a new row of pauses.
const SOUND: Duration = Duration::from_secs(60);

/// The task that owns the child and the claim on its data. Dropping it kills the child.
#[derive(Debug)]
pub(super) struct Supervisor {
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
}

impl Supervisor {
    pub(super) fn watch(
        binary: PathBuf,
        layout: Layout,
        claim: Claim,
        mongod: Mongod,
        replica: Replica,
    ) -> Self {
        let stop = CancellationToken::new();
        let watch = Watch { mongod, replica, binary, layout, _claim: claim };
        let task = AbortOnDropHandle::new(tokio::spawn(watch.run(stop.clone())));
        Self { stop, task }
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            error!(%error, "the supervisor of the private mongod failed");
        }
    }
}

/// The fields are dropped in this order: the data are given up after the child.
struct Watch {
    mongod: Mongod,
    replica: Replica,
    binary: PathBuf,
    layout: Layout,
    _claim: Claim,
}

impl Watch {
    async fn run(mut self, stop: CancellationToken) {
        let mut pause = FIRST_PAUSE;
        let mut is_primary = true;
        let mut since = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => return self.end().await,
                () = self.replica.until_primary(self.layout.db()), if !is_primary => {
                    info!("the private mongod is primary again");
                    is_primary = true;
                    continue;
                }
                ended = self.mongod.exited() => match ended {
                    Ok(status) => warn!(%status, "mongod ended by itself{}", self.mongod.last_words()),
                    Err(error) => warn!(%error, "mongod is lost"),
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

    /// Starts it again on the same port: clients know no other. `None` when told to stop instead.
    async fn revive(&mut self, pause: &mut Duration, stop: &CancellationToken) -> Option<()> {
        loop {
            stop.run_until_cancelled(sleep(*pause)).await?;
            *pause = (*pause * 2).min(LONGEST_PAUSE);
            match Mongod::spawn(&self.binary, &self.layout, self.replica.port()) {
                Ok(mongod) => {
                    info!("mongod is started again");
                    self.mongod = mongod;
                    return Some(());
                }
                Err(error) => error!(%error, "mongod could not be started again"),
            }
        }
    }

    async fn end(&mut self) {
        let ended = timeout(STOP, async {
            tokio::select! {
                ended = self.mongod.exited() => ended,
                never = self.replica.shut_down(self.layout.db()) => match never {},
            }
        });
        match ended.await {
            Ok(Ok(status)) => info!(%status, "the private mongod has stopped"),
            Ok(Err(error)) => warn!(%error, "mongod is lost"),
            Err(_) => {
                warn!(seconds = STOP.as_secs(), "mongod did not stop in time and is killed");
                self.mongod.kill().await;
            }
        }
    }
}
