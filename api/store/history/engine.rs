use std::sync::Arc;

use mongodb::Database;

use super::catalog::Catalog;
use super::coalesce::Coalescer;
use super::connection::Connection;
use super::high_water::HighWater;
use super::messages::Appends;
use super::policy::AppendPolicy;
use super::upload_quota::UploadQuota;
use crate::domain::{Clock, CustomerId};
use crate::metric::QUEUED_TRADES;
use crate::store::group_commit::{Committers, Handle, Queue, Sessions};
use crate::store::majority::MonotonicReads;
use crate::store::{Capacity, ReadPreference};

/// The histories of all customers. Cheap to clone. The committers end when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Trades(pub(super) Arc<Inner>, pub(super) ReadPreference);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) database: Database,
    pub(super) reads: MonotonicReads,
    pub(super) connection: Arc<Connection>,
    pub(super) readers: Coalescer,
    pub(super) high_water: HighWater,
    /// Its units are trades.
    pub(super) queue: Queue,
    pub(super) upload_quota: UploadQuota,
    committers: Committers<Appends>,
}

impl Trades {
    pub(in crate::store) fn new(
        database: Database,
        sessions: Arc<Sessions>,
        clock: Clock,
        capacity: Capacity,
    ) -> Self {
        let reads = MonotonicReads::of(database.clone());
        let connection = Arc::new(Connection {
            database: database.clone(),
            reads: reads.clone(),
            sessions,
            clock,
            server_time: Default::default(),
        });
        let customers = capacity.catalog_customers.div_ceil(Committers::<Appends>::COUNT);
        let policy = |number| AppendPolicy::new(Arc::clone(&connection), Catalog::new(customers), number);
        let committers = Committers::start(policy);
        let queue = Queue::new(capacity.queued_trades, capacity.commit_time, QUEUED_TRADES);
        let upload_quota = UploadQuota::of(capacity.queued_trades);
        let (readers, high_water) = Default::default();
        let inner =
            Inner { database, reads, connection, readers, high_water, queue, upload_quota, committers };
        Self(Arc::new(inner), ReadPreference::Primary)
    }

    /// Waits until no appends are queued, including those of clients that have disconnected. New appends are
    /// refused meanwhile.
    pub async fn drain(&self) {
        self.0.queue.drain().await;
    }

    /// The committer of a customer, always the same one.
    pub(super) fn committer(&self, customer: CustomerId) -> &Handle<Appends> {
        self.0.committers.by_hash(customer.spread().into())
    }
}
