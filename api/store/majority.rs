//! Reads at majority, and patience while the database comes back.

use mongodb::bson::{Document, Timestamp, doc};

use crate::store::{Deadline, Error, NO_PRIMARY};

/// A read that is attempted again while the database is away, for as long as a primary may be
/// unknown.
pub(in crate::store) struct Patient {
    after: Option<Timestamp>,
    deadline: Deadline,
    patience: Deadline,
    attempts: u32,
}

impl Patient {
    /// `after` is the time from which on the read must see, where that is known.
    pub(in crate::store) fn new(after: Option<Timestamp>, deadline: Deadline) -> Self {
        Self { after, deadline, patience: deadline.or_within(NO_PRIMARY), attempts: 0 }
    }

    /// The read concern of the next attempt, and its limit in milliseconds.
    pub(in crate::store) fn terms(&self) -> (Document, i64) {
        match self.after {
            Some(after) => {
                (doc! { "level": "majority", "afterClusterTime": after }, self.patience.remaining_millis())
            }
            None => (doc! { "level": "majority" }, self.deadline.remaining_millis()),
        }
    }

    /// Waits until another attempt makes sense after this error.
    ///
    /// # Errors
    /// None does.
    pub(in crate::store) async fn after(&mut self, error: Error) -> Result<(), Error> {
        match error {
            // After a failover the time to wait for may never come, and a clock that was set back may be
            // refused. A majority read without it is as safe; at worst the next append is refused again.
            Error::Unavailable(why) | Error::Internal(why) if self.after.take().is_some() => {
                tracing::debug!(why, "dropped afterClusterTime");
            }
            Error::Unavailable(why) if !self.patience.passed() => {
                tracing::debug!(why, "a read is tried again")
            }
            error => return Err(error),
        }
        self.patience.back_off(self.attempts).await;
        self.attempts += 1;
        Ok(())
    }
}
