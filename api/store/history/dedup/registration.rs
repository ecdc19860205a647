use tokio::sync::oneshot;

use super::identity::RecordId;
use super::record::Record;
use crate::domain::CustomerId;
use crate::store::{Deadline, Error};

/// A key on its way to its record.
#[derive(Debug)]
pub(in crate::store::history) struct Registration {
    pub(in crate::store::history) customer: CustomerId,
    pub(in crate::store::history) id: RecordId,
    /// What it will be if it is the first. Its `from` is set when it is registered, unless it `keeps`.
    pub(in crate::store::history) proposed: Record,
    /// Whether it keeps the record of an upload that is under way: `from` is what the first registration read.
    pub(in crate::store::history) keeps: bool,
    pub(in crate::store::history) deadline: Deadline,
    pub(in crate::store::history) attempts: u32,
    pub(in crate::store::history) answer: oneshot::Sender<Result<Registered, Error>>,
}

/// What a key's record is, durably.
#[derive(Debug)]
pub(in crate::store::history) enum Registered {
    /// It was not there before. `inserted` is its `touched`, in milliseconds since 1970, where an insert made it.
    New { record: Record, inserted: Option<i64> },
    /// An earlier request has made it.
    Found(Record),
}

impl Registration {
    // A client that has hung up is not there to be told.
    pub(super) fn succeed(self, registered: impl FnOnce(Record) -> Registered) {
        let _ = self.answer.send(Ok(registered(self.proposed)));
    }

    pub(super) fn fail(self, error: Error) {
        let _ = self.answer.send(Err(error));
    }
}
