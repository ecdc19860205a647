//! How committers of items form batches. A committer remembers the tails of its owners and the keys of its
//! last commits.
//!
//! Queued requests are merged by owner. An owner that needs one statement shares an unordered command with
//! other owners. An owner that needs more statements gets its own ordered command, so no page is opened
//! after a failed one ([`super::commit`]).

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::batch::{Batch, Known, MOST_BYTES, Settled};
use super::catalog::Catalog;
use super::commit;
use super::connection::Connection;
use super::dedup::{MOST_REGISTRATIONS, Recent, Registration, Search, register};
use super::messages::{Appends, Message};
use super::outcome::Cause;
use super::request::Request;
use crate::domain::OwnerId;
use crate::metric::{CATALOG_LOOKUPS, CATALOG_OWNERS};
use crate::store::group_commit::{BatchPolicy, Busy, Handle};

/// The memory of one committer of items.
pub(super) struct AppendPolicy {
    connection: Arc<Connection>,
    catalog: Catalog,
    recent: Recent,
    remembered: metrics::Gauge,
    /// Keys to register.
    keys: Vec<Registration>,
}

impl AppendPolicy {
    /// `number` identifies the committer in metrics.
    pub(super) fn new(connection: Arc<Connection>, catalog: Catalog, number: usize) -> Self {
        let collection = connection.source.collection().to_owned();
        let committer = number.to_string();
        let remembered =
            metrics::gauge!(CATALOG_OWNERS, "collection" => collection, "committer" => committer);
        Self { connection, catalog, recent: Recent::default(), remembered, keys: Vec::new() }
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
        let refused_at = requests.iter().filter_map(|request| request.refused_at).max();
        let tail = match self.catalog.get(owner) {
            Some(tail) => {
                metrics::counter!(CATALOG_LOOKUPS, "result" => "hit").increment(1);
                Known::Tail(Some(tail))
            }
            None if requests.iter().all(Request::begins) => Known::Tail(None),
            None => {
                metrics::counter!(CATALOG_LOOKUPS, "result" => "miss").increment(1);
                Known::Nothing(refused_at)
            }
        };
        if let Known::Tail(Some(tail)) = tail {
            for (search, placed) in requests.iter_mut().filter_map(Request::searching) {
                // Lines of an upload are compared with whole items, and only keys are remembered.
                if let Search::Request(search) = search {
                    self.recent.look(owner, search, placed, tail.last_seq().get());
                }
            }
        }
        let keyed = self.recent.knows(owner) || requests.iter().any(|request| request.keyed.is_some());
        let (owner, statements) = (owner.clone(), Vec::new());
        Some((Batch { owner, tail, requests, statements, keyed }, bytes))
    }

    fn commit(
        &self,
        batches: Vec<Batch>,
        committer: Handle<Appends>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let connection = Arc::clone(&self.connection);
        async move { commit::run(&connection, batches, &committer).await }
    }

    fn settle(&mut self, settled: Settled) -> (OwnerId, Vec<Request>) {
        let Settled { owner, tail, again, run, .. } = settled;
        if let Some(run) = run {
            self.recent.put(owner.clone(), run);
        }
        match tail {
            Some(tail) => self.catalog.put(owner.clone(), tail),
            None => self.catalog.forget(&owner),
        }
        self.remembered.set(self.catalog.len() as f64);
        (owner, again)
    }

    fn lost(&mut self, owner: &OwnerId) {
        // The commit may have moved the tail.
        self.catalog.forget(owner);
    }

    fn receive(&mut self, message: Message, busy: &Busy<OwnerId>) {
        match message {
            Message::Register(registration) => self.keys.push(registration),
            Message::Found(tails) => {
                for (owner, tail) in tails {
                    // The tail of an owner with a commit under way, or committed since, is out of date.
                    if !busy.contains_key(&owner) && self.catalog.get(&owner).is_none() {
                        self.catalog.put(owner, tail);
                    }
                }
            }
        }
    }

    /// Registers waiting keys, as many as fit into one command.
    fn background_task(&mut self, committer: &Handle<Appends>) -> Option<BoxFuture<'static, ()>> {
        if self.keys.is_empty() {
            return None;
        }
        let rest = self.keys.split_off(self.keys.len().min(MOST_REGISTRATIONS));
        let keys = std::mem::replace(&mut self.keys, rest);
        let with_tail = |registration: Registration| {
            let tail = self.catalog.get(&registration.owner);
            (registration, tail)
        };
        let keys = keys.into_iter().map(with_tail).collect();
        let (connection, committer) = (Arc::clone(&self.connection), committer.clone());
        Some(async move { register(&connection, keys, &committer).await }.boxed())
    }
}

/// Takes the first requests of an owner, as many as fit into one commit. A request whose client was already
/// answered that it waited too long is dropped. A request with too little time left is answered.
fn take(waiting: &mut VecDeque<Request>) -> Vec<Request> {
    let mut taken: Vec<Request> = Vec::new();
    let mut bytes = 0;
    let mut keys = HashSet::new();
    while let Some(next) = waiting.front() {
        let with_next = bytes + next.weight();
        if !taken.is_empty() && (next.alone || with_next > MOST_BYTES) {
            break;
        }
        // Two attempts of one request never share a command: the second must find what the first has stored.
        if next.keyed.as_ref().is_some_and(|keyed| keys.contains(&keyed.id)) {
            break;
        }
        let Some(request) = waiting.pop_front() else { break };
        if request.is_late() {
            request.fail(0, Cause::Late);
        } else if request.take() {
            bytes = with_next;
            keys.extend(request.keyed.as_ref().map(|keyed| keyed.id));
            let alone = request.alone;
            taken.push(request);
            if alone {
                break;
            }
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Definition;
    use crate::domain::{IdempotencyKey, Instant, Seq, SeqRange};
    use crate::item::Item;
    use crate::metric::QUEUED_BYTES;
    use crate::store::group_commit::{NoAnswer, Pending, Queue, Ticket};
    use crate::store::history::dedup::{ItemKey, Placed, RecordId, RequestSearch};
    use crate::store::history::outcome::AppendError;
    use crate::store::history::request::{Answer, Keyed};
    use crate::store::{COMMAND, COMMIT, Deadline};
    use std::time::Duration;

    fn owner() -> OwnerId {
        OwnerId::Integer(1)
    }

    fn item() -> Item {
        Item::new(Default::default(), Instant::MIN)
    }

    fn plain(queue: &Queue, items: usize, within: Duration) -> (Request, Pending<Answer>) {
        let (ticket, pending) = Ticket::new(Deadline::within(within), queue.room(1, items, 10).unwrap());
        (Request::new(owner(), vec![item(); items], ticket), pending)
    }

    fn keyed(queue: &Queue, within: Duration) -> (Request, Pending<Answer>) {
        let key = IdempotencyKey::parse(b"of-the-test").unwrap();
        let search = Search::Request(RequestSearch::new(
            vec![ItemKey::new(&Definition::trades(), &owner(), &key, 0)].into(),
            0,
        ));
        let id = RecordId::new(&Definition::trades(), &owner(), &key);
        let keyed = Keyed { id, search, stored: false, begins: false, inserted: None };
        let (ticket, pending) = Ticket::new(Deadline::within(within), queue.room(1, 1, 10).unwrap());
        (Request::keyed(owner(), vec![item()], Placed::default(), keyed, ticket), pending)
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
        let (first, _waits) = plain(&queue, 1, COMMAND);
        let (mut late, told) = plain(&queue, 2, COMMIT - Duration::from_secs(1));
        let (third, _waits) = plain(&queue, 1, COMMAND);
        let one = Seq::new(7).unwrap();
        late.place(SeqRange { first: one, last: one });
        let mut waiting = VecDeque::from([first, late, third]);
        let taken = take(&mut waiting);
        assert_eq!((taken.len(), waiting.len()), (2, 0));
        assert!(Deadline::latest(taken.iter().map(Request::deadline)).remaining() > COMMIT);
        let AppendError { progress, unknown, cause } = told.answer().await.unwrap().unwrap_err();
        assert_eq!(progress.placed.count, 1);
        assert!(unknown == 0 && matches!(cause, Cause::Late), "{unknown}, {cause:?}");
    }
}
