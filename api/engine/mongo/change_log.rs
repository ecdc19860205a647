//! The changes of a database or of a collection, from a place on: the only loop over a change stream.
//!
//! [`ChangeLog::next`] opens a stream, reads it, and opens another one when it breaks. The rules:
//!
//! - A stream that broke is resumed after what was returned last. The first time this happens at once, then
//!   after growing pauses, until the server has answered a question for more; at most once a second. That a
//!   stream can be opened is no answer: a server may open each, and fail each time it is asked for more.
//! - The server answers after `wait`, also if there is no change. A stream that is silent for [`SILENT`]
//!   longer is given up with its connection, which may be dead without either side knowing. Each time this
//!   doubles, until the server answers: from a place that is far behind it may read its oplog for minutes
//!   before it has an answer, and begins again when it is asked again.
//! - What each error means stands in [`StreamFailure::of`], whether it comes when a stream is opened or
//!   later: a mongos tells of a lost place only when it is asked for more.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use mongodb::Database;
use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, RawDocumentBuf, Timestamp, doc};
use mongodb::error::Error as DriverError;
use mongodb::raw_batch_cursor::{RawBatch, RawBatchCursor};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::error::{Error, Result, UNSUPPORTED, code};

/// How much later than it should a server may answer, at first.
const SILENT: Duration = Duration::from_secs(4);

/// How long a stream may take to be opened, at first.
const OPENING: Duration = Duration::from_secs(10);

/// How often patience doubles: to four minutes for an answer, and ten for an opening.
const MOST_DOUBLINGS: u32 = 6;

/// The least time between two openings.
const BETWEEN_OPENINGS: Duration = Duration::from_secs(1);

/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// The pause after a refusal: another role must be granted first.
const REFUSED: Duration = Duration::from_secs(60);

/// InvalidResumeToken, ChangeStreamFatalError, ChangeStreamHistoryLost, and BSONObjectTooLarge: the stream
/// cannot get past a change that is too large. (Server source, `error_codes.yml`.)
const PLACE_LOST: [i32; 4] = [260, 280, 286, 10334];

/// Unauthorized, and the code by which a standalone server refuses (`40573`, server source,
/// `document_source_change_stream.cpp`).
const NOT_ALLOWED: [i32; 2] = [13, 40573];

/// CursorNotFound: the server was restarted, or the cursor was not used for long.
const CURSOR_NOT_FOUND: i32 = 43;

/// The label of errors after which a stream can be resumed. (Change stream specification of MongoDB drivers.)
const RESUMABLE: &str = "ResumableChangeStreamError";

/// Whose changes are read, and how.
#[derive(Debug, Clone)]
pub struct LogScope {
    /// The database, whose read preference counts.
    pub database: Database,
    /// One collection, or all of the database.
    pub collection: Option<String>,
    /// What is read of the changes.
    pub pipeline: Vec<Document>,
    /// The most changes in one answer.
    pub batch: u32,
    /// How long the server waits for a change before it answers without one.
    pub wait: Duration,
}

/// Where a log begins that has no place.
#[derive(Debug, Clone, Copy)]
pub enum LogStart {
    /// At this time.
    At(Timestamp),
    /// When it is opened.
    Now,
}

/// What a log tells next.
#[derive(Debug)]
pub enum LogNews {
    /// A stream was opened.
    Opened {
        /// Whether it goes on where the last one stopped. Otherwise what happened in between is missing.
        resumed: bool,
    },
    /// These changes, in their order.
    Changes(Vec<RawDocumentBuf>),
    /// There is nothing now.
    Quiet,
    /// The database no longer has the place. The next stream begins as one without a place.
    PlaceLost,
    /// What was watched was dropped or renamed. The next stream begins as one without a place.
    Ended,
    /// The user may not read changes, or the server has none. The text is for the log of the service.
    Refused(String),
}

type Begin = Box<dyn Fn() -> BoxFuture<'static, Result<LogStart>> + Send + Sync>;

/// A log that is read.
pub struct ChangeLog {
    scope: LogScope,
    begin: Begin,
    place: Option<Document>,
    state: LogState,
    /// Failures since the last answer.
    failures: u32,
    /// Those of them where no answer came.
    silences: u32,
    opened: Option<Instant>,
    answered: Instant,
}

enum LogState {
    Closed {
        until: Instant,
    },
    /// By a task, because a command of the driver must not be dropped before it ends.
    Opening(JoinHandle<Result<RawBatchCursor, StreamFailure>>),
    Open {
        cursor: Box<RawBatchCursor>,
        /// What was there when it was opened.
        first: Option<RawBatch>,
        /// When the answer that is waited for is overdue.
        overdue: Option<Instant>,
    },
}

/// What a failure of a stream means.
enum StreamFailure {
    PlaceLost(String),
    Refused(String),
    Silent,
    Other(Error),
}

impl StreamFailure {
    fn of(error: DriverError) -> Self {
        let message = || error.kind.to_string();
        match code(&error) {
            Some(code) if PLACE_LOST.contains(&code) => Self::PlaceLost(message()),
            Some(code) if NOT_ALLOWED.contains(&code) || UNSUPPORTED.contains(&code) => {
                Self::Refused(message())
            }
            Some(CURSOR_NOT_FOUND) => Self::Other(Error::unavailable(message())),
            _ if error.contains_label(RESUMABLE) => Self::Other(Error::unavailable(message())),
            _ => Self::Other(error.into()),
        }
    }

    /// Of an attempt to go on after a place: what will not pass lies in the place.
    fn of_resuming(error: DriverError) -> Self {
        match Self::of(error) {
            Self::Other(Error::Internal(why)) => Self::PlaceLost(why.to_string()),
            failure => failure,
        }
    }
}

impl ChangeLog {
    /// A log of the changes after a place, which is a resume token. `begin` says where a stream begins that
    /// has no place.
    pub fn new(
        scope: LogScope,
        place: Option<Document>,
        begin: impl Fn() -> BoxFuture<'static, Result<LogStart>> + Send + Sync + 'static,
    ) -> Self {
        let now = Instant::now();
        let state = LogState::Closed { until: now };
        Self {
            scope,
            begin: Box::new(begin),
            place,
            state,
            failures: 0,
            silences: 0,
            opened: None,
            answered: now,
        }
    }

    /// The place after all that was returned, which is a resume token.
    pub fn place(&self) -> Option<&Document> {
        self.place.as_ref()
    }

    /// When the server last answered that it has changes or none, or when the log was made.
    pub fn answered(&self) -> Instant {
        self.answered
    }

    /// Waits for what comes next. It may be dropped at any time, and nothing is lost. After an error it may
    /// be called again: it waits before it opens another stream.
    pub async fn next(&mut self) -> Result<LogNews> {
        loop {
            match &mut self.state {
                LogState::Closed { until } => {
                    sleep_until(*until).await;
                    self.opened = Some(Instant::now());
                    let begin = self.place.is_none().then(|| (self.begin)());
                    let opening =
                        open(self.scope.clone(), self.place.clone(), begin, patience(OPENING, self.silences));
                    self.state = LogState::Opening(tokio::spawn(opening));
                }
                LogState::Opening(task) => {
                    let opened = task.await.unwrap_or_else(|_| Err(StreamFailure::Other(Error::no_answer())));
                    match opened {
                        Ok(mut cursor) => {
                            let resumed = self.place.is_some();
                            // It was part of the answer.
                            let first = cursor.next().await.and_then(std::result::Result::ok);
                            let first = first.filter(|batch| {
                                let is_empty = changes(batch).is_ok_and(|changes| changes.is_empty());
                                if is_empty {
                                    self.place = token(batch).or(self.place.take());
                                }
                                !is_empty
                            });
                            self.state = LogState::Open { cursor: Box::new(cursor), first, overdue: None };
                            return Ok(LogNews::Opened { resumed });
                        }
                        Err(failure) => return self.close(failure),
                    }
                }
                LogState::Open { cursor, first, overdue } => {
                    let wait = self.scope.wait + patience(SILENT, self.silences);
                    let answer = match first.take() {
                        Some(first) => Ok(Some(Ok(first))),
                        None => {
                            let overdue = *overdue.get_or_insert_with(|| Instant::now() + wait);
                            timeout_at(overdue, cursor.next()).await
                        }
                    };
                    *overdue = None;
                    match answer {
                        Ok(Some(Ok(batch))) => return self.answer(&batch),
                        Ok(Some(Err(error))) => return self.close(StreamFailure::of(error)),
                        Ok(None) => {
                            self.close_until_pause_ends();
                            self.place = None;
                            return Ok(LogNews::Ended);
                        }
                        Err(_elapsed) => return self.close(StreamFailure::Silent),
                    }
                }
            }
        }
    }

    fn answer(&mut self, batch: &RawBatch) -> Result<LogNews> {
        let changes = changes(batch)?;
        (self.failures, self.silences, self.answered) = (0, 0, Instant::now());
        let last =
            || changes.last().and_then(|change| Document::try_from(change.get_document("_id").ok()?).ok());
        if let Some(place) = token(batch).or_else(last) {
            self.place = Some(place);
        }
        Ok(if changes.is_empty() { LogNews::Quiet } else { LogNews::Changes(changes) })
    }

    fn close(&mut self, failure: StreamFailure) -> Result<LogNews> {
        self.close_until_pause_ends();
        match failure {
            StreamFailure::PlaceLost(why) => {
                tracing::debug!(why, "a change stream has lost its place");
                self.place = None;
                Ok(LogNews::PlaceLost)
            }
            StreamFailure::Refused(why) => {
                self.state = LogState::Closed { until: Instant::now() + REFUSED };
                Ok(LogNews::Refused(why))
            }
            StreamFailure::Silent => {
                self.silences += 1;
                Err(Error::unavailable("the change stream does not answer"))
            }
            StreamFailure::Other(error) => {
                tracing::debug!(%error, "a change stream broke, or is not opened");
                Err(error)
            }
        }
    }

    fn close_until_pause_ends(&mut self) {
        let longest = match self.failures {
            0 => Duration::ZERO,
            failures => LONGEST_PAUSE.min(BETWEEN_OPENINGS * 2_u32.saturating_pow(failures)),
        };
        self.failures += 1;
        let pause = Instant::now() + longest.mul_f64(rand::random_range(0.5..=1.0));
        let until = self.opened.map_or(pause, |opened| pause.max(opened + BETWEEN_OPENINGS));
        self.state = LogState::Closed { until };
    }
}

async fn open(
    scope: LogScope,
    place: Option<Document>,
    begin: Option<BoxFuture<'static, Result<LogStart>>>,
    within: Duration,
) -> Result<RawBatchCursor, StreamFailure> {
    let mut options = doc! {};
    match (&place, begin) {
        (Some(place), _) => drop(options.insert("resumeAfter", place.clone())),
        (None, Some(begin)) => match begin.await.map_err(StreamFailure::Other)? {
            LogStart::At(time) => drop(options.insert("startAtOperationTime", time)),
            LogStart::Now => {}
        },
        (None, None) => {}
    }
    let LogScope { database, collection, pipeline, batch, wait } = scope;
    let mut stages = vec![doc! { "$changeStream": options }];
    stages.extend(pipeline);
    let mut command = doc! {};
    match collection {
        Some(collection) => command.insert("aggregate", collection),
        None => command.insert("aggregate", 1),
    };
    command.extend(doc! {
        "pipeline": stages, "cursor": { "batchSize": batch }, "readConcern": { "level": "majority" },
    });
    let mut sent = database.run_cursor_command(command).batch_size(batch).max_time(wait);
    if let Some(criteria) = database.selection_criteria() {
        sent = sent.selection_criteria(criteria.clone());
    }
    let opened = timeout(within, sent.batch()).await;
    let opened = opened.map_err(|_elapsed| StreamFailure::Silent)?;
    opened.map_err(if place.is_some() { StreamFailure::of_resuming } else { StreamFailure::of })
}

/// This long at first, and twice as long after each silence.
fn patience(at_first: Duration, silences: u32) -> Duration {
    at_first * 2_u32.pow(silences.min(MOST_DOUBLINGS))
}

fn changes(batch: &RawBatch) -> Result<Vec<RawDocumentBuf>> {
    let mut changes = Vec::new();
    for change in batch.doc_slices()? {
        let change = change.map_err(DriverError::from)?;
        changes.extend(change.as_document().map(RawDocument::to_owned));
    }
    Ok(changes)
}

/// The place after all changes of an answer.
fn token(batch: &RawBatch) -> Option<Document> {
    let cursor = batch.as_raw_document().get_document("cursor").ok()?;
    Document::try_from(cursor.get_document("postBatchResumeToken").ok()?).ok()
}

#[cfg(test)]
mod tests {
    use mongodb::bson::deserialize_from_document;
    use mongodb::error::{CommandError, ErrorKind};

    use super::*;

    fn meaning(code: i32, of: fn(DriverError) -> StreamFailure) -> &'static str {
        let refused = doc! { "code": code, "codeName": "Name", "errmsg": "words" };
        let refused: CommandError = deserialize_from_document(refused).unwrap();
        match of(ErrorKind::Command(refused).into()) {
            StreamFailure::PlaceLost(_) => "lost",
            StreamFailure::Refused(_) => "refused",
            StreamFailure::Silent => "silent",
            StreamFailure::Other(Error::Unavailable(_)) => "passes",
            StreamFailure::Other(_) => "unknown",
        }
    }

    #[test]
    fn each_error_means_the_same_when_a_stream_is_opened_and_later() {
        for (code, expected) in [
            (260, "lost"),
            (280, "lost"),
            (286, "lost"),
            (10334, "lost"),
            (13, "refused"),
            (40573, "refused"),
            (43, "passes"),
            (50, "passes"),
            (133, "passes"),
            (189, "passes"),
            (237, "passes"),
        ] {
            assert_eq!(meaning(code, StreamFailure::of), expected, "{code}");
            assert_eq!(meaning(code, StreamFailure::of_resuming), expected, "{code}");
        }
        // UnknownError: a stream that is asked for more keeps its place; one that cannot be resumed has lost
        // it.
        assert_eq!(
            (meaning(8, StreamFailure::of), meaning(8, StreamFailure::of_resuming)),
            ("unknown", "lost")
        );
    }
}
