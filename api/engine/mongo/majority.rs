//! Reads at read concern majority, retried while the database is temporarily unavailable.

use std::mem;
use std::sync::Arc;

use futures_util::{TryFutureExt, TryStreamExt};
use mongodb::Database;
use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, Document, Timestamp, doc};
use mongodb::options::SelectionCriteria;
use mongodb::raw_batch_cursor::RawBatchCursor;
use pagebucket_model::trace;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::deadline::{Deadline, NO_PRIMARY, durable};
use super::error::{Error, Result, code, tells_of_full_disk};
use super::values::in_millis;

/// The server refuses an `afterClusterTime` that is later than its own clock.
const INVALID_OPTIONS: i32 = 72;

/// Majority reads that never go back in time: each shows at least what an earlier read showed and what was
/// acknowledged before the read began. Clones share what is known of the database's time.
///
/// The majority-committed state that one server sees only grows. A new primary has everything that an older
/// primary showed or acknowledged at majority, but it may not know yet that a majority has it. So each read
/// asks for a state no older than the newest known time (`afterClusterTime`), and waits if the primary is
/// behind.
#[derive(Debug, Clone)]
pub(crate) struct MonotonicReads {
    pub(crate) database: Database,
    pub(crate) time: Arc<DatabaseTime>,
}

/// What answers tell of the database's time. Clones of [`MonotonicReads`] share it.
///
/// The *newest* time that a majority has: the `operationTime` of a majority read, or of a write that was
/// acknowledged at majority, or that of a change in a change stream. The time of any other reply may belong
/// to a write that is rolled back.
///
/// The server's *clock*, estimated: the time of the last answer to a write, plus the time elapsed since. That
/// stops while the machine sleeps or its VM is paused; then the estimate is too early until the next answer.
#[derive(Debug, Default)]
pub(crate) struct DatabaseTime {
    newest: Mutex<Option<Timestamp>>,
    /// The server's time in milliseconds since 1970, and the local instant at which it was learned.
    clock: Mutex<Option<(i64, Instant)>>,
}

impl DatabaseTime {
    /// Learns a time that a majority has.
    pub(crate) fn learn(&self, at: Option<Timestamp>) {
        let mut newest = self.newest.lock();
        *newest = at.max(*newest);
    }

    pub(crate) fn newest(&self) -> Option<Timestamp> {
        *self.newest.lock()
    }

    /// Learns the server's clock, in whole seconds, from the time of an answer to a write that has just
    /// arrived.
    pub(crate) fn learn_clock(&self, at: Option<Timestamp>) {
        self.learn_clock_at(at, Instant::now());
    }

    /// The server's clock, in milliseconds since 1970; `None` before the first answer. It never goes back. It
    /// is early by the time that this machine has slept since the last answer, and by up to a second more.
    pub(crate) fn clock(&self) -> Option<i64> {
        self.clock_at(Instant::now())
    }

    fn clock_at(&self, instant: Instant) -> Option<i64> {
        let clock = *self.clock.lock();
        clock.map(|(millis, at)| millis.saturating_add(in_millis(instant.duration_since(at))))
    }

    fn learn_clock_at(&self, at: Option<Timestamp>, instant: Instant) {
        let Some(at) = at else { return };
        let millis = i64::from(at.time) * 1000;
        // Only a later time is taken: it is safe, because records are then kept longer.
        if self.clock_at(instant).is_none_or(|now| millis > now) {
            *self.clock.lock() = Some((millis, instant));
        }
    }
}

/// What a read must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// What a majority has, as far as the server that is asked knows.
    Majority,
    /// All that a majority had when the read began, whichever server was primary then. The primary writes to
    /// make sure that it still is the primary.
    Linearizable,
}

/// A `find` or `aggregate` command that has no read concern yet.
#[derive(Debug)]
pub(crate) struct Query {
    /// What is asked.
    pub command: Document,
    /// Until when an answer is waited for.
    pub deadline: Deadline,
    /// What must be shown.
    pub level: Level,
    /// Another time whose state must be seen, if it is known. Only for [`Level::Majority`].
    pub after: Option<Timestamp>,
    /// Another server than the primary that may answer. It may show an older state.
    pub server: Option<SelectionCriteria>,
}

impl Query {
    /// One that the primary answers until the deadline.
    pub(crate) fn new(command: Document, deadline: Deadline) -> Self {
        Self { command, deadline, level: Level::Majority, after: None, server: None }
    }
}

impl MonotonicReads {
    pub(crate) fn of(database: Database) -> Self {
        Self { database, time: Arc::default() }
    }

    /// Returns the documents that a command finds at the primary, each converted by `read`.
    pub(crate) fn find<T: Send + 'static>(
        &self,
        command: Document,
        deadline: Deadline,
        read: impl Fn(&RawDocument) -> Result<T> + Send + Sync + 'static,
    ) -> impl Future<Output = Result<Vec<T>>> + Send {
        self.query(Query::new(command, deadline), read)
    }

    /// The document with this `_id`, converted by `read`.
    pub(crate) async fn by_id<T: Send + 'static>(
        &self,
        collection: &str,
        id: impl Into<Bson>,
        deadline: Deadline,
        read: impl Fn(&RawDocument) -> Result<T> + Send + Sync + 'static,
    ) -> Result<Option<T>> {
        let command = at_most(collection, doc! { "_id": id.into() }, 1, doc! { "_id": 1 });
        Ok(self.find(command, deadline, read).await?.pop())
    }

    /// Returns the documents that a query finds, each converted by `read`.
    pub(crate) fn query<T: Send + 'static>(
        &self,
        query: Query,
        read: impl Fn(&RawDocument) -> Result<T> + Send + Sync + 'static,
    ) -> impl Future<Output = Result<Vec<T>>> + Send {
        let found = Arc::new(Mutex::new(ConvertedDocuments { found: Vec::new(), read }));
        // By `map_ok`, because an `async` block would take the memory of the future twice.
        self.ask(query, found.clone()).map_ok(move |()| mem::take(&mut found.lock().found))
    }

    /// Gives `found` the documents that a query finds. It is compiled once, and not for each type that is
    /// read, which makes the program smaller.
    fn ask(
        &self,
        query: Query,
        found: Arc<Mutex<dyn Find>>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let Query { command, deadline, level, after, server } = query;
        let reads = self.clone();
        let span = trace::command(|| named(&command));
        let asked = deadline.read(async move {
            let mut patient = Patient::new(after, deadline);
            loop {
                let newest = reads.time.newest().filter(|_| server.is_none() && level == Level::Majority);
                let (mut concern, limit) = patient.terms(newest);
                if level == Level::Linearizable {
                    concern.insert("level", "linearizable");
                }
                let mut command = command.clone();
                command.insert("readConcern", concern);
                command.insert("maxTimeMS", limit);
                let mut sent = reads.database.run_cursor_command(command);
                if let Some(server) = &server {
                    sent = sent.selection_criteria(server.clone());
                }
                let error = match sent.batch().await {
                    Ok(cursor) => match reads.collect(cursor, level, &found).await {
                        Ok(()) => return Ok(()),
                        Err(error) => error,
                    },
                    Err(error) if newest.is_some() && code(&error) == Some(INVALID_OPTIONS) => {
                        // The database was replaced by an older state of itself, which is now the newest.
                        reads.time.newest.lock().take_if(|known| Some(*known) == newest);
                        tracing::warn!("the database is older than what it showed before; was it restored?");
                        Error::unavailable(error.kind.to_string())
                    }
                    Err(error) => error.into(),
                };
                patient.after(error).await?;
            }
        });
        trace::within(span, asked)
    }

    /// Runs a command once.
    pub(crate) async fn run(&self, command: Document, deadline: Deadline) -> Result<Document> {
        let database = self.database.clone();
        let span = trace::command(|| named(&command));
        trace::within(span, deadline.read(async move { Ok(database.run_command(command).await?) })).await
    }

    /// Runs a write that may be repeated without harm, durably, and returns its reply. After an error it may
    /// have been applied.
    pub(crate) async fn write(&self, mut command: Document, deadline: Deadline) -> Result<Document> {
        command.insert("writeConcern", durable(deadline));
        let reply = self.run(command, deadline).await?;
        match reply.get("writeErrors").or(reply.get("writeConcernError")) {
            // Another instance may have been faster, or a majority may be missing.
            Some(error) if tells_of_full_disk(error) => Err(Error::DiskFull),
            Some(error) => Err(Error::unavailable(error.to_string())),
            None => {
                self.time.learn(reply.get_timestamp("operationTime").ok());
                Ok(reply)
            }
        }
    }

    /// Updates one document, which may be repeated without harm. Returns it as it is then; `None` if there is
    /// none.
    pub(crate) async fn find_and_update(
        &self,
        collection: &str,
        query: Document,
        update: impl Into<Bson>,
        deadline: Deadline,
    ) -> Result<Option<Document>> {
        let command = doc! { "findAndModify": collection, "query": query, "update": update, "new": true };
        let mut reply = self.write(command, deadline).await?;
        Ok(match reply.remove("value") {
            Some(Bson::Document(document)) => Some(document),
            _ => None,
        })
    }

    async fn collect(&self, mut cursor: RawBatchCursor, level: Level, found: &Mutex<dyn Find>) -> Result<()> {
        found.lock().begin();
        while let Some(batch) = cursor.try_next().await? {
            let time = batch.as_raw_document().get_timestamp("operationTime").ok();
            // That of a linearizable read may belong to a later write, which is rolled back.
            self.time.learn(time.filter(|_| level == Level::Majority));
            let mut found = found.lock();
            for document in batch.doc_slices()? {
                let document = document.map_err(mongodb::error::Error::from)?;
                let document = document
                    .as_document()
                    .ok_or_else(|| Error::internal("a batch holds something that is not a document"))?;
                found.add(document)?;
            }
        }
        Ok(())
    }
}

/// What a query finds.
trait Find: Send {
    /// Forgets what an earlier attempt found.
    fn begin(&mut self);

    fn add(&mut self, document: &RawDocument) -> Result<()>;
}

/// Documents, each converted by `read`.
struct ConvertedDocuments<T, R> {
    found: Vec<T>,
    read: R,
}

impl<T: Send, R: Fn(&RawDocument) -> Result<T> + Send> Find for ConvertedDocuments<T, R> {
    fn begin(&mut self) {
        self.found.clear();
    }

    fn add(&mut self, document: &RawDocument) -> Result<()> {
        self.found.push((self.read)(document)?);
        Ok(())
    }
}

/// The name of a command and its collection, if it is of one.
fn named(command: &Document) -> (&str, &str) {
    let first = command.iter().next();
    first.map_or(("", ""), |(name, collection)| (name, collection.as_str().unwrap_or_default()))
}

/// A `find` command for at most `most` documents, in the order of the index that is its hint. All of them
/// come in one batch, unless they have more bytes than a server sends at once: by default its first batch has
/// 101.
pub(crate) fn at_most(collection: &str, filter: Document, most: usize, hint: Document) -> Document {
    doc! {
        "find": collection, "filter": filter, "sort": hint.clone(),
        // With a batch of more than all, the server closes the cursor at once.
        "limit": most as i64, "batchSize": most as i64 + 1, "hint": hint,
    }
}

/// A read that is retried while the database is unavailable, for at most [`NO_PRIMARY`].
pub(crate) struct Patient {
    after: Option<Timestamp>,
    deadline: Deadline,
    patience: Deadline,
    attempts: u32,
}

impl Patient {
    /// `after`, if known, is the time whose state the read must at least see.
    pub(crate) fn new(after: Option<Timestamp>, deadline: Deadline) -> Self {
        Self { after, deadline, patience: deadline.or_within(NO_PRIMARY), attempts: 0 }
    }

    /// The read concern of the next attempt and its time limit in milliseconds. The attempt must also see the
    /// state of the time `newest`, which every primary has.
    fn terms(&self, newest: Option<Timestamp>) -> (Document, i64) {
        let mut concern = doc! { "level": "majority" };
        if let Some(after) = self.after.max(newest) {
            concern.insert("afterClusterTime", after);
        }
        let limit = if self.after.is_some() { self.patience } else { self.deadline };
        (concern, limit.remaining_millis())
    }

    /// Waits after `error` until the next attempt may begin. Returns it if another attempt would not help, or
    /// the patience is used up.
    pub(crate) async fn after(&mut self, error: Error) -> Result<()> {
        match error {
            // After a failover the cluster may never reach `after`, or refuse it because its clock was set
            // back. A majority read without `after` is as safe; at worst the next append is refused again.
            Error::Unavailable(why) | Error::Internal(why) if self.after.take().is_some() => {
                tracing::debug!(why = why.to_string(), "dropped afterClusterTime");
            }
            Error::Unavailable(why) if !self.patience.passed() => {
                tracing::debug!(why = why.to_string(), "a read is retried");
            }
            error => return Err(error),
        }
        self.patience.back_off(self.attempts).await;
        self.attempts += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_clock_continues_from_the_last_answer() {
        let (time, start) = (DatabaseTime::default(), Instant::now());
        let told = |seconds| Some(Timestamp { time: seconds, increment: 7 });
        time.learn(told(900));
        time.learn_clock(None);
        assert_eq!((time.newest(), time.clock()), (told(900), None));
        time.learn_clock_at(told(1_000), start);
        let later = start + Duration::from_millis(2_500);
        assert_eq!(time.clock_at(later), Some(1_002_500));
        time.learn_clock_at(told(1_001), later);
        assert_eq!(time.clock_at(later), Some(1_002_500), "never back");
        time.learn_clock_at(told(2_000), later);
        assert_eq!(time.clock_at(later), Some(2_000_000));
        time.learn_clock(told(3_000));
        assert!(time.clock() >= Some(3_000_000) && time.newest() == told(900));
    }

    #[test]
    fn the_newest_time_only_grows() {
        let (time, told) = (DatabaseTime::default(), |increment| Some(Timestamp { time: 5, increment }));
        for (at, newest) in [(2, 2), (1, 2), (3, 3)] {
            time.learn(told(at));
            assert_eq!(time.newest(), told(newest));
        }
    }
}
