//! How a process learns of the appends of others: by one change stream for all histories of a database, which is open while
//! there are live readers.
//!
//! A stream that has lost its place is no harm: another is opened, what is known of pages is forgotten, and the tails of all watched
//! owners are read once. The order is what counts. A stream begins at a time that the database
//! has shown, and tails are read later, at states that are not older than that time.
//!
//! The stream also tells when the database gets another epoch. Positions of before then mean nothing, and readers are told so.
//!
//! A standalone server has no change streams, and a user may not be allowed to open one. Then the tails of watched owners are
//! read every second, all owners of a history in one command.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use mongodb::Database;
use mongodb::bson::RawDocumentBuf;
use mongodb::change_stream::ChangeStream;
use mongodb::change_stream::event::ResumeToken;
use mongodb::options::ReadConcern;
use pagebucket_model::metric::LIVE_STREAMS;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::changes::{
    Told, collection, committed, is_of_epoch, pipeline, time, told, written, written_if_small,
};
use crate::history::buckets::tails::Tails;
use crate::history::collection::HistoryCollection;
use crate::migrations::epoch::{self, Epoch};
use crate::mongo::{Deadline, Error, NO_PRIMARY, Result, Topology};

/// The server answers after this time, also if there is no change. So a stream ends within this time after its last reader.
const AWAIT: Duration = Duration::from_secs(1);

/// How often tails are read where there is no change stream.
const POLL: Duration = Duration::from_secs(1);

/// How long tails are read instead of a change stream that was refused, until it is tried again.
const REFUSED: Duration = Duration::from_secs(60);

/// The most changes in one reply.
const BATCH: u32 = 1_000;

/// The histories of a database, and how their changes are learned of.
struct Feed {
    database: Database,
    topology: Topology,
    histories: Vec<Arc<HistoryCollection>>,
    /// How often the database got another epoch.
    renewals: watch::Sender<u64>,
    /// The epoch as it was last read.
    epoch: Mutex<Option<Epoch>>,
}

/// Why a stream has ended.
enum StreamEnd {
    /// There are no live readers.
    Unwanted,
    /// It can be gone on with after this token.
    Broken(Option<ResumeToken>, Error),
}

/// Waits for live readers, and feeds them as long as there are any, in a task that ends with its handle.
pub(crate) fn start(
    database: Database,
    topology: Topology,
    histories: Vec<Arc<HistoryCollection>>,
    renewals: watch::Sender<u64>,
) -> AbortOnDropHandle<()> {
    let feed = Feed { database, topology, histories, renewals, epoch: Mutex::default() };
    AbortOnDropHandle::new(tokio::spawn(async move {
        if feed.histories.is_empty() {
            return;
        }
        loop {
            feed.until_wanted().await;
            // What happened while there were no readers concerns none.
            *feed.epoch.lock() = None;
            match feed.topology {
                Topology::Standalone => feed.poll_until(None).await,
                Topology::Replicated | Topology::Sharded => feed.follow().await,
            }
        }
    }))
}

impl Feed {
    async fn until_wanted(&self) {
        let mut wanted: Vec<_> = self.histories.iter().map(|history| history.watched.wanted()).collect();
        let first = select_all(wanted.iter_mut().map(|wanted| Box::pin(wanted.wait_for(|wanted| *wanted))));
        // The senders are there as long as this.
        let _ = first.await;
    }

    fn is_wanted(&self) -> bool {
        self.histories.iter().any(|history| history.watched.is_wanted())
    }

    fn set_fed(&self, fed: bool) {
        self.histories.iter().for_each(|history| history.watched.set_fed(fed));
    }

    /// Whether there are no readers. Those that come from then on wait until they are fed. `fed` says whether those are that are
    /// there.
    fn ends(&self, fed: bool) -> bool {
        if self.is_wanted() {
            return false;
        }
        self.set_fed(false);
        // One may have come before that.
        let ends = !self.is_wanted();
        self.set_fed(fed && !ends);
        ends
    }

    /// Follows the changes until there are no readers.
    async fn follow(&self) {
        let (mut token, mut start, mut attempts, mut fed) = (None, "first", 0, false);
        loop {
            match self.open(token.clone(), start).await {
                Ok(stream) => {
                    attempts = 0;
                    // After a token nothing is missing.
                    if start != "resumed" {
                        self.look_at_epoch_at_last().await;
                    }
                    if start == "again" {
                        for history in &self.histories {
                            history.watched.changed.miss();
                            history.watched.forget_pages();
                        }
                        self.read_tails_at_last().await;
                    }
                    self.histories.iter().for_each(|history| history.watched.changed.set_followed(true));
                    fed = true;
                    self.set_fed(fed);
                    match self.wake_by(stream).await {
                        StreamEnd::Unwanted => return,
                        StreamEnd::Broken(reached, error) => {
                            tracing::debug!(%error, "the change stream of live readers broke");
                            start = if reached.is_some() { "resumed" } else { "again" };
                            token = reached;
                        }
                    }
                }
                Err(Error::Unavailable(why)) => {
                    tracing::debug!(why, "the change stream of live readers is not open");
                    Deadline::within(NO_PRIMARY).back_off(attempts).await;
                    attempts += 1;
                }
                Err(error) if token.is_some() => {
                    tracing::warn!(%error, "the change stream of live readers lost its place; the tails are read");
                    (token, start) = (None, "again");
                }
                Err(error) => {
                    tracing::warn!(%error, "the database refuses a change stream; the tails of live readers are read every second");
                    fed = true;
                    self.poll_until(Some(Instant::now() + REFUSED)).await;
                    start = "again";
                }
            }
            if self.ends(fed) {
                return;
            }
        }
    }

    /// Opens a stream of the changes after `token`, or of those from now on.
    async fn open(
        &self,
        token: Option<ResumeToken>,
        start: &'static str,
    ) -> Result<ChangeStream<RawDocumentBuf>> {
        let names: Vec<&str> = self.histories.iter().map(|history| history.collection()).collect();
        let watch = self.database.watch().pipeline(pipeline(&names, written_if_small())).batch_size(BATCH);
        let watch = watch.max_await_time(AWAIT).read_concern(ReadConcern::majority());
        let stream = match token {
            Some(token) => watch.resume_after(token).await?,
            None => watch.start_at_operation_time(self.now().await?).await?,
        };
        metrics::counter!(LIVE_STREAMS, "start" => start).increment(1);
        Ok(stream.with_type())
    }

    /// A time that a majority has. Later reads of all histories show at least its state.
    async fn now(&self) -> Result<mongodb::bson::Timestamp> {
        for history in &self.histories {
            history.look_at_clock(Deadline::within(NO_PRIMARY)).await?;
        }
        let newest = self.histories.iter().filter_map(|history| history.reads.time.newest()).min();
        newest.ok_or_else(|| Error::Unavailable("the database tells no time yet".to_owned()))
    }

    /// Wakes readers until the stream ends.
    async fn wake_by(&self, mut stream: ChangeStream<RawDocumentBuf>) -> StreamEnd {
        let mut deletions: Vec<_> = self.histories.iter().map(|history| history.markers.changes()).collect();
        loop {
            self.note_place(&stream);
            match stream.next_if_any().await {
                Ok(Some(change)) => {
                    self.wake(&change);
                    // Who was woken looks before this asks for more changes.
                    yield_now().await;
                    if is_of_epoch(&change) {
                        self.look_at_epoch_at_last().await;
                    }
                }
                Ok(None) if stream.is_alive() => {}
                Ok(None) => {
                    // The database was dropped.
                    return StreamEnd::Broken(
                        None,
                        Error::Unavailable("the stream is at its end".to_owned()),
                    );
                }
                Err(error) => return StreamEnd::Broken(stream.resume_token(), error.into()),
            }
            if self.ends(true) {
                return StreamEnd::Unwanted;
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

    /// Notes how far the stream has come.
    fn note_place(&self, stream: &ChangeStream<RawDocumentBuf>) {
        let place = || stream.resume_token();
        self.histories.iter().for_each(|history| history.watched.changed.reached(place));
    }

    fn wake(&self, change: &RawDocumentBuf) {
        let name = collection(change);
        let Some(history) = self.histories.iter().find(|history| Some(history.collection()) == name) else {
            return;
        };
        // What is read after this shows the change.
        history.reads.time.learn(time(change));
        let told = told(change, history.definition.owner.kind);
        if let Some(owner) = told.appended() {
            history.watched.changed.note(owner);
        }
        match told {
            Told::Grown(owner, bucket) => {
                let committed = committed(change, &history.clock);
                history.watched.grown(&owner, bucket, committed, || written(change));
            }
            Told::Deleted(owner, second) => history.watched.deleted(&owner, second),
            Told::Marked(owner) => history.watched.look(&owner),
            Told::Else => history.watched.look_at_all(),
        }
    }

    /// Reads tails every second until there are no readers, or until this moment.
    async fn poll_until(&self, end: Option<Instant>) {
        self.histories.iter().for_each(|history| history.watched.changed.set_followed(false));
        // Before there are readers, who are told of another one.
        self.look_at_epoch_at_last().await;
        self.set_fed(true);
        loop {
            sleep(POLL).await;
            if end.is_some_and(|end| Instant::now() >= end) || self.ends(true) {
                return;
            }
            if let Err(error) = self.look_at_epoch().await {
                tracing::debug!(%error, "the epoch was not read");
            }
            for history in &self.histories {
                if let Err(error) = read_tails(history).await {
                    tracing::debug!(%error, "the tails of live readers were not read");
                }
            }
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

    /// The same, as often as that needs.
    async fn look_at_epoch_at_last(&self) {
        let mut attempts = 0;
        while let Err(error) = self.look_at_epoch().await {
            tracing::debug!(%error, "the epoch was not read");
            // The user may not read it: streams go on without.
            if !matches!(error, Error::Unavailable(_)) {
                return;
            }
            Deadline::within(NO_PRIMARY).back_off(attempts).await;
            attempts += 1;
        }
    }

    /// Reads the tails of all watched owners, as often as that needs.
    async fn read_tails_at_last(&self) {
        for history in &self.histories {
            let mut attempts = 0;
            while let Err(error) = read_tails(history).await {
                tracing::debug!(%error, "the tails of live readers were not read");
                Deadline::within(NO_PRIMARY).back_off(attempts).await;
                attempts += 1;
            }
        }
    }
}

/// Reads the tails of the watched owners of a history, and wakes their readers if there is something new.
async fn read_tails(history: &HistoryCollection) -> Result<()> {
    Tails::read_each(history, &history.watched.owners(), NO_PRIMARY, |owner, tail| {
        match tail {
            Ok(Some(tail)) => history.watched.seen(owner, (tail.second, tail.count)),
            Ok(None) => {}
            Err(Error::Unavailable(why)) => return Err(Error::Unavailable(why)),
            Err(_) => history.watched.look(owner),
        }
        Ok(())
    })
    .await
}
