//! When tiles are made: after an answer that had to read pages instead, and by housekeeping.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use pagebucket_model::domain::{Limit, OwnerId};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::known::KnownTiles;
use super::make::TileMaker;
use super::tile_id::{PAGES, TileNumber};
use super::tiles::forget_others;
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::store::buckets::tails::Tails;
use crate::store::reads::owners::{OwnerWalk, owner_ids};
use crate::store::reads::reader::HistoryReader;
use crate::tasks;

/// The most owners that wait for their tiles. Others get theirs after another answer, or from housekeeping.
const MOST_WAITING: usize = 1_000;

/// The most tiles of one owner that are looked for at once.
const MOST_LOOKED_FOR: u64 = 10_000;

/// How long tiles of one owner are made before those of the next.
const TURN: Duration = Duration::from_secs(60);

/// Summaries of the histories of one definition. Clones share what is known of tiles, and which are to be
/// made.
#[derive(Debug, Clone)]
pub struct TiledSummaries {
    pub(crate) reader: HistoryReader,
    pub(crate) known: Arc<KnownTiles>,
    pub(crate) waiting: Arc<Mutex<WaitingOwners>>,
    /// That of housekeeping.
    pub(crate) walk: Arc<Mutex<OwnerWalk>>,
}

/// Owners whose tiles are to be made, in the background, one tile after the other.
#[derive(Debug, Default)]
pub(crate) struct WaitingOwners {
    owners: VecDeque<OwnerId>,
    /// What makes them, until none waits.
    task: Option<JoinHandle<()>>,
}

#[doc(hidden)]
impl TiledSummaries {
    pub(crate) fn new(reader: HistoryReader) -> Self {
        Self { reader, known: Arc::default(), waiting: Arc::default(), walk: Arc::default() }
    }

    /// Queues an owner whose summary lacks tiles
    /// ([`SummaryScan::lacks_tiles`](super::scan::SummaryScan::lacks_tiles)), in the background.
    pub fn begin_tiles(&self, owner: &OwnerId) {
        let Some(maker) = TileMaker::of(&self.reader) else { return };
        let mut waiting = self.waiting.lock();
        let has_panicked = waiting.task.take_if(|task| task.is_finished()).is_some();
        if has_panicked {
            // Not at the same owner again.
            waiting.owners.pop_front();
        }
        if waiting.owners.len() >= MOST_WAITING || waiting.owners.contains(owner) {
            return;
        }
        waiting.owners.push_back(owner.clone());
        if waiting.task.is_none() {
            waiting.task = Some(tasks::start("tile-maker", make_all(maker, Arc::clone(&self.waiting))));
        }
    }

    /// Goes on with a walk over all owners: deletes tiles of other definitions, and makes those that are
    /// missing. The next call goes on where the deadline has ended this one.
    pub async fn make_tiles(&self, until: Deadline) -> Result<()> {
        while self.go_on(until).await? && !until.passed() {}
        Ok(())
    }
}

async fn make_all(maker: TileMaker, waiting: Arc<Mutex<WaitingOwners>>) {
    while let Some(owner) = next(&waiting) {
        let made = make_missing(&maker, &owner, true, Deadline::within(TURN)).await;
        let mut waiting = waiting.lock();
        waiting.owners.pop_front();
        match made {
            Ok(progress) => waiting.owners.extend(Some(owner).filter(|_| progress.more)),
            // All that wait are given up: the next answer has them made.
            Err(error) => {
                tracing::debug!(%owner, %error, "tiles of a summary were not made");
                waiting.owners.clear();
            }
        }
    }
}

/// The owner that has the turn, and stays in the queue until its turn has ended. Without one the task ends.
fn next(waiting: &Mutex<WaitingOwners>) -> Option<OwnerId> {
    let mut waiting = waiting.lock();
    let next = waiting.owners.front().cloned();
    if next.is_none() {
        waiting.task = None;
    }
    next
}

/// What an attempt to make the tiles of an owner has come to.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    made: bool,
    /// Whether tiles may be left.
    more: bool,
}

/// Makes the tiles of an owner that are missing, until the deadline. With `pauses` the database has as much
/// time for others.
async fn make_missing(maker: &TileMaker, owner: &OwnerId, pauses: bool, until: Deadline) -> Result<Progress> {
    let mut progress = Progress::default();
    let history = match maker.reader.history(owner.clone(), Deadline::within(COMMAND)).await {
        Err(Error::Gone(_)) => return Ok(progress),
        history => history?,
    };
    let Some(last) = history.tail().and_then(|tail| tail.page.previous()) else { return Ok(progress) };
    let Some((mut next, end)) = TileNumber::within(history.first_page(), last) else { return Ok(progress) };
    while next <= end {
        if until.passed() {
            return Ok(Progress { more: true, ..progress });
        }
        let last = end.min(next.last_of(MOST_LOOKED_FOR));
        for tile in missing(maker, owner, next, last).await? {
            let began = Instant::now();
            if until.passed() {
                return Ok(Progress { more: true, ..progress });
            }
            match maker.make(owner, tile, Deadline::within(COMMAND)).await {
                Ok(true) => progress.made = true,
                Ok(false) => return Ok(progress),
                // Its pages are read, which says what is wrong. It must not keep the others.
                Err(Error::Corrupt(error)) => tracing::warn!(%owner, %tile, %error, "a tile was not made"),
                Err(error) => return Err(error),
            }
            if pauses {
                tokio::time::sleep(began.elapsed()).await;
            }
        }
        next = last.next();
    }
    Ok(progress)
}

/// The tiles among these that are missing.
async fn missing(
    maker: &TileMaker,
    owner: &OwnerId,
    first: TileNumber,
    last: TileNumber,
) -> Result<Vec<TileNumber>> {
    let of = maker.reader.source.of(owner, Deadline::within(COMMAND));
    let there = maker.tiles.places(of, first, last).await?;
    let there: HashSet<_> = there.iter().map(|place| place.tile).collect();
    Ok(first.up_to(last).filter(|tile| !there.contains(tile)).collect())
}

impl TiledSummaries {
    /// One step of a walk: deletes tiles of other definitions, or makes the missing tiles of the next owners.
    /// Returns whether the walk goes on. A walk begins [`Ages::late`](crate::capacity::Ages::late) after the
    /// one before. After an error the walk goes on where it was.
    async fn go_on(&self, until: Deadline) -> Result<bool> {
        let (source, deadline) = (&self.reader.source, Deadline::within(COMMAND));
        let known = self.walk.lock().clone();
        let begins = !known.goes_on;
        let Some(mut walk) = known.next(source.markers.ages.late) else { return Ok(false) };
        if begins && forget_others(source, deadline).await? {
            return Ok(true);
        }
        walk.goes_on = match TileMaker::of(&self.reader) {
            Some(maker) => {
                let (ids, next) = owner_ids(source, walk.after.clone(), Limit::MOST, deadline).await?;
                let tails = Tails::read(source, &ids, None, deadline).await;
                for owner in &ids {
                    // An owner without a tile costs nothing more.
                    let has_tiles =
                        tails.of(owner).ok().flatten().is_some_and(|tail| tail.page.get() > PAGES);
                    let mut progress = Progress::default();
                    if has_tiles {
                        // A failure must not keep the others.
                        progress = make_missing(&maker, owner, false, until).await.unwrap_or_else(|error| {
                            tracing::debug!(%owner, %error, "tiles of a summary were not made");
                            progress
                        });
                    }
                    // An owner whose tiles were made has the next step, too. An owner without a new tile must
                    // not keep the others from their turn.
                    if until.passed() && progress.made {
                        break;
                    }
                    walk.after = Some(owner.clone());
                    if until.passed() {
                        break;
                    }
                }
                next.is_some() || until.passed()
            }
            None => false,
        };
        let goes_on = walk.goes_on;
        *self.walk.lock() = walk;
        Ok(goes_on)
    }
}
