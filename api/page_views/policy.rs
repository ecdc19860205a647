//! How a committer merges views: the queued views of one page and minute become one `$inc`.
//!
//! Nothing is remembered between commits, because `$inc` compares nothing. A bucket has one commit under way
//! at a time only for the sake of merging: the more views arrive, the more views each statement adds.

use std::collections::{BTreeMap, VecDeque};

use bson::{Document, doc};
use pagebucket_engine::internal::PAGE_VIEWS;
use pagebucket_engine::internal::documents::{
    BatchPolicy, Documents, Handle, Messages, Ticket, Unanswered, Verdict,
};
use pagebucket_engine::{Corruption, Deadline, Error};
use pagebucket_model::metric::{COMMIT_VIEWS, RETRIES};

use crate::document;
use crate::page_path::PagePath;
use crate::resolution::Minute;

/// After this many refusals a request fails. If two upserts insert one bucket at once, one of them is refused
/// and finds the bucket at its next attempt. More than a few refusals have another cause.
const MOST_ATTEMPTS: u32 = 10;

/// The page and minute that identify a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(crate) path: PagePath,
    pub(crate) minute: Minute,
}

/// Why views are not counted, or may not be.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CountCause {
    /// The database gave no final answer before the deadline.
    #[error("the outcome of a command is unknown")]
    OutcomeUnknown,
    /// The request adds to more counters (one for each page and second) than may wait at once. It never fits.
    #[error("{counters} counters, and at most {most} may wait")]
    TooManyCounters {
        /// How many counters the request adds to.
        counters: usize,
        /// How many counters the queue holds.
        most: usize,
    },
    /// Too many views wait, in total or for one minute of a page, or these views have waited too long.
    #[error("too many views are waiting to be counted")]
    Overloaded,
    /// The database failed before the views were sent to it, or it refused them permanently.
    #[error(transparent)]
    Database(#[from] Error),
}

impl From<Unanswered> for CountCause {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::NotSent(error) => error.into(),
            Unanswered::Unknown => Self::OutcomeUnknown,
        }
    }
}

/// The outcome of a request.
pub(crate) type CountOutcome = Result<(), CountCause>;

/// Views of one page and minute to be counted, by second.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) name: Name,
    pub(crate) seconds: BTreeMap<u8, u64>,
    pub(crate) attempts: u32,
    pub(crate) ticket: Ticket<CountOutcome>,
}

/// The policy of committers of views.
pub(crate) struct Counters(pub(crate) Documents);

/// All requests that one commit adds to a bucket.
#[derive(Debug)]
pub(crate) struct Batch {
    name: Name,
    requests: Vec<Request>,
}

impl Messages for Counters {
    type Key = Name;
    type Request = Request;
    /// The requests to be committed again.
    type Settled = (Name, Vec<Request>);
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
        send(self.0.clone(), batches, committer)
    }

    fn settle(&mut self, settled: (Name, Vec<Request>)) -> (Name, Vec<Request>) {
        settled
    }
}

/// Sends one unordered command: each bucket succeeds or fails independently of the others. It has at most as
/// many statements as a commit has keys, each with at most 512 bytes of path and 60 seconds of some 30 bytes.
async fn send(documents: Documents, batches: Vec<Batch>, committer: Handle<Counters>) {
    let requests = || batches.iter().flat_map(|batch| &batch.requests);
    let deadline = Deadline::latest(requests().map(|request| request.ticket.deadline()));
    let views: u64 = requests().flat_map(|request| request.seconds.values()).sum();
    metrics::histogram!(COMMIT_VIEWS).record(views as f64);
    let updates = batches.iter().map(Batch::statement);
    match documents.update(PAGE_VIEWS, updates, deadline).await {
        Ok(verdicts) => {
            for (batch, verdict) in batches.into_iter().zip(verdicts) {
                batch.settle(Ok(verdict), &committer);
            }
        }
        Err(unanswered) => {
            let cause = CountCause::from(unanswered);
            batches.into_iter().for_each(|batch| batch.settle(Err(cause.clone()), &committer));
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

    /// Answers the requests, except those that are committed again.
    fn settle(self, verdict: Result<Verdict, CountCause>, committer: &Handle<Counters>) {
        let Self { name, mut requests } = self;
        let mut again = Vec::new();
        let counted = match verdict {
            Ok(Verdict::Stored) => Ok(()),
            Ok(Verdict::Refused | Verdict::NotRun) => {
                metrics::counter!(RETRIES, "collection" => PAGE_VIEWS, "cause" => "refused").increment(1);
                requests.iter_mut().for_each(|request| request.attempts += 1);
                (again, requests) =
                    requests.into_iter().partition(|request| request.attempts < MOST_ATTEMPTS);
                Err(corrupt(&name, "it refuses repeatedly what is added"))
            }
            Ok(Verdict::Malformed(detail)) => Err(corrupt(&name, &detail)),
            Err(cause) => Err(cause),
        };
        committer.settled((name, again));
        requests.into_iter().for_each(|request| request.ticket.answer(counted.clone()));
    }
}

/// The error for a bucket that refuses an update. The update itself is valid, so the stored bucket is
/// corrupt.
fn corrupt(name: &Name, detail: &str) -> CountCause {
    let id = format!("{} {}", name.path.as_str(), name.minute.start());
    Error::from(Corruption::new(id, "totalViews or seconds", detail)).into()
}
