//! What a committer makes of views: those of one page and minute that have queued become one `$inc`.
//!
//! It remembers nothing in between, since `$inc` compares nothing. That a bucket has one commit under way at
//! a time is there for the sake of merging: the more is asked of it, the more each statement adds.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};

use super::count::CountCause;
use super::measure::COMMIT_VIEWS;
use super::{COLLECTION, document};
use crate::domain::{Minute, PagePath};
use crate::store::group_commit::{
    Address, Answer, Busy, Command, Ledger, Outcome, Sessions, Ticket, Verdict,
};
use crate::store::measure::RETRIES;
use crate::store::{Corruption, Deadline, Error};

/// Refusals after which a request gives up. Of two upserts that insert one bucket at once the other is refused,
/// and finds it the next time: more than a few say that something else is wrong.
const MOST_ATTEMPTS: u32 = 10;

/// Statements in one command. One has at most 512 bytes of path and 60 seconds of some 30 bytes.
const MOST_STATEMENTS: usize = 1_000;

/// What became of a request.
pub(super) type Counted = Result<(), CountCause>;

/// What a bucket is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) path: PagePath,
    pub(super) minute: Minute,
}

/// Views of one page and minute to be counted, by the second.
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

/// What committers share.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) database: Database,
    pub(super) sessions: Arc<Sessions>,
    /// When a command counts as acknowledged.
    pub(super) concern: fn(Deadline) -> Document,
}

/// A committer of views.
pub(super) struct Counters(pub(super) Arc<Connection>);

/// All that one commit adds to a bucket.
#[derive(Debug)]
pub(super) struct Share {
    name: Name,
    requests: Vec<Request>,
}

/// What became of a share: which of its requests are to be committed anew.
pub(super) struct Settled {
    name: Name,
    again: Vec<Request>,
}

impl Ledger for Counters {
    type Key = Name;
    type Request = Request;
    type Share = Share;
    type Settled = Settled;
    type Note = Infallible;

    fn key(request: &Request) -> Name {
        request.name.clone()
    }

    fn refusals(request: &Request) -> u32 {
        request.attempts
    }

    fn share(&mut self, name: &Name, waiting: &mut VecDeque<Request>) -> Option<(Share, usize)> {
        let (late, mut requests): (Vec<_>, Vec<_>) =
            waiting.drain(..).partition(|request| request.ticket.is_late());
        late.into_iter().for_each(|request| request.ticket.answer(Err(CountCause::Overloaded)));
        requests.retain(|request| request.ticket.take());
        (!requests.is_empty()).then(|| (Share { name: name.clone(), requests }, 1))
    }

    fn commit(
        &self,
        shares: Vec<Share>,
        committer: Address<Self>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let connection = Arc::clone(&self.0);
        async move {
            let mut shares = shares.into_iter().peekable();
            let mut commands = Vec::new();
            while shares.peek().is_some() {
                commands.push(shares.by_ref().take(MOST_STATEMENTS).collect());
            }
            join_all(commands.into_iter().map(|shares| send(&connection, shares, &committer))).await;
        }
    }

    fn settle(&mut self, settled: Settled) -> (Name, Vec<Request>) {
        (settled.name, settled.again)
    }

    fn lost(&mut self, _name: &Name) {}

    fn note(&mut self, note: Infallible, _busy: &Busy<Name>) {
        match note {}
    }

    fn errand(&mut self, _committer: &Address<Self>) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// Sends one unordered command: each bucket stands for itself.
async fn send(connection: &Connection, shares: Vec<Share>, committer: &Address<Counters>) {
    let requests = || shares.iter().flat_map(|share| &share.requests);
    let deadline = Deadline::latest(requests().map(|request| request.ticket.deadline()));
    let views: u64 = requests().flat_map(|request| request.seconds.values()).sum();
    metrics::histogram!(COMMIT_VIEWS).record(views as f64);
    let updates = shares.iter().map(|share| Bson::from(share.statement()));
    let command = Command::update(COLLECTION, updates, false, (connection.concern)(deadline));
    match connection.sessions.commit(&connection.database, command, deadline).await {
        Outcome::Answered(Answer::Known { verdicts, .. }) => {
            for (share, verdict) in shares.into_iter().zip(verdicts) {
                share.settle(verdict, committer);
            }
        }
        Outcome::Answered(Answer::Unknown(_)) | Outcome::Unknown => {
            shares.into_iter().for_each(|share| share.fail(&CountCause::OutcomeUnknown, committer));
        }
        Outcome::NotSent(error) => {
            let cause = CountCause::from(error);
            shares.into_iter().for_each(|share| share.fail(&cause, committer));
        }
    }
}

impl Share {
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

    fn settle(self, verdict: Verdict, committer: &Address<Counters>) {
        let Self { name, mut requests } = self;
        match verdict {
            Verdict::Stored => {
                committer.settled(Settled { name, again: Vec::new() });
                requests.into_iter().for_each(|request| request.ticket.answer(Ok(())));
            }
            Verdict::Refused | Verdict::NotRun => {
                metrics::counter!(RETRIES, "collection" => COLLECTION, "cause" => "refused").increment(1);
                requests.iter_mut().for_each(|request| request.attempts += 1);
                let (again, given_up): (Vec<_>, Vec<_>) =
                    requests.into_iter().partition(|request| request.attempts < MOST_ATTEMPTS);
                let cause = corrupt(&name, "it refuses what is added, again and again");
                given_up.into_iter().for_each(|request| request.ticket.answer(Err(cause.clone())));
                committer.settled(Settled { name, again });
            }
            Verdict::Malformed(detail) => {
                let cause = corrupt(&name, &detail);
                Self { name, requests }.fail(&cause, committer);
            }
        }
    }

    fn fail(self, cause: &CountCause, committer: &Address<Counters>) {
        committer.settled(Settled { name: self.name, again: Vec::new() });
        self.requests.into_iter().for_each(|request| request.ticket.answer(Err(cause.clone())));
    }
}

/// What is added is of our form: if it is not taken, then for what is there.
fn corrupt(name: &Name, detail: &str) -> CountCause {
    let id = format!("{} {}", name.path.as_str(), name.minute.start());
    let corruption = Corruption { id, field: "totalViews or seconds".to_owned(), detail: detail.to_owned() };
    Error::from(corruption).into()
}
