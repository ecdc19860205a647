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
//! | append items, or the same request twice without harm, by its key | [`Engine::append`], [`Engine::append_once`] |
//! | append items only if the history has the total that was seen | [`AppendTerms::expected`](appends::AppendTerms::expected) |
//! | read a page, or the list of owners | [`HistoryReader::page`](reads::HistoryReader::page), [`HistoryReader::owners`](reads::HistoryReader::owners) |
//! | read totals, and any pages of one moment | [`HistoryReader::history`](reads::HistoryReader::history), [`History::totals`], [`History::pages`] |
//! | read the items beside a cursor, on whatever pages they are | [`History::window`] |
//! | find items of a span of time, or with given values, or both | [`History::dated`], [`History::matching`] |
//! | read all items, part by part | [`HistoryReader::export`](reads::HistoryReader::export) |
//! | wait for what is appended, in order and without a gap | [`Engine::watch`] |
//! | learn which owners have new items | [`Engine::follow_owners`] |
//! | compare what is stored with what must hold | [`Verifier::verify`](verify::Verifier::verify) |
//! | erase an owner | [`Erasures::erase`](erasures::Erasures::erase) |
//!
//! `examples/embed.rs` shows most of it in sixty lines. Everything that waits takes a [`Deadline`]. An append
//! goes on to its end even if its caller stops waiting; it is refused if less than 15 s are left for it. A
//! [`Store`] belongs to the tokio runtime that made it.
//!
//! How it works: `docs/architecture.md`, and the documentation of the modules, which
//! `cargo doc --document-private-items` shows.

mod adoptions;
mod api_keys;
mod capacity;
mod collection_guards;
mod group_commit;
mod history;
mod housekeeping;
mod marker_poll;
mod migrations;
mod mongo;
mod page_views;
mod sharding;
mod store;
mod tasks;
mod undefined_histories;

pub use capacity::Capacity;
pub use history::{Bucket, Engine, History};
pub use migrations::MigrationError;
pub use mongo::{
    ConnectError, ConnectionSettings, Corruption, Deadline, Error, Gone, Reason, Result, ServerVersion,
    Topology,
};
/// The driver's BSON, in the version that items are made of.
pub use mongodb::bson;
pub use pagebucket_model as model;
pub use store::Store;

/// What an append is asked and answers.
pub mod appends {
    pub use crate::history::{
        AppendCause, AppendError, AppendProgress, AppendTerms, Appended, LineRefusal, SecondsExhausted,
    };
}

/// Reads of pages, windows, owners and exports.
pub mod reads {
    pub use crate::history::{
        BucketId, Export, ExportBatch, FilterValues, FullPages, HistoryReader, OwnerList, SearchResult,
        StoredItem,
    };
}

/// Reads of what comes next.
pub mod live {
    pub use crate::history::{FollowError, LivePage, LiveReader, LiveStart, OwnersNews, OwnersReader};
    pub use crate::mongo::log_place::LogPlace;
}

/// What the items of a history add up to.
pub mod summaries {
    pub use crate::history::{SummaryError, SummaryPage, SummaryQuery, SummaryScan};
}

/// What the items of all owners add up to, from a native time-series collection.
pub mod series {
    pub use crate::history::{SeriesError, SeriesPage, SeriesQuery, SeriesRebuild};
}

/// Erasures of owners.
pub mod erasures {
    pub use crate::history::{Erasure, Erasures, Reopening};
}

/// Comparing what is stored with what must hold.
pub mod verify {
    pub use crate::history::verify::{Finding, Mended, Rule, Verifier};
}

/// What pagebucket's own crates need beyond the above. It may change at any time.
#[doc(hidden)]
pub mod internal {
    pub use crate::capacity::Ages;
    pub use crate::collection_guards::NUMBERED;
    pub use crate::group_commit::QueueClient;
    pub use crate::history::verify::{CollectionScan, Records, Scanned, TileFinding, TileScan};
    pub use crate::history::{
        Doubt, ErasureLine, ItemKey, Known, LoggedErasure, MOST_EXAMINED, MOST_SKIPPED, Mark, MarkedSoFar,
        Replay, Retention, Retired, Retirement, UploadedSoFar, Waiting, next_second, weight,
    };
    pub use crate::housekeeping::Housekeeping;
    pub use crate::migrations::Migration;
    pub use crate::migrations::epoch::Epoch;
    pub use crate::migrations::histories::KnownHistory;
    pub use crate::mongo::change_log::{ChangeLog, LogNews, LogScope, LogStart};
    pub use crate::mongo::read_preference::criteria;
    pub use crate::mongo::{COMMAND, COMMIT, CommandObserver, NO_PRIMARY};
    pub use crate::sharding::{ShardKey, shard_keys};

    /// What is remembered of adoptions.
    pub mod adoptions {
        pub use crate::adoptions::{Adoption, Adoptions};
    }

    /// The records of API keys.
    pub mod api_keys {
        pub use crate::api_keys::{ApiKeys, CreateError, KeyHash, KeyRecord, Revocation};
    }

    /// Page views, counted by the second.
    pub mod page_views {
        pub use crate::page_views::{
            COLLECTION, CountCause, CountError, MinuteBucket, PageViews, Preallocated,
        };
    }
}
