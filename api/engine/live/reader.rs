//! One live reader: a position in a history, and what comes after it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{OwnerId, Position, Seq, Totals};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::owners_reader::Live;
use super::room::Published;
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::store::buckets::document::{Bucket, StoredItem};
use crate::store::reads::export::Export;
use crate::store::reads::reader::HistoryReader;

/// Bytes of pages, at most, that a client's readers that are behind have in memory, unless one page has more.
const AT_ONCE: usize = 128 * 1024;

/// Where a live reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveStart {
    /// At the end of the history.
    End,
    /// With the first item that is there.
    First,
    /// After the items up to this position, which the reader has: it gets an error if the next one is
    /// deleted, also later.
    After(Position),
}

impl LiveStart {
    /// As requests name it: without a position the end, and the beginning stands for the first item that is
    /// there.
    pub fn of(after: Option<Position>) -> Self {
        match after {
            None => Self::End,
            Some(Position::BEGINNING) => Self::First,
            Some(after) => Self::After(after),
        }
    }

    /// The position that it names.
    pub fn position(self) -> Option<Position> {
        match self {
            Self::End => None,
            Self::First => Some(Position::BEGINNING),
            Self::After(after) => Some(after),
        }
    }
}

/// A live reader of one history.
#[derive(Debug)]
pub struct LiveReader {
    reader: HistoryReader,
    owner: OwnerId,
    totals: Totals,
    /// Everything before this position is delivered.
    at: Position,
    /// Bytes of pages, at most, that it reads at once by itself, unless one page has more.
    at_once: usize,
    room: watch::Receiver<Published>,
    /// What the reader reads by itself, because it is behind.
    behind: Option<Export>,
    /// Pages that were read and are not delivered.
    ready: VecDeque<Bucket>,
    /// The turns of those readers of one client that are behind.
    turns: Option<Arc<Semaphore>>,
    /// Held until it has delivered a page.
    turn: Option<OwnedSemaphorePermit>,
    committed: Option<Instant>,
}

/// Items of one page that a live reader gets next.
#[derive(Debug)]
pub struct LivePage {
    bucket: Bucket,
    after: Position,
    committed: Option<Instant>,
}

impl Live {
    /// Begins to read a history live: the items from `start` on that are stored, and those that are appended,
    /// by whatever process.
    ///
    /// # Errors
    /// The database does not answer in time, the owner is erased, the item after `start` is deleted, or a
    /// bucket is corrupt.
    pub async fn watch(self, owner: OwnerId, start: LiveStart, deadline: Deadline) -> Result<LiveReader> {
        let Self { reader, rooms, .. } = self;
        // In this order nothing is missed: what is appended after the read wakes.
        let watched = rooms.history.watched.watch(owner.clone());
        rooms.history.watched.until_notified(deadline).await?;
        let history = reader.history(owner.clone(), deadline).await?;
        let (totals, end) = (history.totals(), Position::end_of(history.totals()));
        let at = match start {
            LiveStart::End => end,
            LiveStart::First => history.from(Position::BEGINNING)?,
            LiveStart::After(after) => history.after(after)?,
        };
        let room = rooms.enter(watched, &history);
        let behind = (at < end).then(|| Export::of(history, at, start == LiveStart::First));
        let ready = VecDeque::new();
        Ok(LiveReader {
            reader,
            owner,
            totals,
            at,
            at_once: AT_ONCE,
            room,
            behind,
            ready,
            turns: None,
            turn: None,
            committed: None,
        })
    }
}

impl LiveReader {
    /// The definition of the history.
    pub fn definition(&self) -> &Arc<Definition> {
        self.reader.definition()
    }

    /// The totals of the history when this reader began.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The position up to which everything is delivered.
    pub fn position(&self) -> Position {
        self.at
    }

    /// One of several readers of one client, `readers` in all. Those that are behind take `turns`, which has
    /// one permit: each delivers a page, and then the next one does. Together they have no more pages in
    /// memory than one would have.
    #[must_use]
    pub fn among(self, readers: usize, turns: &Arc<Semaphore>) -> Self {
        Self { at_once: AT_ONCE / readers.max(1), turns: Some(Arc::clone(turns)), ..self }
    }

    /// Waits for the next items: those of one page. The call may be dropped at any time, and nothing is lost.
    ///
    /// # Errors
    /// The next items are deleted, the owner is erased, the database has another epoch or does not answer in
    /// time, or a bucket is corrupt.
    pub async fn next(&mut self) -> Result<LivePage> {
        // From where it has read on by itself.
        let mut read_from = None;
        loop {
            if let Some(Error::OtherEpoch) = self.room.borrow().ended {
                return Err(Error::OtherEpoch);
            }
            if let (Some(turns), Some(_), None) = (&self.turns, &self.behind, &self.turn) {
                self.turn = Arc::clone(turns).acquire_owned().await.ok();
            }
            if let Some(bucket) = self.ready.pop_front() {
                self.turn = None;
                return self.deliver(bucket);
            }
            if let Some(export) = &mut self.behind {
                let size = self.reader.definition().page_size.get() * self.reader.definition().max_item_bytes;
                // Boxed, because most readers are not behind.
                match Box::pin(export.next_of((self.at_once / size).max(1))).await? {
                    Some(batch) => {
                        // It may have begun later than was known.
                        self.at = batch.after();
                        self.ready = batch.into_pages().into();
                    }
                    None => (self.behind, self.turn) = (None, None),
                }
                continue;
            }
            let Published { end, pages, committed, ended } = self.room.borrow_and_update().clone();
            // What is not stored any more is not looked for again.
            if self.at < end && read_from != Some(self.at) {
                let has_next = |bucket: &&Bucket| self.at < Position::end_of(bucket.totals());
                match pages.first() {
                    Some(first) if Position::before(first.first_seq()) <= self.at => {
                        self.ready = pages.iter().filter(has_next).cloned().collect();
                        self.committed = committed;
                    }
                    _ => {
                        (self.behind, self.committed) = (Some(Box::pin(self.read_on()).await?), None);
                        read_from = Some(self.at);
                    }
                }
                continue;
            }
            if let Some(ended) = ended {
                return Err(ended);
            }
            read_from = None;
            if self.room.changed().await.is_err() {
                return Err(Error::unavailable("the room of a live reader was closed"));
            }
        }
    }

    /// The rest of the history as it is now.
    async fn read_on(&self) -> Result<Export> {
        let history = self.reader.history(self.owner.clone(), Deadline::within(COMMAND)).await?;
        let at = history.after(self.at)?;
        Ok(Export::of(history, at, false))
    }

    /// Delivers the items of a page after the position. Nothing is delivered before everything in front of
    /// it.
    fn deliver(&mut self, bucket: Bucket) -> Result<LivePage> {
        let (after, end) = (self.at, Position::end_of(bucket.totals()));
        if Position::before(bucket.first_seq()) > after || end <= after {
            let page = bucket.page();
            return Err(Error::internal(format!("page {page} is not the one after item {}", after.get())));
        }
        self.at = end;
        Ok(LivePage { bucket, after, committed: self.committed })
    }
}

impl LivePage {
    /// The items, in order of their addresses: at least one.
    pub fn items(&self) -> impl Iterator<Item = StoredItem<'_>> {
        self.bucket.items().filter(|item| Position::behind(item.seq) > self.after)
    }

    /// The address of the last item.
    pub fn last_seq(&self) -> Seq {
        self.bucket.first_seq().plus(self.bucket.count() - 1)
    }

    /// Bytes of the page in memory.
    pub fn bytes(&self) -> usize {
        self.bucket.bytes()
    }

    /// How long ago they were committed. Not of items that the reader was behind.
    pub fn lag(&self) -> Option<Duration> {
        self.committed.map(|committed| committed.elapsed())
    }
}
