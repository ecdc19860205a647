//! An append, from its queue to its answer.

use mongodb::bson::Timestamp;

use super::dedup::{Placed, RecordId, Search};
use super::statement::Item;
use super::{SecondsExhausted, Trades};
use crate::domain::{CustomerId, SeqRange, Totals, Trade};
use crate::store::group_commit::{Full, NoAnswer, Pending, Room, Ticket};
use crate::store::{Deadline, Error};

/// What an append has stored: all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Where the trades are, in their order: one range, unless another writer came between two
    /// buckets.
    pub ranges: Vec<SeqRange>,
    /// What the history held right after the last of them.
    pub totals: Totals,
    /// Whether an earlier request with the same key had stored all of it.
    pub replayed: bool,
}

/// What an append that failed has stored.
///
/// The trades fall into three runs, in their order: those stored in `ranges`, then `unknown` of
/// which nothing is known, then the rest, which is not stored.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct AppendError {
    /// Where those that are stored are; empty when none is.
    pub ranges: Vec<SeqRange>,
    /// How many may or may not be stored.
    pub unknown: usize,
    /// Why it went no further.
    #[source]
    pub cause: Cause,
}

/// Why an append went no further.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The database gave no answer to trust before the deadline.
    #[error("the outcome of a commit is unknown")]
    OutcomeUnknown,
    /// Too many trades are waiting to be committed.
    #[error("too many appends are waiting")]
    Overloaded,
    /// It waited too long for a commit, or had less time left than a commit needs ([`COMMIT`](crate::store::COMMIT)).
    #[error("it could not be committed in time")]
    Late,
    /// Another request has the same key.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// Others were quicker to append to the same history, too often in a row; or more of its trades wait
    /// than may of one history.
    #[error("too many appends to one history")]
    Contended,
    /// See [`SecondsExhausted`].
    #[error(transparent)]
    SecondsExhausted(#[from] SecondsExhausted),
    /// The database failed before anything more was sent to it.
    #[error(transparent)]
    Database(#[from] Error),
}

impl From<Full> for Cause {
    fn from(full: Full) -> Self {
        match full {
            Full::Queue => Self::Overloaded,
            Full::Key => Self::Contended,
        }
    }
}

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
    placed: Placed,
    ticket: Ticket<Answered>,
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
#[derive(Debug)]
pub(super) struct Answered {
    /// Which of its trades are dealt with.
    pub(super) placed: Placed,
    /// How far the search for its trades has come, where it has a key.
    pub(super) looked: u64,
    /// Whether it has stored any itself.
    pub(super) stored: bool,
    /// Where not all are dealt with: of how many more nothing is known, and why.
    pub(super) failed: Option<(usize, Cause)>,
}

impl Answered {
    /// Of a request whose trades are all stored, or not all.
    pub(super) fn whole(self) -> Result<Appended, AppendError> {
        let ranges = self.placed.ranges;
        match self.failed {
            Some((unknown, cause)) => Err(AppendError { ranges, unknown, cause }),
            None => {
                let totals = Totals::ending_with(ranges.last().map(|range| range.last));
                Ok(Appended { ranges, totals, replayed: !self.stored })
            }
        }
    }
}

impl Trades {
    /// Stores trades at the end of a history, in their order; at least one trade.
    ///
    /// It goes on to its end when the caller stops waiting. `deadline` is shortened to one
    /// command's.
    ///
    /// # Errors
    /// See [`AppendError`]; what it does not call unknown is stored exactly once, or not at all.
    pub async fn append(
        &self,
        customer: CustomerId,
        trades: Vec<Trade>,
        deadline: Deadline,
    ) -> Result<Appended, AppendError> {
        let (ticket, pending) = Ticket::new(deadline, self.room(customer, trades.len())?);
        self.enqueue(Request::new(customer, trades, ticket), pending).await.whole()
    }

    /// # Errors
    /// There is none.
    pub(super) fn room(&self, customer: CustomerId, trades: usize) -> Result<Room, AppendError> {
        let queue = &self.0.queue;
        let room = queue.room(customer.get(), trades, queue.most_of_a_key());
        room.map_err(|full| AppendError { ranges: Vec::new(), unknown: 0, cause: full.into() })
    }

    /// Sends a request to its committer, and waits for its answer.
    pub(super) async fn enqueue(&self, request: Request, pending: Pending<Answered>) -> Answered {
        let (placed, rest) = (request.placed.clone(), request.rest().len());
        // Without a word from the committer: what was there before is there.
        let refused = |unknown, cause| {
            let failed = Some((unknown, cause));
            Answered { placed, looked: 0, stored: false, failed }
        };
        if !self.committer(request.customer).request(request) {
            return refused(0, Error::Internal("a committer has ended".to_owned()).into());
        }
        match pending.answer().await {
            Ok(answered) => answered,
            Err(NoAnswer::Withdrawn) => refused(0, Cause::Late),
            Err(NoAnswer::Lost) => refused(rest, Cause::OutcomeUnknown),
        }
    }
}

impl Request {
    pub(super) fn new(customer: CustomerId, trades: Vec<Trade>, ticket: Ticket<Answered>) -> Self {
        let placed = Placed::default();
        Self { customer, refused_at: None, attempts: 0, alone: false, keyed: None, trades, placed, ticket }
    }

    /// One with a key, of which the first trades are stored already where `placed` says.
    pub(super) fn keyed(
        customer: CustomerId,
        trades: Vec<Trade>,
        placed: Placed,
        keyed: Keyed,
        ticket: Ticket<Answered>,
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
        self.tell(None);
    }

    /// Answers: no more is stored than is placed, but for the next `unknown` trades.
    pub(super) fn fail(self, unknown: usize, cause: Cause) {
        self.tell(Some((unknown, cause)));
    }

    fn tell(self, failed: Option<(usize, Cause)>) {
        let (looked, stored) = self.keyed.map_or((0, true), |keyed| (keyed.search.looked(), keyed.stored));
        self.ticket.answer(Answered { placed: self.placed, looked, stored, failed });
    }
}
