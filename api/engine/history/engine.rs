use std::sync::Arc;
use std::sync::atomic::Ordering;

use mongodb::Database;
use mongodb::bson::Timestamp;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Clock, OwnerId, ReadPreference, Seq, Totals};
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::append_queue::AppendQueue;
use super::batch::Appends;
use super::catalog::{self, Catalog};
use super::coalesce::Coalescer;
use super::dedup::{Registration, registrar};
use super::erased_keys::{KeyScans, ScanTurn};
use super::fence::{ReadTime, ServerClock};
use super::high_water::HighWater;
use super::late_walk::LateWalk;
use super::markers::Markers;
use super::policy::AppendPolicy;
use super::retention_clock::RetentionClock;
use super::source::{Source, millis};
use crate::capacity::Capacity;
use crate::group_commit::{COMMITTERS, Committers};
use crate::moment::Moment;
use crate::mongo::majority::MonotonicReads;
use crate::mongo::session::Sessions;
use crate::mongo::{Deadline, Result};

/// The histories of all owners. Cheap to clone. The committers end when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Engine(pub(super) Arc<Inner>, pub(super) ReadPreference);

/// What was known of deleted pages at some moment.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    markers: i64,
    at: Moment,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) source: Arc<Source>,
    pub(super) readers: Coalescer,
    pub(super) high_water: HighWater,
    pub(super) queue: AppendQueue,
    pub(super) key_scans: KeyScans,
    /// Where the walk of [`Engine::retire`] over all owners goes on.
    pub(super) walk: Mutex<Option<OwnerId>>,
    /// Where the walk of [`Engine::erase_late`] goes on.
    pub(super) late_walk: Mutex<LateWalk>,
    pub(super) retention_clock: RetentionClock,
    /// Those of the committers.
    pub(super) catalogs: [Catalog; COMMITTERS],
    pub(super) committers: Committers<Appends>,
    /// Those of keys, one beside each committer.
    pub(super) registrars: [UnboundedSender<Registration>; COMMITTERS],
}

impl Engine {
    pub(crate) fn new(
        definition: Arc<Definition>,
        database: Database,
        sessions: &Arc<Sessions>,
        clock: &Clock,
        queue: &AppendQueue,
        capacity: Capacity,
        scan_turn: &ScanTurn,
    ) -> Self {
        let reads = MonotonicReads::of(database);
        let (sessions, clock, server_time) = (Arc::clone(sessions), clock.clone(), Default::default());
        let server_clock = ServerClock::default();
        let markers = Markers::new(capacity.ages);
        let known_item_bytes = Default::default();
        let source = Source {
            definition,
            reads,
            sessions,
            clock,
            server_time,
            server_clock,
            markers,
            known_item_bytes,
        };
        let source = Arc::new(source);
        let catalogs: [_; COMMITTERS] =
            std::array::from_fn(|_| catalog::new(capacity.catalog_owners.div_ceil(COMMITTERS)));
        let policy = |number: usize| AppendPolicy::new(Arc::clone(&source), catalogs[number].clone(), number);
        let committers = Committers::start(policy);
        let registrars = catalogs.clone().map(|catalog| registrar(Arc::clone(&source), catalog));
        let (readers, high_water, walk, late_walk) = Default::default();
        let key_scans = KeyScans::new(scan_turn.clone());
        let queue = queue.clone();
        let retention_clock = RetentionClock::new(&source.clock);
        let inner = Inner {
            source,
            readers,
            high_water,
            queue,
            key_scans,
            walk,
            late_walk,
            retention_clock,
            catalogs,
            committers,
            registrars,
        };
        Self(Arc::new(inner), ReadPreference::Primary)
    }

    /// The time of a question that is asked now, if the database's clock was seen a short time ago.
    pub(crate) fn read_time_if_known(&self) -> Option<ReadTime> {
        self.0.source.read_time_if_known()
    }

    /// Looks at the database's clock.
    ///
    /// # Errors
    /// The database did not answer in time.
    pub(crate) async fn look_at_clock(&self, deadline: Deadline) -> Result<()> {
        self.0.source.look_at_clock(deadline).await.map(drop)
    }

    /// Learns how many markers were written, read at `read`. The answer came at the cluster time `at`.
    pub(crate) fn learn_markers(&self, count: i64, read: Option<ReadTime>, at: Option<Timestamp>) {
        let Inner { source, catalogs, high_water, .. } = &*self.0;
        source.reads.learn(at);
        if let Some(at) = at {
            source.learn_clock(millis(at));
        }
        if source.markers.learn(count, read) && count > 0 {
            catalogs.iter().for_each(|catalog| catalog.lock().clear());
            high_water.clear();
        }
    }

    /// Learns how many bytes an item may take, by what the database remembers.
    pub(crate) fn learn_item_bytes(&self, most: i64) {
        self.0.source.known_item_bytes.store(usize::try_from(most).unwrap_or(0), Ordering::Relaxed);
    }

    /// What is known now. Taken before a page is read.
    pub fn known_now(&self) -> Known {
        Known { markers: self.0.source.markers.count(), at: Moment::now(&self.0.source.clock) }
    }

    /// Whether a page that was read then is still there, or was until a short time ago.
    pub fn still_holds(&self, known: Known) -> bool {
        let Source { markers, clock, .. } = &*self.0.source;
        // One comparison as long as no page was deleted.
        !markers.any(clock)
            || known.markers == markers.count() && known.at.is_within(markers.ages.tail, clock)
    }

    /// Sends when pages may have been deleted.
    pub fn deletions(&self) -> watch::Receiver<()> {
        self.0.source.markers.changes()
    }

    /// The definition of these histories.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.0.source.definition
    }

    /// The totals of a history that ends with `last`, or of an empty one.
    pub fn totals(&self, last: Option<Seq>) -> Totals {
        self.0.source.totals(last)
    }
}
