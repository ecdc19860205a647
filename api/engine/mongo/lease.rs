//! Leases: one holder at a time has a document, until its lease ends by the database's clock.
//!
//! A lease only saves work: a holder that stands still for longer loses it, and goes on when it wakes. What
//! two holders must not do at once compares a number of the lease, its *term*.

use std::time::Duration;

use mongodb::bson::{Bson, Document, doc};
use tokio::time::sleep;

use super::deadline::{COMMAND, Deadline};
use super::error::{Error, Result};
use super::majority::MonotonicReads;
use super::values::in_millis;

#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) reads: MonotonicReads,
    pub(crate) collection: &'static str,
    /// The document, as long as this holder has it.
    pub(crate) mine: Document,
    pub(crate) length: Duration,
}

impl Lease {
    /// Takes the lease if it is free or this holder's, and sets these fields. Returns the document, which a
    /// majority has.
    pub(crate) async fn take(&self, mut set: Document, deadline: Deadline) -> Result<Option<Document>> {
        set.insert("until", until(self.length));
        let ended = doc! { "$expr": { "$lt": ["$until", "$$NOW"] } };
        let query = doc! { "_id": self.mine.get("_id"), "$or": [self.mine.clone(), ended] };
        self.reads.find_and_update(self.collection, query, vec![doc! { "$set": set }], deadline).await
    }

    /// Takes a step, and renews the lease three times while it lasts. If that fails, `failed` says whether
    /// the step ends.
    pub(crate) async fn keeping<T>(
        &self,
        step: impl Future<Output = T>,
        failed: impl Fn(Error) -> Option<T>,
    ) -> T {
        let set = doc! { "$set": { "until": until(self.length) } };
        let renewals = async {
            loop {
                sleep(self.length / 3).await;
                let (mine, set) = (self.mine.clone(), vec![set.clone()]);
                let deadline = Deadline::within(COMMAND);
                let renewed = self.reads.find_and_update(self.collection, mine, set, deadline).await;
                let lost = || Error::Overtaken("another instance has the lease");
                if let Err(error) = renewed.and_then(|renewed| renewed.ok_or_else(lost))
                    && let Some(ended) = failed(error)
                {
                    return ended;
                }
            }
        };
        tokio::select! {
            done = step => done,
            ended = renewals => ended,
        }
    }
}

/// Until when a lease of this length lasts that is taken or renewed now.
pub(crate) fn until(length: Duration) -> Document {
    doc! { "$add": [Bson::String("$$NOW".to_owned()), in_millis(length)] }
}
