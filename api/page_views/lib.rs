//! Page views, counted in one document for each page and minute.
//!
//! # Identity
//!
//! `{page, timestamp, totalViews, seconds: {"0": 3, "2": 14}}`: the views of one page in one minute of UTC,
//! by second. Page and minute together identify the bucket; `_id` is assigned by the server and means
//! nothing. A moment belongs to the minute and second that contain it: times are rounded down, also before
//! 1970.
//!
//! # Capacity
//!
//! A bucket has sixty counters and so at most some 800 bytes, however many views it counts. It is bounded by
//! time and not by count: a bucket is never full, and views of any minute may be counted at any time.
//!
//! # Atomicity
//!
//! Counting is one upsert for each page and minute, `{$inc: {totalViews: n, "seconds.14": n}}`. The database
//! adds, so the writer need not know the earlier value. Two guards in the database protect the shape against
//! every writer:
//!
//! - the unique index on `{page, timestamp}`: of two upserts that find no bucket, one inserts it; the other
//!   is refused (E11000) and finds the bucket at its next attempt. Without that index both insert a bucket,
//!   and one minute permanently has two documents, each with a part of the views;
//! - the validator: `totalViews` is the sum of `seconds`, and a timestamp is a whole minute.
//!
//! # Counting once
//!
//! `$inc` compares nothing: sent twice, it counts twice, and that cannot be detected later. So it is sent by
//! the same group commit as items of histories (`api/engine/append/group_commit.rs`). The queued views of one
//! page and minute become one statement ([`policy`]). A command whose answer is lost is replayed under its
//! number, which the server applies at most once. The outcome of a view ([`writes`]) is
//!
//! - *counted*: acknowledged at majority and journal;
//! - *not counted*: refused or never sent;
//! - *unknown*: no final answer came before the deadline. A command that was given up may still count once.
//!
//! A stored item can carry a hash of its idempotency key. A counted view leaves no trace by which a repeat
//! could be recognised, so there are no idempotency keys for views (`docs/reference/page-views.md`).
//!
//! # Preallocation
//!
//! The sixty buckets of an hour can be created in advance, with all counters 0, in one command
//! ([`writes`]). It inserts and never updates: if a bucket exists, the insert is refused (E11000) and the
//! bucket stays as it is. So no view is lost, whether counting or preallocation comes first.
//!
//! # Reading
//!
//! A series is one scan of the unique index, from its first minute to its last ([`spans`]). Points coarser
//! than a minute are added up in the database, because then less is sent. The totals of all pages are read by
//! the index on `timestamp` ([`spans`]). Every read has read concern majority. If a secondary is preferred,
//! its answer may be slightly older ([`engine`]).
//!
//! # Retention
//!
//! Views are kept without a limit, or for some days: then the index on `timestamp` is a TTL index
//! (`Store::keep_views_for`).

mod document;
mod engine;
mod page_path;
mod page_view;
mod policy;
mod resolution;
mod spans;
mod writes;

pub use document::MinuteBucket;
pub use engine::PageViews;
pub use page_path::PagePath;
pub use page_view::{
    PageView, Preallocation, parse_preallocation, parse_view_batch, parse_views, parse_views_by_line,
};
/// Name of the collection.
pub use pagebucket_engine::internal::PAGE_VIEWS as COLLECTION;
pub use policy::CountCause;
pub use resolution::{Minute, Resolution, SeriesSpan, SpanError};
pub use writes::{CountError, Preallocated};
