//! Registers keys: stores a record for each key, at majority, before any of the key's items is sent.
//!
//! A registrar registers all keys that arrived during the last registration in one command. So many keys
//! share a command and a journal flush, as appends share commits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::{Bson, RawBson, doc};
use pagebucket_model::domain::OwnerId;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::record::{self, ATTEMPT, COLLECTION, MOST_READ, Record, was_outdated};
use crate::mongo::reply::{Answer, Verdict, judge};
use crate::mongo::session::WriteCommand;
use crate::mongo::{Deadline, Error, Result, durable};
use crate::store::buckets::bucket_id::Tail;
use crate::store::buckets::catalog::{Catalog, KnownTail};
use crate::store::buckets::identity::RecordId;
use crate::store::buckets::tails::Tails;
use crate::store::collection::HistoryCollection;
use crate::store::collection::fence::ReadTime;
use crate::tasks;

/// The most keys in one command.
const MOST: usize = 1_000;

/// How long a registration may take before the next begins beside it. An ordinary one takes milliseconds.
const TURN: Duration = Duration::from_secs(1);

/// Two attempts that insert the same record at once refuse each other a few times. More refusals have another
/// cause.
const MOST_ATTEMPTS: u32 = 20;

#[derive(Debug)]
pub(crate) struct Registration {
    pub owner: OwnerId,
    pub id: RecordId,
    /// The record to insert if the key has none yet. The registration sets its `from`, unless it `keeps` a
    /// record.
    pub proposed: Record,
    /// Whether this keeps the record of an upload under way. Then `from` is the value of the first
    /// registration.
    pub keeps: bool,
    pub deadline: Deadline,
    pub attempts: u32,
    /// When the registration began, if the database's time was known.
    pub read: Option<ReadTime>,
    pub answer: oneshot::Sender<Result<Registered>>,
}

/// The durable record of a key.
#[derive(Debug)]
pub(crate) struct Registered {
    pub record: Record,
    /// Whether this registration created the record, and not an earlier request.
    pub is_new: bool,
    /// The record's `touched`, in milliseconds since 1970, if this registration created it by an insert and
    /// not by an upsert.
    pub inserted: Option<i64>,
    /// When the history was no longer than `from` of the record, if this registration created it and the time
    /// is known.
    pub read: Option<ReadTime>,
}

impl Registration {
    // Sending fails if the client has disconnected.
    fn succeed(self, is_new: bool, inserted: Option<i64>) {
        let _ = self.answer.send(Ok(Registered { record: self.proposed, is_new, inserted, read: self.read }));
    }

    fn fail(self, error: Error) {
        let _ = self.answer.send(Err(error));
    }
}

/// Starts a task that registers keys of owners in this catalog. It ends when the sender is dropped. A panic
/// of a registration ends that alone: those who wait for it are told.
pub(crate) fn registrar(source: Arc<HistoryCollection>, catalog: Catalog) -> UnboundedSender<Registration> {
    let (sender, mut inbox) = unbounded_channel();
    let own = sender.downgrade();
    tasks::start("registrar", async move {
        let mut keys = Vec::new();
        while inbox.recv_many(&mut keys, MOST).await > 0 {
            // Without a sender, no client waits.
            let Some(own) = own.upgrade() else { return };
            let work = register(Arc::clone(&source), catalog.clone(), std::mem::take(&mut keys), own);
            // One after the other, unless one takes long.
            let _ = timeout(TURN, tasks::start("registrar", work)).await;
        }
    });
    sender
}

async fn register(
    source: Arc<HistoryCollection>,
    catalog: Catalog,
    registrations: Vec<Registration>,
    registrar: UnboundedSender<Registration>,
) {
    let (kept, first): (Vec<_>, Vec<_>) =
        registrations.into_iter().partition(|registration| registration.keeps);
    let ready = with_tails(&source, &catalog, first).await;
    let mut existing = insert(&source, ready).await;
    existing.extend(unless_erased(&source, kept).await);
    for registration in touch(&source, existing).await {
        // The registrar still exists, because this is a sender to it.
        let _ = registrar.send(registration);
    }
}

/// Those whose owners are not erased: nothing of an erased owner may come back.
async fn unless_erased(source: &HistoryCollection, kept: Vec<Registration>) -> Vec<Registration> {
    if kept.is_empty() || !source.markers.any(&source.clock) {
        return kept;
    }
    let owners = kept.iter().map(|registration| &registration.owner);
    let tails = Tails::read(source, owners, None, latest(&kept)).await;
    let mut left = Vec::with_capacity(kept.len());
    for registration in kept {
        match tails.of(&registration.owner) {
            Ok(_) => left.push(registration),
            Err(error) => registration.fail(error),
        }
    }
    left
}

/// Sets `from`, where each search begins: the total of a known tail. Tails that are not in the catalog are
/// read, and put there before any append can need them.
async fn with_tails(
    source: &HistoryCollection,
    catalog: &Catalog,
    registrations: Vec<Registration>,
) -> Vec<Registration> {
    let (mut ready, mut cold) = (Vec::with_capacity(registrations.len()), Vec::new());
    for mut registration in registrations {
        match catalog.lock().get(&registration.owner) {
            Some(known) => {
                registration.proposed.from = known.tail.last_seq().get();
                ready.push(registration);
            }
            None => cold.push(registration),
        }
    }
    let owners = cold.iter().map(|registration| &registration.owner);
    let read = source.read_time_if_known();
    let tails = Tails::read(source, owners, None, latest(&cold)).await;
    for mut registration in cold {
        match tails.of(&registration.owner) {
            Ok(tail) => {
                let mut catalog = catalog.lock();
                // A tail that a commit has put there meanwhile is newer.
                if let (Some(tail), Some(read), None) = (tail, read, catalog.get(&registration.owner)) {
                    catalog.insert(registration.owner.clone(), KnownTail { tail, read });
                }
                registration.proposed.from = Tail::items(tail);
                ready.push(registration);
            }
            Err(error) => registration.fail(error),
        }
    }
    ready
}

/// Inserts the records that do not exist, and returns the registrations of the others: almost always none.
/// One insert of many records costs the server less than as many upserts. It needs no number: a record whose
/// answer was lost is found. Records that were inserted with an outdated time are returned too: they must be
/// touched before an item is sent.
async fn insert(source: &HistoryCollection, registrations: Vec<Registration>) -> Vec<Registration> {
    let now = source.reads.time.clock().filter(|_| !registrations.is_empty());
    let Some(now) = now else { return registrations };
    let deadline = latest(&registrations);
    let document = |registration: &Registration| {
        let Registration { id, owner, proposed, .. } = registration;
        Bson::from(record::document(record::query(source, *id, owner), proposed, now))
    };
    let command = doc! {
        "insert": COLLECTION,
        "documents": registrations.iter().map(document).collect::<Vec<_>>(),
        "ordered": false,
        "writeConcern": durable(deadline),
    };
    let count = registrations.len();
    let inserted = deadline.retry(|| {
        // A frozen server never answers, and at the next attempt another server may be primary.
        let reply = source.reads.run(command.clone(), deadline.or_within(ATTEMPT));
        async move {
            judge(&reply.await?, count, false).map_err(|unjudged| Error::unavailable(unjudged.to_string()))
        }
    });
    let Answer { verdicts, at, .. } = match inserted.await {
        Ok(answer) => answer,
        Err(error) => {
            fail(registrations, &error);
            return Vec::new();
        }
    };
    source.reads.time.learn_clock(at);
    let outdated = was_outdated(at, now);
    let mut existing = Vec::new();
    for (registration, verdict) in registrations.into_iter().zip(verdicts) {
        match verdict {
            Verdict::Stored if !outdated => registration.succeed(true, Some(now)),
            Verdict::Stored | Verdict::Refused | Verdict::NotRun => existing.push(registration),
            Verdict::Malformed(detail) => registration.fail(Error::internal(detail)),
        }
    }
    existing
}

/// Touches the records that exist, which prolongs their life, and reads them; inserts the others. Returns the
/// registrations to try again.
async fn touch(source: &HistoryCollection, registrations: Vec<Registration>) -> Vec<Registration> {
    let mut again = Vec::new();
    if registrations.is_empty() {
        return again;
    }
    let deadline = latest(&registrations);
    let upsert = |registration: &Registration| {
        let query = record::query(source, registration.id, &registration.owner);
        Bson::from(record::upsert(query, &registration.proposed))
    };
    let command = updates(registrations.iter().map(upsert).collect(), deadline);
    let Answer { verdicts, upserted, .. } =
        match source.sessions.commit(&source.reads, command, deadline).await {
            Ok(answer) => answer,
            Err(unanswered) => {
                // `Unavailable` is right even if the record is stored: no item was sent.
                fail(registrations, &unanswered.or_unavailable("the outcome of a registration is unknown"));
                return again;
            }
        };
    let mut found = Vec::new();
    for (index, (mut registration, verdict)) in registrations.into_iter().zip(verdicts).enumerate() {
        match verdict {
            Verdict::Stored if upserted.contains(&index) => registration.succeed(true, None),
            Verdict::Stored => found.push(registration),
            // Another attempt inserted the record at the same time, and it may not be at majority yet.
            Verdict::Refused | Verdict::NotRun if registration.attempts < MOST_ATTEMPTS => {
                registration.attempts += 1;
                again.push(registration);
            }
            verdict => registration.fail(Error::internal(format!("a record was refused: {verdict:?}"))),
        }
    }
    read(source, found).await;
    again
}

/// Reads the records that existed before.
async fn read(source: &HistoryCollection, mut found: Vec<Registration>) {
    while !found.is_empty() {
        let others = found.split_off(found.len().min(MOST_READ));
        let find =
            record::find(source, found.iter().map(|registration| (registration.id, &registration.owner)));
        let records = match source.reads.find(find, latest(&found), record::read).await {
            Ok(records) => HashMap::<_, _>::from_iter(records),
            Err(error) => return fail(found.into_iter().chain(others), &error),
        };
        for registration in found {
            match records.get(&registration.id).cloned() {
                Some(proposed) => Registration { proposed, ..registration }.succeed(false, None),
                // The record was just touched, so it exists unless an operator has removed it meanwhile.
                None => registration.fail(Error::unavailable("a record was not found")),
            }
        }
        found = others;
    }
}

/// A command of durable updates of records, each independent of the others.
pub(crate) fn updates(updates: Vec<Bson>, deadline: Deadline) -> WriteCommand {
    WriteCommand::update(COLLECTION, updates.into_iter().map(RawBson::try_from), false, durable(deadline))
}

fn latest(registrations: &[Registration]) -> Deadline {
    Deadline::latest(registrations.iter().map(|registration| registration.deadline))
}

fn fail(registrations: impl IntoIterator<Item = Registration>, error: &Error) {
    registrations.into_iter().for_each(|registration| registration.fail(error.clone()));
}
