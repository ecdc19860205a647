//! Merging: many requests of one owner become one part of a commit, and the outcome of the commit becomes
//! the outcome of each request. This file does not use the database.

use mongodb::bson::Timestamp;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Instant, OwnerId, SeqRange};
use pagebucket_model::metric::RETRIES;

use super::request::{AppendCause, Request};
use super::statement::{self, Statement};
use crate::append::expectation::{Judgement, PlannedPlace};
use crate::append::group_commit::Messages;
use crate::append::keys::{KeySearch, Run};
use crate::mongo::Error;
use crate::mongo::reply::Verdict;
use crate::store::buckets::bucket_id::Tail;
use crate::store::buckets::catalog::KnownTail;
use crate::store::buckets::document::KeyedItem;
use crate::store::collection::fence::{Fence, ReadTime};

/// After this many refusals a request fails. If `n` processes append to one owner, an attempt succeeds about
/// once in `n` times; with ten processes about one of 10^4 appends is refused this often in a row.
const MOST_ATTEMPTS: u32 = 100;

/// The most memory of the items of one owner in one commit, in bytes, unless a single request has more. More
/// items would only open more buckets in the same ordered command; the bound keeps commands short.
pub(crate) const MOST_BYTES: usize = 512 * 1024;

/// The most bytes of statements in a command, which stays below 12 MB: a server accepts 48 MB
/// (`maxMessageSizeBytes`).
pub(crate) const MOST_OF_A_COMMAND: usize = 12_000_000 - 1_000;

/// What a statement has besides its items, in bytes, at most: the id of an owner six times, and names.
const STATEMENT: usize = 1_000;

/// Maximum number of new pages that are upserted beside other statements, in one command, though they could
/// be inserted, in a command of their own.
pub(crate) const MOST_UPSERTED: usize = 4;

/// Maximum number of statements that fill the last page and open pages in one command. One command has
/// either kind, so with more of them what fills the last page is a commit of its own.
const MOST_MIXED: usize = 32;

/// One owner's part of a commit: its requests in order of arrival, as one append.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) owner: OwnerId,
    /// The tail; `None` if the history is empty, or nothing is known.
    pub(crate) tail: Option<Tail>,
    /// When the tail, or what it follows from, was read. Otherwise nothing is known of it: it must be read at
    /// the time of the last refusal or later.
    pub(crate) read: Option<ReadTime>,
    /// Whether the tail was read by this commit. Only then it shows that the history has another total than a
    /// request expects.
    pub(crate) is_read: bool,
    pub(crate) requests: Vec<Request>,
    pub(crate) statements: Vec<Statement>,
    /// Until when the statements may open pages. Closed until they are known.
    pub(crate) fence: Fence,
    /// Whether the keys of the stored items are to be remembered.
    pub(crate) keyed: bool,
}

/// The outcome of a batch, for its committer.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) owner: OwnerId,
    /// The new tail, if it is known.
    pub(crate) tail: Option<KnownTail>,
    /// Requests to place again, before any other request of the owner.
    pub(crate) again: Vec<Request>,
    /// The stored items' keys, if they are to be remembered.
    pub(crate) run: Option<Run>,
    /// Requests that are completely stored. They are answered after the committer knows the new tail, so that
    /// a client's next request finds it.
    pub(crate) done: Vec<Request>,
}

/// The types of the messages that committers of items receive.
pub(crate) enum Appends {}

impl Messages for Appends {
    type Key = OwnerId;
    type Request = Request;
    type Settled = Settled;
}

impl Settled {
    /// Of a batch of which nothing is stored and nothing is to be placed again.
    fn ended(owner: OwnerId) -> Self {
        Self { owner, tail: None, again: Vec::new(), run: None, done: Vec::new() }
    }
}

impl Batch {
    /// Removes the requests whose searches are more than `near` items behind `last`: too far to catch up
    /// within a commit.
    pub(crate) fn take_far_behind(&mut self, last: u64, near: u64) -> Vec<Request> {
        let too_far = last.saturating_sub(near);
        self.requests.extract_if(.., |request| request.is_behind(too_far)).collect()
    }

    /// The searches that have not reached `last`.
    pub(crate) fn searches_behind(&mut self, last: u64) -> Vec<&mut KeySearch> {
        let behind = self.requests.iter_mut().filter(|request| request.is_behind(last));
        behind.map(|request| &mut request.search).collect()
    }

    /// Whether a request expects a greater total than the tail has, and the requests before it do not add up
    /// to.
    pub(crate) fn expects_more(&self) -> bool {
        let total = Tail::items(self.tail);
        !are_expected(&self.requests, total)
            && self.requests.iter().any(|request| request.expected().is_some_and(|expected| expected > total))
    }

    /// Answers the requests that expect another total than they would find, and returns those that a later
    /// commit judges. What is left is placed in its order. Items that are stored already are found before.
    pub(crate) fn judge(&mut self) -> Vec<Request> {
        let mut later = Vec::new();
        if self.requests.iter().all(|request| request.expected().is_none()) {
            return later;
        }
        let (total, is_read) = (Tail::items(self.tail), self.is_read);
        let mut after = total;
        for request in std::mem::take(&mut self.requests) {
            match request.judge(PlannedPlace { after, total, is_read }) {
                Judgement::Sent => {
                    after += request.rest().len() as u64;
                    self.requests.push(request);
                }
                Judgement::Unexpected => request.fail(0, AppendCause::UnexpectedTotal(total)),
                Judgement::Later => later.push(request),
            }
        }
        later
    }

    /// Answers the requests for which `fails` holds.
    pub(crate) fn fail_if(&mut self, fails: impl Fn(&Request) -> bool, cause: impl Fn() -> AppendCause) {
        let failed = self.requests.extract_if(.., |request| fails(request));
        failed.for_each(|request| request.fail(0, cause()));
    }

    /// Plans the statements that append the items after the tail, as many as fit into a command: the rest is
    /// placed by the next commit. Requests whose items are all stored are answered.
    ///
    /// # Errors
    /// The outcome of the batch, if no item is left to store or the history has no second left.
    pub(crate) fn plan(mut self, definition: &Definition, now: Instant) -> Result<Self, Box<Settled>> {
        let (placed, rest): (Vec<_>, Vec<_>) = self.requests.into_iter().partition(Request::is_placed);
        placed.into_iter().for_each(Request::succeed);
        self.requests = rest;
        if self.requests.is_empty() {
            let tail = self.tail.zip(self.read).map(|(tail, read)| KnownTail { tail, read });
            return Err(Box::new(Settled { tail, ..Settled::ended(self.owner) }));
        }
        let items: Vec<_> = self.keyed_items().collect();
        match statement::plan(definition.page_size, self.tail, &items, now) {
            Ok(mut statements) => {
                statements.truncate(fit(&statements, &items));
                if statements.len() > MOST_MIXED && !statements[0].opens() {
                    statements.truncate(1);
                }
                self.statements = statements;
                Ok(self)
            }
            Err(exhausted) => Err(Box::new(self.fail(|| exhausted.into()))),
        }
    }

    pub(crate) fn opens(&self) -> bool {
        self.statements.iter().any(Statement::opens)
    }

    /// Until when all pages of the batch may be inserted; `None` if they are upserted. After a refusal they
    /// are: where the database's clock stands still between writes, the time of an insert is far ahead of it.
    pub(crate) fn insertable_until(&self) -> Option<Timestamp> {
        let may_be = self.statements.iter().all(Statement::opens)
            && self.requests.iter().all(|request| request.attempts == 0);
        self.fence.last_time().filter(|_| may_be)
    }

    /// The size of the batch's statements as parts of a command, in bytes, at most.
    pub(crate) fn size(&self) -> usize {
        let items: Vec<_> = self.keyed_items().collect();
        self.statements.iter().map(|statement| size(statement, &items)).sum()
    }

    /// All items still to be placed, in order. The statements' ranges are indexes into them.
    pub(crate) fn keyed_items(&self) -> impl Iterator<Item = KeyedItem<'_>> {
        self.requests.iter().flat_map(Request::keyed_items)
    }

    /// Settles the batch after the server has answered with a verdict for each statement.
    pub(crate) fn settle(mut self, collection: &str, verdicts: &[Verdict], at: Option<Timestamp>) -> Settled {
        let stored = verdicts.iter().take_while(|verdict| **verdict == Verdict::Stored).count();
        let ranges: Vec<_> = self.statements[..stored].iter().map(Statement::range).collect();
        let run = self.run(&ranges);
        assign(&mut self.requests, &ranges);
        let tail = self.statements[..stored].last().map(Statement::tail_after);
        if let Some(tail) = tail {
            let requests = self.requests.iter_mut();
            requests.for_each(|request| request.search.known_through(tail.last_seq().get()));
        }
        let (done, mut again): (Vec<_>, Vec<_>) = self.requests.into_iter().partition(Request::is_placed);
        let failed = verdicts.get(stored);
        match failed {
            None => {}
            Some(Verdict::Malformed(detail)) => {
                // If several requests are merged, the cause cannot be assigned to one: each is then sent
                // alone.
                if let [_] = again[..] {
                    let cause =
                        || Error::internal(format!("the validator refuses our own bucket: {detail}")).into();
                    again.drain(..).for_each(|request| request.fail(0, cause()));
                }
                again.iter_mut().for_each(|request| request.alone = true);
            }
            Some(_) => {
                for request in &mut again {
                    request.refused_at = at.or(request.refused_at);
                    request.attempts += 1;
                    metrics::counter!(RETRIES, "collection" => collection.to_owned(), "cause" => "stale_tail")
                        .increment(1);
                }
                let given_up = again.extract_if(.., |request| request.attempts >= MOST_ATTEMPTS);
                given_up.for_each(|request| request.fail(0, AppendCause::Contended));
            }
        }
        let tail = tail.filter(|_| failed.is_none()).zip(self.read);
        let tail = tail.map(|(tail, read)| KnownTail { tail, read });
        Settled { owner: self.owner, tail, again, run, done }
    }

    /// The keys of the stored items, which have these ranges.
    fn run(&self, ranges: &[SeqRange]) -> Option<Run> {
        let first = ranges.first().filter(|_| self.keyed)?.first.get();
        let count = ranges.iter().map(SeqRange::count).sum();
        Some(Run { first, keys: self.keyed_items().take(count).map(|item| item.key).collect() })
    }

    /// Settles the batch after the deadline has passed without a final answer.
    pub(crate) fn unknown(self) -> Settled {
        for request in self.requests {
            let unknown = request.rest().len();
            request.fail(unknown, AppendCause::OutcomeUnknown);
        }
        Settled::ended(self.owner)
    }

    /// Settles the batch if nothing was sent, and its tail has to be read again.
    pub(crate) fn again(self) -> Settled {
        Settled { again: self.requests, ..Settled::ended(self.owner) }
    }

    /// Settles the batch if nothing was sent.
    pub(crate) fn fail(self, cause: impl Fn() -> AppendCause) -> Settled {
        self.requests.into_iter().for_each(|request| request.fail(0, cause()));
        Settled::ended(self.owner)
    }
}

/// Whether each request finds the total that it expects, if they are placed one after the other from this
/// total on.
pub(crate) fn are_expected(requests: &[Request], total: u64) -> bool {
    let mut after = total;
    requests.iter().all(|request| {
        let found = after;
        after += request.rest().len() as u64;
        request.expected().is_none_or(|expected| expected == found)
    })
}

/// How many of the statements fit into one command, at least one.
fn fit(statements: &[Statement], items: &[KeyedItem<'_>]) -> usize {
    let mut bytes = 0;
    let fits = statements.iter().take_while(|statement| {
        bytes += size(statement, items);
        bytes <= MOST_OF_A_COMMAND
    });
    fits.count().max(1)
}

/// The size of a statement as a part of a command, in bytes, at most.
fn size(statement: &Statement, items: &[KeyedItem<'_>]) -> usize {
    /// The key of an item in an array, with its type, and the key of its append.
    const EACH: usize = 5 + 30;
    STATEMENT + items[statement.items.clone()].iter().map(|item| item.item.size() + EACH).sum::<usize>()
}

/// Assigns the stored addresses to the requests, in their order.
fn assign(requests: &mut [Request], ranges: &[SeqRange]) {
    let mut seqs = ranges.iter().flat_map(SeqRange::seqs);
    for request in requests {
        for seq in seqs.by_ref().take(request.rest().len()) {
            request.place(SeqRange { first: seq, last: seq });
        }
    }
}
