//! Merging: what many requests to one customer become in one commit, and what its outcome means to
//! each of them. No database here.

use mongodb::bson::Timestamp;

use super::dedup::{NEAR, Run, Searches};
use super::document::{COLLECTION, Item};
use super::outcome::Cause;
use super::request::Request;
use super::statement::{self, Statement};
use super::tail::Tail;
use crate::domain::{CustomerId, Instant, SeqRange};
use crate::metric::RETRIES;
use crate::store::Error;
use crate::store::group_commit::Verdict;

/// Refusals after which a request gives up. With `n` processes appending to one customer an attempt
/// wins about once in `n` times, so that ten processes lose so often in a row once in 10^4 appends.
const MOST_ATTEMPTS: u32 = 100;

/// Trades of one customer in one commit, unless a single request has more. Ten more would open one
/// more bucket in the same ordered command: a bound only keeps commands short.
pub(super) const MOST_TRADES: usize = 2_000;

/// One customer's part of a commit: its requests in order of arrival, as one append.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) customer: CustomerId,
    /// The known tail; where it is not in the catalog it is read first.
    pub(super) tail: Known,
    pub(super) requests: Vec<Request>,
    pub(super) statements: Vec<Statement>,
    /// Whether the keys of what is stored are worth remembering.
    pub(super) keyed: bool,
}

/// What is known of a tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing; what is read must be no older than this, where it says something.
    Nothing(Option<Timestamp>),
    /// This is it, or the history is empty.
    Tail(Option<Tail>),
}

/// What a committer does with a customer after a commit.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) customer: CustomerId,
    /// The new tail, if it is known.
    pub(super) tail: Option<Tail>,
    /// Requests to be placed anew, before any other of the customer.
    pub(super) again: Vec<Request>,
    /// What was stored, where its keys are worth remembering.
    pub(super) run: Option<Run>,
    /// Requests of which all is stored. They are answered when the committer knows the new tail, so that
    /// a client's next request finds it.
    pub(super) done: Vec<Request>,
}

impl Batch {
    /// Takes out the requests whose searches are too far behind `last` to be brought up to date in a commit.
    pub(super) fn take_far_behind(&mut self, last: u64) -> Vec<Request> {
        let too_far = last.saturating_sub(NEAR);
        self.requests.extract_if(.., |request| request.is_behind(too_far)).collect()
    }

    /// The searches that have not come as far as `last`.
    pub(super) fn searches_behind(&mut self, last: u64) -> Searches {
        let behind = self.behind(last);
        behind
            .filter_map(Request::searching)
            .map(|(search, placed)| (search.clone(), placed.clone()))
            .collect()
    }

    /// The same searches have gone on, or have failed.
    pub(super) fn found(&mut self, last: u64, found: Result<Searches, Error>) {
        match found {
            Ok(found) => {
                let searches = self.behind(last).filter_map(Request::searching);
                for ((search, placed), found) in searches.zip(found) {
                    (*search, *placed) = found;
                }
            }
            Err(error) => {
                let requests = std::mem::take(&mut self.requests);
                let (behind, others) = requests.into_iter().partition(|request| request.is_behind(last));
                self.requests = others;
                let behind: Vec<Request> = behind;
                behind.into_iter().for_each(|request| request.fail(0, error.clone().into()));
            }
        }
    }

    fn behind(&mut self, last: u64) -> impl Iterator<Item = &mut Request> {
        self.requests.iter_mut().filter(move |request| request.is_behind(last))
    }

    /// Lays the trades out behind the tail. Without a plan the requests are answered, as are those whose
    /// trades are all there.
    pub(super) fn plan(mut self, tail: Option<Tail>, now: Instant) -> Result<Self, Box<Settled>> {
        let (there, rest): (Vec<_>, Vec<_>) = self.requests.into_iter().partition(Request::is_placed);
        there.into_iter().for_each(Request::succeed);
        self.requests = rest;
        if self.requests.is_empty() {
            let (customer, again, done) = (self.customer, Vec::new(), Vec::new());
            return Err(Box::new(Settled { customer, tail, again, run: None, done }));
        }
        let items: Vec<_> = self.items().collect();
        let planned = statement::plan(self.customer, tail, &items, now);
        match planned {
            Ok(statements) => {
                self.statements = statements;
                Ok(self)
            }
            Err(exhausted) => Err(Box::new(self.fail(|| exhausted.into()))),
        }
    }

    /// All trades still to be placed, in order: what the statements' ranges count.
    pub(super) fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.requests.iter().flat_map(Request::items)
    }

    /// The commit was answered, with a verdict for each statement.
    pub(super) fn settle(mut self, verdicts: &[Verdict], at: Option<Timestamp>) -> Settled {
        let stored = verdicts.iter().take_while(|verdict| **verdict == Verdict::Stored).count();
        let ranges: Vec<_> = self.statements[..stored].iter().map(Statement::range).collect();
        let run = self.run(&ranges);
        assign(&mut self.requests, &ranges);
        let tail = self.statements[..stored].last().map(Statement::tail_after);
        if let Some(tail) = tail {
            let searches = self.requests.iter_mut().filter_map(Request::searching);
            searches.for_each(|(search, _)| search.known_through(tail.last_seq().get()));
        }
        let (done, mut again): (Vec<_>, Vec<_>) = self.requests.into_iter().partition(Request::is_placed);
        match verdicts.get(stored) {
            None => Settled { customer: self.customer, tail, again, run, done },
            Some(Verdict::Malformed(detail)) => {
                // Whose trade it is cannot be told where several are merged: each goes alone then.
                if let [_] = again[..] {
                    let cause =
                        || Error::Internal(format!("the validator refuses our own bucket: {detail}")).into();
                    again.drain(..).for_each(|request| request.fail(0, cause()));
                }
                again.iter_mut().for_each(|request| request.alone = true);
                Settled { customer: self.customer, tail: None, again, run, done }
            }
            Some(_) => {
                for request in &mut again {
                    request.refused_at = at.or(request.refused_at);
                    request.attempts += 1;
                    metrics::counter!(RETRIES, "collection" => COLLECTION, "cause" => "stale_tail")
                        .increment(1);
                }
                let (again, given_up) =
                    again.into_iter().partition(|request| request.attempts < MOST_ATTEMPTS);
                let given_up: Vec<Request> = given_up;
                given_up.into_iter().for_each(|request| request.fail(0, Cause::Contended));
                Settled { customer: self.customer, tail: None, again, run, done }
            }
        }
    }

    /// The keys of the trades in these ranges, which a command has stored.
    fn run(&self, ranges: &[SeqRange]) -> Option<Run> {
        let first = ranges.first().filter(|_| self.keyed)?.first.get();
        let count = ranges.iter().map(SeqRange::count).sum::<u64>() as usize;
        Some(Run { first, keys: self.items().take(count).map(|item| item.key).collect() })
    }

    /// The deadline passed without an answer to trust.
    pub(super) fn unknown(self) -> Settled {
        for request in self.requests {
            let unknown = request.rest().len();
            request.fail(unknown, Cause::OutcomeUnknown);
        }
        Settled { customer: self.customer, tail: None, again: Vec::new(), run: None, done: Vec::new() }
    }

    /// Nothing was sent.
    pub(super) fn fail(self, cause: impl Fn() -> Cause) -> Settled {
        self.requests.into_iter().for_each(|request| request.fail(0, cause()));
        Settled { customer: self.customer, tail: None, again: Vec::new(), run: None, done: Vec::new() }
    }
}

/// Deals what is stored out to the requests, in their order.
fn assign(requests: &mut [Request], ranges: &[SeqRange]) {
    let mut requests = requests.iter_mut().filter(|request| !request.rest().is_empty());
    let mut current = requests.next();
    for range in ranges {
        let mut first = range.first;
        while let Some(request) = current.as_deref_mut().filter(|_| first <= range.last) {
            let wanted = request.rest().len();
            let there = (range.last.get() - first.get() + 1) as usize;
            let count = wanted.min(there);
            request.place(SeqRange { first, last: first.plus(count - 1) });
            first = first.plus(count);
            if count == wanted {
                current = requests.next();
            }
        }
    }
}
