//! Appends: a request enters the queue, and the committer's answer becomes the caller's. An append with a key
//! is first registered; [`keys`](crate::append::keys) explains why it is stored once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;
use mongodb::bson::Bson;
use pagebucket_model::domain::{IdempotencyKey, OwnerId, SeqRange};
use pagebucket_model::item::{Draft, Item};
use pagebucket_model::metric::KEYED_APPENDS;
use pagebucket_model::trace::TracedWait;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::batch::Appends;
use super::input::{Append, AppendTerms, Once};
use super::policy::AppendPolicy;
use super::queue::AppendQueue;
use super::request::{AppendCause, AppendError, AppendProgress, Appended, Keyed, Request, weight};
use crate::append::expectation::Expectation;
use crate::append::group_commit::{Committers, NoAnswer, QueueClient, QueueReservation, Ticket};
use crate::append::keys::{
    KeySearch, Record, Registered, Registration, query, registrar, search_to_end, set_outcome, updates,
};
use crate::append::placed::Placed;
use crate::live::LiveHistory;
use crate::mongo::{COMMAND, Deadline, Error, Result};
use crate::store::buckets::catalog::{self, Catalog};
use crate::store::buckets::identity::{Fingerprint, ItemKey, RecordId};
use crate::store::collection::{HistoryCollection, OfOwner};

/// How long the registration of a key may take. The time left afterwards is enough for a commit.
const REGISTER: Duration = Duration::from_secs(10);

/// The memory of an append with [`Once`] while it goes on, in bytes, at most: its future. A test compares it.
pub const APPEND_ONCE: usize = 6 * 1024;

/// Appends to the histories of one definition. The committers end when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Appender {
    pub(crate) parts: Arc<AppendParts>,
    /// Whose appends these are, if clients share the queue.
    pub(crate) client: Option<QueueClient>,
}

/// What clones share.
#[derive(Debug)]
pub(crate) struct AppendParts {
    pub(crate) source: Arc<HistoryCollection>,
    pub(crate) queue: AppendQueue,
    /// Those of the committers.
    catalogs: Box<[Catalog]>,
    committers: Committers<Appends>,
    /// Those of keys, one beside each committer.
    registrars: Box<[UnboundedSender<Registration>]>,
}

impl Appender {
    /// The committers together remember the tails of about this many `owners`.
    pub(crate) fn new(history: LiveHistory, queue: AppendQueue, owners: usize) -> Self {
        let count = committers();
        let catalogs: Box<[_]> = (0..count).map(|_| catalog::new(owners.div_ceil(count))).collect();
        let policy = |number: usize| AppendPolicy::new(history.clone(), catalogs[number].clone(), number);
        let committers = Committers::start(count, policy);
        let registrars =
            catalogs.iter().map(|of| registrar(Arc::clone(&history.source), of.clone())).collect();
        let parts = AppendParts { source: history.source, queue, catalogs, committers, registrars };
        Self { parts: Arc::new(parts), client: None }
    }

    /// Forgets the tails: pages may have been deleted.
    pub(crate) fn forget(&self) {
        self.parts.catalogs.iter().for_each(|catalog| catalog.lock().clear());
    }

    /// Stores items at the end of a history, in the given order.
    ///
    /// With [`Once`], items that an earlier attempt has stored are looked for first. Where they are stored,
    /// the total that the terms expect does not matter. Where some of them are stored, the rest is stored
    /// whatever the total is.
    ///
    /// The append goes on to its end even if the caller stops waiting.
    ///
    /// # Errors
    /// See [`AppendError`]. Each item that the error does not count as unknown is stored exactly once or not
    /// at all. With [`Once`], the items without an end may be sent again after any error except
    /// [`AppendCause::KeyReused`], even if their outcome is unknown, and are still stored once.
    pub fn append(&self, mut append: Append<'_>) -> impl Future<Output = Appended> {
        match append.once.take() {
            None => Either::Left(self.enqueue_all(append, KeySearch::of_nothing())),
            // In a box, because it would be most of the memory of an append without a key.
            Some(once) => Either::Right(Box::pin(self.append_once(append, once))),
        }
    }

    async fn append_once(&self, append: Append<'_>, once: Once<'_>) -> Appended {
        match once {
            Once::Request { key, canonical } => self.append_request(append, key, canonical).await,
            Once::Lines { key, numbers, so_far } => self.append_lines(append, key, numbers, so_far).await,
            Once::Identified { keys, so_far } => self.append_identified(append, keys, so_far).await,
        }
    }

    /// The most bytes of items that an upload may append at once, unless a single item has more:
    /// [`Draft::size`] and 64 for each.
    #[doc(hidden)]
    pub fn most_of_an_upload(&self) -> usize {
        self.parts.queue.most_of_an_upload()
    }

    /// Room in the queue for items of this [`weight`]. The time of an append that waits for it starts when
    /// there is room.
    pub(crate) async fn reserve(
        &self,
        append: &mut Append<'_>,
        bytes: usize,
    ) -> Result<QueueReservation, AppendCause> {
        let waiting = append.waiting.as_deref_mut();
        let waits = waiting.is_some();
        let reserved = self.parts.queue.reserve(&append.owner, self.client, bytes, waiting).await?;
        if waits {
            append.terms.deadline = Deadline::within(COMMAND);
        }
        Ok(reserved)
    }

    /// Same as [`Appender::enqueue`] for items of which none is placed, as soon as there is room.
    #[allow(clippy::manual_async_fn, reason = "an async function would hold its arguments twice")]
    pub(crate) fn enqueue_all(
        &self,
        mut append: Append<'_>,
        search: KeySearch,
    ) -> impl Future<Output = Appended> {
        async move {
            let items = append.take_dated(append.arrived);
            let reserved = self.reserve(&mut append, weight(items.iter().map(Item::size))).await;
            self.enqueue(append, items, search, None, reserved.map_err(AppendError::nothing)?).await
        }
    }

    /// Sends the items that are not placed to the owner's committer, at once, and waits for its answer.
    pub(crate) fn enqueue(
        &self,
        append: Append<'_>,
        items: Arc<[Item]>,
        search: KeySearch,
        keyed: Option<Keyed>,
        reserved: QueueReservation,
    ) -> impl Future<Output = Appended> + use<> {
        let Append { owner, terms: AppendTerms { deadline, expected }, .. } = append;
        let (ticket, pending) = Ticket::new(deadline, reserved);
        let request = Request {
            owner,
            expectation: Expectation(expected),
            refused_at: None,
            attempts: 0,
            alone: false,
            items,
            search,
            keyed: keyed.map(Box::new),
            ticket,
            waiting: TracedWait::begin(self.parts.source.collection()),
        };
        let (placed, rest) = (request.search.placed.clone(), request.rest().len());
        let committer = self.parts.committers.by_hash(request.owner.spread());
        let taken = committer.request(request);
        // A future of its own, so that the waiting caller's memory holds no second copy of the request.
        async move {
            if !taken {
                let ended = Error::internal("a committer has ended");
                return Err(AppendError::after(placed, 0, ended));
            }
            // Without an answer, what was placed before is still there.
            match pending.answer().await {
                Ok(answer) => answer,
                Err(NoAnswer::Withdrawn) => Err(AppendError::after(placed, 0, AppendCause::Late)),
                Err(NoAnswer::Lost) => Err(AppendError::after(placed, rest, AppendCause::OutcomeUnknown)),
            }
        }
    }

    /// Stores the items of a request unless a request with the same key has already stored them.
    async fn append_request(
        &self,
        mut append: Append<'_>,
        key: IdempotencyKey,
        canonical: &[Vec<u8>],
    ) -> Appended {
        let count = append.items.len();
        let fingerprint = Fingerprint::of(&self.parts.source.definition, &append.items, canonical);
        let bytes = weight(append.items.iter().map(Draft::size));
        let outcome = match self.reserve(&mut append, bytes).await {
            Err(cause) => Err(AppendError::nothing(cause)),
            Ok(reserved) => {
                let Append { owner, items, arrived, terms, .. } = append;
                let append = Append::new(owner, items, arrived, terms);
                // A separate task, because a client that disconnects would otherwise stop the attempt between
                // two steps. Each step keeps the deadline.
                let attempt = tokio::spawn(self.clone().attempt(append, key, fingerprint, reserved));
                match attempt.await {
                    Ok(outcome) => outcome,
                    Err(_panicked) => {
                        Err(AppendError::after(Placed::default(), count, AppendCause::OutcomeUnknown))
                    }
                }
            }
        };
        let result = match &outcome {
            Ok(progress) if progress.is_replayed() => "replayed",
            Ok(_) => "stored",
            Err(AppendError { cause: AppendCause::KeyReused, .. }) => "reused",
            Err(AppendError { cause: AppendCause::UnexpectedTotal(_), .. }) => "unexpected",
            Err(_) => "failed",
        };
        metrics::counter!(KEYED_APPENDS, "result" => result).increment(1);
        outcome
    }

    async fn attempt(
        self,
        mut append: Append<'static>,
        key: IdempotencyKey,
        fingerprint: Fingerprint,
        reserved: QueueReservation,
    ) -> Appended {
        let (owner, deadline) = (append.owner.clone(), append.terms.deadline);
        let definition = &self.parts.source.definition;
        let id = RecordId::new(definition, &owner, &key);
        let proposed = Record { from: 0, fingerprint, date: append.arrived, outcome: None };
        let registered = self.register(&owner, id, proposed, false, deadline).await;
        let registered = registered.map_err(AppendError::nothing)?;
        let Record { from, date, ref outcome, .. } = registered.record;
        if registered.record.fingerprint != fingerprint {
            return Err(AppendError::nothing(AppendCause::KeyReused));
        }
        let dated = |progress| AppendProgress { date: Some(date), ..progress };
        if let Some(ranges) = outcome {
            return Ok(dated(AppendProgress::replayed(ranges.clone())));
        }
        let of = self.parts.source.of(&owner, deadline);
        let keys = (0..append.items.len()).map(|index| ItemKey::new(definition, &owner, &key, index));
        let mut search = KeySearch::of_items(keys.collect(), from);
        if !registered.is_new {
            search_to_end(of, id, &mut search).await.map_err(AppendError::nothing)?;
            if search.is_over() {
                return replay(of, id, search.placed.ranges).await.map(dated);
            }
        }
        let keyed = Keyed { id, stored: false, registered: Some(registered) };
        let items = append.take_dated(date);
        let progress = self.enqueue(append, items, search, Some(keyed), reserved).await?;
        match progress.is_replayed() {
            true => replay(of, id, progress.placed.ranges).await.map(dated),
            false => Ok(dated(progress)),
        }
    }

    /// Registers a key: inserts its record unless there is one. With `keeps`, keeps the record of a request
    /// that is under way.
    pub(crate) async fn register(
        &self,
        owner: &OwnerId,
        id: RecordId,
        proposed: Record,
        keeps: bool,
        deadline: Deadline,
    ) -> Result<Registered> {
        let deadline = deadline.or_within(REGISTER);
        let (answer, answered) = oneshot::channel();
        let registrars = &self.parts.registrars;
        let registrar = &registrars[owner.spread() as usize % registrars.len()];
        let owner = owner.clone();
        let registration = Registration {
            owner,
            id,
            proposed,
            keeps,
            deadline,
            attempts: 0,
            read: self.parts.source.read_time_if_known(),
            answer,
        };
        if registrar.send(registration).is_err() {
            return Err(Error::internal("a registrar has ended"));
        }
        let unavailable = || Error::unavailable("a key was not registered in time");
        deadline.wait_for(answered).await.and_then(Result::ok).ok_or_else(unavailable)?
    }
}

/// How many committers a history has. A further one keeps a further processor of the database's server busy.
/// It also divides the waiting requests among more and smaller commands, and a statement in a smaller command
/// costs that server more: with 64 clients on two processors, of mongod 181 µs in commands of 8 and 149 in
/// those of 16. How many processors the server has is not known: those of this machine stand for them.
fn committers() -> usize {
    match std::thread::available_parallelism() {
        Ok(processors) if processors.get() >= 4 => 4,
        _ => 2,
    }
}

/// Stores the outcome of an earlier request durably in the record, then answers it.
async fn replay(of: OfOwner<'_>, id: RecordId, ranges: Vec<SeqRange>) -> Appended {
    let update = Bson::from(set_outcome(query(of.source, id, of.owner), &ranges));
    let command = updates(vec![update], of.deadline);
    match of.source.sessions.commit(&of.source.reads, command, of.deadline).await {
        Ok(_) => Ok(AppendProgress::replayed(ranges)),
        Err(unanswered) => Err(AppendError::nothing(
            unanswered.or_unavailable("it is not known whether an outcome is in its record"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_takes_what_uploads_count_for_it() {
        fn of<'a, F: Future + 'a>(_: impl Fn(&'a Appender, Append<'a>, Once<'a>) -> F) -> usize {
            size_of::<F>()
        }
        let once = of(Appender::append_once);
        assert!(once <= APPEND_ONCE, "{once}");
    }
}
