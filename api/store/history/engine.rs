use std::sync::Arc;
use std::time::Instant;

use mongodb::Database;
use mongodb::bson::Timestamp;
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::append_queue::AppendQueue;
use super::batch::Appends;
use super::catalog::{self, Catalog};
use super::coalesce::Coalescer;
use super::dedup::{Registration, registrar};
use super::erased_keys::KeyScans;
use super::high_water::HighWater;
use super::markers::Markers;
use super::policy::AppendPolicy;
use super::source::Source;
use crate::definition::Definition;
use crate::domain::{Clock, OwnerId, ReadPreference, Seq, Totals};
use crate::store::Capacity;
use crate::store::group_commit::{COMMITTERS, Committers, Sessions};
use crate::store::majority::MonotonicReads;
use crate::store::moment::Moment;

/// The histories of all owners. Cheap to clone. The committers end when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Engine(pub(super) Arc<Inner>, pub(super) ReadPreference);

/// What was known of deleted pages at some moment.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    markers: i64,
    at: Instant,
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
    /// Those of the committers.
    pub(super) catalogs: [Catalog; COMMITTERS],
    pub(super) committers: Committers<Appends>,
    /// Those of keys, one beside each committer.
    pub(super) registrars: [UnboundedSender<Registration>; COMMITTERS],
}

impl Engine {
    pub(in crate::store) fn new(
        definition: Arc<Definition>,
        database: Database,
        sessions: &Arc<Sessions>,
        clock: &Clock,
        queue: &AppendQueue,
        capacity: Capacity,
    ) -> Self {
        let reads = MonotonicReads::of(database);
        let (sessions, clock, server_time) = (Arc::clone(sessions), clock.clone(), Default::default());
        let markers = Markers::new(capacity.ages);
        let source = Source { definition, reads, sessions, clock, server_time, markers };
        let source = Arc::new(source);
        let catalogs: [_; COMMITTERS] =
            std::array::from_fn(|_| catalog::new(capacity.catalog_owners.div_ceil(COMMITTERS)));
        let policy = |number: usize| AppendPolicy::new(Arc::clone(&source), catalogs[number].clone(), number);
        let committers = Committers::start(policy);
        let registrars = catalogs.clone().map(|catalog| registrar(Arc::clone(&source), catalog));
        let (readers, high_water, key_scans, walk) = Default::default();
        let queue = queue.clone();
        let inner =
            Inner { source, readers, high_water, queue, key_scans, walk, catalogs, committers, registrars };
        Self(Arc::new(inner), ReadPreference::Primary)
    }

    /// The present, by the clock of appends.
    pub(in crate::store) fn now(&self) -> Moment {
        Moment::now(&self.0.source.clock)
    }

    /// Learns how many markers were written; the question was asked at `asked`, and answered at the cluster time `at`.
    pub(in crate::store) fn learn_markers(&self, count: i64, asked: Moment, at: Option<Timestamp>) {
        let Inner { source, catalogs, high_water, .. } = &*self.0;
        source.reads.learn(at);
        if source.markers.learn(count, asked) && count > 0 {
            catalogs.iter().for_each(|catalog| catalog.lock().clear());
            high_water.clear();
        }
    }

    /// What is known now. Taken before a page is read.
    pub fn known_now(&self) -> Known {
        Known { markers: self.0.source.markers.count(), at: Instant::now() }
    }

    /// Whether a page that was read then is still there, or was until a short time ago.
    pub fn still_holds(&self, known: Known) -> bool {
        let markers = &self.0.source.markers;
        // One comparison as long as no page was deleted.
        !markers.any() || known.markers == markers.count() && known.at.elapsed() < markers.ages.tail
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
