//! How a committer merges views: the queued views of one page and minute become one `$inc`.
//!
//! Nothing is remembered between commits, because `$inc` compares nothing. A bucket has one commit under way at
//! a time only for the sake of merging: the more views arrive, the more views each statement adds.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use mongodb::Database;
use mongodb::bson::{Bson, Document, RawBson, doc};

use super::document::{self, COLLECTION};
use super::outcome::{CountCause, Counted};
use crate::domain::{Minute, PagePath};
use crate::metric::{COMMIT_VIEWS, RETRIES};
use crate::store::group_commit::{Answer, BatchPolicy, Command, Handle, Messages, Sessions, Ticket, Verdict};
use crate::store::majority::MonotonicReads;
use crate::store::{Corruption, Deadline, Error};

/// After this many refusals a request fails. If two upserts insert one bucket at once, one of them is refused
/// and finds the bucket at its next attempt. More than a few refusals have another cause.
const MOST_ATTEMPTS: u32 = 10;

/// The page and minute that identify a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) path: PagePath,
    pub(super) minute: Minute,
}

/// Views of one page and minute to be counted, by second.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) name: Name,
    seconds: BTreeMap<u8, u64>,
    attempts: u32,
    ticket: Ticket<Counted>,
}

impl Request {
    pub(super) fn new(name: Name, seconds: BTreeMap<u8, u64>, ticket: Ticket<Counted>) -> Self {
        Self { name, seconds, attempts: 0, ticket }
    }
}

/// What all committers of views share.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) database: Database,
    pub(super) reads: MonotonicReads,
    pub(super) sessions: Arc<Sessions>,
    /// The write concern of a command with this deadline.
    pub(super) concern: fn(Deadline) -> Document,
}

/// The policy of committers of views.
pub(super) struct Counters(pub(super) Arc<Connection>);

/// All requests that one commit adds to a bucket.
#[derive(Debug)]
pub(super) struct Batch {
    name: Name,
    requests: Vec<Request>,
}

impl Messages for Counters {
    type Key = Name;
    type Request = Request;
    /// The requests to be committed again.
    type Settled = (Name, Vec<Request>);
    type Message = Infallible;
}

impl BatchPolicy<Self> for Counters {
    type Batch = Batch;

    fn key(request: &Request) -> Name {
        request.name.clone()
    }

    fn refusals(request: &Request) -> u32 {
        request.attempts
    }

    fn next_batch(&mut self, name: &Name, waiting: &mut VecDeque<Request>) -> Option<(Batch, usize)> {
        let (late, mut requests): (Vec<_>, Vec<_>) =
            waiting.drain(..).partition(|request| request.ticket.is_late());
        late.into_iter().for_each(|request| request.ticket.answer(Err(CountCause::Overloaded)));
        requests.retain(|request| request.ticket.take());
        // A statement is short: the number of keys in a commit bounds it.
        (!requests.is_empty()).then(|| (Batch { name: name.clone(), requests }, 0))
    }

    fn commit(
        &self,
        batches: Vec<Batch>,
        committer: Handle<Self>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let connection = Arc::clone(&self.0);
        async move { send(&connection, batches, &committer).await }
    }

    fn settle(&mut self, settled: (Name, Vec<Request>)) -> (Name, Vec<Request>) {
        settled
    }
}

/// Sends one unordered command: each bucket succeeds or fails independently of the others. It has at most as many
/// statements as a commit has keys, each with at most 512 bytes of path and 60 seconds of some 30 bytes.
async fn send(connection: &Connection, batches: Vec<Batch>, committer: &Handle<Counters>) {
    let requests = || batches.iter().flat_map(|batch| &batch.requests);
    let deadline = Deadline::latest(requests().map(|request| request.ticket.deadline()));
    let views: u64 = requests().flat_map(|request| request.seconds.values()).sum();
    metrics::histogram!(COMMIT_VIEWS).record(views as f64);
    let updates = batches.iter().map(|batch| RawBson::try_from(Bson::from(batch.statement())));
    let command = Command::update(COLLECTION, updates, false, (connection.concern)(deadline));
    match connection.sessions.commit(&connection.database, command, deadline).await {
        Ok(Answer { verdicts, at, .. }) => {
            // If all statements were refused, `at` may be the time of a write that a majority does not have
            // yet.
            if verdicts.contains(&Verdict::Stored) {
                connection.reads.learn(at);
            }
            for (batch, verdict) in batches.into_iter().zip(verdicts) {
                batch.settle(verdict, committer);
            }
        }
        Err(unanswered) => {
            let cause = CountCause::from(unanswered);
            batches.into_iter().for_each(|batch| batch.fail(&cause, committer));
        }
    }
}

impl Batch {
    fn statement(&self) -> Document {
        let mut seconds = BTreeMap::new();
        for (second, views) in self.requests.iter().flat_map(|request| &request.seconds) {
            *seconds.entry(*second).or_default() += views;
        }
        doc! {
            "q": document::named(&self.name.path, self.name.minute),
            "u": document::increment(&seconds),
            "upsert": true,
            "hint": { "page": 1, "timestamp": 1 },
        }
    }

    fn settle(self, verdict: Verdict, committer: &Handle<Counters>) {
        let Self { name, mut requests } = self;
        match verdict {
            Verdict::Stored => {
                committer.settled((name, Vec::new()));
                requests.into_iter().for_each(|request| request.ticket.answer(Ok(())));
            }
            Verdict::Refused | Verdict::NotRun => {
                metrics::counter!(RETRIES, "collection" => COLLECTION, "cause" => "refused").increment(1);
                requests.iter_mut().for_each(|request| request.attempts += 1);
                let (again, given_up): (Vec<_>, Vec<_>) =
                    requests.into_iter().partition(|request| request.attempts < MOST_ATTEMPTS);
                let cause = corrupt(&name, "it refuses repeatedly what is added");
                given_up.into_iter().for_each(|request| request.ticket.answer(Err(cause.clone())));
                committer.settled((name, again));
            }
            Verdict::Malformed(detail) => {
                let cause = corrupt(&name, &detail);
                Self { name, requests }.fail(&cause, committer);
            }
        }
    }

    fn fail(self, cause: &CountCause, committer: &Handle<Counters>) {
        committer.settled((self.name, Vec::new()));
        self.requests.into_iter().for_each(|request| request.ticket.answer(Err(cause.clone())));
    }
}

/// The error for a bucket that refuses an update. The update itself is valid, so the stored bucket is corrupt.
fn corrupt(name: &Name, detail: &str) -> CountCause {
    let id = format!("{} {}", name.path.as_str(), name.minute.start());
    let corruption = Corruption { id, field: "totalViews or seconds".to_owned(), detail: detail.to_owned() };
    Error::from(corruption).into()
}
