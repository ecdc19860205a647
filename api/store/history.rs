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
//! at majority ([`tails`], [`majority`](super::majority)); statements of one customer go in one ordered command, so
//! that a failed page never leaves a later one behind. Within one process a customer has at most one
//! commit under way; between processes the guards decide.
//!
//! # Group commit
//!
//! Appends queue at a few committers, by customer ([`group_commit`](super::group_commit), [`policy`]).
//! What has queued while the last commit was under way is merged ([`batch`]) and sent as one command or
//! few ([`commit`]). A keyed request that has to search a long history first leaves its commit
//! ([`catch_up`]). What is queued is bounded, in all and for each customer; uploads have a part of it
//! ([`upload_quota`]).
//!
//! # Reading
//!
//! Every page is one seek ([`find`]), whatever the length of the history. What is read belongs to the
//! moment at which the tail was: nothing before it changes ([`reads`]). No read shows less than an earlier one, nor
//! than was acknowledged before it, whichever server is primary ([`majority`](super::majority)). Of a moment that has been seen
//! before the tail need not be read again ([`high_water`]). Readers of one history at once
//! share commands ([`coalesce`]). Spans of time are found by an index of their own ([`date_scan`]).
//!
//! # Retry
//!
//! An answer means *stored*, *refused* or *unknown* ([`reply`](super::group_commit)). A refused append pauses for a
//! short random time, reads the tail again, from after the refusing write, and is placed again. An unknown one is replayed as the same
//! command under the same number, which the server applies at most once ([`session`](super::group_commit)), until it is
//! answered or its deadline passes; it is never placed anew. A standalone server has no numbers: there
//! the first lost answer is already an unknown outcome.

mod append;
mod append_lines;
mod append_once;
mod batch;
mod bucket_id;
mod catalog;
mod catch_up;
mod coalesce;
mod commit;
mod connection;
mod customers;
mod date_scan;
mod decimal;
mod dedup;
mod document;
mod engine;
mod export;
mod find;
mod high_water;
mod messages;
mod outcome;
mod policy;
mod reads;
mod request;
mod secondaries;
mod statement;
mod tail;
mod tails;
mod upload_quota;

pub use append_lines::UploadedSoFar;
pub use bucket_id::BucketId;
pub use customers::Customers;
pub use dedup::LineRefusal;
pub(super) use dedup::keep_for as keep_keys_for;
pub use document::{Bucket, COLLECTION};
pub use engine::Trades;
pub use export::Export;
pub use find::MOST_SKIPPED;
pub use outcome::{AppendError, Cause, Progress};
pub use reads::{FullPages, History};
pub use statement::{SecondsExhausted, next_second};
pub use upload_quota::Waiting;
