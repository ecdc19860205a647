//! [`Engine`]: the histories of one definition, and the doors to what they can do.
//!
//! Each protocol stands in the documentation of its module:
//!
//! | Protocol | Module |
//! |---|---|
//! | compare and append, guards, what a reply means, group commit | [`append`](mod@crate::append) |
//! | an append that expects a total | [`expectation`](mod@crate::append::expectation) |
//! | an append with a key, stored once however often it is sent | [`keys`](mod@crate::append::keys) |
//! | reading pages, windows, spans of time and values | [`reads`](mod@crate::store::reads) |
//! | retiring pages and erasing owners, markers, the age of a tail | [`deletion`](mod@crate::care::deletion) |
//! | the fence: a page is not opened too late | [`fence`](mod@crate::store::collection::fence) |
//! | what items add up to by spans of time, tiles | [`summaries`](mod@crate::projections::summaries) |
//! | a native time series of all owners | [`series`](mod@crate::projections::series) |
//! | waiting for what is appended | [`live`](mod@crate::live) |
//! | comparing what is stored with the invariants, and repairing it | [`verify`](mod@crate::care::verify) |

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mongodb::bson::Timestamp;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{ReadPreference, Seq, Totals};

use crate::append::appender::Appender;
use crate::append::group_commit::QueueClient;
use crate::append::queue::AppendQueue;
use crate::care::deletion::erase::Erasures;
use crate::care::deletion::erased_keys::ScanTurn;
use crate::care::deletion::erased_late::LateErasures;
use crate::care::deletion::retire::Retirement;
use crate::care::verify::verifier::Verifier;
use crate::live::{Followers, Live, LiveHistory, Rooms};
use crate::projections::series::control::Series;
use crate::projections::summaries::makers::{TileState, TiledSummaries};
use crate::store::collection::fence::ReadTime;
use crate::store::collection::{DatabaseAccess, HistoryCollection, millis};
use crate::store::reads::reader::HistoryReader;

/// The histories of all owners that have one definition. Cheap to clone. The committers end when the last
/// clone is dropped.
#[derive(Clone, Debug)]
pub struct Engine {
    appends: Appender,
    reads: HistoryReader,
    shared: Arc<Shared>,
}

/// What all histories of a store share. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct StoreContext {
    pub(crate) access: DatabaseAccess,
    pub(crate) appends: AppendQueue,
    pub(crate) scan_turn: ScanTurn,
    /// Owners whose last page is remembered, for each history.
    pub(crate) catalog_owners: usize,
}

#[derive(Debug)]
struct Shared {
    rooms: Rooms,
    followers: Followers,
    tiles: Arc<TileState>,
    series: Series,
    erasures: Erasures,
    late_erasures: LateErasures,
    retirement: Retirement,
}

impl Engine {
    pub(crate) fn new(definition: Arc<Definition>, context: &StoreContext) -> Self {
        let source = Arc::new(HistoryCollection::new(definition, context.access.clone()));
        let reads = HistoryReader::new(Arc::clone(&source));
        let live = LiveHistory { source: Arc::clone(&source), watched: Arc::default() };
        let shared = Shared {
            rooms: Rooms::new(live.clone()),
            followers: Followers::new(live.clone()),
            tiles: Arc::default(),
            series: Series { source: Arc::clone(&source) },
            erasures: Erasures::new(source, context.scan_turn.clone()),
            late_erasures: LateErasures::default(),
            retirement: Retirement::new(reads.clone()),
        };
        let appends = Appender::new(live, context.appends.clone(), context.catalog_owners);
        Self { appends, reads, shared: Arc::new(shared) }
    }

    /// The definition of these histories.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.reads.source.definition
    }

    /// The totals of a history that ends with `last`, or of an empty one.
    pub fn totals(&self, last: Option<Seq>) -> Totals {
        self.reads.source.totals(last)
    }

    /// Stores items.
    pub fn appends(&self) -> &Appender {
        &self.appends
    }

    /// Reads pages, windows, owners and exports.
    pub fn reads(&self) -> &HistoryReader {
        &self.reads
    }

    /// Waits for what is appended.
    pub fn live(&self) -> Live {
        let (rooms, followers) = (self.shared.rooms.clone(), self.shared.followers.clone());
        Live { reader: self.reads.clone(), rooms, followers }
    }

    /// What live readers read.
    pub(crate) fn live_history(&self) -> &LiveHistory {
        &self.shared.rooms.history
    }

    /// Adds up the items of an owner.
    pub fn summaries(&self) -> TiledSummaries {
        TiledSummaries { reader: self.reads.clone(), state: Arc::clone(&self.shared.tiles) }
    }

    /// Adds up the items of all owners, from the native time series.
    pub fn series(&self) -> &Series {
        &self.shared.series
    }

    /// Erases owners, and lets them begin again.
    pub fn erasures(&self) -> &Erasures {
        &self.shared.erasures
    }

    /// Deletes what was stored after its owner was erased.
    pub(crate) fn late_erasures(&self) -> &LateErasures {
        &self.shared.late_erasures
    }

    /// Deletes old pages, for our own crates.
    #[doc(hidden)]
    pub fn retirement(&self) -> &Retirement {
        &self.shared.retirement
    }

    /// Compares what is stored with what must hold, and mends it.
    pub fn verifier(&self) -> Verifier {
        Verifier { reader: self.reads.clone() }
    }

    /// The same histories for a client, whose appends may hold a quarter of the queue. Without a client, as
    /// in a program that has none, they may hold all of it.
    #[doc(hidden)]
    #[must_use]
    pub fn on_behalf_of(self, client: Option<QueueClient>) -> Self {
        Self { appends: Appender { client, ..self.appends }, ..self }
    }

    /// The same histories, with full pages read from the preferred members.
    #[must_use]
    pub(crate) fn preferring(&self, preference: ReadPreference) -> Self {
        Self { reads: self.reads.preferring(preference), ..self.clone() }
    }

    /// Learns how many markers were written, read at `read`. The answer came at the cluster time `at`.
    pub(crate) fn learn_markers(&self, count: Option<i64>, read: Option<ReadTime>, at: Option<Timestamp>) {
        let source = &self.reads.source;
        source.reads.time.learn(at);
        if let Some(at) = at {
            source.learn_clock(millis(at));
        }
        if source.markers.learn(count, read) && count != Some(0) {
            self.appends.forget();
            self.reads.forget();
        }
    }

    /// Learns how many bytes an item may take, by what the database remembers.
    pub(crate) fn learn_item_bytes(&self, most: i64) {
        let known = &self.reads.source.known_item_bytes;
        known.store(usize::try_from(most).unwrap_or(0), Ordering::Relaxed);
    }
}
