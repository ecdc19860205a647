//! Histories of the items of one definition, in buckets. A page is a bucket.
//!
//! An item is a BSON document and a date ([`pagebucket_model::item::Item`]); nothing here looks inside. An [`Engine`] has
//! one [`Definition`](pagebucket_model::definition::Definition), which names the collection, the field of the owner and
//! the size of a page.
//!
//! # Identity
//!
//! A bucket's `_id` is `owner_second`, with the second in ten digits, zero-padded ([`BucketId`]). The
//! order of `_id` is the order of pages (invariant 3). The permanent name of a page is its number `page`; that
//! of an item is its sequence number, `(page - 1) * pageSize + position` (invariant 5). Totals are read from the last
//! bucket, the *tail*; nothing is ever counted.
//!
//! # Capacity
//!
//! A bucket holds at most `pageSize` items, and every bucket except the tail holds exactly as many
//! (invariant 2). A full bucket never changes (invariant 4).
//!
//! # Atomicity
//!
//! An append is *compare-and-append*: one conditional upsert for each bucket, which names the `_id` and the
//! count that it expects ([`statement`](mod@appends::statement)). Three guards inside the database decide every race:
//!
//! - the clustered `_id`: a statement that expects an old count finds no bucket, tries to insert an `_id` that
//!   exists, and is refused (E11000);
//! - the unique index on owner and page: of two writers that open one page under different seconds, one
//!   is refused (E11000);
//! - the validator: a statement that expects items in a bucket that does not exist would insert a bucket whose
//!   `count` is not the size of its `history`, and is refused (121).
//!
//! # Ordering
//!
//! Opening page P + 1 compares nothing about page P, so P must be known to be *permanently* full. A tail is
//! therefore known only from an append acknowledged at majority ([`catalog`](mod@buckets::catalog)), or from a read at majority
//! ([`tails`](mod@buckets::tails), [`majority`](crate::mongo::majority)). The statements of one owner go in one ordered command, so no
//! page is opened after a failed one. Within one process an owner has at most one commit under way; between
//! processes the guards decide.
//!
//! # Group commit
//!
//! Appends queue at a few committers, by owner ([`group_commit`](super::group_commit), [`policy`](mod@appends::policy)). The
//! appends that queued during the last commit are merged ([`batch`](mod@appends::batch)) and sent as one or a few commands
//! ([`commit`](mod@appends::commit)). A keyed request that must first search a long history leaves its commit for that time. The
//! queue is bounded in bytes, in total and for each owner; uploads may use a part of it ([`queue`](mod@appends::queue)).
//!
//! A request may expect a total ([`expectation`](mod@expectation)). Each commit judges it by its own tail.
//!
//! # Reading
//!
//! Every page is one seek ([`find`](mod@reads::find)), whatever the length of the history. A command asks for no more buckets
//! than fit into one reply ([`collection`](mod@collection)). The pages before a tail never change, so pages read later still
//! belong to the moment at which the tail was read ([`reads`](mod@reads::reader)). A read shows at least what an earlier read
//! showed and what was acknowledged before, whichever server is primary ([`majority`](crate::mongo::majority)). The
//! state up to an item that was read before can be read without reading the tail again ([`high_water`](mod@reads::high_water)).
//! Simultaneous readers of one history share commands ([`coalesce`](mod@reads::coalesce)). Spans of time have their own index
//! ([`date_scan`](mod@reads::date_scan)); items with given values are found by examining pages, a bounded number of them ([`matching`](mod@reads::matching)).
//!
//! # Summaries
//!
//! What items add up to by spans of time is read from pages, and from tiles: documents that say what 64 full pages add up to
//! ([`summaries`](mod@summaries)). A tile is a function of pages that never change, so nothing makes it invalid.
//!
//! # Time series
//!
//! What all owners together have is read from a native time-series collection, which is fed with the items from the database's changes ([`series`](mod@series)). The
//! history stays the truth.
//!
//! # Live
//!
//! Readers that wait for what comes next share a read of it ([`live`](mod@live)). They are woken by the commits of this process, and by one
//! change stream for those of others.
//!
//! # Deleted pages
//!
//! The oldest pages of a history may be *retired* ([`retire`](mod@deletion::retire)), and an owner may be *erased* ([`erase`](mod@deletion::erase)). What is left is a
//! *marker*, a bucket without items ([`marker`](mod@buckets::marker)), which every read of a tail meets. Page and sequence numbers go on, so no
//! address ever means two things. A history without markers pays nothing: a number that every instance asks for says whether
//! there are any ([`markers`](mod@collection::markers)). A page is opened only after a tail that was read a short time ago. The database checks that when it
//! stores the page ([`fence`](mod@collection::fence)), and pages are deleted only when it refuses everything that is older. `docs/architecture.md` adds up
//! the times.
//!
//! # Verification
//!
//! What is stored can be compared with the invariants, and partly repaired ([`verify`]).
//!
//! # Retry
//!
//! An answer means *stored*, *refused* or *unknown* ([`reply`](crate::mongo::reply)). A refused append pauses
//! for a short random time, reads the tail again, at a time after the refusing write, and is placed again. An
//! unknown append is replayed as the same command under the same number, which the server applies at most once
//! ([`session`](crate::mongo::session)), until it is answered or its deadline passes. It is never placed again. A
//! standalone server has no numbers: there the first lost answer is already an unknown outcome.

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
