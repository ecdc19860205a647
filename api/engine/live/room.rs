//! A room: what the live readers of one owner share, from its first reader to its last. It learns what is
//! new, once for all of them ([`live`](mod@crate::live)), and publishes pages with the new end. They stay in
//! memory for a short time only, because readers that are waiting take them at once; a small last page stays,
//! for what will be appended to it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::doc;
use pagebucket_model::domain::{OwnerId, PageNumber, Position};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::watched::{AppendChange, Growth, LiveHistory, News, WakeReasons, WatchedOwner};
use crate::mongo::{COMMAND, Corruption, Deadline, Error, Result};
use crate::store::buckets::document::Bucket;
use crate::store::buckets::marker;
use crate::store::reads::find::find;
use crate::store::reads::reader::History;
use crate::tasks;

/// The pages of the first read after a wake: usually the open page alone, or the page that it filled and the
/// next one.
const FEW: usize = 2;

/// The most pages in one read, and in memory.
const MOST: usize = 16;

/// Bytes of pages that were read before and stay in memory with those of the last read.
const RECENT: usize = 256 * 1024;

/// The most bytes of a last page that stays in memory.
const SMALL: usize = 4 * 1024;

/// How long other pages stay in memory when nothing is appended.
const QUIET: Duration = Duration::from_secs(5);

/// Pause before a read is tried again.
const PAUSE: Duration = Duration::from_millis(250);

/// What a room has learned.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) end: Position,
    /// The last pages, which end there; at most one if nothing was appended for a while.
    pub(crate) pages: Arc<[Bucket]>,
    /// When what is new was committed.
    pub(crate) committed: Option<Instant>,
    /// Why nothing more will be published.
    pub(crate) ended: Option<Error>,
}

/// Rooms that have readers, by their owners.
type OpenRooms = Arc<Mutex<HashMap<OwnerId, watch::Sender<Published>>>>;

/// The rooms of the histories of one definition. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Rooms {
    pub(crate) history: LiveHistory,
    open: OpenRooms,
}

impl Rooms {
    pub(crate) fn new(history: LiveHistory) -> Self {
        Self { history, open: Arc::default() }
    }

    /// Enters the room of an owner, and opens it for the first reader. The history was read after the owner
    /// was watched.
    pub(crate) fn enter(&self, watched: WatchedOwner, history: &History) -> watch::Receiver<Published> {
        let mut rooms = self.open.lock();
        match rooms.entry(watched.owner.clone()) {
            Entry::Occupied(room) => room.get().subscribe(),
            Entry::Vacant(place) => {
                let end = Position::end_of(history.totals());
                let pages =
                    history.last().filter(|last| self.history.keeps(last)).cloned().into_iter().collect();
                let published = watch::Sender::new(Published { end, pages, committed: None, ended: None });
                let entered = published.subscribe();
                place.insert(published.clone());
                // The room examines news that came while the history was read.
                let (bucket, reasons) = (history.tail().map(Growth::from), watched.reasons);
                // So that the deletion of an older bucket does not wake the room.
                bucket.inspect(|last| self.history.watched.seen(&watched.owner, *last));
                let door = Door { rooms: Arc::clone(&self.open), owner: watched.owner.clone(), published };
                tasks::start(
                    "live-room",
                    Room { history: self.history.clone(), watched, door, bucket, reasons }.run(),
                );
                entered
            }
        }
    }
}

/// The end of a history that ends with this bucket.
fn end_of(bucket: &Bucket) -> Position {
    Position::end_of(bucket.totals())
}

impl LiveHistory {
    /// Whether a last page stays in memory. Without changes it would be of no use.
    fn keeps(&self, page: &Bucket) -> bool {
        page.bytes() <= SMALL && self.watched.changed.is_followed()
    }
}

/// The way into a room. It closes when this is dropped, also by a panic: then its readers end with an error,
/// and the next reader opens another room.
struct Door {
    rooms: OpenRooms,
    owner: OwnerId,
    published: watch::Sender<Published>,
}

impl Door {
    /// Whether the last reader has left. The door is closed then.
    fn is_left(&self) -> bool {
        let mut rooms = self.rooms.lock();
        // Another reader may have entered meanwhile.
        let left = self.published.receiver_count() == 0;
        if left {
            rooms.remove(&self.owner);
        }
        left
    }

    fn close(&self, why: Error) {
        let mut rooms = self.rooms.lock();
        rooms.remove(&self.owner);
        self.published.send_modify(|published| published.ended = Some(why));
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // After it was closed there may be another room.
        let is_mine = |room: &watch::Sender<_>| room.same_channel(&self.published);
        let mut rooms = self.rooms.lock();
        if rooms.get(&self.owner).is_some_and(is_mine) {
            rooms.remove(&self.owner);
        }
    }
}

/// The room of one owner, which runs in a task of its own.
struct Room {
    history: LiveHistory,
    watched: WatchedOwner,
    door: Door,
    /// The last bucket that it has looked at.
    bucket: Option<Growth>,
    /// The reasons for which it has looked.
    reasons: WakeReasons,
}

impl Room {
    async fn run(mut self) {
        loop {
            let has_more = self.has_more_than_it_keeps();
            tokio::select! {
                biased;
                () = self.door.published.closed() => {
                    if self.door.is_left() {
                        return;
                    }
                }
                changed = self.watched.news.changed() => {
                    let news = *self.watched.news.borrow_and_update();
                    if changed.is_err() || !self.learn(news).await {
                        return;
                    }
                }
                () = sleep(QUIET), if has_more => {
                    self.keep(|pages| pages.last().filter(|last| self.history.keeps(last)));
                }
            }
        }
    }

    fn has_more_than_it_keeps(&self) -> bool {
        let published = self.door.published.borrow();
        published.pages.len() > 1 || published.pages.iter().any(|page| !self.history.keeps(page))
    }

    /// Keeps one of the pages in memory, or none. Waiting readers have the items of the others already.
    fn keep(&self, kept: impl FnOnce(&[Bucket]) -> Option<&Bucket>) {
        self.door.published.send_if_modified(|published| {
            published.pages = kept(&published.pages).cloned().into_iter().collect();
            false
        });
    }

    fn is_new(&self, news: News) -> bool {
        let end = self.door.published.borrow().end;
        news.last.is_some_and(|last| Position::behind(last) > end)
            || news.bucket > self.bucket
            || news.reasons.looks != self.reasons.looks
    }

    /// Whether the database has another epoch. The room is closed then.
    fn is_over(&self) -> bool {
        let is_over = self.watched.news.borrow().reasons.ends != self.reasons.ends;
        if is_over {
            self.door.close(Error::OtherEpoch);
        }
        is_over
    }

    /// Takes the news, or reads what is new. Returns whether the room stays open.
    async fn learn(&mut self, news: News) -> bool {
        if self.is_over() {
            return false;
        }
        if news.reasons.forgets != self.reasons.forgets {
            self.reasons.forgets = news.reasons.forgets;
            self.keep(|_| None);
        }
        if news.reasons.looks != self.reasons.looks {
            // It may be gone.
            self.bucket = None;
        }
        if let Some(next) = self.next_bucket() {
            self.publish(vec![next], news.at);
        }
        !self.is_new(news) || self.read(news).await
    }

    /// The bucket that the last change shows, if its new items are the next ones.
    fn next_bucket(&self) -> Option<Bucket> {
        let AppendChange { bucket, written, .. } = self.watched.take_change(self.reasons.forgets)?;
        if Some(bucket) <= self.bucket {
            return None;
        }
        let published = self.door.published.borrow();
        if written.get("_id").is_ok_and(|id| id.is_some()) {
            let opened = Bucket::read(&written, &self.watched.owner, &self.history.source.definition).ok()?;
            return (Position::before(opened.first_seq()) == published.end).then_some(opened);
        }
        // No second of an owner is used again.
        published.pages.last().filter(|last| last.id().second == bucket.second)?.grown_by(&written)
    }

    /// Reads to the end of the history, as often as that needs. Returns whether the room stays open.
    async fn read(&mut self, news: News) -> bool {
        while let Err(error) = self.read_on(news.at).await {
            match error {
                Error::Unavailable(_) | Error::DiskFull => {
                    tracing::debug!(owner = %self.watched.owner, %error, "a live read is tried again");
                    sleep(PAUSE).await;
                    if self.door.published.is_closed() && self.door.is_left() || self.is_over() {
                        return false;
                    }
                }
                error => {
                    self.door.close(error);
                    return false;
                }
            }
        }
        // What was not found is not looked for again.
        self.bucket = self.bucket.max(news.bucket);
        self.reasons.looks = news.reasons.looks;
        true
    }

    async fn read_on(&mut self, committed: Option<Instant>) -> Result<()> {
        let mut most = FEW;
        loop {
            most = most.min(self.history.source.most_buckets());
            let known = self.door.published.borrow().end;
            let Some(next) = known.next_seq() else { return Ok(()) };
            let size = self.history.source.page_size();
            let page = size.page_of(next);
            let found = self.pages_from(page, most).await?;
            let stored = found.last().map_or(Position::before(size.first_seq(page)), end_of);
            if stored < known {
                marker::check(self.history.source.of(&self.watched.owner, Deadline::within(COMMAND)), page)
                    .await?;
                return Err(Error::OtherEpoch);
            }
            let is_last = found.len() < most;
            self.publish(found, committed);
            if is_last {
                return Ok(());
            }
            most = (2 * most).min(MOST);
        }
    }

    /// The page with this number and those after it, at most `most`: adjacent, and full except the last page
    /// of the history.
    async fn pages_from(&self, first: PageNumber, most: usize) -> Result<Vec<Bucket>> {
        let of = self.history.source.of(&self.watched.owner, Deadline::within(COMMAND));
        let command = of.at_most(doc! { "page": { "$gte": first } }, most);
        let found = find(of, command, None).await?;
        let mut expected = first;
        for (place, bucket) in found.iter().enumerate() {
            if bucket.page() != expected {
                // It may be deleted.
                marker::check(of, expected).await?;
                let words = format!("is {}, though page {expected} is missing", bucket.page());
                return Err(Corruption::new(bucket.id().to_string(), "page", words).into());
            }
            if !bucket.full() && place + 1 < found.len() {
                let words = "is not full, though it is not the last";
                return Err(Corruption::new(bucket.id().to_string(), "count", words).into());
            }
            expected = expected.next();
        }
        Ok(found)
    }

    /// Publishes pages that follow the published end, or begin with the page that has it.
    fn publish(&mut self, found: Vec<Bucket>, committed: Option<Instant>) {
        let Some(last) = found.last() else { return };
        self.bucket = self.bucket.max(Some(last.tail().into()));
        let end = end_of(last);
        self.door.published.send_if_modified(|published| {
            let is_later = end > published.end;
            if is_later {
                let pages = recent(&published.pages, found);
                *published = Published { end, pages, committed, ended: None };
            } else if end == published.end && published.pages.is_empty() {
                // For what will be appended to the last one.
                published.pages = found.into();
            }
            is_later
        });
    }
}

/// The pages that were read, after some of those before them.
fn recent(before: &[Bucket], found: Vec<Bucket>) -> Arc<[Bucket]> {
    let first = found.first().map(Bucket::page);
    let before = before.iter().rev().skip_while(|bucket| first.is_some_and(|first| bucket.page() >= first));
    let (mut bytes, room) = (0, MOST.saturating_sub(found.len()));
    let kept = before.take(room).take_while(|bucket| {
        bytes += bucket.bytes();
        bytes <= RECENT
    });
    let mut pages: Vec<Bucket> = kept.cloned().collect();
    pages.reverse();
    pages.extend(found);
    pages.into()
}

#[cfg(test)]
mod tests {
    use pagebucket_model::domain::{PageSize, Totals};
    use tokio::time::timeout;

    use super::*;

    /// An empty room with a door, and its first reader.
    fn open(rooms: &OpenRooms) -> (Door, watch::Receiver<Published>) {
        let end = Position::end_of(Totals::ending_with(PageSize::DEFAULT, None));
        let (published, reader) =
            watch::channel(Published { end, pages: [].into(), committed: None, ended: None });
        let owner = OwnerId::Integer(7);
        rooms.lock().insert(owner.clone(), published.clone());
        (Door { rooms: Arc::clone(rooms), owner, published }, reader)
    }

    #[tokio::test]
    async fn a_task_that_panics_closes_its_door() {
        let rooms = OpenRooms::default();
        let (door, mut reader) = open(&rooms);
        tasks::start("live-room", async move {
            let _door = door;
            panic!("as a bug would");
        });
        let ended = timeout(Duration::from_secs(60), reader.changed()).await.expect("an end");
        assert!(ended.is_err(), "its readers end");
        assert!(rooms.lock().is_empty(), "the next one opens another room");
    }

    #[tokio::test]
    async fn a_door_that_was_closed_leaves_the_next_room_open() {
        let rooms = OpenRooms::default();
        let (first, mut reader) = open(&rooms);
        first.close(Error::OtherEpoch);
        let (second, _reader) = open(&rooms);
        drop(first);
        assert!(reader.changed().await.is_ok() && reader.borrow().ended.is_some());
        assert_eq!(rooms.lock().len(), 1);
        assert!(!second.is_left());
        drop(second);
        assert!(rooms.lock().is_empty());
    }
}
