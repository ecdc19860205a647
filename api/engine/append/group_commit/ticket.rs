//! A request's place in a queue, from its arrival to its answer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::mongo::{COMMAND, COMMIT, Deadline};

/// How long a request may wait for its first commit: long enough to get through a full queue.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// How much longer than its own deadline a client waits. A committer answers before the deadline of its
/// commit.
const GRACE: Duration = Duration::from_secs(1);

// After the longest wait a request still has enough time for a commit.
const _: () = assert!(LONGEST_WAIT.as_secs() + COMMIT.as_secs() <= COMMAND.as_secs());

/// One key, or one client, may hold a queue's size divided by this.
const KEY_DIVISOR: usize = 4;

/// A limit on the requests that wait at once, in units that the user of the queue defines. Clones share the
/// limit.
#[derive(Debug, Clone)]
pub struct Queue(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    free: Arc<Semaphore>,
    size: u32,
    by_key: Held,
    by_client: Held,
    /// The least time that a request must have left when a commit takes it.
    commit: Duration,
    /// The name of the metric that counts the waiting units.
    gauge: &'static str,
}

/// A client that shares queues with others. Cheap to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueClient(u64);

impl QueueClient {
    /// The client with this identity. Within a process, equal identities are one client.
    pub fn new(identity: &impl Hash) -> Self {
        // With random keys, no identity can be chosen that collides with another.
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(KEYS.hash_one(identity))
    }
}

/// Units of a queue that one key, and perhaps one client, holds until this value is dropped.
#[derive(Debug)]
pub struct QueueReservation {
    queue: Queue,
    key: u64,
    client: Option<QueueClient>,
    units: usize,
    /// Units of the queue, and of a second limit, which applies to some requests together.
    _permits: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
}

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The queue is full.
    Queue,
    /// This key holds as much of the queue as one key may.
    Key,
    /// This client holds as much of the queue as one client may.
    Client,
}

impl QueueReservation {
    /// The same room, which also holds `permit` until it is dropped.
    #[must_use]
    pub(crate) fn with(mut self, permit: Option<OwnedSemaphorePermit>) -> Self {
        self._permits.1 = permit;
        self
    }
}

impl Queue {
    /// A queue for `size` units. A request with less time left than `commit` is not committed.
    pub fn new(size: usize, commit: Duration, gauge: &'static str) -> Self {
        let size = u32::try_from(size.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let free = Arc::new(Semaphore::new(size as usize));
        let (by_key, by_client) = (Held::default(), Held::default());
        Self(Arc::new(Inner { free, size, by_key, by_client, commit, gauge }))
    }

    /// How many units may wait at once.
    pub fn size(&self) -> usize {
        self.0.size as usize
    }

    /// The most units that one key may hold, or one client, unless a single request has more.
    pub fn most_of_a_key(&self) -> usize {
        (self.0.size as usize / KEY_DIVISOR).max(1)
    }

    /// Takes room for `units` of one key, and of one client if it is known. Each may then hold at most `most`
    /// units. One that holds nothing may take more, up to the whole queue: so every request, however large,
    /// has room in an empty queue.
    pub fn reserve(
        &self,
        key: u64,
        client: Option<QueueClient>,
        units: usize,
        most: usize,
    ) -> Result<QueueReservation, Full> {
        let units = units.min(self.size());
        let Inner { free, by_key, by_client, gauge, .. } = &*self.0;
        if !by_key.take(key, units, most) {
            return Err(Full::Key);
        }
        if client.is_some_and(|client| !by_client.take(client.0, units, most)) {
            by_key.give_back(key, units);
            return Err(Full::Client);
        }
        let Ok(permit) = Arc::clone(free).try_acquire_many_owned(units.try_into().unwrap_or(u32::MAX)) else {
            self.give_back_of_client(client, units);
            by_key.give_back(key, units);
            return Err(Full::Queue);
        };
        metrics::gauge!(*gauge).increment(units as f64);
        Ok(QueueReservation { queue: self.clone(), key, client, units, _permits: (permit, None) })
    }

    fn give_back_of_client(&self, client: Option<QueueClient>, units: usize) {
        if let Some(QueueClient(client)) = client {
            self.0.by_client.give_back(client, units);
        }
    }

    /// Waits until the queue is empty, including the requests of clients that have disconnected. New requests
    /// find no room meanwhile.
    pub async fn drain(&self) {
        // Acquiring fails only if the semaphore is closed, and it never is.
        let _ = self.0.free.acquire_many(self.0.size).await;
    }
}

impl Drop for QueueReservation {
    fn drop(&mut self) {
        let Self { queue, key, client, units, .. } = self;
        queue.give_back_of_client(*client, *units);
        queue.0.by_key.give_back(*key, *units);
        metrics::gauge!(queue.0.gauge).decrement(*units as f64);
    }
}

/// How many maps hold the units. With several maps, requests of different keys rarely wait for one lock.
const SHARDS: usize = 16;

/// The units of each key that holds any.
#[derive(Debug, Default)]
struct Held([Mutex<HashMap<u64, usize>>; SHARDS]);

impl Held {
    /// Takes units for a key, which may then hold at most `most`. A key that holds nothing may take more.
    /// Returns whether they are taken.
    fn take(&self, key: u64, units: usize, most: usize) -> bool {
        let mut held = self.shard(key);
        let own = held.entry(key).or_default();
        let fits = *own == 0 || *own + units <= most;
        if fits {
            *own += units;
        }
        fits
    }

    /// Gives back units that the key has taken.
    fn give_back(&self, key: u64, units: usize) {
        if let Entry::Occupied(mut own) = self.shard(key).entry(key) {
            *own.get_mut() -= units;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.0.iter().all(|held| held.lock().is_empty())
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, HashMap<u64, usize>> {
        self.0[key as usize % SHARDS].lock()
    }
}

/// The committer's half of a waiting request.
#[derive(Debug)]
pub struct Ticket<A> {
    deadline: Deadline,
    /// Whether a commit has taken the request, or its client has withdrawn it. The first of the two decides.
    taken: Arc<OnceLock<bool>>,
    answer: oneshot::Sender<A>,
    reservation: QueueReservation,
}

/// The client's half of a waiting request.
#[derive(Debug)]
pub struct Pending<A> {
    deadline: Deadline,
    /// The least time that must be left when a commit takes the request.
    commit: Duration,
    taken: Arc<OnceLock<bool>>,
    answered: oneshot::Receiver<A>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// The request has waited too long for a commit and will not get into one.
    Withdrawn,
    /// The request got into a commit that gave no answer before the request's own deadline.
    Lost,
}

impl<A> Ticket<A> {
    /// Creates both halves. `deadline` is shortened to [`COMMAND`] from now.
    pub fn new(deadline: Deadline, reservation: QueueReservation) -> (Self, Pending<A>) {
        let deadline = deadline.or_within(COMMAND);
        let taken = Arc::default();
        let (answer, answered) = oneshot::channel();
        let commit = reservation.queue.0.commit;
        let pending = Pending { deadline, commit, taken: Arc::clone(&taken), answered };
        (Self { deadline, taken, answer, reservation }, pending)
    }

    /// When the client stops waiting.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Whether too little time is left to commit the request.
    pub fn is_late(&self) -> bool {
        self.deadline.remaining() < self.reservation.queue.0.commit
    }

    /// Takes the request for a commit. Returns false if its client was already answered that it waited too
    /// long.
    pub fn take(&self) -> bool {
        *self.taken.get_or_init(|| true)
    }

    /// Ends the request with this answer.
    pub fn answer(self, answer: A) {
        // The room is free before the answer, so that the client's next request can take it.
        drop(self.reservation);
        // Fails if the client has disconnected.
        let _ = self.answer.send(answer);
    }
}

impl<A> Pending<A> {
    /// Waits for the answer. The wait for a first commit is at most [`LONGEST_WAIT`] and ends when too little
    /// time is left for a commit. Once a commit has taken the request, the wait lasts until [`GRACE`] after
    /// the deadline.
    pub async fn answer(mut self) -> Result<A, NoAnswer> {
        let wait = LONGEST_WAIT.min(self.deadline.remaining().saturating_sub(self.commit));
        if let Ok(answer) = tokio::time::timeout(wait, &mut self.answered).await {
            return answer.map_err(|_lost| NoAnswer::Lost);
        }
        if !*self.taken.get_or_init(|| false) {
            return Err(NoAnswer::Withdrawn);
        }
        let answered = tokio::time::timeout(self.deadline.remaining() + GRACE, self.answered).await;
        answered.ok().and_then(Result::ok).ok_or(NoAnswer::Lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(size: usize, commit: Duration) -> Queue {
        Queue::new(size, commit, "of_the_test")
    }

    #[test]
    fn a_key_holds_its_part_and_others_the_rest() {
        let queue = queue(100, COMMIT);
        let most = queue.most_of_a_key();
        assert_eq!(most, 25);
        let mut own: Vec<QueueReservation> =
            (0..most).map(|_| queue.reserve(1, None, 1, most).unwrap()).collect();
        assert_eq!(queue.reserve(1, None, 1, most).unwrap_err(), Full::Key);
        let others = queue.reserve(1 + 16, None, 75, most).unwrap();
        assert_eq!(queue.reserve(2, None, 1, most).unwrap_err(), Full::Queue);
        own.pop();
        own.push(queue.reserve(1, None, 1, most).unwrap());
        drop((own, others));
        assert_eq!(queue.0.free.available_permits(), 100);
        assert!(queue.0.by_key.is_empty(), "nothing is kept of a key");
    }

    #[test]
    fn a_client_holds_its_part_whatever_its_keys() {
        let queue = queue(100, COMMIT);
        let most = queue.most_of_a_key();
        let [ann, bob] = ["ann", "bob"].map(|name| Some(QueueClient::new(&name)));
        let mut of_ann: Vec<_> = (1..=25).map(|key| queue.reserve(key, ann, 1, most).unwrap()).collect();
        assert_eq!(queue.reserve(26, ann, 1, most).unwrap_err(), Full::Client);
        let others = [queue.reserve(26, bob, 25, most).unwrap(), queue.reserve(27, None, 25, most).unwrap()];
        // What is refused for another reason takes nothing of a client's part.
        assert_eq!(queue.reserve(28, Some(QueueClient::new(&"eve")), 26, most).unwrap_err(), Full::Queue);
        of_ann.pop();
        assert_eq!(queue.reserve(27, ann, 1, most).unwrap_err(), Full::Key);
        of_ann.push(queue.reserve(28, ann, 1, most).unwrap());
        drop((of_ann, others));
        assert_eq!(queue.0.free.available_permits(), 100);
        assert!(queue.0.by_key.is_empty() && queue.0.by_client.is_empty(), "nothing is kept");
        // One request of any size.
        drop(queue.reserve(1, ann, 101, most).unwrap());
    }

    #[test]
    fn a_request_of_any_size_has_room_in_an_empty_queue() {
        let queue = queue(100, COMMIT);
        let whole = queue.reserve(1, None, 100, queue.most_of_a_key()).unwrap();
        assert_eq!(queue.reserve(2, None, 1, 25).unwrap_err(), Full::Queue);
        drop(whole);
        let larger = queue.reserve(1, None, 101, 25).unwrap();
        assert_eq!(queue.reserve(2, None, 1, 25).unwrap_err(), Full::Queue);
        drop(larger);
        assert_eq!(queue.0.free.available_permits(), 100);
    }

    #[tokio::test]
    async fn with_too_little_time_left_it_is_not_waited_for() {
        let queue = queue(10, COMMIT);
        let late = || Deadline::within(COMMIT - Duration::from_secs(1));
        let (ticket, pending) = Ticket::<()>::new(late(), queue.reserve(1, None, 1, 10).unwrap());
        assert!(ticket.is_late());
        assert_eq!(pending.answer().await, Err(NoAnswer::Withdrawn));
        assert!(!ticket.take());
        let (ticket, _pending) =
            Ticket::<()>::new(Deadline::within(COMMAND), queue.reserve(1, None, 1, 10).unwrap());
        assert!(!ticket.is_late() && ticket.take());
    }
}
