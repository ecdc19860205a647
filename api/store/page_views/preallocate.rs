//! The minutes of an hour, made before they are needed.

use mongodb::bson::Document;

use super::document::{self, COLLECTION};
use super::engine::PageViews;
use super::outcome::CountCause;
use super::policy::Connection;
use crate::domain::Preallocation;
use crate::store::group_commit::{Answer, Command, Outcome, Verdict, durable};
use crate::store::{COMMAND, Deadline, Error};

/// What became of the minutes of an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Preallocated {
    /// So many were made.
    pub created: u32,
    /// So many were there already, with views or without, and are as they were.
    pub existing: u32,
}

const MINUTES: u32 = 60;

impl PageViews {
    /// Makes those minutes of an hour that are not there, without views. To do so again changes nothing.
    ///
    /// It goes on to its end when the caller stops waiting. `deadline` is shortened to one command's.
    ///
    /// # Errors
    /// No database, or no answer to trust in time: some of the minutes may be there then, and it may be done
    /// again.
    pub async fn preallocate(
        &self,
        wanted: &Preallocation,
        deadline: Deadline,
    ) -> Result<Preallocated, CountCause> {
        let deadline = deadline.or_within(COMMAND);
        // Those after the year 9999 do not exist.
        let minutes = (0..MINUTES).filter_map(|minute| wanted.hour.plus(minute).ok());
        let documents: Vec<Document> = minutes.map(|minute| document::zeros(&wanted.path, minute)).collect();
        let command = Command::insert(COLLECTION, documents, durable(deadline));
        let Connection { database, reads, sessions, .. } = &*self.counting.connection;
        match sessions.commit(database, command, deadline).await {
            Outcome::Answered(Answer::Known { verdicts, at, .. }) => {
                if verdicts.contains(&Verdict::Stored) {
                    reads.learn(at);
                }
                judge(verdicts)
            }
            Outcome::Answered(Answer::Unknown(_)) | Outcome::Unknown => Err(CountCause::OutcomeUnknown),
            Outcome::NotSent(error) => Err(error.into()),
        }
    }
}

fn judge(verdicts: Vec<Verdict>) -> Result<Preallocated, CountCause> {
    let mut done = Preallocated::default();
    for verdict in verdicts {
        match verdict {
            Verdict::Stored => done.created += 1,
            Verdict::Refused => done.existing += 1,
            verdict => return Err(Error::Internal(format!("a minute was not made: {verdict:?}")).into()),
        }
    }
    Ok(done)
}
