//! Numbered commands: sessions whose writes the server applies at most once.
//!
//! A retryable write is a command with a session's id and a number, `txnNumber`. The server keeps
//! the outcome of the session's latest number; the same command under the same number is answered
//! with what was applied, and what had failed runs again. (MongoDB specification "Retryable
//! Writes".) The driver's own retry is one attempt; ours goes on until a deadline, with identical
//! content, because the same number with other content would be answered as if stored.

use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use mongodb::bson::error::Error as BsonError;
use mongodb::bson::raw::{CStr, cstr};
use mongodb::bson::{Bson, Document, RawArrayBuf, RawBson, RawDocumentBuf, doc};
use mongodb::error::ErrorKind;
use mongodb::{Client, ClientSession, Database};

use super::reply::{self, Answer};
use crate::metric::{COMMIT_SECONDS, COMMIT_STATEMENTS, RETRIES};
use crate::store::{Deadline, Error, Topology, error};

/// Sessions at rest, for commands to take and give back.
#[derive(Debug)]
pub(in crate::store) struct Sessions {
    client: Client,
    topology: Topology,
    idle: Mutex<Vec<NumberedSession>>,
}

/// A session of the driver's with numbers of our own.
///
/// It is never dropped into the driver's pool: the driver numbers its own writes from 1, and the
/// server refuses a number below the session's latest. One that is given up is forgotten instead,
/// which leaks some hundred bytes for each outcome that stayed unknown.
#[derive(Debug)]
struct NumberedSession {
    session: ManuallyDrop<ClientSession>,
    latest: i64,
}

/// A new session of the driver's may be one that it has used before, for a write that it numbered
/// itself, from 1. Ours begin where it never gets.
const FIRST_NUMBER: i64 = 1 << 40;

/// A write command.
#[derive(Debug)]
pub(in crate::store) struct Command {
    collection: &'static str,
    /// All but the statements.
    head: Document,
    /// Under which name the command has its statements.
    name: &'static CStr,
    /// As they are sent, because a `Document` takes ten times the memory.
    statements: Result<RawArrayBuf, BsonError>,
    count: usize,
    ordered: bool,
}

impl Command {
    /// Updates of a collection: in order, so that the first that fails is the last that runs, or each for
    /// itself.
    pub(in crate::store) fn update(
        collection: &'static str,
        updates: impl IntoIterator<Item = Bson>,
        ordered: bool,
        concern: Document,
    ) -> Self {
        let head = doc! { "update": collection, "ordered": ordered, "writeConcern": concern };
        Self::new(collection, head, cstr!("updates"), updates, ordered)
    }

    /// New documents of a collection, each for itself.
    pub(in crate::store) fn insert(
        collection: &'static str,
        documents: Vec<Document>,
        concern: Document,
    ) -> Self {
        let head = doc! { "insert": collection, "ordered": false, "writeConcern": concern };
        Self::new(collection, head, cstr!("documents"), documents.into_iter().map(Bson::from), false)
    }

    fn new(
        collection: &'static str,
        head: Document,
        name: &'static CStr,
        statements: impl IntoIterator<Item = Bson>,
        ordered: bool,
    ) -> Self {
        let mut count = 0;
        let statements = statements.into_iter().inspect(|_| count += 1).map(RawBson::try_from).collect();
        Self { collection, head, name, statements, count, ordered }
    }

    /// Its bytes, under this number.
    fn bytes(self, number: Option<i64>) -> Result<RawDocumentBuf, BsonError> {
        let mut bytes = RawDocumentBuf::try_from(&self.head)?;
        bytes.append(self.name, self.statements?);
        if let Some(number) = number {
            bytes.append(cstr!("txnNumber"), number);
        }
        Ok(bytes)
    }
}

/// A write concern: acknowledged once it is at majority and in its journals, within the deadline.
pub(in crate::store) fn durable(deadline: Deadline) -> Document {
    doc! { "w": "majority", "j": true, "wtimeout": deadline.remaining_millis() }
}

/// What became of a command.
#[derive(Debug)]
pub(in crate::store) enum Outcome {
    /// The server has answered for good.
    Answered(Answer),
    /// It was never sent, or was turned away before anything ran: nothing is stored.
    NotSent(Error),
    /// The deadline passed without an answer to trust. What was sent may yet apply once.
    Unknown,
}

/// The user may not write. The server checks this before it runs a command.
const UNAUTHORIZED: i32 = 13;

impl Sessions {
    pub(in crate::store) fn new(client: Client, topology: Topology) -> Self {
        Self { client, topology, idle: Mutex::default() }
    }

    /// Runs a command until the server answers or the deadline passes. On a standalone server, which has
    /// no numbers, there is one attempt.
    pub(in crate::store) async fn commit(
        self: &Arc<Self>,
        database: &Database,
        command: Command,
        deadline: Deadline,
    ) -> Outcome {
        let (sessions, database) = (Arc::clone(self), database.clone());
        let collection = command.collection;
        metrics::histogram!(COMMIT_STATEMENTS, "collection" => collection).record(command.count as f64);
        let started = Instant::now();
        let replay = async move { sessions.replay(&database, command, deadline).await };
        // A server that is frozen answers nothing: the task waits for it, we do not.
        let outcome = deadline.spawn(replay).await.unwrap_or(Outcome::Unknown);
        metrics::histogram!(COMMIT_SECONDS, "collection" => collection)
            .record(started.elapsed().as_secs_f64());
        outcome
    }

    async fn replay(&self, database: &Database, command: Command, deadline: Deadline) -> Outcome {
        let Command { collection, count, ordered, .. } = command;
        let mut session = match self.take().await {
            Ok(session) => session,
            Err(error) => return Outcome::NotSent(error.into()),
        };
        let number = (self.topology == Topology::Replicated).then(|| {
            session.latest += 1;
            session.latest
        });
        // Once: each replay is the same bytes.
        let command = match command.bytes(number) {
            Ok(command) => command,
            Err(error) => {
                self.idle().push(session);
                return Outcome::NotSent(Error::Internal(error.to_string()));
            }
        };
        let mut attempt = 0;
        loop {
            let sent = database.run_raw_command(command.clone()).session(&mut *session.session).await;
            let why = match sent.as_ref().map(|reply| reply::judge(reply, count, ordered)) {
                Ok(Answer::Unknown(why)) => why,
                Ok(answer) => {
                    self.idle().push(session);
                    return Outcome::Answered(answer);
                }
                Err(error) if attempt == 0 && ran_nowhere(error) => {
                    self.idle().push(session);
                    return Outcome::NotSent(error.into());
                }
                Err(error) => error.to_string(),
            };
            metrics::counter!(RETRIES, "collection" => collection, "cause" => "unknown_outcome").increment(1);
            tracing::warn!(attempt, why, "the outcome of a commit is unknown; it is replayed");
            deadline.back_off(attempt).await;
            // Nothing is sent any more once every client has been told that the outcome is unknown.
            if self.topology == Topology::Standalone || deadline.passed() {
                return Outcome::Unknown;
            }
            attempt += 1;
        }
    }

    async fn take(&self) -> Result<NumberedSession, mongodb::error::Error> {
        if let Some(session) = self.idle().pop() {
            return Ok(session);
        }
        let session = self.client.start_session().causal_consistency(false).await?;
        Ok(NumberedSession { session: ManuallyDrop::new(session), latest: FIRST_NUMBER })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<NumberedSession>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a first attempt ended before any server began with the command.
fn ran_nowhere(error: &mongodb::error::Error) -> bool {
    matches!(error.kind.as_ref(), ErrorKind::ServerSelection { .. })
        || error::code(error) == Some(UNAUTHORIZED)
}
