use std::sync::Arc;

use mongodb::Database;

use super::policy::{Connection, Counters};
use crate::metric::QUEUED_COUNTERS;
use crate::store::group_commit::{Committers, Queue, Sessions, durable};
use crate::store::majority::MonotonicReads;
use crate::store::{Capacity, ReadPreference};

/// The views of all pages. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PageViews {
    pub(super) preference: ReadPreference,
    pub(super) counting: Arc<Counting>,
}

/// The way of new views to the database. Its committers end when it is dropped.
#[derive(Debug)]
pub(super) struct Counting {
    pub(super) connection: Arc<Connection>,
    /// Its units are counters to add to: each request has one for each page and second.
    pub(super) queue: Queue,
    pub(super) committers: Committers<Counters>,
}

impl Counting {
    fn start(connection: Connection, capacity: Capacity) -> Arc<Self> {
        let connection = Arc::new(connection);
        let committers = Committers::start(|_number| Counters(Arc::clone(&connection)));
        let queue = Queue::new(capacity.counters(), capacity.commit_time, QUEUED_COUNTERS);
        Arc::new(Self { connection, queue, committers })
    }
}

impl PageViews {
    pub(in crate::store) fn new(database: Database, sessions: Arc<Sessions>, capacity: Capacity) -> Self {
        let reads = MonotonicReads::of(database.clone());
        let connection = Connection { database, reads, sessions, concern: durable };
        Self { preference: ReadPreference::Primary, counting: Counting::start(connection, capacity) }
    }

    /// The same views, counted as soon as one server has them in memory: what a failover or a crash takes
    /// away was acknowledged. For benchmarks, beside others that do so.
    #[cfg(feature = "bench")]
    pub(in crate::store) fn counting_at_w1(self, capacity: Capacity) -> Self {
        let Connection { database, reads, sessions, .. } = &*self.counting.connection;
        let (database, reads, sessions) = (database.clone(), reads.clone(), Arc::clone(sessions));
        let connection =
            Connection { database, reads, sessions, concern: |_| mongodb::bson::doc! { "w": 1 } };
        Self { counting: Counting::start(connection, capacity), ..self }
    }

    /// The same views, read from the preferred members. Counting always goes to the primary.
    #[must_use]
    pub(in crate::store) fn preferring(&self, preference: ReadPreference) -> Self {
        Self { preference, ..self.clone() }
    }
}
