//! What an append takes: the items, how those that are stored already are found, the terms, and room in the
//! queue.

use std::sync::Arc;

use pagebucket_model::domain::{IdempotencyKey, Instant, OwnerId, Position};
use pagebucket_model::item::{Draft, Item};

use super::queue::Waiting;
use crate::mongo::Deadline;
use crate::store::buckets::identity::ItemKey;

/// Items to append to one history.
#[derive(Debug)]
pub struct Append<'a> {
    /// Whose history it is.
    pub owner: OwnerId,
    /// At least one item, in the order in which they are stored.
    pub items: Vec<Draft>,
    /// When the request arrived: the date of items without one, unless an earlier attempt has set it.
    pub arrived: Instant,
    /// How items that an earlier attempt has stored are found. `None`: all items are new.
    pub once: Option<Once<'a>>,
    /// On which terms the items are appended.
    pub terms: AppendTerms,
    /// How an upload waits for room in the queue for at most
    /// [`Appender::most_of_an_upload`](super::appender::Appender::most_of_an_upload) bytes. The time for one
    /// command then starts when there is room, whatever the deadline of the terms is. `None`: the append is
    /// refused if there is no room.
    #[doc(hidden)]
    pub waiting: Option<&'a mut Waiting>,
}

impl Append<'_> {
    /// Items that are all new, and are refused if the queue has no room for them.
    pub fn new(owner: OwnerId, items: Vec<Draft>, arrived: Instant, terms: impl Into<AppendTerms>) -> Self {
        Self { owner, items, arrived, once: None, terms: terms.into(), waiting: None }
    }

    /// Takes the items. Those without a date get this one.
    pub(crate) fn take_dated(&mut self, date: Instant) -> Arc<[Item]> {
        std::mem::take(&mut self.items).into_iter().map(|draft| draft.dated(date)).collect()
    }
}

/// How each item is stored once, however often it is sent.
#[derive(Debug)]
pub enum Once<'a> {
    /// The request has a key. Its items are stored in order, without others of the request missing.
    Request {
        /// The key.
        key: IdempotencyKey,
        /// The canonical form of each item ([`pagebucket_model::item::canonical`]), by which a repeat is
        /// known.
        canonical: &'a [Vec<u8>],
    },
    /// The items are lines of an upload that has a key. An earlier attempt may have skipped some for good.
    #[doc(hidden)]
    Lines {
        /// The key of the upload.
        key: &'a IdempotencyKey,
        /// The number of each line. They ascend, also from append to append.
        numbers: Vec<u64>,
        /// The progress of the upload in this history; `None` before its first append.
        so_far: &'a mut Option<UploadedSoFar>,
    },
    /// The items have identities of their own, such as those of another collection.
    #[doc(hidden)]
    Identified {
        /// The identity of each item.
        keys: Vec<SourceKey>,
        /// What is known of the owner from earlier appends.
        so_far: &'a mut IdentifiedSoFar,
    },
}

/// On which terms items are appended.
#[derive(Debug, Clone, Copy)]
pub struct AppendTerms {
    /// Until when an answer is waited for, at most the time for one command from now.
    pub deadline: Deadline,
    /// The total that the history must have right before the first item: the items are stored only if the
    /// first one gets the next sequence number. `None`: whatever the total is.
    pub expected: Option<Position>,
}

impl From<Deadline> for AppendTerms {
    /// Whatever the total is.
    fn from(deadline: Deadline) -> Self {
        Self { deadline, expected: None }
    }
}

/// The progress of an upload that has begun in one history. It holds no items.
#[derive(Debug)]
pub struct UploadedSoFar {
    /// The date of lines that have no date of their own.
    pub(crate) date: Instant,
    /// All of the upload's lines are after this `seq`.
    pub(crate) from: u64,
    /// The lines still to come, if they are stored, are after this `seq`.
    pub(crate) looked: u64,
    /// Whether the search has reached the end of the history.
    pub(crate) at_end: bool,
    /// When the record was last touched, in milliseconds of the server's clock. `None` if that clock is not
    /// known.
    pub(crate) touched: Option<i64>,
}

/// How an item is known to be stored already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceKey {
    /// Its identity, which is stored with it.
    pub key: ItemKey,
    /// No item with this key is at or before this `seq` of the owner.
    pub looked: u64,
    /// Items of one group have different keys, and the same `looked` for each owner.
    pub group: u32,
}

/// What is known of an owner between two appends of items with source keys.
#[derive(Debug, Default)]
pub struct IdentifiedSoFar {
    /// A group, and the `seq` up to which no more of its items are stored.
    pub(crate) own: Option<(u32, u64)>,
    /// Whether the last append failed: some of its items may be stored.
    pub(crate) failed: bool,
}
