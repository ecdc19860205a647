//! An append, from the queue to its outcome.

use std::sync::Arc;

use mongodb::bson::Timestamp;
use pagebucket_model::domain::{Instant, OwnerId, Seq, SeqRange};
use pagebucket_model::item::Item;
use pagebucket_model::trace::TracedWait;

use super::statement::SecondsExhausted;
use crate::append::expectation::{Expectation, Judgement, PlannedPlace};
use crate::append::group_commit::{Full, Ticket};
use crate::append::keys::{KeySearch, Registered};
use crate::append::placed::{LineRefusal, Placed};
use crate::mongo::Error;
use crate::store::buckets::document::KeyedItem;
use crate::store::buckets::identity::RecordId;
use crate::store::collection::fence::ReadTime;

/// An append in the queue of a committer.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) owner: OwnerId,
    pub(crate) expectation: Expectation,
    /// The cluster time at which a statement of this request was last refused.
    pub(crate) refused_at: Option<Timestamp>,
    /// How often a statement of this request was refused.
    pub(crate) attempts: u32,
    /// Whether the request must not be merged with others.
    pub(crate) alone: bool,
    /// Shared with the search for the lines of an upload.
    pub(crate) items: Arc<[Item]>,
    /// Which of the items are placed, and how far the history is searched for the others.
    pub(crate) search: KeySearch,
    /// With an `Idempotency-Key`. Items with identities of their own have none. Boxed: most requests have
    /// none.
    pub(crate) keyed: Option<Box<Keyed>>,
    pub(crate) ticket: Ticket<Appended>,
    /// If the request is traced.
    pub(crate) waiting: Option<Box<TracedWait>>,
}

/// The part of a request that only requests with an `Idempotency-Key` have.
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
    pub(crate) fn weight(&self) -> usize {
        weight(self.rest().iter().map(Item::size))
    }

    /// The items still to be placed, with their hashes if they have any.
    pub(crate) fn keyed_items(&self) -> impl Iterator<Item = KeyedItem<'_>> {
        let first = self.search.placed.count;
        self.rest().iter().zip(first..).map(|(item, index)| KeyedItem { item, key: self.search.key(index) })
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

    /// The total that the history must have right before the next item.
    pub(crate) fn expected(&self) -> Option<u64> {
        self.expectation.of_next(&self.search.placed)
    }

    /// What a commit makes of the request that would place its next item there.
    pub(crate) fn judge(&self, place: PlannedPlace) -> Judgement {
        self.expectation.judge(&self.search.placed, place)
    }

    /// When the request's history was empty, if it may be tried without reading a tail: its key was
    /// registered then.
    pub(crate) fn begins(&self) -> Option<ReadTime> {
        let registered = self.keyed.as_ref()?.registered.as_ref()?;
        let begins = self.attempts == 0 && registered.is_new && registered.record.from == 0;
        registered.read.filter(|_| begins)
    }

    /// Whether the history up to `last` may hold items of this request and is not searched completely.
    pub(crate) fn is_behind(&self, last: u64) -> bool {
        !self.search.covers(last) && !self.is_placed()
    }

    /// The request's record and the time of its insert. Only if no other attempt can have found the record
    /// and this one has sent nothing that may be stored.
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
    pub(crate) fn fail(self, unknown: usize, cause: AppendCause) {
        let (progress, ticket) = self.progress();
        ticket.answer(Err(AppendError { progress, unknown, cause }));
    }

    fn progress(self) -> (AppendProgress, Ticket<Appended>) {
        let stored = self.keyed.is_none_or(|keyed| keyed.stored);
        let (looked, placed) = (self.search.looked(), self.search.placed);
        (AppendProgress { placed, stored, looked, date: None }, self.ticket)
    }
}

/// How far an append has come: the outcome of its first items, in order. The rest is not stored, unless an
/// [`AppendError`] says that the outcome of some of it is unknown.
#[derive(Debug, Default)]
pub struct AppendProgress {
    pub(crate) placed: Placed,
    /// Whether this attempt has stored any of them. An earlier attempt has stored the others.
    pub(crate) stored: bool,
    /// How far the search of an append with a key has come: no other item of the request is at or before this
    /// `seq`.
    pub(crate) looked: u64,
    pub(crate) date: Option<Instant>,
}

impl AppendProgress {
    /// Items that an earlier attempt has stored in these ranges.
    pub fn replayed(ranges: Vec<SeqRange>) -> Self {
        let count = ranges.iter().map(SeqRange::count).sum();
        Self { placed: Placed { ranges, count, refused: Vec::new() }, ..Self::default() }
    }

    /// The addresses of the stored items, in order: one range, unless another writer appended between two of
    /// the buckets.
    pub fn ranges(&self) -> &[SeqRange] {
        &self.placed.ranges
    }

    /// The outcome of each: its address, or why a line of a keyed upload is not stored.
    pub fn ends(&self) -> impl Iterator<Item = Result<Seq, LineRefusal>> {
        self.placed.ends(self.placed.ranges.iter().flat_map(SeqRange::seqs))
    }

    /// The last sequence number of the history right after the last stored item.
    pub fn last_seq(&self) -> Option<Seq> {
        self.placed.ranges.last().map(|range| range.last)
    }

    /// When the first request with the key arrived: items without a date got this one. `None` without a key.
    pub fn date(&self) -> Option<Instant> {
        self.date
    }

    /// Whether an earlier attempt had stored all of it.
    pub fn is_replayed(&self) -> bool {
        !self.stored
    }
}

/// What became of an append.
pub type Appended = Result<AppendProgress, AppendError>;

/// How far a failed append came, and why it failed.
///
/// The items form three groups, in order: first those of `progress`, then `unknown` items that may or may not
/// be stored, then the rest, which is not stored.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct AppendError {
    /// The outcome of the first items.
    pub progress: AppendProgress,
    /// How many items may or may not be stored.
    pub unknown: usize,
    /// Why the append failed.
    #[source]
    pub cause: AppendCause,
}

impl AppendError {
    /// An append that has stored nothing.
    pub(crate) fn nothing(cause: impl Into<AppendCause>) -> Self {
        Self::after(Placed::default(), 0, cause)
    }

    /// An append that has stored nothing after what earlier attempts have placed, except that the next
    /// `unknown` items may be stored.
    pub(crate) fn after(placed: Placed, unknown: usize, cause: impl Into<AppendCause>) -> Self {
        Self {
            progress: AppendProgress { placed, ..AppendProgress::default() },
            unknown,
            cause: cause.into(),
        }
    }
}

/// Why an append failed.
#[derive(Debug, thiserror::Error)]
pub enum AppendCause {
    /// The database gave no final answer before the deadline.
    #[error("the outcome of a commit is unknown")]
    OutcomeUnknown,
    /// Too many items are waiting to be committed.
    #[error("too many appends are waiting")]
    Overloaded,
    /// Too many items of the client wait: it has at most a part of the queue.
    #[error("too many appends of one client are waiting")]
    ClientOverloaded,
    /// The append waited too long for a commit, or had less time left than a commit needs
    /// ([`COMMIT`](crate::mongo::COMMIT)).
    #[error("it could not be committed in time")]
    Late,
    /// The history has another total than the append expects
    /// ([`AppendTerms::expected`](super::input::AppendTerms::expected)). A majority has
    /// these items.
    #[error("the history's total is {0}, not the expected one")]
    UnexpectedTotal(u64),
    /// Another request has the same key.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// Other writers were faster to append to the same history, too often in a row. Or too many items of this
    /// history wait.
    #[error("too many appends to one history")]
    Contended,
    /// See [`SecondsExhausted`].
    #[error(transparent)]
    SecondsExhausted(#[from] SecondsExhausted),
    /// The database failed before the rest of the items was sent.
    #[error(transparent)]
    Database(#[from] Error),
}

impl From<Full> for AppendCause {
    fn from(full: Full) -> Self {
        match full {
            Full::Queue => Self::Overloaded,
            Full::Key => Self::Contended,
            Full::Client => Self::ClientOverloaded,
        }
    }
}
