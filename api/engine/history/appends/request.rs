//! An append in the queue.

use mongodb::bson::Timestamp;
use pagebucket_model::domain::{OwnerId, SeqRange};
use pagebucket_model::item::Item;

use super::outcome::{AppendError, Appended, Cause, Progress};
use crate::group_commit::Ticket;
use crate::history::buckets::document::Marked;
use crate::history::collection::fence::ReadTime;
use crate::history::dedup::{Registered, Search};
use crate::history::identity::RecordId;

/// Items to append to one history.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) owner: OwnerId,
    /// The cluster time at which a statement of this request was last refused.
    pub(crate) refused_at: Option<Timestamp>,
    /// How often a statement of this request was refused.
    pub(crate) attempts: u32,
    /// Whether the request must not be merged with others.
    pub(crate) alone: bool,
    /// The state of a request with a key, by which it is stored once.
    pub(crate) keyed: Option<Keyed>,
    pub(crate) items: Vec<Item>,
    /// Which of the items are placed, and how far the history is searched for the others.
    pub(crate) search: Search,
    pub(crate) ticket: Ticket<Appended>,
}

/// The part of a request that only requests with a key have.
#[derive(Debug)]
pub(crate) struct Keyed {
    pub(crate) id: RecordId,
    /// Whether this request has stored any of its items itself.
    pub(crate) stored: bool,
    /// The record, if this request has registered it and sent no items before.
    pub(crate) registered: Option<Registered>,
}

/// The memory of items in the queue, in bytes: their BSON, of these sizes, and a constant part for each.
pub fn weight(sizes: impl Iterator<Item = usize>) -> usize {
    const EACH: usize = 64;
    sizes.map(|size| size + EACH).sum()
}

impl Request {
    /// The items still to be placed.
    pub(crate) fn rest(&self) -> &[Item] {
        &self.items[self.search.placed.count..]
    }

    /// The memory of the items still to be placed, in bytes.
    pub fn weight(&self) -> usize {
        weight(self.rest().iter().map(Item::size))
    }

    /// The items still to be placed, with their hashes if the request has a key.
    pub(crate) fn marked(&self) -> impl Iterator<Item = Marked<'_>> {
        let (search, first) = (&self.search, self.search.placed.count);
        let item = move |(index, item)| Marked { item, key: search.key(first + index) };
        self.rest().iter().enumerate().map(item)
    }

    pub(crate) fn is_placed(&self) -> bool {
        self.rest().is_empty()
    }

    /// Notes that this request has stored its next items at `range`.
    pub(crate) fn place(&mut self, range: SeqRange) {
        self.search.placed.push(range);
        if let Some(keyed) = &mut self.keyed {
            keyed.stored = true;
        }
    }

    /// When the request's history was empty, if it may be tried without reading a tail: its key was registered then.
    pub(crate) fn begins(&self) -> Option<ReadTime> {
        let registered = self.keyed.as_ref().and_then(|keyed| keyed.registered.as_ref())?;
        let begins = self.attempts == 0 && registered.is_new && registered.record.from == 0;
        registered.read.filter(|_| begins)
    }

    /// Whether the history up to `last` may hold items of this request and is not searched completely.
    pub(crate) fn is_behind(&self, last: u64) -> bool {
        !self.search.covers(last) && !self.is_placed()
    }

    /// The request's record and the time of its insert. Only if no other attempt can have found the record and
    /// this one has sent nothing that may be stored.
    pub(crate) fn unseen_record(&self) -> Option<(RecordId, i64)> {
        let keyed = self.keyed.as_ref().filter(|keyed| !keyed.stored && self.search.placed.count == 0)?;
        Some((keyed.id, keyed.registered.as_ref()?.inserted?))
    }

    /// Answers that all items are done.
    pub(crate) fn succeed(self) {
        let (progress, ticket) = self.progress();
        ticket.answer(Ok(progress));
    }

    /// Answers: nothing is stored after what is placed, except that the next `unknown` items may be.
    pub(crate) fn fail(self, unknown: usize, cause: Cause) {
        let (progress, ticket) = self.progress();
        ticket.answer(Err(AppendError { progress, unknown, cause }));
    }

    fn progress(self) -> (Progress, Ticket<Appended>) {
        let stored = self.keyed.is_none_or(|keyed| keyed.stored);
        (Progress { looked: self.search.looked(), placed: self.search.placed, stored }, self.ticket)
    }
}
