//! Append-only histories in MongoDB, each item stored exactly once, any page at the cost of the first.
//!
//! A *definition* ([`model::definition::Definition`]) says whose histories they are, how many items a page
//! has, and what an item is. The items of an owner live in buckets: documents of a page of items each. A page
//! is a bucket.
//!
//! | To | Use |
//! |---|---|
//! | open a database, and create what its histories need | [`Store::connect`], [`Store::migrate`] |
//! | find the histories of a definition | [`Store::history`] |
//! | append items, or the same request twice without harm, by its key | [`Appender::append`](appends::Appender::append), with [`Append::once`](appends::Append::once) |
//! | append items only if the history has the total that was seen | [`AppendTerms::expected`](appends::AppendTerms::expected) |
//! | read a page, or the list of owners | [`HistoryReader::page`](reads::HistoryReader::page), [`HistoryReader::owners`](reads::HistoryReader::owners) |
//! | read totals, and any pages of one moment | [`HistoryReader::history`](reads::HistoryReader::history), [`History::totals`], [`History::pages`] |
//! | read the items beside a cursor, on whatever pages they are | [`History::window`] |
//! | find items of a span of time, or with given values, or both | [`History::dated`], [`History::matching`] |
//! | read all items, part by part | [`HistoryReader::export`](reads::HistoryReader::export) |
//! | wait for what is appended, in order and without a gap | [`Live::watch`](live::Live::watch) |
//! | learn which owners have new items | [`Live::follow_owners`](live::Live::follow_owners) |
//! | compare what is stored with what must hold | [`Verifier::verify`](verify::Verifier::verify) |
//! | erase an owner | [`Erasures::erase`](erasures::Erasures::erase) |
//!
//! An [`Engine`] has a door to each. `examples/embed.rs` shows most of it in sixty lines. Everything that
//! waits takes a [`Deadline`]. An append goes on to its end even if its caller stops waiting; it is refused
//! if less than 15 s are left for it. A [`Store`] belongs to the tokio runtime that made it.
//!
//! How it works: `docs/architecture.md`, and the documentation of the modules, which
//! `cargo doc --document-private-items` shows.

mod adoptions;
mod api_keys;
mod append;
mod capacity;
mod care;
mod database;
mod documents;
mod engine;
mod housekeeping;
pub mod live;
mod marker_poll;
mod mongo;
mod projections;
mod store;
mod tasks;
mod undefined_histories;

pub use capacity::Capacity;
pub use care::migrations::MigrationError;
pub use database::Store;
pub use engine::Engine;
pub use mongo::{
    ConnectError, ConnectionSettings, Corruption, Deadline, Error, Gone, Reason, Result, ServerVersion,
    Topology,
};
/// The driver's BSON, in the version that items are made of.
pub use mongodb::bson;
pub use pagebucket_model as model;
pub use store::buckets::document::Bucket;
pub use store::reads::reader::History;

/// What a first program uses.
pub mod prelude {
    pub use pagebucket_model::definition::Definition;
    pub use pagebucket_model::domain::{Clock, Cursor, IdempotencyKey, Limit, PageNumber, Window};
    pub use pagebucket_model::item::canonical;

    pub use crate::append::input::{Append, Once};
    pub use crate::capacity::Capacity;
    pub use crate::database::Store;
    pub use crate::engine::Engine;
    pub use crate::mongo::{ConnectionSettings, Deadline};
}

/// What an append is asked and answers.
pub mod appends {
    pub use crate::append::appender::Appender;
    pub use crate::append::input::{Append, AppendTerms, Once};
    pub use crate::append::placed::LineRefusal;
    pub use crate::append::request::{AppendCause, AppendError, AppendProgress, Appended};
    pub use crate::append::statement::SecondsExhausted;
}

/// Reads of pages, windows, owners and exports.
pub mod reads {
    pub use crate::store::buckets::bucket_id::BucketId;
    pub use crate::store::buckets::document::StoredItem;
    pub use crate::store::reads::cursor_search::SearchResult;
    pub use crate::store::reads::export::{Export, ExportBatch};
    pub use crate::store::reads::matching::FilterValues;
    pub use crate::store::reads::owners::OwnerList;
    pub use crate::store::reads::reader::{FullPages, HistoryReader};
}

/// What the items of a history add up to.
pub mod summaries {
    pub use crate::projections::summaries::makers::TiledSummaries;
    pub use crate::projections::summaries::scan::{SummaryError, SummaryPage, SummaryQuery, SummaryScan};
}

/// What the items of all owners add up to, from a native time-series collection.
pub mod series {
    pub use crate::projections::series::build::Rebuild as SeriesRebuild;
    pub use crate::projections::series::control::Series;
    pub use crate::projections::series::query::{SeriesError, SeriesPage, SeriesQuery};
}

/// Erasures of owners.
pub mod erasures {
    pub use crate::care::deletion::erase::{Erasure, Erasures, Reopening};
}

/// Comparing what is stored with what must hold.
pub mod verify {
    pub use crate::care::verify::{Finding, Mended, Rule, Verifier};
}

/// What pagebucket's own crates need beyond the above. It may change at any time.
#[doc(hidden)]
pub mod internal {
    pub use crate::append::appender::APPEND_ONCE;
    pub use crate::append::group_commit::QueueClient;
    pub use crate::append::input::{IdentifiedSoFar, SourceKey, UploadedSoFar};
    pub use crate::append::queue::Waiting;
    pub use crate::append::request::weight;
    pub use crate::append::statement::next_second;
    pub use crate::capacity::Ages;
    pub use crate::care::collection_guards::{NUMBERED, PAGE_VIEWS};
    pub use crate::care::deletion::erasure_log::{ErasureLine, LoggedErasure};
    pub use crate::care::deletion::replay::Replay;
    pub use crate::care::deletion::retention_clock::Doubt;
    pub use crate::care::deletion::retire::{Retention, Retired, Retirement};
    pub use crate::care::migrations::Migration;
    pub use crate::care::sharding::{ShardKey, shard_keys};
    pub use crate::care::verify::{CollectionScan, Records, Scanned, TileFinding, TileScan};
    pub use crate::housekeeping::Housekeeping;
    pub use crate::mongo::change_log::{ChangeLog, LogNews, LogScope, LogStart};
    pub use crate::mongo::read_preference::criteria;
    pub use crate::mongo::{COMMAND, COMMIT, CommandObserver, NO_PRIMARY};
    pub use crate::store::buckets::identity::ItemKey;
    pub use crate::store::epoch::Epoch;
    pub use crate::store::histories::KnownHistory;
    pub use crate::store::reads::find::MOST_SKIPPED;
    pub use crate::store::reads::matching::MOST_EXAMINED;
    pub use crate::store::reads::reader::Known;

    /// Tasks that live longer than a request.
    pub mod tasks {
        pub use crate::tasks::{KeptTasks, start};
    }

    /// What is remembered of adoptions.
    pub mod adoptions {
        pub use crate::adoptions::{Adoption, Adoptions};
    }

    /// The records of API keys.
    pub mod api_keys {
        pub use crate::api_keys::{ApiKeys, CreateError, KeyHash, KeyRecord, Revocation};
    }

    /// For a crate that keeps documents that are no histories.
    pub mod documents {
        pub use crate::append::group_commit::{
            BatchPolicy, Committers, Handle, Messages, NoAnswer, Pending, Queue, Ticket,
        };
        pub use crate::documents::Documents;
        pub use crate::mongo::read_preference::SOON;
        pub use crate::mongo::reply::Verdict;
        pub use crate::mongo::session::Unanswered;
        pub use crate::mongo::values::{date, instant};
    }
}
