//! Creates the buckets of an hour before they are needed.

use mongodb::bson::Document;

use super::document::{self, COLLECTION};
use super::engine::PageViews;
use super::outcome::CountCause;
use super::policy::Connection;
use crate::domain::Preallocation;
use crate::store::group_commit::{Answer, Command, Verdict, durable};
use crate::store::{COMMAND, Deadline, Error};

/// How many buckets of an hour were created or existed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Preallocated {
    /// The number of buckets that were created.
    pub created: u32,
    /// The number of buckets that existed, with views or without. They are unchanged.
    pub existing: u32,
}

const MINUTES: u32 = 60;

impl PageViews {
    /// Creates the missing buckets of an hour, without views. A repeat changes nothing.
    ///
    /// The work goes on to its end even if the caller stops waiting. `deadline` is shortened to one command's.
    ///
    /// # Errors
    /// The database does not answer, or gives no final answer in time. Some of the buckets may exist then, and
    /// the call may be repeated.
    pub async fn preallocate(
        &self,
        wanted: &Preallocation,
        deadline: Deadline,
    ) -> Result<Preallocated, CountCause> {
        let deadline = deadline.or_within(COMMAND);
        // Minutes after the year 9999 do not exist.
        let minutes = (0..MINUTES).filter_map(|minute| wanted.hour.plus(minute).ok());
        let documents: Vec<Document> = minutes.map(|minute| document::zeros(&wanted.path, minute)).collect();
        let command = Command::insert(COLLECTION, documents, durable(deadline));
        let Connection { database, reads, sessions, .. } = &*self.counting.connection;
        let Answer { verdicts, at, .. } = sessions.commit(database, command, deadline).await?;
        if verdicts.contains(&Verdict::Stored) {
            reads.learn(at);
        }
        let mut done = Preallocated::default();
        for verdict in verdicts {
            match verdict {
                Verdict::Stored => done.created += 1,
                Verdict::Refused => done.existing += 1,
                verdict => {
                    return Err(Error::Internal(format!("a bucket was not created: {verdict:?}")).into());
                }
            }
        }
        Ok(done)
    }
}
