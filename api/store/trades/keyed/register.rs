//! Registering: a record for each key, at majority, before any of its trades is sent.
//!
//! A committer registers what has come meanwhile in one command, as it commits: a key costs a part
//! of a command and of a journal flush, not one of each.

use std::collections::HashMap;

use mongodb::bson::{Bson, Document, Timestamp, doc};
use tokio::sync::oneshot;

use super::RecordId;
use super::record::{self, COLLECTION, Record};
use crate::domain::CustomerId;
use crate::store::trades::commit::Connection;
use crate::store::trades::majority::Patient;
use crate::store::trades::reply::{Answer, Verdict};
use crate::store::trades::session::Outcome;
use crate::store::trades::tail::Tail;
use crate::store::trades::tails;
use crate::store::{COMMAND, Deadline, Error};

/// Most keys in one command.
pub(in crate::store::trades) const MOST: usize = 1_000;

/// Two that make the same record at once are refused in turns; this often says that something else is
/// wrong.
const MOST_ATTEMPTS: u32 = 20;

/// A key on its way to its record.
#[derive(Debug)]
pub(in crate::store::trades) struct Registration {
    pub(in crate::store::trades) customer: CustomerId,
    pub(super) id: RecordId,
    /// What it will be if it is the first. Its `from` is set when it is registered.
    pub(super) proposed: Record,
    pub(super) deadline: Deadline,
    pub(super) attempts: u32,
    pub(super) answer: oneshot::Sender<Result<Registered, Error>>,
}

/// What a key's record is, durably.
#[derive(Debug)]
pub(super) enum Registered {
    /// It was not there before.
    New(Record),
    /// An earlier request has made it.
    Found(Record),
}

/// What a committer learns meanwhile.
#[derive(Debug, Default)]
pub(in crate::store::trades) struct Learned {
    /// Tails that were not in the catalog.
    pub(in crate::store::trades) tails: Vec<Tail>,
    /// To be registered anew.
    pub(in crate::store::trades) again: Vec<Registration>,
}

/// Registers these keys, each with the known tail of its customer, if the catalog has one.
pub(in crate::store::trades) async fn run(
    connection: &Connection,
    registrations: Vec<(Registration, Option<Tail>)>,
) -> Learned {
    let mut learned = Learned::default();
    let ready = with_tails(connection, registrations, &mut learned).await;
    if ready.is_empty() {
        return learned;
    }
    let deadline = earliest(ready.iter().map(|registration| registration.deadline));
    let command = command(&ready, deadline);
    let outcome =
        connection.sessions.commit(&connection.database, command, ready.len(), false, deadline).await;
    let (verdicts, upserted, at) = match outcome {
        Outcome::Answered(Answer::Known { verdicts, upserted, at }) => (verdicts, upserted, at),
        Outcome::Answered(Answer::Unknown(_)) | Outcome::Unknown => {
            // Whether there is a record or not: none of the trades was sent.
            fail(ready, || Error::Unavailable("the outcome of a registration is unknown".to_owned()));
            return learned;
        }
        Outcome::NotSent(error) => {
            fail(ready, || error.clone());
            return learned;
        }
    };
    let mut found = Vec::new();
    for (index, (mut registration, verdict)) in ready.into_iter().zip(verdicts).enumerate() {
        match verdict {
            Verdict::Stored if upserted.contains(&index) => registration.succeed(Registered::New),
            Verdict::Stored => found.push(registration),
            // Another has made it at the same time, and it may not be at majority yet.
            Verdict::Refused | Verdict::NotRun if registration.attempts < MOST_ATTEMPTS => {
                registration.attempts += 1;
                learned.again.push(registration);
            }
            verdict => {
                registration.fail(Error::Internal(format!("a record was refused: {verdict:?}")));
            }
        }
    }
    read(connection, found, at).await;
    learned
}

/// Finds the tails that are not known, and sets where each search begins.
async fn with_tails(
    connection: &Connection,
    registrations: Vec<(Registration, Option<Tail>)>,
    learned: &mut Learned,
) -> Vec<Registration> {
    let cold = registrations.iter().filter(|(_, tail)| tail.is_none());
    let mut cold: Vec<_> = cold.map(|(registration, _)| registration.customer).collect();
    cold.sort_unstable_by_key(|customer| customer.get());
    cold.dedup();
    let deadline = earliest(registrations.iter().map(|(registration, _)| registration.deadline));
    let found = match cold.is_empty() {
        true => Ok(HashMap::new()),
        false => tails::find(&connection.database, cold, None, deadline).await,
    };
    if let Ok(found) = &found {
        learned.tails = found.values().filter_map(|tail| tail.as_ref().ok().copied()).collect();
    }
    let mut ready = Vec::with_capacity(registrations.len());
    for (mut registration, tail) in registrations {
        let tail = match (tail, &found) {
            (Some(tail), _) => Ok(Some(tail)),
            (None, Ok(found)) => found.get(&registration.customer).cloned().transpose().map_err(Error::from),
            (None, Err(error)) => Err(error.clone()),
        };
        match tail {
            Ok(tail) => {
                registration.proposed.from = Tail::totals(tail).trades();
                ready.push(registration);
            }
            Err(error) => registration.fail(error),
        }
    }
    ready
}

/// Reads the records that were there before.
async fn read(connection: &Connection, found: Vec<Registration>, at: Option<Timestamp>) {
    if found.is_empty() {
        return;
    }
    let deadline = earliest(found.iter().map(|registration| registration.deadline));
    let ids: Vec<_> = found.iter().map(|registration| registration.id).collect();
    let customers: Vec<_> = found.iter().map(|registration| registration.customer).collect();
    let database = connection.database.clone();
    let work = async move {
        let mut patient = Patient::new(at, deadline);
        loop {
            let (concern, limit) = patient.terms();
            let error = |error: mongodb::error::Error| Error::of(&error);
            let attempt = async {
                let find = record::find(&ids, &customers, concern, limit);
                let mut cursor = database.run_cursor_command(find).await.map_err(error)?;
                let mut records = HashMap::new();
                while cursor.advance().await.map_err(error)? {
                    let (id, record) = record::read(cursor.current())?;
                    records.insert(id, record);
                }
                if ids.iter().all(|id| records.contains_key(id)) {
                    return Ok(records);
                }
                // A new primary's majority may be behind what an old one has acknowledged.
                Err(Error::Unavailable("a record that was acknowledged is not shown".to_owned()))
            };
            match attempt.await {
                Ok(records) => return Ok(records),
                Err(error) => patient.after(error).await?,
            }
        }
    };
    match deadline.read(work).await {
        Ok(records) => {
            for mut registration in found {
                if let Some(record) = records.get(&registration.id) {
                    registration.proposed = record.clone();
                    registration.succeed(Registered::Found);
                }
            }
        }
        Err(error) => fail(found, || error.clone()),
    }
}

fn command(registrations: &[Registration], deadline: Deadline) -> Document {
    let upsert = |registration: &Registration| {
        Bson::from(record::upsert(registration.id, registration.customer, &registration.proposed))
    };
    updates(registrations.iter().map(upsert).collect(), deadline)
}

/// An `update` command on the records, at majority and journal.
pub(super) fn updates(updates: Vec<Bson>, deadline: Deadline) -> Document {
    doc! {
        "update": COLLECTION,
        "updates": updates,
        "ordered": false,
        "writeConcern": { "w": "majority", "j": true, "wtimeout": deadline.remaining_millis() },
    }
}

fn earliest(deadlines: impl Iterator<Item = Deadline>) -> Deadline {
    deadlines.fold(Deadline::within(COMMAND), Deadline::min)
}

fn fail(registrations: Vec<Registration>, error: impl Fn() -> Error) {
    registrations.into_iter().for_each(|registration| registration.fail(error()));
}

impl Registration {
    // A client that has hung up is not there to be told.
    fn succeed(self, registered: impl FnOnce(Record) -> Registered) {
        let _ = self.answer.send(Ok(registered(self.proposed)));
    }

    fn fail(self, error: Error) {
        let _ = self.answer.send(Err(error));
    }
}
