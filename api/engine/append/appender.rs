//! Appends: a request enters the queue, and the committer's answer becomes the caller's. An append with a key
//! is first registered; [`keys`](crate::append::keys) explains why it is stored once.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::Bson;
use pagebucket_model::domain::{IdempotencyKey, Instant, OwnerId, SeqRange};
use pagebucket_model::item::{Draft, Item};
use pagebucket_model::metric::KEYED_APPENDS;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::batch::Appends;
use super::policy::AppendPolicy;
use super::queue::{AppendQueue, Waiting};
use super::request::{
    AppendCause, AppendError, AppendProgress, AppendTerms, Appended, Keyed, KeyedRequest, Placement, Request,
    weight,
};
use crate::append::expectation::Expectation;
use crate::append::group_commit::{
    COMMITTERS, Committers, Full, NoAnswer, QueueClient, QueueReservation, Ticket,
};
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

/// The answer to an append with a key, and when the first request with the key arrived.
type AppendedOnce = Result<(AppendProgress, Instant), AppendError>;

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
    catalogs: [Catalog; COMMITTERS],
    committers: Committers<Appends>,
    /// Those of keys, one beside each committer.
    registrars: [UnboundedSender<Registration>; COMMITTERS],
}

impl Appender {
    /// The committers together remember the tails of about this many `owners`.
    pub(crate) fn new(history: LiveHistory, queue: AppendQueue, owners: usize) -> Self {
        let catalogs: [_; COMMITTERS] = std::array::from_fn(|_| catalog::new(owners.div_ceil(COMMITTERS)));
        let policy = |number: usize| AppendPolicy::new(history.clone(), catalogs[number].clone(), number);
        let committers = Committers::start(policy);
        let registrars = catalogs.clone().map(|catalog| registrar(Arc::clone(&history.source), catalog));
        let parts = AppendParts { source: history.source, queue, catalogs, committers, registrars };
        Self { parts: Arc::new(parts), client: None }
    }

    /// Forgets the tails: pages may have been deleted.
    pub(crate) fn forget(&self) {
        self.parts.catalogs.iter().for_each(|catalog| catalog.lock().clear());
    }

    /// Stores at least one item at the end of a history, in the given order.
    ///
    /// The append goes on to its end even if the caller stops waiting. `terms` are a [`Deadline`], which is
    /// shortened to one command's, or have also the total that the history must have before
    /// ([`AppendTerms`]).
    ///
    /// # Errors
    /// See [`AppendError`]. Each item that the error does not count as unknown is stored exactly once or not
    /// at all.
    pub async fn append(&self, owner: OwnerId, items: Vec<Item>, terms: impl Into<AppendTerms>) -> Appended {
        let room = self.room(&owner, items.iter().map(Item::size)).map_err(AppendError::nothing)?;
        self.enqueue(owner, items, Placement::new(), room, terms.into()).await
    }

    /// Takes room in the queue for items of these sizes.
    ///
    /// # Errors
    /// The queue is full, or the owner's part of it, or the client's.
    fn room(&self, owner: &OwnerId, sizes: impl Iterator<Item = usize>) -> Result<QueueReservation, Full> {
        let all = &self.parts.queue.all;
        all.room(owner.spread(), self.client, weight(sizes), all.most_of_a_key())
    }

    /// The most bytes of items that an upload may append at once, unless a single item has more:
    /// [`Item::size`] and 64 for each.
    #[doc(hidden)]
    pub fn most_of_an_upload(&self) -> usize {
        self.parts.queue.most_of_an_upload()
    }

    /// Same as [`Appender::append`] for at most [`Appender::most_of_an_upload`] bytes, but waits for room in
    /// the queue. The time for one command starts when there is room.
    ///
    /// # Errors
    /// See [`AppendError`].
    #[doc(hidden)]
    pub fn append_part(
        &self,
        owner: OwnerId,
        items: Vec<Item>,
        waiting: &mut Waiting,
    ) -> impl Future<Output = Appended> + Send {
        self.enqueue_part(owner, items, Placement::new(), waiting)
    }

    /// Same as [`Appender::enqueue`] for items of an upload of which none is placed, as soon as there is room
    /// in the queue.
    pub(crate) async fn enqueue_part(
        &self,
        owner: OwnerId,
        items: Vec<Item>,
        stage: Placement,
        waiting: &mut Waiting,
    ) -> Appended {
        let rest = weight(items.iter().map(Item::size));
        match self.parts.queue.room_of_an_upload(&owner, self.client, rest, waiting).await {
            Ok(room) => self.enqueue(owner, items, stage, room, Deadline::within(COMMAND).into()).await,
            Err(cause) => Err(AppendError::nothing(cause)),
        }
    }

    /// Sends the items that are not placed to the owner's committer, at once, and waits for its answer.
    pub(crate) fn enqueue(
        &self,
        owner: OwnerId,
        items: Vec<Item>,
        stage: Placement,
        room: QueueReservation,
        AppendTerms { deadline, expected }: AppendTerms,
    ) -> impl Future<Output = Appended> + use<> {
        let (ticket, pending) = Ticket::new(deadline, room);
        let request = Request {
            owner,
            expectation: Expectation(expected),
            refused_at: None,
            attempts: 0,
            alone: false,
            items,
            stage,
            ticket,
        };
        let (placed, rest) = (request.stage.placed().clone(), request.rest().len());
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

    /// Stores at least one item at the end of a history, unless a request with the same key has already
    /// stored the items.
    ///
    /// If the terms expect a total, the items are looked for first: where they are stored, the total does not
    /// matter. Where some of them are stored, the rest is stored whatever the total is.
    ///
    /// The append goes on to its end even if the caller stops waiting. Also returns when the first request
    /// with the key arrived: items without a date get this one.
    ///
    /// # Errors
    /// See [`AppendError`]. After any error except [`AppendCause::KeyReused`] the same request may be sent
    /// again with the same key, and is still stored once.
    pub async fn append_once(
        &self,
        owner: OwnerId,
        request: KeyedRequest<'_>,
        terms: impl Into<AppendTerms>,
    ) -> Result<(AppendProgress, Instant), AppendError> {
        let KeyedRequest { key, drafts, canonical, arrived } = request;
        let count = drafts.len();
        let fingerprint = Fingerprint::of(&self.parts.source.definition, &drafts, canonical);
        let proposed = Record { from: 0, fingerprint, date: arrived, outcome: None };
        // A separate task, because a client that disconnects would otherwise stop the attempt between two
        // steps. Each step keeps the deadline.
        let outcome = match tokio::spawn(self.clone().attempt(owner, key, drafts, proposed, terms.into()))
            .await
        {
            Ok(outcome) => outcome,
            Err(_panicked) => Err(AppendError::after(Placed::default(), count, AppendCause::OutcomeUnknown)),
        };
        let result = match &outcome {
            Ok((progress, _)) if progress.is_replayed() => "replayed",
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
        owner: OwnerId,
        key: IdempotencyKey,
        drafts: Vec<Draft>,
        proposed: Record,
        terms: AppendTerms,
    ) -> AppendedOnce {
        let deadline = terms.deadline;
        let (definition, fingerprint) = (&self.parts.source.definition, proposed.fingerprint);
        let room = self.room(&owner, drafts.iter().map(Draft::size)).map_err(AppendError::nothing)?;
        let id = RecordId::new(definition, &owner, &key);
        let registered = self.register(&owner, id, proposed, false, deadline).await;
        let registered = registered.map_err(AppendError::nothing)?;
        let date = registered.record.date;
        if registered.record.fingerprint != fingerprint {
            return Err(AppendError::nothing(AppendCause::KeyReused));
        }
        if let Some(ranges) = &registered.record.outcome {
            return Ok((AppendProgress::replayed(ranges.clone()), date));
        }
        let of = self.parts.source.of(&owner, deadline);
        let keys = (0..drafts.len()).map(|index| ItemKey::new(definition, &owner, &key, index));
        let mut search = KeySearch::of_items(keys.collect(), registered.record.from);
        if !registered.is_new {
            search_to_end(of, id, &mut search).await.map_err(AppendError::nothing)?;
            if search.is_over() {
                return tell(of, id, search.placed.ranges, date).await;
            }
        }
        let items = drafts.iter().map(|draft| draft.dated(date)).collect();
        let keyed = Keyed { id, stored: false, registered: Some(registered) };
        let stage = Placement::once(search, Some(keyed));
        let progress = self.enqueue(owner.clone(), items, stage, room, terms).await?;
        match progress.is_replayed() {
            true => tell(of, id, progress.placed.ranges, date).await,
            false => Ok((progress, date)),
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
        let registrar = &self.parts.registrars[owner.spread() as usize % COMMITTERS];
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

/// Stores the outcome of an earlier request durably in the record, then answers it.
async fn tell(of: OfOwner<'_>, id: RecordId, ranges: Vec<SeqRange>, date: Instant) -> AppendedOnce {
    let update = Bson::from(set_outcome(query(of.source, id, of.owner), &ranges));
    let command = updates(vec![update], of.deadline);
    match of.source.sessions.commit(&of.source.reads, command, of.deadline).await {
        Ok(_) => Ok((AppendProgress::replayed(ranges), date)),
        Err(unanswered) => Err(AppendError::nothing(
            unanswered.or_unavailable("it is not known whether an outcome is in its record"),
        )),
    }
}
