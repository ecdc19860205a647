//! The page views of a database: how they are counted, and reads at read concern majority from the preferred
//! member.
//!
//! A counter may change at any time, so it cannot be decided whether a lagging member shows its current
//! value. If secondaries are preferred, their answer is used as it is and may be slightly old. If the
//! preferred member does not answer in time, the primary is read.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::options::SelectionCriteria;
use pagebucket_model::domain::{Minute, PagePath, ReadPreference};
use pagebucket_model::metric::{PREFERRED_READS, QUEUED_COUNTERS};

use super::document::{self, COLLECTION, MinuteBucket};
use super::policy::{CommitterContext, Counters};
use crate::append::group_commit::{Committers, Queue};
use crate::capacity::Capacity;
use crate::mongo::majority::{MonotonicReads, Query, at_most};
use crate::mongo::read_preference::{SOON, criteria};
use crate::mongo::session::{Sessions, durable};
use crate::mongo::{COMMAND, Deadline, Result};

/// The views of all pages. Cheap to clone. The committers end when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct PageViews {
    preference: ReadPreference,
    pub(crate) connection: Arc<CommitterContext>,
    /// Its units are counters to add to: each request has one for each page and second.
    pub(crate) queue: Queue,
    pub(crate) committers: Arc<Committers<Counters>>,
}

impl PageViews {
    pub(crate) fn new(reads: MonotonicReads, sessions: Arc<Sessions>, capacity: Capacity) -> Self {
        Self::over(CommitterContext { reads, sessions, concern: durable }, capacity)
    }

    fn over(connection: CommitterContext, capacity: Capacity) -> Self {
        let connection = Arc::new(connection);
        let committers = Arc::new(Committers::start(|_number| Counters(Arc::clone(&connection))));
        let queue = Queue::new(capacity.counters(), capacity.commit_time, QUEUED_COUNTERS);
        Self { preference: ReadPreference::Primary, connection, queue, committers }
    }

    /// The same views, counted as soon as one server has them in memory: what a failover or a crash takes
    /// away was acknowledged. For benchmarks, beside others that do so.
    #[cfg(feature = "bench")]
    pub(crate) fn counting_at_w1(self, capacity: Capacity) -> Self {
        let connection =
            CommitterContext { concern: |_| doc! { "w": 1 }, ..CommitterContext::clone(&self.connection) };
        Self { preference: self.preference, ..Self::over(connection, capacity) }
    }

    /// The same views, read from the preferred members. Counting always goes to the primary.
    #[must_use]
    pub(crate) fn preferring(&self, preference: ReadPreference) -> Self {
        Self { preference, ..self.clone() }
    }

    /// The bucket of one page and minute, if it exists.
    ///
    /// # Errors
    /// The database does not answer in time, or the bucket is corrupt.
    pub async fn bucket(
        &self,
        path: &PagePath,
        minute: Minute,
        deadline: Deadline,
    ) -> Result<Option<MinuteBucket>> {
        let hint = doc! { "page": 1, "timestamp": 1 };
        let command = at_most(COLLECTION, document::named(path, minute), 1, hint);
        let found = self.query(command, SOON, deadline).await?;
        Ok(found.first().map(|found| MinuteBucket::read(found)).transpose()?)
    }

    /// All documents that a `find` or `aggregate` command returns. A preferred member may take `patience`.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub(crate) async fn query(
        &self,
        command: Document,
        patience: Duration,
        deadline: Deadline,
    ) -> Result<Vec<RawDocumentBuf>> {
        let deadline = deadline.or_within(COMMAND);
        let read = |server: Option<SelectionCriteria>, command: Document, deadline: Deadline| {
            let own = |found: &RawDocument| Ok(found.to_owned());
            self.connection.reads.find(Query { server, ..Query::new(command, deadline) }, own)
        };
        if let Some(preferred) = criteria(self.preference) {
            let found = read(Some(preferred), command.clone(), deadline.or_within(patience)).await;
            let result = if found.is_ok() { "views" } else { "failed" };
            metrics::counter!(PREFERRED_READS, "result" => result).increment(1);
            let Err(error) = found else { return found };
            tracing::debug!(%error, "the preferred member did not return page views; the primary is read");
        }
        read(None, command, deadline).await
    }
}
