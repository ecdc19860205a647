//! How committers of items form batches. A committer remembers the tails of its owners and the keys of its
//! last commits.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use pagebucket_model::domain::OwnerId;
use pagebucket_model::metric::{CATALOG_LOOKUPS, CATALOG_OWNERS};
use pagebucket_model::trace;
use tracing::Instrument;

use super::batch::{Appends, Batch, MOST_BYTES, Settled, are_expected};
use super::commit;
use super::request::{AppendCause, Request};
use crate::append::group_commit::{BatchPolicy, Handle};
use crate::append::keys::Recent;
use crate::live::LiveHistory;
use crate::live::watched::WatchedOwners;
use crate::store::buckets::bucket_id::Tail;
use crate::store::buckets::catalog::Catalog;
use crate::store::collection::HistoryCollection;
use crate::store::collection::fence::{Fence, ReadTime};

/// The memory of one committer of items.
pub(crate) struct AppendPolicy {
    source: Arc<HistoryCollection>,
    watched: Arc<WatchedOwners>,
    catalog: Catalog,
    /// Of the owners whose appends have keys. `None` before the first.
    recent: Option<Recent>,
    remembered: metrics::Gauge,
}

impl AppendPolicy {
    /// `number` identifies the committer in metrics.
    pub(crate) fn new(history: LiveHistory, catalog: Catalog, number: usize) -> Self {
        let LiveHistory { source, watched } = history;
        let (collection, committer) = (source.collection().to_owned(), number.to_string());
        let remembered =
            metrics::gauge!(CATALOG_OWNERS, "collection" => collection, "committer" => committer);
        Self { source, watched, catalog, recent: None, remembered }
    }
}

impl BatchPolicy<Appends> for AppendPolicy {
    type Batch = Batch;

    fn key(request: &Request) -> OwnerId {
        request.owner.clone()
    }

    fn refusals(request: &Request) -> u32 {
        request.attempts
    }

    fn next_batch(&mut self, owner: &OwnerId, waiting: &mut VecDeque<Request>) -> Option<(Batch, usize)> {
        let mut requests = take(waiting);
        if requests.is_empty() {
            return None;
        }
        let bytes = requests.iter().map(Request::weight).sum();
        let (source, known) = (&self.source, self.catalog.lock().get(owner).copied());
        let may_open = |read: &ReadTime| source.markers.open_until(*read, &source.clock).is_some();
        let items = || requests.iter().map(|request| request.rest().len()).sum::<usize>();
        // A tail that is only remembered may be old, so it shows no request that it expects too much or too
        // little.
        let expected = |tail: Option<Tail>| are_expected(&requests, Tail::items(tail));
        let begun = || {
            let begun: Option<Vec<ReadTime>> = requests.iter().map(Request::begins).collect();
            begun.filter(|begun| begun.iter().all(may_open))?.first().copied()
        };
        let (tail, read) = match known {
            Some(known)
                if (items() <= known.tail.free() || may_open(&known.read)) && expected(Some(known.tail)) =>
            {
                metrics::counter!(CATALOG_LOOKUPS, "result" => "hit").increment(1);
                (Some(known.tail), Some(known.read))
            }
            None if expected(None)
                && let Some(read) = begun() =>
            {
                (None, Some(read))
            }
            _ => {
                metrics::counter!(CATALOG_LOOKUPS, "result" => "miss").increment(1);
                (None, None)
            }
        };
        if let (Some(tail), Some(recent)) = (tail, &self.recent) {
            let keyed = requests.iter_mut().filter(|request| request.keyed.is_some());
            keyed.for_each(|request| recent.look(owner, &mut request.search, tail.last_seq().get()));
        }
        let keyed = self.recent.as_ref().is_some_and(|recent| recent.knows(owner))
            || requests.iter().any(|request| request.keyed.is_some());
        Some((
            Batch {
                owner: owner.clone(),
                tail,
                read,
                is_read: false,
                requests,
                statements: Vec::new(),
                fence: Fence::closed(source.sessions.topology()),
                keyed,
            },
            bytes,
        ))
    }

    fn commit(
        &self,
        mut batches: Vec<Batch>,
        committer: Handle<Appends>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let requests = batches.iter_mut().flat_map(|batch| &mut batch.requests);
        let requests = requests.map(|request| &mut request.waiting);
        let span = trace::together("commit", self.source.collection(), requests);
        commit::run(Arc::clone(&self.source), batches, committer).instrument(span)
    }

    fn settle(&mut self, settled: Settled) -> (OwnerId, Vec<Request>) {
        let Settled { owner, tail, again, run, .. } = settled;
        if let Some(run) = run {
            self.recent.get_or_insert_default().put(owner.clone(), run);
        }
        if let Some(known) = tail {
            self.watched.appended(&owner, known.tail.last_seq());
        }
        let mut catalog = self.catalog.lock();
        match tail {
            Some(tail) => catalog.insert(owner.clone(), tail),
            None => catalog.remove(&owner),
        };
        self.remembered.set(catalog.len() as f64);
        (owner, again)
    }

    fn lost(&mut self, owner: &OwnerId) {
        // The commit may have moved the tail.
        self.catalog.lock().remove(owner);
    }
}

/// Takes the first requests of an owner, as many as fit into one commit. A request whose client was already
/// answered that it waited too long is dropped. A request with too little time left is answered.
fn take(waiting: &mut VecDeque<Request>) -> Vec<Request> {
    let mut taken: Vec<Request> = Vec::new();
    let (mut bytes, mut keys) = (0, HashSet::new());
    while let Some(request) = waiting.pop_front_if(|next| {
        // Two attempts of one request never share a command: the second must find what the first has stored.
        let repeats = next.keyed.as_ref().is_some_and(|keyed| keys.contains(&keyed.id));
        let fits = bytes + next.weight() <= MOST_BYTES && !repeats;
        taken.last().is_none_or(|last| fits && !last.alone && !next.alone)
    }) {
        if request.ticket.is_late() {
            request.fail(0, AppendCause::Late);
        } else if request.ticket.take() {
            bytes += request.weight();
            keys.extend(request.keyed.as_ref().map(|keyed| keyed.id));
            taken.push(request);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::append::expectation::Expectation;
    use crate::append::group_commit::{NoAnswer, Pending, Queue, Ticket};
    use crate::append::keys::KeySearch;
    use crate::append::request::{AppendError, Appended, Keyed};
    use crate::mongo::{COMMAND, COMMIT, Deadline};
    use crate::store::buckets::identity::{ItemKey, RecordId};
    use pagebucket_model::definition::Definition;
    use pagebucket_model::domain::{IdempotencyKey, Instant, Seq, SeqRange};
    use pagebucket_model::item::Item;
    use pagebucket_model::metric::QUEUED_BYTES;
    use std::time::Duration;

    fn owner() -> OwnerId {
        OwnerId::Integer(1)
    }

    fn item() -> Item {
        Item::new(Default::default(), Instant::MIN)
    }

    /// A request that waits in the queue for at most `within`.
    fn request(queue: &Queue, items: usize, within: Duration) -> (Request, Pending<Appended>) {
        let (ticket, pending) =
            Ticket::new(Deadline::within(within), queue.reserve(1, None, items, 10).unwrap());
        let request = Request {
            owner: owner(),
            expectation: Expectation::default(),
            refused_at: None,
            attempts: 0,
            alone: false,
            items: vec![item(); items].into(),
            search: KeySearch::of_nothing(),
            keyed: None,
            ticket,
            waiting: None,
        };
        (request, pending)
    }

    fn keyed(queue: &Queue, within: Duration) -> (Request, Pending<Appended>) {
        let key = IdempotencyKey::parse(b"of-the-test").unwrap();
        let keys = [ItemKey::new(&Definition::trades(), &owner(), &key, 0)];
        let id = RecordId::new(&Definition::trades(), &owner(), &key);
        let (mut request, pending) = request(queue, 1, within);
        request.search = KeySearch::of_items(keys.into(), 0);
        request.keyed = Some(Box::new(Keyed { id, stored: false, registered: None }));
        (request, pending)
    }

    /// A client that was answered that it waited too long sends its request again, with the same key.
    #[tokio::test]
    async fn a_withdrawn_request_does_not_block_its_repeat() {
        let queue = Queue::new(10, Duration::ZERO, QUEUED_BYTES);
        let (first, told) = keyed(&queue, Duration::ZERO);
        let (again, _waits) = keyed(&queue, COMMAND);
        let (third, _waits) = keyed(&queue, COMMAND);
        assert_eq!(told.answer().await.unwrap_err(), NoAnswer::Withdrawn);
        let mut waiting = VecDeque::from([first, again, third]);
        assert_eq!(take(&mut waiting).len(), 1, "the repeat");
        assert_eq!(waiting.len(), 1, "two attempts never share a command");
    }

    #[tokio::test]
    async fn a_late_request_is_not_merged_and_its_answer_says_what_is_stored() {
        let queue = Queue::new(10, COMMIT, QUEUED_BYTES);
        let (first, _waits) = request(&queue, 1, COMMAND);
        let (mut late, told) = request(&queue, 2, COMMIT - Duration::from_secs(1));
        let (third, _waits) = request(&queue, 1, COMMAND);
        let one = Seq::new(7).unwrap();
        late.place(SeqRange { first: one, last: one });
        let mut waiting = VecDeque::from([first, late, third]);
        let taken = take(&mut waiting);
        assert_eq!((taken.len(), waiting.len()), (2, 0));
        assert!(Deadline::latest(taken.iter().map(|request| request.ticket.deadline())).remaining() > COMMIT);
        let AppendError { progress, unknown, cause } = told.answer().await.unwrap().unwrap_err();
        assert_eq!(progress.placed.count, 1);
        assert!(unknown == 0 && matches!(cause, AppendCause::Late), "{unknown}, {cause:?}");
    }
}
