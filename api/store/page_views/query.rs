//! Reading, at majority, from whichever server is to be preferred.
//!
//! A counter may be counted on at any time, so that nobody can tell whether a server that lags shows it as it
//! is: whoever lets secondaries be read takes what they show, which is some moments old. One that does not
//! answer in time is passed over for the primary.

use std::time::Duration;

use mongodb::bson::{Document, RawDocumentBuf};
use mongodb::options::SelectionCriteria;

use super::PageViews;
use crate::store::majority::Patient;
use crate::store::measure::PREFERRED;
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
        let this = self.clone();
        deadline.read(async move { this.run_patiently(None, command, deadline).await }).await
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
        let (this, command) = (self.clone(), command.clone());
        let deadline = deadline.or_within(if work == Work::Much { LATER } else { SOON });
        let read = async move { this.run_patiently(Some(criteria), command, deadline).await };
        let found = deadline.read(read).await;
        let found = found.inspect_err(|error| {
            tracing::debug!(%error, "the preferred server did not show page views; the primary is asked");
        });
        let result = if found.is_ok() { "views" } else { "failed" };
        metrics::counter!(PREFERRED, "result" => result).increment(1);
        found.ok()
    }

    async fn run_patiently(
        &self,
        server: Option<SelectionCriteria>,
        mut command: Document,
        deadline: Deadline,
    ) -> Result<Vec<RawDocumentBuf>, Error> {
        let mut patient = Patient::new(None, deadline);
        loop {
            let (concern, limit) = patient.terms();
            command.insert("readConcern", concern);
            command.insert("maxTimeMS", limit);
            match self.run(server.clone(), command.clone()).await {
                Err(error) => patient.after(error).await?,
                found => return found,
            }
        }
    }

    async fn run(
        &self,
        server: Option<SelectionCriteria>,
        command: Document,
    ) -> Result<Vec<RawDocumentBuf>, Error> {
        let error = |error: mongodb::error::Error| Error::of(&error);
        let run = self.database.run_cursor_command(command);
        let run = match server {
            Some(server) => run.selection_criteria(server),
            None => run,
        };
        let mut cursor = run.await.map_err(error)?;
        let mut found = Vec::new();
        while cursor.advance().await.map_err(error)? {
            found.push(cursor.current().to_owned());
        }
        Ok(found)
    }
}
