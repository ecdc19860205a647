//! An append in the queue.

use mongodb::bson::Timestamp;

use super::dedup::{Placed, RecordId, Search};
use super::document::Marked;
use super::outcome::{AppendError, Cause, Progress};
use crate::domain::{OwnerId, SeqRange};
use crate::item::Item;
use crate::store::Deadline;
use crate::store::group_commit::Ticket;

/// Items to append to one history.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) owner: OwnerId,
    /// The cluster time at which a statement of this request was last refused.
    pub(super) refused_at: Option<Timestamp>,
    /// How often a statement of this request was refused.
    pub(super) attempts: u32,
    /// Whether the request must not be merged with others.
    pub(super) alone: bool,
    /// The state of a request with a key, by which it is stored once.
    pub(super) keyed: Option<Keyed>,
    items: Vec<Item>,
    pub(super) placed: Placed,
    ticket: Ticket<Answer>,
}

/// The part of a request that only requests with a key have.
#[derive(Debug)]
pub(super) struct Keyed {
    pub(super) id: RecordId,
    pub(super) search: Search,
    /// Whether this request has stored any of its items itself.
    pub(super) stored: bool,
    /// Whether the history was empty when the key was registered, so that the first attempt may assume that.
    pub(super) begins: bool,
    /// When the record was inserted, in milliseconds since 1970; only if this request has inserted it and has
    /// sent no items before.
    pub(super) inserted: Option<i64>,
}

/// The memory of items in the queue, in bytes: their BSON, of these sizes, and a constant part for each.
pub fn weight(sizes: impl Iterator<Item = usize>) -> usize {
    const EACH: usize = 64;
    sizes.map(|size| size + EACH).sum()
}

/// What became of a request.
pub(super) type Answer = Result<Progress, AppendError>;

impl Request {
    pub(super) fn new(owner: OwnerId, items: Vec<Item>, ticket: Ticket<Answer>) -> Self {
        let placed = Placed::default();
        Self { owner, refused_at: None, attempts: 0, alone: false, keyed: None, items, placed, ticket }
    }

    /// A request with a key. Its first items are already stored, as `placed` says.
    pub(super) fn keyed(
        owner: OwnerId,
        items: Vec<Item>,
        placed: Placed,
        keyed: Keyed,
        ticket: Ticket<Answer>,
    ) -> Self {
        Self { placed, keyed: Some(keyed), ..Self::new(owner, items, ticket) }
    }

    /// Takes the request for a commit. Returns false if its client was already answered that it waited too
    /// long.
    pub(super) fn take(&self) -> bool {
        self.ticket.take()
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.ticket.deadline()
    }

    /// Whether too little time is left to commit the request.
    pub(super) fn is_late(&self) -> bool {
        self.ticket.is_late()
    }

    /// The items still to be placed.
    pub(super) fn rest(&self) -> &[Item] {
        &self.items[self.placed.count..]
    }

    /// The memory of the items still to be placed, in bytes.
    pub fn weight(&self) -> usize {
        weight(self.rest().iter().map(Item::size))
    }

    /// The items still to be placed, with their hashes if the request has a key.
    pub(super) fn marked(&self) -> impl Iterator<Item = Marked<'_>> {
        let (search, first) = (self.keyed.as_ref().map(|keyed| &keyed.search), self.placed.count);
        let item = move |(index, item)| Marked { item, key: search.map(|search| search.key(first + index)) };
        self.rest().iter().enumerate().map(item)
    }

    pub(super) fn is_placed(&self) -> bool {
        self.rest().is_empty()
    }

    /// Notes that this request has stored its next items at `range`.
    pub(super) fn place(&mut self, range: SeqRange) {
        self.placed.push(range);
        if let Some(keyed) = &mut self.keyed {
            keyed.stored = true;
        }
    }

    /// Whether the request may be tried without reading a tail, because its history was empty when its key was
    /// registered.
    pub(super) fn begins(&self) -> bool {
        self.attempts == 0 && self.keyed.as_ref().is_some_and(|keyed| keyed.begins)
    }

    /// Whether the history up to `last` may hold items of this request and is not searched completely.
    pub(super) fn is_behind(&self, last: u64) -> bool {
        self.keyed.as_ref().is_some_and(|keyed| !keyed.search.covers(last) && !self.is_placed())
    }

    /// The request's record and the time of its insert. Only if no other attempt can have found the record and
    /// this one has sent nothing that may be stored.
    pub(super) fn unseen_record(&self) -> Option<(RecordId, i64)> {
        let keyed = self.keyed.as_ref().filter(|keyed| !keyed.stored && self.placed.count == 0)?;
        Some((keyed.id, keyed.inserted?))
    }

    /// The request's search and what it has placed, if the request has a key.
    pub(super) fn searching(&mut self) -> Option<(&mut Search, &mut Placed)> {
        let placed = &mut self.placed;
        self.keyed.as_mut().map(|keyed| (&mut keyed.search, placed))
    }

    /// Answers that all items are done.
    pub(super) fn succeed(self) {
        let (progress, ticket) = self.progress();
        ticket.answer(Ok(progress));
    }

    /// Answers: nothing is stored after what is placed, except that the next `unknown` items may be.
    pub(super) fn fail(self, unknown: usize, cause: Cause) {
        let (progress, ticket) = self.progress();
        ticket.answer(Err(AppendError { progress, unknown, cause }));
    }

    fn progress(self) -> (Progress, Ticket<Answer>) {
        let (looked, stored) = self.keyed.map_or((0, true), |keyed| (keyed.search.looked(), keyed.stored));
        (Progress { placed: self.placed, stored, looked }, self.ticket)
    }
}
