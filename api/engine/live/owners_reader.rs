//! A reader of all owners: it learns which owners have something new, from a place in the database's log on
//! ([`live`](mod@crate::live), "All owners").

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::{Document, RawDocumentBuf};
use pagebucket_model::domain::{OwnerId, Totals};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;

use super::changed_owners::ChangeSource;
use super::changes::{owner_change, scope, time};
use super::latest_totals::{self, LatestTotals, SharedTotals, totals_of};
use super::room::Rooms;
use super::watched::{LiveHistory, WatchedAll};
use crate::mongo::change_log::{ChangeLog, LogNews, LogStart};
use crate::mongo::log_place::LogPlace;
use crate::mongo::{Deadline, Error, NO_PRIMARY, Result};
use crate::store::collection::HistoryCollection;
use crate::store::reads::reader::HistoryReader;
use crate::tasks;

/// The most owners that a reader gets at once.
const MOST: usize = 100;

/// How long a reader waits before it returns a later place without news. Places age, too.
const QUIET: Duration = Duration::from_secs(15);

/// How long the server waits for a change before it answers that it has none.
const AWAIT: Duration = Duration::from_millis(200);

/// The most readers at once that read the log for what they have missed: each takes a connection.
const MOST_MISSED: usize = 4;

/// Why a reader of all owners does not begin.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// There are no change streams: it is a standalone server, or the user may not read them.
    #[error("the database tells no changes")]
    NotAvailable,
    /// The log of the database does not reach back to the place, or never had it.
    #[error("the log of the database does not have this place")]
    TooOld,
    /// The database does not know the place as one.
    #[error("the place is none")]
    Malformed,
    /// The database does not answer in time.
    #[error(transparent)]
    Database(#[from] Error),
}

/// What a reader of all owners gets next.
#[derive(Debug)]
pub struct OwnersNews {
    /// Owners that have something new, and how much they have; empty if only the place is new.
    pub owners: Vec<(OwnerId, Totals)>,
    /// The place up to which the reader has all. `None` if more follows at once.
    pub place: Option<LogPlace>,
}

/// A reader of all owners of one history.
#[derive(Debug)]
pub struct OwnersReader {
    latest: watch::Receiver<LatestTotals>,
    /// The number of the last change that it has.
    at: u64,
    misses: u64,
    /// The last place that the reader got.
    sent: Option<LogPlace>,
    missed: Option<Missed>,
    _watched: WatchedAll,
}

/// What is appended to the histories of one definition, as it happens.
#[derive(Debug, Clone)]
pub struct Live {
    pub(crate) reader: HistoryReader,
    pub(crate) rooms: Rooms,
    pub(crate) latest: SharedTotals,
    /// The turns of those that read the log for what they have missed.
    pub(crate) turns: Arc<Semaphore>,
}

impl Live {
    pub(crate) fn new(reader: HistoryReader, history: LiveHistory) -> Self {
        let turns = Arc::new(Semaphore::new(MOST_MISSED));
        Self { reader, rooms: Rooms::new(history), latest: SharedTotals::default(), turns }
    }

    /// Begins to read live which owners have new items, after a place in the database's log, or from now on.
    /// The last place of such a reader, also of one of another process, resumes it.
    pub async fn follow_owners(
        self,
        after: Option<LogPlace>,
        deadline: Deadline,
    ) -> Result<OwnersReader, FollowError> {
        let Self { rooms: Rooms { history, .. }, latest, turns, .. } = self;
        // In this order nothing is missed: what happens from then on is noted.
        let watched = history.watched.watch_all();
        history.watched.until_notified(deadline).await?;
        match history.watched.changed.source(deadline.or_within(NO_PRIMARY)).await {
            ChangeSource::Stream => {}
            ChangeSource::None => return Err(FollowError::NotAvailable),
            ChangeSource::Interrupted => {
                return Err(Error::unavailable("there is no change stream now").into());
            }
        }
        // Between the totals for earlier readers and what is noted now, changes may be missing.
        let since = history.watched.changed.misses();
        let mut latest = latest.subscribe(&history);
        let begun = async {
            let is_begun = |latest: &LatestTotals| latest.reached.is_some() && latest.misses >= since;
            let begun = latest.wait_for(is_begun).await;
            begun.map(|latest| (latest.last, latest.misses, latest.reached.clone()))
        };
        let begun = deadline.wait_for(begun).await.and_then(Result::ok);
        let (at, misses, reached) = begun.ok_or_else(Error::no_answer)?;
        let missed = match (&after, reached) {
            // If the reader followed another process before, it may have some of these changes, and gets them
            // twice.
            (Some(after), Some(reached)) if *after < reached => {
                Some(Missed::read(&history.source, after, reached, turns, deadline).await?)
            }
            _ => None,
        };
        Ok(OwnersReader { latest, at, misses, sent: after, missed, _watched: watched })
    }
}

impl OwnersReader {
    /// Waits for news, or returns a later place. The call may be dropped at any time, and nothing is lost.
    ///
    /// # Errors
    /// Changes were missed, or the reader is too far behind: it has to resume.
    pub async fn next(&mut self) -> Result<OwnersNews> {
        if let Some(missed) = &mut self.missed {
            let part = missed.parts.recv().await.ok_or_else(lost)??;
            if part.place.as_ref() == Some(&missed.until) {
                self.missed = None;
            }
            return Ok(part);
        }
        loop {
            if let Some(news) = self.news().ok_or_else(lost)? {
                return Ok(news);
            }
            match timeout(QUIET, self.latest.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(lost()),
                Err(_elapsed) => self.sent = None,
            }
        }
    }

    /// What there is for this reader, if anything. `None` if something was missed.
    fn news(&mut self) -> Option<Option<OwnersNews>> {
        let latest = self.latest.borrow_and_update();
        if latest.misses != self.misses {
            return None;
        }
        let (owners, at) = latest.after(self.at, MOST)?;
        if owners.is_empty() && (self.sent.is_some() || latest.reached.is_none()) {
            return Some(None);
        }
        self.at = at;
        let place = latest.reached.clone().filter(|_| at == latest.last);
        if place.is_some() {
            self.sent.clone_from(&place);
        }
        Some(Some(OwnersNews { owners, place }))
    }
}

/// What a reader has missed, which a task reads. The last part has the place where the shared totals begin.
#[derive(Debug)]
struct Missed {
    parts: mpsc::Receiver<Result<OwnersNews>>,
    until: LogPlace,
}

impl Missed {
    /// Reads what has happened between two places, by turns with others that read the log.
    async fn read(
        source: &Arc<HistoryCollection>,
        after: &LogPlace,
        until: LogPlace,
        turns: Arc<Semaphore>,
        deadline: Deadline,
    ) -> Result<Self, FollowError> {
        let permit = deadline.wait_for(Arc::clone(&turns).acquire_owned()).await;
        let permit = permit.and_then(Result::ok).ok_or_else(Error::no_answer)?;
        // Not by the token: it may be of a change in the collection of another history, which this stream
        // does not have, and servers that filter early do not find it (280). Of what happened at the same
        // time some comes twice.
        let from = after.time();
        let scope = scope(&source.reads.database, &[source.collection()], Document::new(), AWAIT);
        let mut log = ChangeLog::new(scope, None, move || Box::pin(async move { Ok(LogStart::At(from)) }));
        let (first, _permit) = deadline
            .wait_for(async { (first(&mut log).await, permit) })
            .await
            .ok_or_else(Error::no_answer)?;
        let first = first?;
        let (sender, parts) = mpsc::channel(1);
        let (source, end) = (Arc::clone(source), until.clone());
        // It ends by itself when the reader is gone.
        tasks::start("live-owners", async move {
            if let Err(error) = send_missed(&source, first, log, &end, &sender, &turns).await {
                sender.send(Err(error)).await.ok();
            }
        });
        Ok(Self { parts, until })
    }
}

/// Opens a stream of what was missed, and reads the first changes: a mongos tells only then that the place is
/// lost.
async fn first(log: &mut ChangeLog) -> Result<Vec<RawDocumentBuf>, FollowError> {
    loop {
        match log.next().await {
            Ok(LogNews::Opened { .. }) => {}
            Ok(LogNews::Changes(changes)) => return Ok(changes),
            Ok(LogNews::Quiet) => return Ok(Vec::new()),
            Ok(LogNews::PlaceLost) => return Err(FollowError::TooOld),
            Ok(LogNews::Refused(_)) => return Err(FollowError::NotAvailable),
            Ok(LogNews::Ended) => return Err(lost().into()),
            Err(Error::Internal(_)) => return Err(FollowError::Malformed),
            Err(error) => return Err(error.into()),
        }
    }
}

fn lost() -> Error {
    Error::unavailable("a reader of all owners has lost its place")
}

/// Sends which owners these changes, and the later ones of a log up to a place, are of. Each owner comes
/// once, unless there are more than the shared totals have.
async fn send_missed(
    source: &HistoryCollection,
    mut changes: Vec<RawDocumentBuf>,
    mut log: ChangeLog,
    until: &LogPlace,
    sender: &mpsc::Sender<Result<OwnersNews>>,
    turns: &Semaphore,
) -> Result<()> {
    let (kind, mut owners) = (source.definition.owner.kind, HashSet::new());
    while !sender.is_closed() {
        for change in &changes {
            // What is read after this shows the change.
            source.reads.time.learn(time(change));
            owners.extend(owner_change(change, kind).appended().cloned());
        }
        if let Some(place) = log.place().and_then(LogPlace::of) {
            if place >= *until {
                drop(log);
                return send(source, owners, until, sender).await;
            }
            if owners.len() >= latest_totals::MOST {
                send(source, std::mem::take(&mut owners), &place, sender).await?;
            }
        }
        // Others read the log while this client takes its part, however slowly.
        let _permit = turns.acquire().await;
        changes = match log.next().await? {
            LogNews::Changes(changes) => changes,
            LogNews::Quiet | LogNews::Opened { .. } => Vec::new(),
            LogNews::PlaceLost | LogNews::Ended | LogNews::Refused(_) => return Err(lost()),
        };
    }
    Ok(())
}

/// Sends these owners part by part, and with the last part the place up to which they are all.
async fn send(
    source: &HistoryCollection,
    owners: HashSet<OwnerId>,
    place: &LogPlace,
    sender: &mpsc::Sender<Result<OwnersNews>>,
) -> Result<()> {
    let owners: Vec<OwnerId> = owners.into_iter().collect();
    let mut rest = &*owners;
    loop {
        let (part, others) = rest.split_at(rest.len().min(MOST));
        let place = others.is_empty().then(|| place.clone());
        let news = OwnersNews { owners: totals_of(source, part).await?, place };
        let says_something = !news.owners.is_empty() || news.place.is_some();
        if (says_something && sender.send(Ok(news)).await.is_err()) || others.is_empty() {
            return Ok(());
        }
        rest = others;
    }
}
