//! Registers keys: stores a record for each key, at majority, before any of the key's items is sent.
//!
//! A committer registers all keys that arrived during the last registration in one command, as it commits. So
//! many keys share a command and a journal flush.

use std::collections::HashMap;
use std::time::Duration;

use mongodb::bson::{Bson, RawBson, doc};

use super::record::{self, COLLECTION};
use super::registration::{Registered, Registration};
use super::server_time::was_outdated;
use crate::store::group_commit::{Answer, Command, Handle, Unanswered, Verdict, durable, judge};
use crate::store::history::connection::Connection;
use crate::store::history::messages::{Appends, Message};
use crate::store::history::tail::Tail;
use crate::store::history::tails;
use crate::store::{Deadline, Error};

/// The most keys in one command.
pub(in crate::store::history) const MOST: usize = 1_000;

/// How long to wait for an insert before it is sent again. A repeat is safe: it either inserts the record or
/// finds it.
pub(super) const ATTEMPT: Duration = Duration::from_secs(2);

/// Two attempts that insert the same record at once refuse each other a few times. More refusals have another
/// cause.
const MOST_ATTEMPTS: u32 = 20;

/// Registers these keys, each with the known tail of its owner if the catalog has one. Sends the committer
/// the tails that had to be read, before any append can need them, and the keys to register again.
pub(in crate::store::history) async fn register(
    connection: &Connection,
    registrations: Vec<(Registration, Option<Tail>)>,
    committer: &Handle<Appends>,
) {
    let (kept, first) = registrations.into_iter().partition(|(registration, _)| registration.keeps);
    let kept: Vec<(Registration, Option<Tail>)> = kept;
    let ready = with_tails(connection, first, committer).await;
    let mut existing = insert(connection, ready).await;
    existing.extend(kept.into_iter().map(|(registration, _)| registration));
    for registration in touch(connection, existing).await {
        // The committer still exists, because `committer` is a handle of it.
        committer.send(Message::Register(registration));
    }
}

/// Inserts the records that do not exist, and returns the registrations of the others: almost always none. One
/// insert of many records costs the server less than as many upserts. It needs no number: a record whose answer
/// was lost is found. Records that were inserted with an outdated time are returned too: they must be touched
/// before an item is sent.
async fn insert(connection: &Connection, registrations: Vec<Registration>) -> Vec<Registration> {
    let (Some(now), false) = (connection.server_time.now(), registrations.is_empty()) else {
        return registrations;
    };
    let deadline = Deadline::latest(registrations.iter().map(|registration| registration.deadline));
    let document = |registration: &Registration| {
        let Registration { id, owner, proposed, .. } = registration;
        Bson::from(record::document(record::query(&connection.source, *id, owner), proposed, now))
    };
    let command = doc! {
        "insert": COLLECTION,
        "documents": registrations.iter().map(document).collect::<Vec<_>>(),
        "ordered": false,
        "writeConcern": durable(deadline),
    };
    let (database, count) = (connection.database.clone(), registrations.len());
    let work = async move {
        let mut attempt = 0;
        loop {
            let (database, command) = (database.clone(), command.clone());
            // A frozen server never answers, and at the next attempt another server may be primary.
            let insert = async move { database.run_command(command).await };
            let why = match deadline.or_within(ATTEMPT).spawn(insert).await {
                None => "no answer".to_owned(),
                Some(Ok(reply)) => match judge(&reply, count, false) {
                    Ok(answer) => return Ok(answer),
                    Err(why) => why,
                },
                Some(Err(error)) => match error.into() {
                    Error::Unavailable(why) => why,
                    error => return Err(error),
                },
            };
            if deadline.passed() {
                return Err(Error::Unavailable(why));
            }
            tracing::debug!(attempt, why, "a registration is retried");
            deadline.back_off(attempt).await;
            attempt += 1;
        }
    };
    match deadline.read(work).await {
        Ok(Answer { verdicts, at, .. }) => {
            connection.server_time.learn(at);
            let outdated = was_outdated(at, now);
            let mut existing = Vec::new();
            for (registration, verdict) in registrations.into_iter().zip(verdicts) {
                match verdict {
                    Verdict::Stored if outdated => existing.push(registration),
                    Verdict::Stored => {
                        registration.succeed(|record| Registered::New { record, inserted: Some(now) });
                    }
                    Verdict::Refused | Verdict::NotRun => existing.push(registration),
                    Verdict::Malformed(detail) => registration.fail(Error::Internal(detail)),
                }
            }
            existing
        }
        Err(error) => {
            fail(registrations, &error);
            Vec::new()
        }
    }
}

/// Touches the records that exist, which prolongs their life, and reads them; inserts the others. Returns the
/// registrations to try again.
async fn touch(connection: &Connection, registrations: Vec<Registration>) -> Vec<Registration> {
    let mut again = Vec::new();
    if registrations.is_empty() {
        return again;
    }
    let deadline = Deadline::latest(registrations.iter().map(|registration| registration.deadline));
    let upsert = |registration: &Registration| {
        let query = record::query(&connection.source, registration.id, &registration.owner);
        Bson::from(record::upsert(query, &registration.proposed))
    };
    let command = updates(registrations.iter().map(upsert).collect(), deadline);
    let answer = connection.sessions.commit(&connection.database, command, deadline).await;
    let Answer { verdicts, upserted, at } = match answer {
        Ok(answer) => answer,
        Err(unanswered) => {
            let error = match unanswered {
                // `Unavailable` is right even if the record is stored: no item was sent.
                Unanswered::Unknown => {
                    Error::Unavailable("the outcome of a registration is unknown".to_owned())
                }
                Unanswered::NotSent(error) => error,
            };
            fail(registrations, &error);
            return again;
        }
    };
    connection.server_time.learn(at);
    if verdicts.contains(&Verdict::Stored) {
        connection.source.reads.learn(at);
    }
    let mut found = Vec::new();
    for (index, (mut registration, verdict)) in registrations.into_iter().zip(verdicts).enumerate() {
        match verdict {
            Verdict::Stored if upserted.contains(&index) => {
                registration.succeed(|record| Registered::New { record, inserted: None });
            }
            Verdict::Stored => found.push(registration),
            // Another attempt inserted the record at the same time, and it may not be at majority yet.
            Verdict::Refused | Verdict::NotRun if registration.attempts < MOST_ATTEMPTS => {
                registration.attempts += 1;
                again.push(registration);
            }
            verdict => registration.fail(Error::Internal(format!("a record was refused: {verdict:?}"))),
        }
    }
    read(connection, found).await;
    again
}

/// Reads the tails that are not known, and sets `from`, where each search begins.
async fn with_tails(
    connection: &Connection,
    registrations: Vec<(Registration, Option<Tail>)>,
    committer: &Handle<Appends>,
) -> Vec<Registration> {
    let cold = registrations.iter().filter(|(_, tail)| tail.is_none());
    let mut cold: Vec<_> = cold.map(|(registration, _)| registration.owner.clone()).collect();
    cold.sort_unstable();
    cold.dedup();
    let deadline = Deadline::latest(registrations.iter().map(|(registration, _)| registration.deadline));
    let found = match cold.is_empty() {
        true => Ok(HashMap::new()),
        false => tails::find(&connection.source, cold, None, deadline).await,
    };
    if let Ok(found) = &found {
        let tails = found.iter();
        let tails = tails.filter_map(|(owner, tail)| Some((owner.clone(), *tail.as_ref().ok()?))).collect();
        committer.send(Message::Found(tails));
    }
    let mut ready = Vec::with_capacity(registrations.len());
    for (mut registration, tail) in registrations {
        let tail = match (tail, &found) {
            (Some(tail), _) => Ok(Some(tail)),
            (None, Ok(found)) => found.get(&registration.owner).cloned().transpose().map_err(Error::from),
            (None, Err(error)) => Err(error.clone()),
        };
        match tail {
            Ok(tail) => {
                registration.proposed.from = Tail::items(tail);
                ready.push(registration);
            }
            Err(error) => registration.fail(error),
        }
    }
    ready
}

/// Reads the records that existed before.
async fn read(connection: &Connection, found: Vec<Registration>) {
    if found.is_empty() {
        return;
    }
    let deadline = Deadline::latest(found.iter().map(|registration| registration.deadline));
    let ids: Vec<_> = found.iter().map(|registration| registration.id).collect();
    let owners: Vec<_> = found.iter().map(|registration| registration.owner.clone()).collect();
    let (reads, find) = (connection.source.reads.clone(), record::find(&connection.source, &ids, &owners));
    let work = async move { reads.find(None, &find, None, deadline, record::read).await };
    match deadline.read(work).await {
        Ok(records) => {
            let records: HashMap<_, _> = records.into_iter().collect();
            for mut registration in found {
                match records.get(&registration.id) {
                    Some(record) => {
                        registration.proposed = record.clone();
                        registration.succeed(Registered::Found);
                    }
                    // The record was just touched, so it exists unless an operator has removed it meanwhile.
                    None => registration.fail(Error::Unavailable("a record was not found".to_owned())),
                }
            }
        }
        Err(error) => fail(found, &error),
    }
}

/// A command of durable updates of records, each independent of the others.
pub(in crate::store::history) fn updates(updates: Vec<Bson>, deadline: Deadline) -> Command {
    Command::update(COLLECTION, updates.into_iter().map(RawBson::try_from), false, durable(deadline))
}

fn fail(registrations: Vec<Registration>, error: &Error) {
    registrations.into_iter().for_each(|registration| registration.fail(error.clone()));
}
