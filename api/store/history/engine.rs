use std::sync::Arc;

use mongodb::Database;

use super::append_queue::AppendQueue;
use super::catalog::Catalog;
use super::coalesce::Coalescer;
use super::connection::Connection;
use super::high_water::HighWater;
use super::messages::Appends;
use super::policy::AppendPolicy;
use super::source::Source;
use crate::definition::Definition;
use crate::domain::{Clock, OwnerId, Seq, Totals};
use crate::store::ReadPreference;
use crate::store::group_commit::{Committers, Handle, Sessions};
use crate::store::majority::MonotonicReads;

/// The histories of all owners. Cheap to clone. The committers end when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Engine(pub(super) Arc<Inner>, pub(super) ReadPreference);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) source: Source,
    pub(super) connection: Arc<Connection>,
    pub(super) readers: Coalescer,
    pub(super) high_water: HighWater,
    pub(super) queue: AppendQueue,
    committers: Committers<Appends>,
}

impl Engine {
    pub(in crate::store) fn new(
        definition: Arc<Definition>,
        database: Database,
        sessions: Arc<Sessions>,
        clock: Clock,
        queue: &AppendQueue,
        catalog_owners: usize,
    ) -> Self {
        let source = Source { reads: MonotonicReads::of(database.clone()), definition };
        let connection = Arc::new(Connection {
            database,
            source: source.clone(),
            sessions,
            clock,
            server_time: Default::default(),
        });
        let owners = catalog_owners.div_ceil(Committers::<Appends>::COUNT);
        let policy = |number| AppendPolicy::new(Arc::clone(&connection), Catalog::new(owners), number);
        let committers = Committers::start(policy);
        let (readers, high_water) = Default::default();
        let inner = Inner { source, connection, readers, high_water, queue: queue.clone(), committers };
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

    /// The committer of an owner, always the same one.
    pub(super) fn committer(&self, owner: &OwnerId) -> &Handle<Appends> {
        self.0.committers.by_hash(owner.spread())
    }
}
