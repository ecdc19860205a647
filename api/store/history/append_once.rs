//! A keyed append, from its request to its answer. [`dedup`](super::dedup) explains why it is stored once.

use std::time::Duration;

use mongodb::bson::Bson;
use tokio::sync::oneshot;

use super::dedup::{
    Fingerprint, Goal, ItemKey, Placed, Record, RecordId, Registered, Registration, RequestSearch, Search,
    keep_looked, query, scan, set_outcome, updates,
};
use super::engine::Engine;
use super::messages::Message;
use super::outcome::{AppendError, Cause, Progress};
use super::request::{Keyed, Request, weight};
use crate::domain::{IdempotencyKey, Instant, OwnerId, SeqRange};
use crate::item::Draft;
use crate::metric::KEYED_APPENDS;
use crate::store::group_commit::{Answer, Ticket, Unanswered};
use crate::store::{Deadline, Error};

/// How long the registration of a key may take. The time left afterwards is enough for a commit.
const REGISTER: Duration = Duration::from_secs(10);

/// One attempt at a keyed append.
struct Attempt {
    engine: Engine,
    owner: OwnerId,
    key: IdempotencyKey,
    drafts: Vec<Draft>,
    fingerprint: Fingerprint,
    deadline: Deadline,
}

impl Engine {
    /// Stores at least one item at the end of a history, unless a request with the same key has already stored
    /// the items. `canonical` has the canonical form of each ([`crate::item::canonical`]), by which a repeat is known.
    /// `now` is the time at which the request arrived.
    ///
    /// The append goes on to its end even if the caller stops waiting. Also returns when the first request with the key
    /// arrived: items without a date get this one.
    ///
    /// # Errors
    /// See [`AppendError`]. After any error except [`Cause::KeyReused`] the same request may be sent again with
    /// the same key, and is still stored once.
    pub async fn append_once(
        &self,
        owner: OwnerId,
        key: IdempotencyKey,
        drafts: Vec<Draft>,
        canonical: &[Vec<u8>],
        now: Instant,
        deadline: Deadline,
    ) -> Result<(Progress, Instant), AppendError> {
        let count = drafts.len();
        let fingerprint = Fingerprint::of(self.definition(), &drafts, canonical);
        let attempt = Attempt { engine: self.clone(), owner, key, drafts, fingerprint, deadline };
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
        let (engine, owner, definition) = (&self.engine, &self.owner, self.engine.definition());
        let bytes = weight(self.drafts.iter().map(Draft::size));
        let room = engine.0.queue.room(owner, bytes).map_err(AppendError::nothing)?;
        let id = RecordId::new(definition, owner, &self.key);
        let proposed = Record { from: 0, fingerprint: self.fingerprint, date: now, outcome: None };
        let registered = register_key(engine, owner, id, proposed, false, self.deadline).await;
        let keys = || (0..self.drafts.len()).map(|index| ItemKey::new(definition, owner, &self.key, index));
        let mut placed = Placed::default();
        let registered = registered.map_err(AppendError::nothing)?;
        let begins = matches!(&registered, Registered::New { record, .. } if record.from == 0);
        let (record, inserted, search) = match registered {
            Registered::New { record, inserted } => {
                let search = Search::Request(RequestSearch::new(keys().collect(), record.from));
                (record, inserted, search)
            }
            Registered::Found(record) if record.fingerprint != self.fingerprint => {
                return Err(AppendError::nothing(Cause::KeyReused));
            }
            Registered::Found(Record { outcome: Some(ranges), date, .. }) => {
                return Ok((Progress::replayed(ranges), date));
            }
            Registered::Found(record) => {
                let search = Search::Request(RequestSearch::new(keys().collect(), record.from));
                let found = engine.find(owner, id, search, self.deadline).await;
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
        let items = self.drafts.iter().map(|draft| draft.dated(date)).collect();
        let keyed = Keyed { id, search, stored: false, begins, inserted };
        let (ticket, pending) = Ticket::new(self.deadline, room);
        let request = Request::keyed(owner.clone(), items, placed, keyed, ticket);
        let progress = engine.enqueue(request, pending).await?;
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
        let connection = &self.engine.0.connection;
        let update = Bson::from(set_outcome(query(&connection.source, id, &self.owner), &ranges));
        let command = updates(vec![update], self.deadline);
        let told = connection.sessions.commit(&connection.database, command, self.deadline).await;
        let error = match told {
            Ok(Answer { at, .. }) => {
                connection.source.reads.learn(at);
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
    engine: &Engine,
    owner: &OwnerId,
    id: RecordId,
    proposed: Record,
    keeps: bool,
    deadline: Deadline,
) -> Result<Registered, Error> {
    let deadline = deadline.or_within(REGISTER);
    let (answer, answered) = oneshot::channel();
    let registration =
        Registration { owner: owner.clone(), id, proposed, keeps, deadline, attempts: 0, answer };
    if !engine.committer(owner).send(Message::Register(registration)) {
        return Err(Error::Internal("a committer has ended".to_owned()));
    }
    let unavailable = || Error::Unavailable("a key was not registered in time".to_owned());
    let answered = tokio::time::timeout(deadline.remaining(), answered).await;
    answered.map_err(|_elapsed| unavailable())?.map_err(|_lost| unavailable())?
}

impl Engine {
    /// Searches the whole history, which may be long, without blocking a committer. If this attempt fails
    /// before its end, a repeat goes on where it stopped.
    pub(super) async fn find(
        &self,
        owner: &OwnerId,
        id: RecordId,
        search: Search,
        deadline: Deadline,
    ) -> Result<(Search, Placed), Error> {
        let goal = Goal::End { after: search.looked() };
        let mut searches = vec![(search, Placed::default())];
        loop {
            let looked = scan(&self.0.source, owner, searches, goal, deadline).await?;
            searches = looked.searches;
            if looked.is_done {
                return searches.pop().ok_or_else(|| Error::Internal("a search was lost".to_owned()));
            }
            let looked = searches.iter().map(|(search, placed)| (id, search, placed));
            keep_looked(&self.0.connection, owner, looked, deadline).await;
        }
    }
}
