//! Histories of the items of one definition, in buckets. A page is a bucket.
//!
//! An item is a BSON document and a date ([`pagebucket_model::item::Item`]); nothing here looks inside. An
//! [`Engine`] has one [`Definition`](pagebucket_model::definition::Definition), which names the collection,
//! the field of the owner and the size of a page.
//!
//! A bucket's `_id` is `owner_second`, with the second in ten digits, zero-padded ([`BucketId`]). The order
//! of `_id` is the order of pages (invariant 3). A bucket holds at most `pageSize` items, and every bucket
//! except the last, the *tail*, holds exactly as many (invariant 2). A full bucket never changes (invariant
//! 4). The permanent name of a page is its number `page`; that of an item is its sequence number,
//! `(page - 1) * pageSize + position` (invariant 5). Totals are read from the tail; nothing is ever counted.
//!
//! Each protocol stands in the documentation of its module:
//!
//! | Protocol | Module |
//! |---|---|
//! | compare and append, guards, what a reply means, group commit | [`appends`](mod@appends) |
//! | an append that expects a total | [`expectation`](mod@expectation) |
//! | an append with a key, stored once however often it is sent | [`dedup`](mod@dedup) |
//! | reading pages, windows, spans of time and values | [`reads`](mod@reads) |
//! | retiring pages and erasing owners, markers, the age of a tail | [`deletion`](mod@deletion) |
//! | the fence: a page is not opened too late | [`fence`](mod@collection::fence) |
//! | what items add up to by spans of time, tiles | [`summaries`](mod@summaries) |
//! | a native time series of all owners | [`series`](mod@series) |
//! | waiting for what is appended | [`live`](mod@live) |
//! | comparing what is stored with the invariants, and repairing it | [`verify`] |

mod appends;
mod buckets;
mod collection;
mod dedup;
mod deletion;
mod engine;
mod expectation;
mod identity;
mod live;
mod placed;
mod reads;
mod series;
mod summaries;
pub mod verify;

pub use appends::identified::{Mark, MarkedSoFar};
pub use appends::lines::UploadedSoFar;
pub(super) use appends::queue::AppendQueue;
pub use appends::queue::Waiting;
pub use appends::request::{AppendCause, AppendError, AppendProgress, AppendTerms, Appended, weight};
pub use appends::statement::{SecondsExhausted, next_second};
pub use buckets::bucket_id::BucketId;
pub use buckets::document::{Bucket, StoredItem};
pub(super) use collection::DatabaseAccess;
pub(super) use dedup::{RECORDS, keep_for as keep_keys_for};
pub use deletion::erase::{Erasure, Erasures, Reopening};
pub(super) use deletion::erased_keys::ScanTurn;
pub use deletion::erasure_log::{ErasureLine, LoggedErasure};
pub use deletion::replay::Replay;
pub use deletion::retention_clock::Doubt;
pub use deletion::retire::{Retention, Retired, Retirement};
pub use engine::Engine;
pub(super) use engine::StoreContext;
pub use identity::ItemKey;
pub(super) use live::feed::start as start_live_feed;
pub use live::{FollowError, LivePage, LiveReader, LiveStart, OwnersNews, OwnersReader};
pub use placed::LineRefusal;
pub use reads::cursor_search::SearchResult;
pub use reads::export::{Export, ExportBatch};
pub use reads::find::MOST_SKIPPED;
pub use reads::matching::{FilterValues, MOST_EXAMINED};
pub use reads::owners::OwnerList;
pub use reads::reader::{FullPages, History, HistoryReader, Known};
pub use series::build::Rebuild as SeriesRebuild;
pub use series::scan::{SeriesError, SeriesPage, SeriesQuery};
pub use summaries::scan::{SummaryError, SummaryPage, SummaryQuery, SummaryScan};
pub(super) use summaries::tiles::{COLLECTION as TILES, KEPT as KEPT_TILES, forget_all as forget_tiles};
