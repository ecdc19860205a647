//! How a crate above this one keeps documents that are no histories: by numbered commands and majority reads.

use std::sync::Arc;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, Document, RawBson, RawDocumentBuf};
use mongodb::options::SelectionCriteria;
use pagebucket_model::domain::ReadPreference;

use crate::capacity::Capacity;
use crate::mongo::majority::{MonotonicReads, Query};
use crate::mongo::reply::Verdict;
use crate::mongo::session::{Sessions, Unanswered, WriteCommand};
use crate::mongo::{Deadline, Result, durable};

/// Reads and writes documents of a database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Documents {
    pub(crate) reads: MonotonicReads,
    pub(crate) sessions: Arc<Sessions>,
    /// The write concern of updates with this deadline.
    pub(crate) concern: fn(Deadline) -> Document,
    /// The members that are to be read first.
    pub preference: ReadPreference,
    /// Limits of queues.
    pub capacity: Capacity,
}

impl Documents {
    /// What a `find` or `aggregate` command returns at read concern majority, from the primary or this
    /// server.
    pub async fn find(
        &self,
        command: Document,
        server: Option<SelectionCriteria>,
        deadline: Deadline,
    ) -> Result<Vec<RawDocumentBuf>> {
        let own = |found: &RawDocument| Ok(found.to_owned());
        self.reads.query(Query { server, ..Query::new(command, deadline) }, own).await
    }

    /// Updates documents, each independently of the others. Returns what became of each.
    pub async fn update(
        &self,
        collection: &str,
        updates: impl Iterator<Item = Document>,
        deadline: Deadline,
    ) -> Result<Vec<Verdict>, Unanswered> {
        let updates = updates.map(|update| RawBson::try_from(Bson::from(update)));
        let command = WriteCommand::update(collection, updates, false, (self.concern)(deadline));
        Ok(self.sessions.commit(&self.reads, command, deadline).await?.verdicts)
    }

    /// Inserts documents, each independently of the others. Returns what became of each.
    pub async fn insert(
        &self,
        collection: &str,
        documents: Vec<Document>,
        deadline: Deadline,
    ) -> Result<Vec<Verdict>, Unanswered> {
        let documents = documents.into_iter().map(|document| RawBson::try_from(Bson::from(document)));
        let command = WriteCommand::insert(collection, documents, false, durable(deadline));
        Ok(self.sessions.commit(&self.reads, command, deadline).await?.verdicts)
    }
}
