//! A keyed append, from its request to its answer. [`dedup`](super::dedup) explains why it is stored once.

use std::time::Duration;

use mongodb::bson::Bson;
use tokio::sync::oneshot;

use super::dedup::{
    Fingerprint, Goal, Placed, Record, RecordId, Registered, Registration, RequestSearch, Search, TradeKey,
    keep_looked, scan, set_outcome, updates,
};
use super::engine::Trades;
use super::messages::Message;
use super::outcome::{AppendError, Cause, Progress};
use super::request::{Keyed, Request};
use crate::domain::{CustomerId, IdempotencyKey, Instant, SeqRange, TradeDraft};
use crate::metric::KEYED_APPENDS;
use crate::store::group_commit::{Answer, Ticket, Unanswered};
use crate::store::{Deadline, Error};

/// How long the registration of a key may take. The time left afterwards is enough for a commit.
const REGISTER: Duration = Duration::from_secs(10);

/// One attempt at a keyed append.
struct Attempt {
    trades: Trades,
    customer: CustomerId,
    key: IdempotencyKey,
    drafts: Vec<TradeDraft>,
    deadline: Deadline,
}

impl Trades {
    /// Stores at least one trade at the end of a history, unless a request with the same key has already stored
    /// the trades. `now` is the time at which the request arrived.
    ///
    /// The append goes on to its end even if the caller stops waiting. Also returns when the first request with the key
    /// arrived: trades without a date get this one.
    ///
    /// # Errors
    /// See [`AppendError`]. After any error except [`Cause::KeyReused`] the same request may be sent again with
    /// the same key, and is still stored once.
    pub async fn append_once(
        &self,
        customer: CustomerId,
        key: IdempotencyKey,
        drafts: Vec<TradeDraft>,
        now: Instant,
        deadline: Deadline,
    ) -> Result<(Progress, Instant), AppendError> {
        let count = drafts.len();
        let attempt = Attempt { trades: self.clone(), customer, key, drafts, deadline };
        // A separate task, because a client that disconnects would otherwise stop the attempt between two
        // steps. Each step keeps the deadline.
        let outcome = match tokio::spawn(attempt.run(now)).await {
            Ok(outcome) => outcome,
            Err(_panicked) => {
                let (progress, cause) = (Progress::default(), Cause::OutcomeUnknown);
                Err(AppendError { progress, unknown: count, cause })
            }
        };
        let result = match &outcome {
            Ok((progress, _)) if progress.is_replayed() => "replayed",
            Ok(_) => "stored",
            Err(AppendError { cause: Cause::KeyReused, .. }) => "reused",
            Err(_) => "failed",
        };
        metrics::counter!(KEYED_APPENDS, "result" => result).increment(1);
        outcome
    }
}

impl Attempt {
    async fn run(self, now: Instant) -> Result<(Progress, Instant), AppendError> {
        let room = self.trades.room(self.customer, self.drafts.len()).map_err(AppendError::nothing)?;
        let id = RecordId::new(self.customer, &self.key);
        let fingerprint = Fingerprint::of(&self.drafts);
        let proposed = Record { from: 0, fingerprint, date: now, outcome: None };
        let registered = register_key(&self.trades, self.customer, id, proposed, false, self.deadline).await;
        let keys = || (0..self.drafts.len()).map(|index| TradeKey::new(self.customer, &self.key, index));
        let mut placed = Placed::default();
        let registered = registered.map_err(AppendError::nothing)?;
        let begins = matches!(&registered, Registered::New { record, .. } if record.from == 0);
        let (record, inserted, search) = match registered {
            Registered::New { record, inserted } => {
                let search = Search::Request(RequestSearch::new(keys().collect(), record.from));
                (record, inserted, search)
            }
            Registered::Found(record) if record.fingerprint != fingerprint => {
                return Err(AppendError::nothing(Cause::KeyReused));
            }
            Registered::Found(Record { outcome: Some(ranges), date, .. }) => {
                return Ok((Progress::replayed(ranges), date));
            }
            Registered::Found(record) => {
                let search = Search::Request(RequestSearch::new(keys().collect(), record.from));
                let found = self.trades.find(self.customer, id, search, self.deadline).await;
                let found = found.map_err(AppendError::nothing)?;
                let search = found.0;
                placed = found.1;
                if search.is_over(&placed) {
                    return self.tell(id, placed.ranges, record.date).await;
                }
                (record, None, search)
            }
        };
        let date = record.date;
        let trades = self.drafts.iter().cloned().map(|draft| draft.dated(date)).collect();
        let keyed = Keyed { id, search, stored: false, begins, inserted };
        let (ticket, pending) = Ticket::new(self.deadline, room);
        let request = Request::keyed(self.customer, trades, placed, keyed, ticket);
        let progress = self.trades.enqueue(request, pending).await?;
        match progress.is_replayed() {
            true => self.tell(id, progress.placed.ranges, date).await,
            false => Ok((progress, date)),
        }
    }

    /// Stores the outcome of an earlier request durably in the record, then answers it.
    async fn tell(
        &self,
        id: RecordId,
        ranges: Vec<SeqRange>,
        date: Instant,
    ) -> Result<(Progress, Instant), AppendError> {
        let inner = &self.trades.0;
        let update = Bson::from(set_outcome(id, self.customer, &ranges));
        let command = updates(vec![update], self.deadline);
        let told = inner.connection.sessions.commit(&inner.database, command, self.deadline).await;
        let error = match told {
            Ok(Answer { at, .. }) => {
                inner.reads.learn(at);
                return Ok((Progress::replayed(ranges), date));
            }
            Err(Unanswered::Unknown) => {
                Error::Unavailable("it is not known whether an outcome is in its record".to_owned())
            }
            Err(Unanswered::NotSent(error)) => error,
        };
        Err(AppendError::nothing(error))
    }
}

/// Registers a key: inserts its record unless there is one. With `keeps`, keeps the record of a request that is
/// under way.
pub(super) async fn register_key(
    trades: &Trades,
    customer: CustomerId,
    id: RecordId,
    proposed: Record,
    keeps: bool,
    deadline: Deadline,
) -> Result<Registered, Error> {
    let deadline = deadline.or_within(REGISTER);
    let (answer, answered) = oneshot::channel();
    let registration = Registration { customer, id, proposed, keeps, deadline, attempts: 0, answer };
    if !trades.committer(customer).send(Message::Register(registration)) {
        return Err(Error::Internal("a committer has ended".to_owned()));
    }
    let unavailable = || Error::Unavailable("a key was not registered in time".to_owned());
    let answered = tokio::time::timeout(deadline.remaining(), answered).await;
    answered.map_err(|_elapsed| unavailable())?.map_err(|_lost| unavailable())?
}

impl Trades {
    /// Searches the whole history, which may be long, without blocking a committer. If this attempt fails
    /// before its end, a repeat goes on where it stopped.
    pub(super) async fn find(
        &self,
        customer: CustomerId,
        id: RecordId,
        search: Search,
        deadline: Deadline,
    ) -> Result<(Search, Placed), Error> {
        let goal = Goal::End { after: search.looked() };
        let mut searches = vec![(search, Placed::default())];
        loop {
            let looked = scan(&self.0.reads, customer, searches, goal, deadline).await?;
            searches = looked.searches;
            if looked.is_done {
                return searches.pop().ok_or_else(|| Error::Internal("a search was lost".to_owned()));
            }
            let looked = searches.iter().map(|(search, placed)| (id, search, placed));
            keep_looked(&self.0.connection, customer, looked, deadline).await;
        }
    }
}
