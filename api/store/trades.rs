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
//! tail is therefore known only from an append acknowledged at majority, or from a read at majority
//! ([`reads`]); statements of one append go in one ordered command, so that a failed page never
//! leaves a later one behind. Within one process, appends to one customer wait for each other
//! ([`append`]); between processes the guards decide.
//!
//! # Retry
//!
//! An answer means *stored*, *refused* or *unknown* ([`reply`]). A refused append reads the tail
//! again, from after the refusing write, and is placed anew. An unknown one is replayed as the same
//! command under the same number, which the server applies at most once ([`session`]), until it is
//! answered or its deadline passes; it is never placed anew.

mod append;
mod bucket_id;
mod decimal;
mod document;
mod reads;
mod reply;
mod session;
mod statement;
mod tail;

use std::sync::Arc;

use mongodb::Database;

use super::Topology;
use crate::domain::Clock;

pub use append::{AppendError, Appended, Cause};
pub use bucket_id::BucketId;
pub use document::Bucket;
pub use reads::{Listing, Order, Summary};
pub use statement::{SecondsExhausted, next_second};

/// Name of the collection.
pub const COLLECTION: &str = "trades";

/// The histories of all customers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Trades(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    database: Database,
    clock: Clock,
    sessions: Arc<session::Sessions>,
    turns: append::Turns,
}

impl Trades {
    pub(super) fn new(database: Database, topology: Topology, clock: Clock) -> Self {
        let sessions = Arc::new(session::Sessions::new(database.client().clone(), topology));
        Self(Arc::new(Inner { database, clock, sessions, turns: append::Turns::default() }))
    }
}
