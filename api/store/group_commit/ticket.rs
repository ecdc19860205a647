//! A request's place in a queue, from its arrival to its answer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::store::{COMMAND, COMMIT, Deadline};

/// How long a request may wait for its first commit: long enough for a queue that is full.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A committer answers before the deadline of its commit. A client waits this much longer than its own.
const GRACE: Duration = Duration::from_secs(1);

// A request that has waited as long as it may has enough time left for a commit.
const _: () = assert!(LONGEST_WAIT.as_secs() + COMMIT.as_secs() <= COMMAND.as_secs());

/// One key may hold this part of a queue.
const PART_OF_A_KEY: usize = 4;

/// Maps of what keys hold, so that requests of different keys rarely wait for one lock.
const SHARDS: usize = 16;

const WAITING: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// What may wait at once, in units of its own. Its clones are one queue.
#[derive(Debug, Clone)]
pub(in crate::store) struct Queue(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    free: Semaphore,
    size: u32,
    /// Units by key, of keys that hold any.
    held: [Mutex<HashMap<u64, usize>>; SHARDS],
    /// The least that a request must have left when a commit takes it.
    commit: Duration,
    /// The name of the metric of what waits.
    gauge: &'static str,
}

/// Units of a queue that one key holds, for as long as this lives.
#[derive(Debug)]
pub(in crate::store) struct Room {
    queue: Queue,
    key: u64,
    units: usize,
    /// A part of what some requests may have together.
    _part: Option<OwnedSemaphorePermit>,
}

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Full {
    /// The queue holds as much as it may.
    Queue,
    /// This key holds as much of it as a key may.
    Key,
}

impl Room {
    /// The same, holding a part of what its like may have together.
    #[must_use]
    pub(in crate::store) fn with(mut self, part: OwnedSemaphorePermit) -> Self {
        self._part = Some(part);
        self
    }
}

impl Queue {
    /// For `size` units. A request with less time left than `commit` is not committed.
    pub(in crate::store) fn new(size: usize, commit: Duration, gauge: &'static str) -> Self {
        let size = u32::try_from(size.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let free = Semaphore::new(size as usize);
        Self(Arc::new(Inner { free, size, held: Default::default(), commit, gauge }))
    }

    /// How many units may wait at once: a request of more never has room.
    pub(in crate::store) fn size(&self) -> usize {
        self.0.size as usize
    }

    /// The most units that one key may hold, unless a single request has more.
    pub(in crate::store) fn most_of_a_key(&self) -> usize {
        (self.0.size as usize / PART_OF_A_KEY).max(1)
    }

    /// Room for `units` of one key, which holds at most `most` of them then. A key that holds nothing may
    /// have more, so that every request fits that fits into the queue.
    ///
    /// # Errors
    /// There is not as much.
    pub(in crate::store) fn room(&self, key: u64, units: usize, most: usize) -> Result<Room, Full> {
        let mut held = self.held(key);
        let own = held.entry(key).or_default();
        if *own > 0 && *own + units > most {
            return Err(Full::Key);
        }
        *own += units;
        drop(held);
        let Ok(permit) = self.0.free.try_acquire_many(units.try_into().unwrap_or(u32::MAX)) else {
            self.give_back(key, units);
            return Err(Full::Queue);
        };
        permit.forget();
        metrics::gauge!(self.0.gauge).increment(units as f64);
        Ok(Room { queue: self.clone(), key, units, _part: None })
    }

    fn give_back(&self, key: u64, units: usize) {
        if let Entry::Occupied(mut own) = self.held(key).entry(key) {
            *own.get_mut() -= units;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }

    fn held(&self, key: u64) -> MutexGuard<'_, HashMap<u64, usize>> {
        self.0.held[key as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is queued: what clients that have hung up left behind is settled, too. New
    /// requests find no room meanwhile.
    pub(in crate::store) async fn drain(&self) {
        // Never closed: an error cannot be.
        let _ = self.0.free.acquire_many(self.0.size).await;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Self { queue, key, units, .. } = self;
        queue.give_back(*key, *units);
        queue.0.free.add_permits(*units);
        metrics::gauge!(queue.0.gauge).decrement(*units as f64);
    }
}

/// The request's half.
#[derive(Debug)]
pub(in crate::store) struct Ticket<A> {
    deadline: Deadline,
    state: Arc<AtomicU8>,
    answer: oneshot::Sender<A>,
    room: Room,
}

/// The client's half.
#[derive(Debug)]
pub(in crate::store) struct Pending<A> {
    deadline: Deadline,
    /// The least that is left of it when a commit takes the request.
    commit: Duration,
    state: Arc<AtomicU8>,
    answered: oneshot::Receiver<A>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum NoAnswer {
    /// It has waited too long for a commit, and will not get into one any more.
    Withdrawn,
    /// It got into a commit of which nothing was heard before its own deadline.
    Lost,
}

impl<A> Ticket<A> {
    /// Both halves. `deadline` is shortened to one command's.
    pub(in crate::store) fn new(deadline: Deadline, room: Room) -> (Self, Pending<A>) {
        let deadline = deadline.or_within(COMMAND);
        let state = Arc::new(AtomicU8::new(WAITING));
        let (answer, answered) = oneshot::channel();
        let commit = room.queue.0.commit;
        let pending = Pending { deadline, commit, state: Arc::clone(&state), answered };
        (Self { deadline, state, answer, room }, pending)
    }

    pub(in crate::store) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Whether too little time is left to commit it.
    pub(in crate::store) fn is_late(&self) -> bool {
        self.deadline.remaining() < self.room.queue.0.commit
    }

    /// Takes the request out of the queue for good; false when its client was told that it waited too
    /// long.
    pub(in crate::store) fn take(&self) -> bool {
        match self.state.compare_exchange(WAITING, TAKEN, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(state) => state == TAKEN,
        }
    }

    pub(in crate::store) fn answer(self, answer: A) {
        // Before the answer, so that the client's next request finds it.
        drop(self.room);
        // A client that has hung up is not there to be told.
        let _ = self.answer.send(answer);
    }
}

impl<A> Pending<A> {
    /// Waits for the answer: for a first commit at most [`LONGEST_WAIT`], and only while enough time is left
    /// for one; then to the deadline.
    ///
    /// # Errors
    /// See [`NoAnswer`].
    pub(in crate::store) async fn answer(mut self) -> Result<A, NoAnswer> {
        let wait = LONGEST_WAIT.min(self.deadline.remaining().saturating_sub(self.commit));
        if let Ok(answer) = tokio::time::timeout(wait, &mut self.answered).await {
            return answer.map_err(|_lost| NoAnswer::Lost);
        }
        if self.state.compare_exchange(WAITING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return Err(NoAnswer::Withdrawn);
        }
        match tokio::time::timeout(self.deadline.remaining() + GRACE, self.answered).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) => Err(NoAnswer::Lost),
        }
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
        let mut own: Vec<Room> = (0..most).map(|_| queue.room(1, 1, most).unwrap()).collect();
        assert_eq!(queue.room(1, 1, most).unwrap_err(), Full::Key);
        let others = queue.room(1 + SHARDS as u64, 75, most).unwrap();
        assert_eq!(queue.room(2, 1, most).unwrap_err(), Full::Queue);
        own.pop();
        own.push(queue.room(1, 1, most).unwrap());
        drop((own, others));
        assert_eq!(queue.0.free.available_permits(), 100);
        assert!(queue.0.held.iter().all(|held| held.lock().unwrap().is_empty()), "nothing is kept of a key");
    }

    #[test]
    fn a_request_that_fits_into_the_queue_fits_where_its_key_holds_nothing() {
        let queue = queue(100, COMMIT);
        let whole = queue.room(1, 100, queue.most_of_a_key()).unwrap();
        assert_eq!(queue.room(2, 1, 25).unwrap_err(), Full::Queue);
        drop(whole);
        assert_eq!(queue.room(1, 101, 25).unwrap_err(), Full::Queue);
        drop(queue.room(1, 100, 25).unwrap());
    }

    #[tokio::test]
    async fn with_too_little_time_left_it_is_not_waited_for() {
        let queue = queue(10, COMMIT);
        let late = || Deadline::within(COMMIT - Duration::from_secs(1));
        let (ticket, pending) = Ticket::<()>::new(late(), queue.room(1, 1, 10).unwrap());
        assert!(ticket.is_late());
        assert_eq!(pending.answer().await, Err(NoAnswer::Withdrawn));
        assert!(!ticket.take());
        let (ticket, _pending) = Ticket::<()>::new(Deadline::within(COMMAND), queue.room(1, 1, 10).unwrap());
        assert!(!ticket.is_late() && ticket.take());
    }
}
