//! Numbered commands: sessions whose writes the server applies at most once.
//!
//! A retryable write is a command with a session's id and a number, `txnNumber`. The server keeps the outcome
//! of the session's latest number. When it receives the same command under the same number, it reports the
//! statements that were applied and repeats those that had failed. (MongoDB specification "Retryable
//! Writes".) The driver itself retries once; this module retries until a deadline. The content must be
//! identical, because the server would answer other content under the same number as if it were stored.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::bson::error::Error as BsonError;
use mongodb::bson::raw::{CStr, cstr};
use mongodb::bson::{Document, RawArrayBuf, RawBson, RawDocumentBuf, doc};
use mongodb::error::ErrorKind;
use mongodb::{Client, ClientSession, Database};
use pagebucket_model::metric::{COMMIT_SECONDS, COMMIT_STATEMENTS, RETRIES, SESSIONS_ABANDONED};
use pagebucket_model::trace;
use parking_lot::Mutex;

use super::connection::Topology;
use super::deadline::Deadline;
use super::error;
use super::error::Error;
use super::majority::MonotonicReads;
use super::reply::{self, Answer, Verdict};
use super::values::in_millis;

/// A pool of sessions for numbered commands.
#[derive(Debug)]
pub(crate) struct Sessions {
    client: Client,
    topology: Topology,
    idle: Mutex<Idle<NumberedSession>>,
}

/// Sessions without a command.
#[derive(Debug)]
struct Idle<S> {
    ready: Vec<S>,
    /// Those whose last command was given up, and since when; the oldest first.
    resting: VecDeque<(Instant, S)>,
}

/// How long a session rests after a command that was given up. That command can never be applied after the
/// session's next one, because the server refuses a number below the latest. But while it runs, the next one
/// waits for it: so most of these commands have ended by then. An outage leaves no more sessions behind than
/// are given up within this time.
const REST: Duration = Duration::from_secs(60);

impl<S> Idle<S> {
    fn new() -> Self {
        Self { ready: Vec::new(), resting: VecDeque::new() }
    }

    /// A session that may be used, if there is one.
    fn take(&mut self, now: Instant) -> Option<S> {
        let rested = |(since, _): &mut (Instant, S)| now.duration_since(*since) >= REST;
        self.ready.pop().or_else(|| Some(self.resting.pop_front_if(rested)?.1))
    }
}

/// A driver session with our own command numbers.
///
/// While there are commits it never returns to the driver's pool: the driver numbers its own writes from 1,
/// and the server refuses a number below the session's latest.
#[derive(Debug)]
struct NumberedSession {
    session: ManuallyDrop<ClientSession>,
    latest: i64,
}

/// The first number. A session from the driver's pool may have served writes that the driver numbered from 1,
/// so our numbers begin where the driver's never arrive.
const FIRST_NUMBER: i64 = 1 << 40;

#[derive(Debug)]
pub(crate) struct WriteCommand {
    collection: String,
    /// Its bytes without a number. Raw, because statements as a `Document` take ten times the memory.
    bytes: Result<RawDocumentBuf, BsonError>,
    count: usize,
    ordered: bool,
}

impl WriteCommand {
    /// Updates of a collection. An `ordered` command stops at its first failure; otherwise each update runs
    /// independently of the others.
    pub(crate) fn update(
        collection: &str,
        updates: impl IntoIterator<Item = Result<RawBson, BsonError>>,
        ordered: bool,
        concern: Document,
    ) -> Self {
        let head = doc! { "update": collection, "ordered": ordered, "writeConcern": concern };
        Self::new(collection, head, cstr!("updates"), updates, ordered)
    }

    /// Inserts documents into a collection, in the same way.
    pub(crate) fn insert(
        collection: &str,
        documents: impl IntoIterator<Item = Result<RawBson, BsonError>>,
        ordered: bool,
        concern: Document,
    ) -> Self {
        let head = doc! { "insert": collection, "ordered": ordered, "writeConcern": concern };
        Self::new(collection, head, cstr!("documents"), documents, ordered)
    }

    fn new(
        collection: &str,
        head: Document,
        name: &CStr,
        statements: impl IntoIterator<Item = Result<RawBson, BsonError>>,
        ordered: bool,
    ) -> Self {
        let mut count = 0;
        let statements = statements.into_iter().inspect(|_| count += 1);
        let bytes = statements.collect::<Result<RawArrayBuf, _>>().and_then(|statements| {
            let mut bytes = RawDocumentBuf::try_from(&head)?;
            bytes.append(name, statements);
            Ok(bytes)
        });
        Self { collection: collection.to_owned(), bytes, count, ordered }
    }

    /// `update` or `insert`.
    fn name(&self) -> &str {
        let first = self.bytes.as_ref().ok().and_then(|bytes| bytes.iter().next()?.ok());
        first.map_or("write", |(name, _)| name.as_str())
    }

    /// The same command, which the server ends after `limit`. Each replay has this limit.
    #[must_use]
    pub(crate) fn running_at_most(mut self, limit: Duration) -> Self {
        let millis = in_millis(limit).max(1);
        self.bytes = self.bytes.map(|mut bytes| {
            bytes.append(cstr!("maxTimeMS"), millis);
            bytes
        });
        self
    }
}

/// Why a command has no final answer.
#[derive(Debug)]
pub enum Unanswered {
    /// The command was never sent, or was rejected before it ran: nothing is stored.
    NotSent(Error),
    /// The deadline passed without a final answer. The command may still be applied once.
    Unknown,
}

impl Unanswered {
    /// The error of a command that stores no item: if its outcome is unknown, `why` says so.
    pub fn or_unavailable(self, why: &str) -> Error {
        match self {
            Self::NotSent(error) => error,
            Self::Unknown => Error::unavailable(why.to_owned()),
        }
    }
}

impl Sessions {
    pub(crate) fn new(client: Client, topology: Topology) -> Self {
        Self { client, topology, idle: Mutex::new(Idle::new()) }
    }

    /// What kind of deployment the commands go to.
    pub(crate) fn topology(&self) -> Topology {
        self.topology
    }

    /// Runs a command in the database of `reads` until the server gives a final answer or the deadline
    /// passes. A standalone server has no numbers, so there it is one attempt. `reads` learns the time of the
    /// answer if something is stored, so the command's write concern must be majority.
    pub(crate) async fn commit(
        self: &Arc<Self>,
        reads: &MonotonicReads,
        command: WriteCommand,
        deadline: Deadline,
    ) -> Result<Answer, Unanswered> {
        let (sessions, database) = (Arc::clone(self), reads.database.clone());
        let collection = command.collection.clone();
        metrics::histogram!(COMMIT_STATEMENTS, "collection" => collection.clone())
            .record(command.count as f64);
        let started = Instant::now();
        let span = trace::command(|| (command.name(), &collection));
        let replay = async move { sessions.replay(&database, command, deadline).await };
        // A frozen server never answers: the spawned task waits for it, this one does not.
        let answered = deadline.spawn(replay);
        let answered = async move { answered.await.unwrap_or(Err(Unanswered::Unknown)) };
        let outcome = trace::within(span, answered).await;
        metrics::histogram!(COMMIT_SECONDS, "collection" => collection)
            .record(started.elapsed().as_secs_f64());
        if let Ok(Answer { verdicts, at, .. }) = &outcome {
            reads.time.learn_clock(*at);
            // If all statements were refused, it may be the time of a write that a majority does not have
            // yet.
            reads.time.learn(at.filter(|_| verdicts.contains(&Verdict::Stored)));
        }
        outcome
    }

    async fn replay(
        &self,
        database: &Database,
        command: WriteCommand,
        deadline: Deadline,
    ) -> Result<Answer, Unanswered> {
        let WriteCommand { collection, bytes, count, ordered } = command;
        // Encoded once: each replay sends identical bytes.
        let mut bytes = bytes.map_err(|error| Unanswered::NotSent(Error::internal(error.to_string())))?;
        let mut session = self.take().await.map_err(|error| Unanswered::NotSent(error.into()))?;
        if self.topology != Topology::Standalone {
            session.latest += 1;
            bytes.append(cstr!("txnNumber"), session.latest);
        }
        // After the deadline nothing is sent: every client has been answered.
        if deadline.passed() {
            self.idle.lock().ready.push(session);
            return Err(Unanswered::NotSent(Error::no_answer()));
        }
        let mut attempt = 0;
        let outcome = loop {
            let sent = database.run_raw_command(bytes.clone()).session(&mut *session.session).await;
            let why = match sent {
                Ok(reply) => match reply::judge(&reply, count, ordered) {
                    Ok(answer) => break Ok(answer),
                    Err(unjudged) => unjudged.to_string(),
                },
                // The same bytes are too long at every attempt.
                Err(error) if error::code(&error).is_some_and(|code| reply::TOO_LARGE.contains(&code)) => {
                    break Err(Unanswered::NotSent(Error::internal(error.to_string())));
                }
                Err(error) if attempt == 0 && never_ran(&error) => {
                    break Err(Unanswered::NotSent(error.into()));
                }
                Err(error) => why(error),
            };
            metrics::counter!(RETRIES, "collection" => collection.clone(), "cause" => "unknown_outcome")
                .increment(1);
            tracing::warn!(attempt, why, "the outcome of a commit is unknown; it is replayed");
            deadline.back_off(attempt).await;
            if self.topology == Topology::Standalone || deadline.passed() {
                metrics::counter!(SESSIONS_ABANDONED, "collection" => collection).increment(1);
                self.idle.lock().resting.push_back((Instant::now(), session));
                return Err(Unanswered::Unknown);
            }
            attempt += 1;
        };
        self.idle.lock().ready.push(session);
        outcome
    }

    async fn take(&self) -> Result<NumberedSession, mongodb::error::Error> {
        if let Some(session) = self.idle.lock().take(Instant::now()) {
            return Ok(session);
        }
        let session = self.client.start_session().causal_consistency(false).await?;
        Ok(NumberedSession { session: ManuallyDrop::new(session), latest: FIRST_NUMBER })
    }
}

impl Drop for Sessions {
    /// A session keeps the driver's client, with all of its connections. There are no more commits, so the
    /// driver gets the sessions back. No other pool of the same client may follow: its numbers would begin
    /// again at [`FIRST_NUMBER`], and the server would take new commands for old ones.
    fn drop(&mut self) {
        let Idle { ready, resting } = self.idle.get_mut();
        for NumberedSession { session, .. } in
            ready.drain(..).chain(resting.drain(..).map(|(_, session)| session))
        {
            drop(ManuallyDrop::into_inner(session));
        }
    }
}

/// Why the outcome of an attempt is unknown, for the log.
fn why(error: mongodb::error::Error) -> String {
    let words = error.to_string();
    match Error::from(error) {
        full @ Error::DiskFull => full.to_string(),
        _ => words,
    }
}

/// Whether a first attempt ended before any server began to run the command. Privileges are checked before
/// that.
fn never_ran(error: &mongodb::error::Error) -> bool {
    matches!(error.kind.as_ref(), ErrorKind::ServerSelection { .. })
        || error::code(error) == Some(error::UNAUTHORIZED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_was_given_up_is_used_again_after_a_rest() {
        let (mut idle, now) = (Idle::new(), Instant::now());
        for (seconds, session) in [(0, "first"), (1, "second")] {
            idle.resting.push_back((now + Duration::from_secs(seconds), session));
        }
        assert_eq!(idle.take(now + REST / 2), None);
        idle.ready.push("ready");
        assert_eq!(idle.take(now + REST), Some("ready"));
        assert_eq!(idle.take(now + REST), Some("first"));
        assert_eq!(idle.take(now + REST), None, "the second rests");
        assert_eq!(idle.take(now + 2 * REST), Some("second"));
        assert_eq!(idle.take(now + 2 * REST), None);
    }
}
