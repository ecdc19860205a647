//! Histories of trades in buckets of ten: a page is a bucket.
//!
//! # Identity
//!
//! A bucket's `_id` is `customerId_second`, ten digits, zero-padded ([`BucketId`]), and `_id` order
//! is page order (invariant 3). A page's permanent name is its ordinal `page`; a trade's is its
//! sequence number, `(page - 1) * 10 + place` (invariant 5). Totals are read from the last bucket,
//! the *tail*, and nothing is ever counted.
//!
//! # Capacity
//!
//! Ten trades a bucket, and every bucket but the tail holds exactly ten (invariant 2). A full bucket
//! never changes (invariant 4).
//!
//! # Atomicity
//!
//! An append is *compare-and-append*: one conditional upsert a bucket that names the `_id` and the
//! count it expects ([`statement`]). Three guards inside the database decide every race:
//!
//! - the clustered `_id`: a statement that expects an old count finds nothing, tries to insert an
//!   `_id` that is taken, and is refused (E11000);
//! - the unique `{customerId, page}`: of two writers that open one page under different seconds,
//!   one is refused (E11000);
//! - the validator: a statement that expects trades where there is no bucket would insert one whose
//!   `count` is not the size of its `history`, and is refused (121).
//!
//! # Ordering
//!
//! Opening page P + 1 compares nothing about page P, so P must be known to be full *for good*. A
//! tail is therefore known only from an append acknowledged at majority ([`catalog`]), or from a read
//! at majority ([`tails`], [`majority`]); statements of one customer go in one ordered command, so
//! that a failed page never leaves a later one behind. Within one process a customer has at most one
//! commit under way; between processes the guards decide.
//!
//! # Group commit
//!
//! Appends queue at a few committers, by customer ([`committer`]). A committer merges what has queued
//! while its last commit was under way ([`batch`]) and sends it as one command or few ([`commit`]):
//! no timer, no added latency when idle, one journal flush for many requests under load.
//!
//! # Reading
//!
//! Every page is one seek ([`seek`]), whatever the length of the history. What is read belongs to the
//! moment at which the tail was: nothing before it changes ([`reads`]). Readers of one history at once
//! share commands ([`shared`]). Spans of time are found by an
//! index of their own ([`dates`]).
//!
//! # Retry
//!
//! An answer means *stored*, *refused* or *unknown* ([`reply`]). A refused append reads the tail
//! again, from after the refusing write, and is placed anew. An unknown one is replayed as the same
//! command under the same number, which the server applies at most once ([`session`]), until it is
//! answered or its deadline passes; it is never placed anew. A standalone server has no numbers: there
//! the first lost answer is already an unknown outcome.

mod append;
mod batch;
mod bucket_id;
mod catalog;
mod commit;
mod committer;
mod customers;
mod dates;
mod decimal;
mod document;
mod export;
mod keyed;
mod majority;
mod measure;
mod reads;
mod reply;
mod secondaries;
mod seek;
mod session;
mod shared;
mod statement;
mod tail;
mod tails;

use std::sync::Arc;

use mongodb::Database;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

use super::Topology;
use crate::domain::{Clock, CustomerId};

pub use append::{AppendError, Appended, Cause};
pub use bucket_id::BucketId;
pub use customers::Customers;
pub use document::Bucket;
pub use export::Export;
pub(super) use keyed::keep_for as keep_keys_for;
pub use keyed::{AppendedLines, AppendedOnce, LineRefusal, UploadedSoFar};
pub use reads::History;
pub use secondaries::ReadPreference;
pub use seek::MOST_SKIPPED;
pub use statement::{SecondsExhausted, next_second};

/// Name of the collection.
pub const COLLECTION: &str = "trades";

/// How much may be held in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Trades that wait to be committed, or are being committed. A trade is of a fixed size, and so is
    /// its part of a command, so that this bounds bytes, too.
    pub queued_trades: usize,
    /// Customers whose tails are remembered, at less than 256 bytes each.
    pub catalog_customers: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { queued_trades: 100_000, catalog_customers: 100_000 }
    }
}

/// Committers of one process. Each has one commit under way; a few of them keep the server's journal
/// busy while others wait for it.
const COMMITTERS: usize = 4;

/// The histories of all customers. Cheap to clone. Its committers end with the last clone.
#[derive(Clone, Debug)]
pub struct Trades(Arc<Inner>, ReadPreference);

#[derive(Debug)]
struct Inner {
    database: Database,
    connection: Arc<commit::Connection>,
    readers: shared::Readers,
    /// Room in the queues, in trades: `queued_trades` when they are empty.
    room: Arc<Semaphore>,
    queued_trades: usize,
    committers: [UnboundedSender<committer::Message>; COMMITTERS],
}

impl Trades {
    pub(super) fn new(database: Database, topology: Topology, clock: Clock, capacity: Capacity) -> Self {
        let sessions = Arc::new(session::Sessions::new(database.client().clone(), topology));
        let connection = Arc::new(commit::Connection {
            database: database.clone(),
            sessions,
            clock,
            server_time: Default::default(),
        });
        let catalog = || catalog::Catalog::new(capacity.catalog_customers.div_ceil(COMMITTERS));
        let committers =
            std::array::from_fn(|number| committer::start(Arc::clone(&connection), catalog(), number));
        let queued_trades = capacity.queued_trades.min(u32::MAX as usize);
        let room = Arc::new(Semaphore::new(queued_trades));
        let readers = shared::Readers::default();
        let inner = Inner { database, connection, readers, room, queued_trades, committers };
        Self(Arc::new(inner), ReadPreference::Primary)
    }

    /// Waits until nothing is queued: what clients that have hung up left behind is settled, too. New
    /// appends are refused meanwhile.
    pub async fn settled(&self) {
        let all = u32::try_from(self.0.queued_trades).unwrap_or(u32::MAX);
        // Never closed: an error cannot be.
        let _ = self.0.room.acquire_many(all).await;
    }

    /// The committer of a customer, always the same.
    fn committer(&self, customer: CustomerId) -> &UnboundedSender<committer::Message> {
        // Fibonacci hashing (Knuth, TAOCP 6.4), so that ids with a common stride spread.
        let hash = customer.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        &self.0.committers[hash as usize % COMMITTERS]
    }
}
