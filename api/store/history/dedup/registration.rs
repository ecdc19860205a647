use tokio::sync::oneshot;

use super::identity::RecordId;
use super::record::Record;
use crate::domain::OwnerId;
use crate::store::{Deadline, Error};

/// A key to register.
#[derive(Debug)]
pub(in crate::store::history) struct Registration {
    pub(in crate::store::history) owner: OwnerId,
    pub(in crate::store::history) id: RecordId,
    /// The record to insert if the key has none yet. The registration sets its `from`, unless it `keeps` a record.
    pub(in crate::store::history) proposed: Record,
    /// Whether this keeps the record of an upload under way. Then `from` is the value of the first
    /// registration.
    pub(in crate::store::history) keeps: bool,
    pub(in crate::store::history) deadline: Deadline,
    pub(in crate::store::history) attempts: u32,
    pub(in crate::store::history) answer: oneshot::Sender<Result<Registered, Error>>,
}

/// The durable record of a key.
#[derive(Debug)]
pub(in crate::store::history) enum Registered {
    /// This registration created the record. `inserted` is the record's `touched`, in milliseconds since 1970,
    /// if an insert created it and not an upsert.
    New { record: Record, inserted: Option<i64> },
    /// An earlier request created the record.
    Found(Record),
}

impl Registration {
    // Sending fails if the client has disconnected.
    pub(super) fn succeed(self, registered: impl FnOnce(Record) -> Registered) {
        let _ = self.answer.send(Ok(registered(self.proposed)));
    }

    pub(super) fn fail(self, error: Error) {
        let _ = self.answer.send(Err(error));
    }
}
