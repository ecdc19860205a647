//! A request's place in a queue, from its arrival to its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::store::{COMMAND, Deadline};

/// How long a request may wait for its first commit. Long enough for a queue that is full, short
/// enough to leave a commit most of its own time.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A committer answers before the deadline of a request; this much later nobody believes it.
const GRACE: Duration = Duration::from_secs(1);

const WAITING: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// What may wait at once, in units of its own.
#[derive(Debug)]
pub(in crate::store) struct Queue {
    room: Arc<Semaphore>,
    size: u32,
    /// The name of the metric of what waits.
    gauge: &'static str,
}

/// Room for so many, for as long as this lives.
#[derive(Debug)]
pub(in crate::store) struct Room {
    units: usize,
    gauge: &'static str,
    _permit: OwnedSemaphorePermit,
    /// A part of what some requests may have together.
    _part: Option<OwnedSemaphorePermit>,
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
    pub(in crate::store) fn new(size: usize, gauge: &'static str) -> Self {
        let size = u32::try_from(size.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Self { room: Arc::new(Semaphore::new(size as usize)), size, gauge }
    }

    /// Room for so many; `None` when there is not as much.
    pub(in crate::store) fn room(&self, units: usize) -> Option<Room> {
        let wanted = units.try_into().unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.room).try_acquire_many_owned(wanted).ok()?;
        metrics::gauge!(self.gauge).increment(units as f64);
        Some(Room { units, gauge: self.gauge, _permit: permit, _part: None })
    }

    /// Waits until nothing is queued: what clients that have hung up left behind is settled, too. New
    /// requests find no room meanwhile.
    pub(in crate::store) async fn settled(&self) {
        // Never closed: an error cannot be.
        let _ = self.room.acquire_many(self.size).await;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        metrics::gauge!(self.gauge).decrement(self.units as f64);
    }
}

/// The request's half.
#[derive(Debug)]
pub(in crate::store) struct Ticket<A> {
    deadline: Deadline,
    state: Arc<AtomicU8>,
    answer: oneshot::Sender<A>,
    /// Given back with the answer.
    _room: Room,
}

/// The client's half.
#[derive(Debug)]
pub(in crate::store) struct Pending<A> {
    deadline: Deadline,
    state: Arc<AtomicU8>,
    answered: oneshot::Receiver<A>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum NoAnswer {
    /// It has waited too long for a commit, and will not get into one any more.
    Withdrawn,
    /// It got into a commit of which nothing was heard.
    Lost,
}

impl<A> Ticket<A> {
    /// Both halves. `deadline` is shortened to one command's.
    pub(in crate::store) fn new(deadline: Deadline, room: Room) -> (Self, Pending<A>) {
        let deadline = deadline.or_within(COMMAND);
        let state = Arc::new(AtomicU8::new(WAITING));
        let (answer, answered) = oneshot::channel();
        let pending = Pending { deadline, state: Arc::clone(&state), answered };
        (Self { deadline, state, answer, _room: room }, pending)
    }

    pub(in crate::store) fn deadline(&self) -> Deadline {
        self.deadline
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
        // A client that has hung up is not there to be told.
        let _ = self.answer.send(answer);
    }
}

impl<A> Pending<A> {
    /// Waits for the answer: for a first commit at most [`LONGEST_WAIT`], then to the deadline.
    ///
    /// # Errors
    /// See [`NoAnswer`].
    pub(in crate::store) async fn answer(mut self) -> Result<A, NoAnswer> {
        let wait = LONGEST_WAIT.min(self.deadline.remaining());
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
