//! How a process learns of the appends of others: by one change stream for all histories of a database, which
//! is open while there are live readers. [`live`](mod@crate::live) says why nothing is missed, whatever
//! becomes of the stream.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{pending, select_all};
use mongodb::Database;
use mongodb::bson::RawDocumentBuf;
use pagebucket_model::metric::{LIVE_SILENCE, LIVE_STREAMS};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::changed_owners::ChangeSource;
use super::changes::{
    OwnerChange, collection, committed, from_now, is_of_epoch, owner_change, scope, time, written,
    written_if_small,
};
use super::watched::LiveHistory;
use crate::mongo::change_log::{ChangeLog, LogNews};
use crate::mongo::log_place::LogPlace;
use crate::mongo::{Deadline, Error, NO_PRIMARY, Result, Topology};
use crate::store::buckets::tails::Tails;
use crate::store::epoch::{self, Epoch};
use crate::tasks::KeptTasks;

/// The server answers after this time, also if there is no change. So a stream ends within this time after
/// its last reader.
const AWAIT: Duration = Duration::from_secs(1);

/// A stream that has not answered for this time is not relied on: tails are read.
const OVERDUE: Duration = Duration::from_millis(1_500);

/// How often tails are read while no stream answers.
const POLL: Duration = Duration::from_secs(1);

/// A stream that has not answered for this time is worth a warning. An election may take as long.
const SILENT: Duration = Duration::from_secs(4);

/// The histories of a database, and how their changes are learned of.
struct Feed {
    database: Database,
    topology: Topology,
    histories: Vec<LiveHistory>,
    /// How often the database got another epoch.
    renewals: watch::Sender<u64>,
    /// The epoch as it was last read.
    epoch: Mutex<Option<Epoch>>,
}

/// How a feed goes while it is wanted.
struct FeedState {
    /// Whether readers learn of what others append.
    notified: bool,
    /// Whether a stream was open before.
    has_begun: bool,
    /// When tails were last read instead of changes.
    polled: Option<Instant>,
    /// Whether the log of the service says that no stream answers.
    is_silent: bool,
    /// Why the last stream ended.
    why: String,
}

/// Waits for live readers, and follows the changes as long as there are any, in a task that ends with its
/// handle.
pub(crate) fn start(
    tasks: &KeptTasks,
    database: Database,
    topology: Topology,
    histories: Vec<LiveHistory>,
    renewals: watch::Sender<u64>,
) -> AbortOnDropHandle<()> {
    let feed = Arc::new(Feed { database, topology, histories, renewals, epoch: Mutex::default() });
    tasks.keep("live-feed", move || Arc::clone(&feed).run())
}

impl Feed {
    async fn run(self: Arc<Self>) {
        if self.histories.is_empty() {
            return;
        }
        // After a panic the present readers have missed changes.
        self.set_notified(false);
        for history in &self.histories {
            history.watched.look_at_all();
            history.watched.changed.miss();
        }
        loop {
            self.until_wanted().await;
            // Without readers, changes of the epoch need not be noticed.
            *self.epoch.lock() = None;
            self.follow().await;
            metrics::gauge!(LIVE_SILENCE).set(0.0);
        }
    }

    async fn until_wanted(&self) {
        let mut wanted: Vec<_> = self.histories.iter().map(|history| history.watched.wanted()).collect();
        let first = select_all(wanted.iter_mut().map(|wanted| Box::pin(wanted.wait_for(|wanted| *wanted))));
        // The senders are there as long as this.
        let _ = first.await;
    }

    fn is_wanted(&self) -> bool {
        self.histories.iter().any(|history| history.watched.is_wanted())
    }

    fn set_notified(&self, notified: bool) {
        self.histories.iter().for_each(|history| history.watched.set_notified(notified));
    }

    /// Whether there are no readers. New readers then wait until the feed begins again. `notified` says
    /// whether the present readers are.
    fn ends(&self, notified: bool) -> bool {
        if self.is_wanted() {
            return false;
        }
        self.set_notified(false);
        // A reader may have come before that.
        let ends = !self.is_wanted();
        self.set_notified(notified && !ends);
        ends
    }

    /// Follows the changes until there are no readers.
    async fn follow(&self) {
        let mut log = (self.topology != Topology::Standalone).then(|| self.log());
        self.set_source(match log {
            Some(_) => ChangeSource::Interrupted,
            None => ChangeSource::None,
        });
        let mut deletions: Vec<_> =
            self.histories.iter().map(|history| history.source.markers.changes()).collect();
        let mut state = FeedState {
            notified: false,
            has_begun: false,
            polled: None,
            is_silent: false,
            why: String::new(),
        };
        loop {
            let overdue = log.as_ref().map(|log| log.answered() + OVERDUE);
            let poll = overdue.max(state.polled.map(|polled| polled + POLL)).unwrap_or_else(Instant::now);
            let next = async {
                match &mut log {
                    Some(log) => log.next().await,
                    None => pending().await,
                }
            };
            // Dropped, it loses nothing.
            let news = tokio::select! {
                biased;
                news = next => Some(news),
                () = sleep_until(poll) => None,
            };
            match news {
                Some(news) => {
                    let place = log.as_ref().and_then(ChangeLog::place).and_then(LogPlace::of);
                    self.take(news, place, &mut state).await;
                }
                None => self.poll(log.as_ref().map(ChangeLog::answered), &mut state).await,
            }
            if self.ends(state.notified) {
                return;
            }
            for (history, deletions) in self.histories.iter().zip(&mut deletions) {
                if deletions.has_changed().unwrap_or(false) {
                    deletions.mark_unchanged();
                    // The stream tells of every deletion, too.
                    if let Err(error) = read_tails(history).await {
                        tracing::debug!(%error, "the tails of live readers were not read");
                    }
                }
            }
        }
    }

    fn log(&self) -> ChangeLog {
        let names: Vec<&str> = self.histories.iter().map(|history| history.source.collection()).collect();
        let scope = scope(&self.database, &names, written_if_small(), AWAIT);
        let first = self.histories.first().map(|history| Arc::clone(&history.source));
        ChangeLog::new(scope, None, move || {
            let first = first.clone();
            Box::pin(async move { from_now(first.as_deref()).await })
        })
    }

    /// Takes what the stream tells.
    async fn take(&self, news: Result<LogNews>, place: Option<LogPlace>, state: &mut FeedState) {
        match news {
            Ok(LogNews::Opened { resumed }) => {
                let start = match (resumed, state.has_begun) {
                    (true, _) => "resumed",
                    (false, true) => "again",
                    (false, false) => "first",
                };
                metrics::counter!(LIVE_STREAMS, "start" => start).increment(1);
                // After a place nothing is missing.
                if !resumed {
                    if state.notified {
                        for history in &self.histories {
                            history.watched.changed.miss();
                            history.watched.forget_pages();
                        }
                    }
                    self.look_at_all_at_last(state.notified).await;
                }
                self.set_source(ChangeSource::Stream);
                (state.notified, state.has_begun) = (true, true);
                self.set_notified(true);
                self.note_place(place);
            }
            Ok(LogNews::Changes(changes)) => {
                for change in &changes {
                    self.wake(change);
                    // Readers that were woken look before the next change.
                    yield_now().await;
                    if is_of_epoch(change) {
                        self.look_at_all_at_last(false).await;
                    }
                }
                self.answered(place, state);
            }
            Ok(LogNews::Quiet) => self.answered(place, state),
            Ok(LogNews::PlaceLost) => {
                self.set_source(ChangeSource::Interrupted);
                "it has lost its place".clone_into(&mut state.why);
            }
            Ok(LogNews::Ended) => {
                self.set_source(ChangeSource::Interrupted);
                "the database was dropped".clone_into(&mut state.why);
            }
            Ok(LogNews::Refused(why)) => {
                self.set_source(ChangeSource::None);
                state.why = why;
            }
            Err(error) => state.why = error.to_string(),
        }
    }

    fn answered(&self, place: Option<LogPlace>, state: &mut FeedState) {
        self.note_place(place);
        metrics::gauge!(LIVE_SILENCE).set(0.0);
        if std::mem::take(&mut state.is_silent) {
            tracing::info!("the change stream of live readers answers again");
        }
    }

    /// Reads the tails instead of changes. Says once that no stream has answered since `answered`.
    async fn poll(&self, answered: Option<Instant>, state: &mut FeedState) {
        if let Some(answered) = answered {
            let silence = answered.elapsed();
            metrics::gauge!(LIVE_SILENCE).set(silence.as_secs_f64());
            if silence >= SILENT && !std::mem::replace(&mut state.is_silent, true) {
                let why = match &*state.why {
                    "" => "it does not answer",
                    why => why,
                };
                tracing::warn!(
                    why,
                    "the change stream of live readers is interrupted: until it answers, their tails are read every second"
                );
            }
        }
        match self.look_at_all(state.notified).await {
            Ok(()) => {
                state.notified = true;
                self.set_notified(true);
            }
            Err(error) => tracing::debug!(%error, "the tails of live readers were not read"),
        }
        state.polled = Some(Instant::now());
    }

    fn set_source(&self, source: ChangeSource) {
        self.histories.iter().for_each(|history| history.watched.changed.set_source(source));
    }

    /// Notes how far the stream has come.
    fn note_place(&self, place: Option<LogPlace>) {
        if let Some(place) = place {
            self.histories.iter().for_each(|history| history.watched.changed.reached(&place));
        }
    }

    fn wake(&self, change: &RawDocumentBuf) {
        let name = collection(change);
        let Some(history) = self.histories.iter().find(|history| Some(history.source.collection()) == name)
        else {
            return;
        };
        // What is read after this shows the change.
        history.source.reads.time.learn(time(change));
        let said = owner_change(change, history.source.definition.owner.kind);
        if let Some(owner) = said.appended() {
            history.watched.changed.note(owner);
        }
        match said {
            OwnerChange::Grown(owner, bucket) => {
                let committed = committed(change, &history.source.clock);
                history.watched.grown(&owner, bucket, committed, || written(change));
            }
            OwnerChange::Deleted(owner, second) => history.watched.deleted(&owner, second),
            OwnerChange::Other(owner) => history.watched.look(&owner),
            OwnerChange::NoOwner => history.watched.look_at_all(),
        }
    }

    /// Reads the epoch, and tells readers if it is another one than before.
    async fn look_at_epoch(&self) -> Result<()> {
        let found = epoch::find(&self.database, Deadline::within(NO_PRIMARY)).await?;
        let before = std::mem::replace(&mut *self.epoch.lock(), found);
        if before.is_some() && before != found {
            tracing::info!("the database has another epoch: live streams end");
            self.renewals.send_modify(|renewals| *renewals += 1);
            self.histories.iter().for_each(|history| history.watched.end_all());
        }
        Ok(())
    }

    /// Reads the epoch, and the tails of all watched owners, if they may have missed something.
    async fn look_at_all(&self, tails: bool) -> Result<()> {
        match self.look_at_epoch().await {
            Err(error @ Error::Unavailable(_)) => return Err(error),
            // The user may not read it: streams go on without.
            Err(error) => tracing::debug!(%error, "the epoch was not read"),
            Ok(()) => {}
        }
        if tails {
            for history in &self.histories {
                read_tails(history).await?;
            }
        }
        Ok(())
    }

    /// The same, as often as that needs.
    async fn look_at_all_at_last(&self, tails: bool) {
        let mut attempts = 0;
        while let Err(error) = self.look_at_all(tails).await {
            tracing::debug!(%error, "the tails of live readers were not read");
            Deadline::within(NO_PRIMARY).back_off(attempts).await;
            attempts += 1;
        }
    }
}

/// Reads the tails of the watched owners of a history, and wakes their readers if there is something new.
async fn read_tails(history: &LiveHistory) -> Result<()> {
    Tails::read_each(&history.source, &history.watched.owners(), NO_PRIMARY, |owner, tail| {
        match tail {
            Ok(Some(tail)) => history.watched.seen(owner, tail.into()),
            Ok(None) => {}
            Err(error @ Error::Unavailable(_)) => return Err(error),
            Err(_) => history.watched.look(owner),
        }
        Ok(())
    })
    .await
}
