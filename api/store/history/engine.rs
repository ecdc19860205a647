use std::sync::Arc;

use mongodb::Database;
use tokio::sync::mpsc::UnboundedSender;

use super::append_queue::AppendQueue;
use super::batch::Appends;
use super::catalog::Catalog;
use super::coalesce::Coalescer;
use super::dedup::{Registration, registrar};
use super::high_water::HighWater;
use super::policy::AppendPolicy;
use super::source::Source;
use crate::definition::Definition;
use crate::domain::{Clock, Seq, Totals};
use crate::store::ReadPreference;
use crate::store::group_commit::{COMMITTERS, Committers, Sessions};
use crate::store::majority::MonotonicReads;

/// The histories of all owners. Cheap to clone. The committers end when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Engine(pub(super) Arc<Inner>, pub(super) ReadPreference);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) source: Arc<Source>,
    pub(super) readers: Coalescer,
    pub(super) high_water: HighWater,
    pub(super) queue: AppendQueue,
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
        catalog_owners: usize,
    ) -> Self {
        let reads = MonotonicReads::of(database.clone());
        let (sessions, clock, server_time) = (Arc::clone(sessions), clock.clone(), Default::default());
        let source = Arc::new(Source { definition, database, reads, sessions, clock, server_time });
        let catalogs: [_; COMMITTERS] =
            std::array::from_fn(|_| Catalog::new(catalog_owners.div_ceil(COMMITTERS)));
        let policy = |number: usize| AppendPolicy::new(Arc::clone(&source), catalogs[number].clone(), number);
        let committers = Committers::start(policy);
        let registrars = catalogs.map(|catalog| registrar(Arc::clone(&source), catalog));
        let (readers, high_water) = Default::default();
        let inner = Inner { source, readers, high_water, queue: queue.clone(), committers, registrars };
        Self(Arc::new(inner), ReadPreference::Primary)
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
