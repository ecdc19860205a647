//! Reads of page views, at read concern majority, from the preferred member.
//!
//! A counter may change at any time, so it cannot be decided whether a lagging member shows its current value.
//! If secondaries are preferred, their answer is used as it is and may be slightly old. If the preferred member
//! does not answer in time, the primary is read.

use std::time::Duration;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::options::SelectionCriteria;

use super::document::{self, COLLECTION, MinuteBucket};
use super::engine::PageViews;
use crate::domain::{Minute, PagePath};
use crate::metric::PREFERRED_READS;
use crate::store::read_preference::SOON;
use crate::store::{COMMAND, Deadline, Error};

/// How long a preferred member may take for a read of as many documents as a span of time has.
pub(super) const LATER: Duration = Duration::from_secs(10);

impl PageViews {
    /// The bucket of one page and minute, if it exists.
    ///
    /// # Errors
    /// The database does not answer in time, or the bucket is corrupt.
    pub async fn bucket(
        &self,
        path: &PagePath,
        minute: Minute,
        deadline: Deadline,
    ) -> Result<Option<MinuteBucket>, Error> {
        let command = doc! {
            "find": COLLECTION,
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
    pub(super) async fn query(
        &self,
        command: Document,
        patience: Duration,
        deadline: Deadline,
    ) -> Result<Vec<RawDocumentBuf>, Error> {
        let deadline = deadline.or_within(COMMAND);
        let read = |server: Option<SelectionCriteria>, command: Document, deadline: Deadline| {
            let reads = self.counting.connection.reads.clone();
            let own = |found: &RawDocument| Ok(found.to_owned());
            deadline.read(async move { reads.find(server.as_ref(), &command, None, deadline, own).await })
        };
        if let Some(preferred) = self.preference.criteria() {
            let found = read(Some(preferred), command.clone(), deadline.or_within(patience)).await;
            let result = if found.is_ok() { "views" } else { "failed" };
            metrics::counter!(PREFERRED_READS, "result" => result).increment(1);
            match found {
                Ok(found) => return Ok(found),
                Err(error) => {
                    tracing::debug!(%error, "the preferred member did not return page views; the primary is read");
                }
            }
        }
        read(None, command, deadline).await
    }
}
