//! Reading, at majority, from whichever server is to be preferred.
//!
//! A counter may be counted on at any time, so that nobody can tell whether a server that lags shows it as it
//! is: whoever lets secondaries be read takes what they show, which is some moments old. One that does not
//! answer in time is passed over for the primary.

use std::time::Duration;

use mongodb::bson::{Document, RawDocumentBuf};
use mongodb::options::SelectionCriteria;

use super::engine::PageViews;
use crate::metric::PREFERRED_READS;
use crate::store::majority::MonotonicReads;
use crate::store::read_preference::SOON;
use crate::store::{COMMAND, Deadline, Error};

/// How much there is to do for a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A few documents.
    Little,
    /// As many as a span of time has: another server than the primary is given time for it.
    Much,
}

/// What another server than the primary is given for much work.
const LATER: Duration = Duration::from_secs(10);

impl PageViews {
    /// All documents that a `find` or `aggregate` command answers with.
    ///
    /// # Errors
    /// No database in time.
    pub(super) async fn query(
        &self,
        command: Document,
        work: Work,
        deadline: Deadline,
    ) -> Result<Vec<RawDocumentBuf>, Error> {
        let deadline = deadline.or_within(COMMAND);
        if let Some(found) = self.preferred(&command, work, deadline).await {
            return Ok(found);
        }
        let reads = self.reads.clone();
        deadline.read(async move { run(&reads, None, &command, deadline).await }).await
    }

    /// The same of a server other than the primary, if one is preferred and answers. `None` says no more than
    /// that the primary is to be asked.
    async fn preferred(
        &self,
        command: &Document,
        work: Work,
        deadline: Deadline,
    ) -> Option<Vec<RawDocumentBuf>> {
        let criteria = self.preference.criteria()?;
        let (reads, command) = (self.reads.clone(), command.clone());
        let deadline = deadline.or_within(if work == Work::Much { LATER } else { SOON });
        let read = async move { run(&reads, Some(&criteria), &command, deadline).await };
        let found = deadline.read(read).await;
        let found = found.inspect_err(|error| {
            tracing::debug!(%error, "the preferred server did not show page views; the primary is asked");
        });
        let result = if found.is_ok() { "views" } else { "failed" };
        metrics::counter!(PREFERRED_READS, "result" => result).increment(1);
        found.ok()
    }
}

async fn run(
    reads: &MonotonicReads,
    server: Option<&SelectionCriteria>,
    command: &Document,
    deadline: Deadline,
) -> Result<Vec<RawDocumentBuf>, Error> {
    reads.find(server, command, None, deadline, |found| Ok(found.to_owned())).await
}
