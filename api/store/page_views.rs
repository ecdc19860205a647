//! Views of pages, counted in a document for each page and minute.
//!
//! # Identity
//!
//! `{page, timestamp, totalViews, seconds: {"0": 3, "2": 14}}`: the views of one page in one minute of UTC, by
//! the second. The pair of page and minute is the bucket's name; `_id` is the server's own and means nothing.
//! A moment belongs to the minute and the second that it is in, rounded down, before 1970, too.
//!
//! # Capacity
//!
//! Sixty counters a bucket, so that it has at most some 800 bytes, whatever is counted. It is bounded by time
//! and not by count: nothing is ever full, and any minute may be counted in at any time.
//!
//! # Atomicity
//!
//! Counting is one upsert a page and minute, `{$inc: {totalViews: n, "seconds.14": n}}`: the database adds, so
//! that nobody need know what was there. Two guards inside it hold the shape against every writer:
//!
//! - the unique `{page, timestamp}`: of two upserts that find no bucket one inserts it, and the other is turned
//!   away (E11000) and finds it the next time. Without that index both insert one: two documents for one minute,
//!   each with a part of the views, for ever;
//! - the validator: `totalViews` is the sum of `seconds`, a timestamp is a whole minute.
//!
//! # Counting once
//!
//! `$inc` compares nothing: sent twice, it counts twice, and afterwards nobody can tell. So it is sent by the group
//! commit that trades have ([`super::group_commit`]): what has queued for one page and minute becomes one
//! statement ([`policy`]), and a command whose answer is lost is replayed under its number, which the server
//! applies at most once. What comes of a view ([`count`]) is *counted*, acknowledged at majority and journal;
//! *not counted*, refused or never sent; or *unknown*, when no answer came before the deadline that can be
//! trusted: a command that was given up may yet count once. Unlike a trade a view leaves
//! nothing behind by which a repeat could be recognised: there are no idempotency keys here (`docs/page-views.md`).
//!
//! # Preallocation
//!
//! The sixty minutes of an hour can be made beforehand, all zeros, in one command ([`preallocate`]). It inserts and
//! never updates: a bucket that is there refuses it (E11000) and stays as it is, so that no view is lost, whoever
//! comes first.
//!
//! # Reading
//!
//! A series is one scan of the unique index, from its first minute to its last ([`series`]); what is coarser than
//! a minute is added up in the database, where that is less to send. What all pages had goes by the index on
//! `timestamp` alone ([`top`]). Everything is read at majority; where a secondary is preferred its answer may be
//! some moments older ([`query`]).
//!
//! # Retention
//!
//! For ever, or for some days: then the index on `timestamp` is a TTL index ([`retention`]).

mod bucket;
mod count;
mod document;
mod engine;
mod outcome;
mod policy;
mod preallocate;
mod query;
mod retention;
mod series;
mod top;

pub use document::{COLLECTION, MinuteBucket};
pub use engine::PageViews;
pub use outcome::{CountCause, CountError};
pub use preallocate::Preallocated;
pub(super) use retention::keep_for;
pub use series::Series;
pub use top::PageTotal;
