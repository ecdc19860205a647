//! [`Engine`]: the histories of one definition, and the doors to what they can do. `docs/architecture.md`
//! names the module of each protocol.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mongodb::bson::Timestamp;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{ReadPreference, Seq, Totals};
use parking_lot::Mutex;

use crate::append::appender::Appender;
use crate::append::group_commit::QueueClient;
use crate::append::queue::AppendQueue;
use crate::care::deletion::erase::Erasures;
use crate::care::deletion::erased_keys::KeyScans;
use crate::care::deletion::retire::Retirement;
use crate::care::verify::verifier::Verifier;
use crate::live::{Live, LiveHistory};
use crate::projections::series::control::Series;
use crate::projections::summaries::makers::TiledSummaries;
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
    /// The turns of the scans that examine records of keys, in the order of asking: a process has one.
    pub(crate) scan_turn: Arc<tokio::sync::Mutex<()>>,
    /// Owners whose last page is remembered, for each history.
    pub(crate) catalog_owners: usize,
}

#[derive(Debug)]
struct Shared {
    live: Live,
    summaries: TiledSummaries,
    series: Series,
    erasures: Erasures,
    retirement: Retirement,
}

impl Engine {
    pub(crate) fn new(definition: Arc<Definition>, context: &StoreContext) -> Self {
        let source = Arc::new(HistoryCollection::new(definition, context.access.clone()));
        let reads = HistoryReader::new(Arc::clone(&source));
        let live = LiveHistory { source: Arc::clone(&source), watched: Arc::default() };
        let shared = Shared {
            live: Live::new(reads.clone(), live.clone()),
            summaries: TiledSummaries::new(reads.clone()),
            series: Series { source: Arc::clone(&source) },
            erasures: Erasures {
                source,
                key_scans: KeyScans::new(Arc::clone(&context.scan_turn)),
                late: Mutex::default(),
            },
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
        Live { reader: self.reads.clone(), ..self.shared.live.clone() }
    }

    /// What live readers read.
    pub(crate) fn live_history(&self) -> &LiveHistory {
        &self.shared.live.rooms.history
    }

    /// Adds up the items of an owner.
    pub fn summaries(&self) -> TiledSummaries {
        TiledSummaries { reader: self.reads.clone(), ..self.shared.summaries.clone() }
    }

    /// Adds up the items of all owners, from the native time series.
    pub fn series(&self) -> &Series {
        &self.shared.series
    }

    /// Erases owners, and lets them begin again.
    pub fn erasures(&self) -> &Erasures {
        &self.shared.erasures
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
