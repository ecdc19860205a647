//! An append on its way through the queue.

use mongodb::bson::Timestamp;

use super::dedup::{Placed, RecordId, Search};
use super::document::Item;
use super::outcome::{AppendError, Cause, Progress};
use crate::domain::{CustomerId, SeqRange, Trade};
use crate::store::Deadline;
use crate::store::group_commit::Ticket;

/// Trades on their way to the end of one history.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) customer: CustomerId,
    /// When a statement of it was refused, in the cluster's time.
    pub(super) refused_at: Option<Timestamp>,
    /// How often one was.
    pub(super) attempts: u32,
    /// Whether it must not be merged with others.
    pub(super) alone: bool,
    /// What it takes to store it once, where it has a key.
    pub(super) keyed: Option<Keyed>,
    trades: Vec<Trade>,
    pub(super) placed: Placed,
    ticket: Ticket<Answer>,
}

/// The part of a request that only those with a key have.
#[derive(Debug)]
pub(super) struct Keyed {
    pub(super) id: RecordId,
    pub(super) search: Search,
    /// Whether this request has stored any of its trades itself.
    pub(super) stored: bool,
    /// Whether the history was empty right before: known then, and worth trying.
    pub(super) begins: bool,
    /// When its record was inserted, in milliseconds since 1970, where this request has inserted it and has sent no
    /// trades before.
    pub(super) inserted: Option<i64>,
}

/// What became of a request.
pub(super) type Answer = Result<Progress, AppendError>;

impl Request {
    pub(super) fn new(customer: CustomerId, trades: Vec<Trade>, ticket: Ticket<Answer>) -> Self {
        let placed = Placed::default();
        Self { customer, refused_at: None, attempts: 0, alone: false, keyed: None, trades, placed, ticket }
    }

    /// One with a key, of which the first trades are stored already where `placed` says.
    pub(super) fn keyed(
        customer: CustomerId,
        trades: Vec<Trade>,
        placed: Placed,
        keyed: Keyed,
        ticket: Ticket<Answer>,
    ) -> Self {
        Self { placed, keyed: Some(keyed), ..Self::new(customer, trades, ticket) }
    }

    /// Takes it out of the queue for good; false when its client was told that it waited too long.
    pub(super) fn take(&self) -> bool {
        self.ticket.take()
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.ticket.deadline()
    }

    /// Whether too little time is left to commit it.
    pub(super) fn is_late(&self) -> bool {
        self.ticket.is_late()
    }

    /// The trades still to be placed.
    pub(super) fn rest(&self) -> &[Trade] {
        &self.trades[self.placed.count..]
    }

    /// The same with their keys, where they have any.
    pub(super) fn items(&self) -> impl Iterator<Item = Item<'_>> {
        let (search, first) = (self.keyed.as_ref().map(|keyed| &keyed.search), self.placed.count);
        let item = move |(index, trade)| Item { trade, key: search.map(|search| search.key(first + index)) };
        self.rest().iter().enumerate().map(item)
    }

    pub(super) fn is_placed(&self) -> bool {
        self.rest().is_empty()
    }

    /// The next trades are stored there, by this request.
    pub(super) fn place(&mut self, range: SeqRange) {
        self.placed.push(range);
        if let Some(keyed) = &mut self.keyed {
            keyed.stored = true;
        }
    }

    /// Whether it may be tried without reading a tail: there was none when its key was registered.
    pub(super) fn begins(&self) -> bool {
        self.attempts == 0 && self.keyed.as_ref().is_some_and(|keyed| keyed.begins)
    }

    /// Whether trades up to `last` may be its own, and have not been looked at.
    pub(super) fn is_behind(&self, last: u64) -> bool {
        self.keyed.as_ref().is_some_and(|keyed| !keyed.search.covers(last) && !self.is_placed())
    }

    /// Its record and the time of its insert, where no other attempt may have found the record, and this one has
    /// sent nothing that may be stored.
    pub(super) fn unseen_record(&self) -> Option<(RecordId, i64)> {
        let keyed = self.keyed.as_ref().filter(|keyed| !keyed.stored && self.placed.count == 0)?;
        Some((keyed.id, keyed.inserted?))
    }

    /// What its search works on.
    pub(super) fn searching(&mut self) -> Option<(&mut Search, &mut Placed)> {
        let placed = &mut self.placed;
        self.keyed.as_mut().map(|keyed| (&mut keyed.search, placed))
    }

    /// Answers: all is dealt with.
    pub(super) fn succeed(self) {
        let (progress, ticket) = self.progress();
        ticket.answer(Ok(progress));
    }

    /// Answers: nothing is stored after what is placed, except that the next `unknown` trades may be.
    pub(super) fn fail(self, unknown: usize, cause: Cause) {
        let (progress, ticket) = self.progress();
        ticket.answer(Err(AppendError { progress, unknown, cause }));
    }

    fn progress(self) -> (Progress, Ticket<Answer>) {
        let (looked, stored) = self.keyed.map_or((0, true), |keyed| (keyed.search.looked(), keyed.stored));
        (Progress { placed: self.placed, stored, looked }, self.ticket)
    }
}
