//! The page views of a database: how they are counted, and reads at read concern majority from the preferred
//! member.
//!
//! A counter may change at any time, so it cannot be decided whether a lagging member shows its current
//! value. If secondaries are preferred, their answer is used as it is and may be slightly old. If the
//! preferred member does not answer in time, the primary is read.

use std::sync::Arc;
use std::time::Duration;

use bson::{Document, RawDocumentBuf, doc};
use pagebucket_engine::internal::documents::{Committers, Documents, Queue, SOON};
use pagebucket_engine::internal::{COMMAND, PAGE_VIEWS, criteria};
use pagebucket_engine::{Capacity, Deadline, Result, Store};
use pagebucket_model::metric::{PREFERRED_READS, QUEUED_COUNTERS};

use crate::document::{self, MinuteBucket};
use crate::page_path::PagePath;
use crate::policy::Counters;
use crate::resolution::Minute;

/// Committers of views.
const COMMITTERS: usize = 4;

/// The views of all pages. Cheap to clone. The committers end when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct PageViews {
    pub(crate) documents: Documents,
    /// Its units are counters to add to: each request has one for each page and second.
    pub(crate) queue: Queue,
    pub(crate) committers: Arc<Committers<Counters>>,
}

impl PageViews {
    /// A counter that waits, in bytes, with its part of a command.
    pub const COUNTER: usize = 256;

    /// Those of a database. Counting always goes to the primary.
    pub fn of(store: &Store) -> Self {
        let documents = store.documents().clone();
        let committers = Arc::new(Committers::start(COMMITTERS, |_number| Counters(documents.clone())));
        let Capacity { queued_bytes, commit_time, .. } = documents.capacity;
        let queue = Queue::new((queued_bytes / Self::COUNTER).max(1), commit_time, QUEUED_COUNTERS);
        Self { documents, queue, committers }
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
        let command = doc! {
            "find": PAGE_VIEWS,
            "filter": document::named(path, minute),
            "limit": 1,
            "singleBatch": true,
            "hint": { "page": 1, "timestamp": 1 },
        };
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
        let documents = &self.documents;
        if let Some(preferred) = criteria(documents.preference) {
            let found = documents.find(command.clone(), Some(preferred), deadline.or_within(patience)).await;
            let result = if found.is_ok() { "views" } else { "failed" };
            metrics::counter!(PREFERRED_READS, "result" => result).increment(1);
            let Err(error) = found else { return found };
            tracing::debug!(%error, "the preferred member did not return page views; the primary is read");
        }
        documents.find(command, None, deadline).await
    }
}
