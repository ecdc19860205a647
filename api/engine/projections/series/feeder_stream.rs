//! The change stream of a feeder: which owners have something new.
//!
//! It is read by a task of its own, so that the feeder does not wait for changes while it has items to feed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::{Document, RawDocumentBuf};
use pagebucket_model::domain::OwnerId;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::live::changes::{OwnerChange, from_now, owner_change, scope, time};
use crate::mongo::change_log::{ChangeLog, LogNews};
use crate::mongo::log_place::LogPlace;
use crate::mongo::{Deadline, Error, NO_PRIMARY, Result};
use crate::store::collection::{HistoryCollection, millis};

/// The server answers after this time, also if there is no change.
const AWAIT: Duration = Duration::from_secs(1);

/// How long a feeder waits for what the stream tells, until it says how far it is although the stream tells
/// nothing.
const STALLED: Duration = Duration::from_secs(5);

/// How long changes are collected: many appends of one owner are then fed together.
const COLLECT: Duration = Duration::from_millis(200);

/// The number of owners from which on there is a pause: an insert of many measurements costs each of them
/// less, and so do changes and pages that are read together.
const MANY_OWNERS: usize = 100;

const PAUSE: Duration = Duration::from_secs(2);

const MOST_OWNERS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct FeederNews {
    /// Owners that may have something new.
    pub(crate) owners: HashSet<OwnerId>,
    /// Whether it is not known which owners: all must be examined.
    pub(crate) everyone: bool,
    /// Whether the stream does not answer. Then it is not known whether there is something new.
    pub(crate) is_stalled: bool,
    /// The place after all this.
    pub(crate) place: Option<LogPlace>,
    /// All that was acknowledged before this moment is in the news, in milliseconds since 1970.
    pub(crate) up_to: Option<i64>,
}

pub(crate) struct FeederStream {
    news: mpsc::Receiver<Result<FeederNews>>,
    _task: AbortOnDropHandle<()>,
}

impl FeederStream {
    /// Opens a stream of the changes after a place, or of those from now on. What is read after this shows
    /// what the stream does not tell. Returns also whether it begins at the place. That may take long: each
    /// time that the database does not answer, the log waits longer.
    pub(crate) async fn open(
        source: &Arc<HistoryCollection>,
        place: Option<&LogPlace>,
    ) -> Result<(Self, bool)> {
        let scope = scope(&source.reads.database, &[source.collection()], Document::new(), AWAIT);
        let history = Arc::clone(source);
        let mut log = ChangeLog::new(scope, place.and_then(LogPlace::token), move || {
            let history = Arc::clone(&history);
            Box::pin(async move { from_now(Some(&history)).await })
        });
        let resumed = loop {
            match log.next().await {
                Ok(LogNews::Opened { resumed }) => break resumed,
                Ok(LogNews::Refused(why)) => return Err(Error::internal(why)),
                Ok(LogNews::PlaceLost | LogNews::Ended | LogNews::Changes(_) | LogNews::Quiet) => {}
                Err(error @ Error::Unavailable(_)) => {
                    tracing::warn!(history = source.collection(), %error, "the time series is not fed yet");
                }
                Err(error) => return Err(error),
            }
        };
        let (tell, news) = mpsc::channel(2);
        let task = tokio::spawn(read(Arc::clone(source), log, tell));
        Ok((Self { news, _task: AbortOnDropHandle::new(task) }, resumed))
    }

    /// What there is; `None` if there is nothing yet.
    pub(crate) fn now(&mut self) -> Option<Result<FeederNews>> {
        self.news.try_recv().ok()
    }

    /// Waits until the stream tells something, that there is nothing new, or nothing at all.
    pub(crate) async fn next(&mut self) -> Result<FeederNews> {
        match timeout(STALLED, self.news.recv()).await {
            Ok(news) => news.unwrap_or_else(|| Err(ended())),
            Err(_elapsed) => Ok(FeederNews { is_stalled: true, ..FeederNews::default() }),
        }
    }
}

fn ended() -> Error {
    Error::unavailable("the change stream is at its end")
}

async fn read(source: Arc<HistoryCollection>, mut log: ChangeLog, tell: mpsc::Sender<Result<FeederNews>>) {
    loop {
        let news = collect(&source, &mut log).await;
        let is_last = news.is_err();
        if tell.send(news).await.is_err() || is_last {
            return;
        }
    }
}

/// Reads changes for a short time, or until there are none; of many owners, those of a longer time.
///
/// While the stream is interrupted, this waits: the log opens another one.
async fn collect(source: &HistoryCollection, log: &mut ChangeLog) -> Result<FeederNews> {
    // Asked first: a question that is answered with nothing has seen all that was acknowledged before, as far
    // as the place of the stream is later. It is not where a shard has nothing to tell, or where a member
    // that is asked lags.
    let asked = source.server_time(Deadline::within(NO_PRIMARY)).await?;
    let (mut news, mut until, mut has_paused) = (FeederNews::default(), Instant::now() + COLLECT, false);
    loop {
        match log.next().await {
            Ok(LogNews::Changes(changes)) => {
                news.is_stalled = false;
                for change in &changes {
                    source.reads.time.learn(time(change));
                    // Of the second in which it happened others may follow.
                    news.up_to = time(change).map(millis).or(news.up_to);
                    match owner_change(change, source.definition.owner.kind) {
                        OwnerChange::Grown(owner, _)
                        | OwnerChange::Deleted(owner, _)
                        | OwnerChange::Other(owner) => {
                            news.owners.insert(owner);
                        }
                        // The stream also tells of the epoch, which concerns no owner.
                        OwnerChange::NoOwner => news.everyone |= is_of(change, source),
                    }
                }
            }
            Ok(LogNews::Quiet) => {
                let seen = log.place().and_then(LogPlace::of).map(|place| millis(place.time()));
                news.up_to = seen.map(|seen| seen.min(asked)).max(news.up_to);
                news.is_stalled = false;
                break;
            }
            Ok(LogNews::Opened { resumed: true }) => {}
            Err(Error::Unavailable(_)) => news.is_stalled = true,
            Ok(LogNews::Opened { resumed: false }) => {
                news.everyone = true;
                break;
            }
            Ok(LogNews::PlaceLost | LogNews::Ended) => {
                tracing::warn!(
                    history = source.collection(),
                    "a time series has lost its place in the changes: all owners are looked at"
                );
            }
            Ok(LogNews::Refused(why)) => return Err(Error::internal(why)),
            Err(error) => return Err(error),
        }
        if news.owners.len() >= MOST_OWNERS {
            break;
        }
        if Instant::now() >= until {
            if has_paused || news.owners.len() < MANY_OWNERS {
                break;
            }
            sleep(PAUSE).await;
            (until, has_paused) = (Instant::now() + COLLECT, true);
        }
    }
    news.place = log.place().and_then(LogPlace::of);
    Ok(news)
}

fn is_of(change: &RawDocumentBuf, source: &HistoryCollection) -> bool {
    crate::live::changes::collection(change) == Some(source.collection())
}
