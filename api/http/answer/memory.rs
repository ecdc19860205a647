//! One memory budget, in bytes, for answers that are ready and that their clients have not taken yet.
//!
//! Each answer has [`OWN`] bytes of its own, if its request has a permit: permits bound the number of such
//! answers. Beyond its own bytes it takes from a [`POOL`] that all answers of the process share, and of which
//! the answers of one connection hold at most [`OF_CONNECTION`]. An answer that finds no room is dropped at
//! once, and its client gets 503. The answer to a request that may have changed something is never dropped,
//! because its client must learn the outcome.
//!
//! A client whose answer holds some of the pool has less time to take it, the fuller the pool is
//! ([`AnswerMemory::patience`]). So the slowest clients make room first. Short answers, which most are, need
//! none of the pool: nothing changes for their clients.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes that each answer to a request with a permit may hold, whatever the others hold: enough for the
/// counters of a series of page views.
pub(crate) const OWN: usize = 96 * 1024;

/// The same of a request without a permit, such as one that is refused: enough for any problem.
pub(crate) const OWN_WITHOUT_PERMIT: usize = 4 * 1024;

/// Bytes that all answers of a process may hold beyond their own.
const POOL: usize = 64 * 1024 * 1024;

/// Bytes of the pool that the answers of one connection may hold.
const OF_CONNECTION: usize = POOL / 4;

/// When the pool is full, the time of clients that hold some of it is divided by this.
const HASTE: u32 = 12;

/// The permit of a request, which its answer keeps until its client has taken it.
#[derive(Debug, Clone)]
pub(crate) struct WithPermit {
    #[expect(dead_code, reason = "it is taken until this is dropped")]
    permit: Arc<dyn Any + Send + Sync>,
    own: usize,
}

impl WithPermit {
    /// Of an answer to a request with this permit.
    pub(crate) fn new(permit: impl Any + Send + Sync) -> Self {
        Self { permit: Arc::new(permit), own: OWN }
    }

    /// Of an answer to a long poll with this permit. There may be many of them.
    pub(crate) fn of_poll(permit: impl Any + Send + Sync) -> Self {
        Self { permit: Arc::new(permit), own: OWN_WITHOUT_PERMIT }
    }

    /// Bytes that the answer may hold, whatever the others hold.
    pub(crate) fn own(&self) -> usize {
        self.own
    }
}

/// The pool of a process. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Unsent(Arc<AtomicUsize>);

/// What the answers of one connection hold. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Account {
    pool: Unsent,
    held: Arc<AtomicUsize>,
}

/// What one answer holds, until this is dropped.
#[derive(Debug)]
pub struct AnswerMemory {
    account: Account,
    own: usize,
    length: Option<usize>,
    /// Bytes of the pool.
    held: AtomicUsize,
}

impl Unsent {
    /// The account of a new connection.
    pub fn open(&self) -> Account {
        Account { pool: self.clone(), held: Arc::default() }
    }
}

/// Adds to what is held, unless that makes it more than `most`. One answer always finds room, whatever its
/// size.
fn add(held: &AtomicUsize, bytes: usize, most: usize) -> bool {
    let more = |held: usize| (held == 0 || held + bytes <= most).then_some(held + bytes);
    // The counts guard no other memory: no order is needed.
    held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

impl Account {
    /// Room for an answer of this length, in bytes, of which `own` are not from the pool. `None` if the pool
    /// is full.
    pub fn room(&self, own: usize, length: Option<usize>) -> Option<AnswerMemory> {
        let room = AnswerMemory { account: self.clone(), own, length, held: AtomicUsize::new(0) };
        room.hold(room.needs(length.unwrap_or(0))).then_some(room)
    }

    /// The same, also if the pool is full.
    pub fn overdraw(&self, own: usize, length: Option<usize>) -> AnswerMemory {
        let room = AnswerMemory { account: self.clone(), own, length, held: AtomicUsize::new(0) };
        room.keep(length.unwrap_or(0));
        room
    }

    /// How much time of `limit` a client of this connection has.
    pub fn patience(&self, limit: Duration) -> Duration {
        self.patience_of(&self.held, limit)
    }

    fn patience_of(&self, held: &AtomicUsize, limit: Duration) -> Duration {
        if held.load(Ordering::Relaxed) == 0 {
            return limit;
        }
        let free = POOL.saturating_sub(self.pool.0.load(Ordering::Relaxed));
        limit.mul_f64(free as f64 / POOL as f64).max(limit / HASTE)
    }
}

impl AnswerMemory {
    /// What an answer of this length holds of the pool.
    fn needs(&self, length: usize) -> usize {
        length.saturating_sub(self.own)
    }

    /// Takes `bytes` more of the pool, if they are free. Returns whether they were.
    pub fn hold(&self, bytes: usize) -> bool {
        if bytes == 0 {
            return true;
        }
        let Account { pool, held } = &self.account;
        if !add(held, bytes, OF_CONNECTION) {
            return false;
        }
        let free = add(&pool.0, bytes, POOL);
        if free {
            self.held.fetch_add(bytes, Ordering::Relaxed);
        } else {
            held.fetch_sub(bytes, Ordering::Relaxed);
        }
        free
    }

    /// Holds from now on what an answer of this length holds, also if the pool is full: it is in memory
    /// already.
    pub fn keep(&self, length: usize) {
        let kept = self.needs(length);
        // The difference may be negative: an atomic addition wraps.
        let more = kept.wrapping_sub(self.held.swap(kept, Ordering::Relaxed));
        self.account.held.fetch_add(more, Ordering::Relaxed);
        self.account.pool.0.fetch_add(more, Ordering::Relaxed);
    }

    /// The length of the answer before compression, in bytes, if it was known.
    pub fn length(&self) -> Option<usize> {
        self.length
    }

    /// How much time of `limit` the client of this answer has.
    pub fn patience(&self, limit: Duration) -> Duration {
        self.account.patience_of(&self.held, limit)
    }
}

impl Drop for AnswerMemory {
    fn drop(&mut self) {
        self.keep(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);
    const QUARTER: Option<usize> = Some(OWN + OF_CONNECTION);

    #[test]
    fn a_connection_holds_a_quarter_of_what_all_share() {
        let all = Unsent::default();
        let accounts: Vec<_> = (0..5).map(|_| all.open()).collect();
        let rooms: Vec<_> = accounts[..4].iter().map(|account| account.room(OWN, QUARTER).unwrap()).collect();
        assert!(
            accounts[4].room(OWN, Some(OWN + 1)).is_none() && accounts[0].room(OWN, Some(OWN + 1)).is_none()
        );
        // Short answers need no room, and outcomes get it.
        let short = accounts[4].room(OWN, Some(OWN)).unwrap();
        assert_eq!(all.0.load(Ordering::Relaxed), POOL);
        drop(accounts[4].overdraw(OWN, Some(OWN + 7)));
        drop(rooms);
        let half = accounts[0].room(OWN, Some(OWN + OF_CONNECTION / 2)).unwrap();
        assert!(half.hold(OF_CONNECTION / 2) && !half.hold(1) && short.hold(1));
        half.keep(OWN + 1);
        assert_eq!(all.0.load(Ordering::Relaxed), 2);
        // An answer of unknown length that has become longer than its own bytes.
        short.keep(OWN + 7);
        assert_eq!(all.0.load(Ordering::Relaxed), 1 + 7);
        drop((half, short));
        assert_eq!(all.0.load(Ordering::Relaxed), 0);
        assert!(accounts.iter().all(|account| account.held.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn an_answer_that_is_alone_has_room_whatever_its_size() {
        let all = Unsent::default();
        let whole = all.open().room(OWN, Some(2 * POOL)).unwrap();
        assert!(all.open().room(OWN, Some(OWN + 1)).is_none());
        drop(whole);
        assert!(all.open().room(OWN, Some(OWN + 1)).is_some());
    }

    #[test]
    fn the_fuller_the_less_time() {
        let all = Unsent::default();
        let (account, other) = (all.open(), all.open());
        let room = account.room(OWN, QUARTER).unwrap();
        assert_eq!(room.patience(LIMIT), LIMIT * 3 / 4);
        let rest: Vec<_> = (0..3).map(|_| all.open().room(OWN, QUARTER).unwrap()).collect();
        assert_eq!((room.patience(LIMIT), account.patience(LIMIT)), (LIMIT / 12, LIMIT / 12));
        // Not for those who hold nothing of it.
        let short = other.room(OWN, None).unwrap();
        assert_eq!((short.patience(LIMIT), other.patience(LIMIT)), (LIMIT, LIMIT));
        drop(rest);
        assert_eq!(room.patience(LIMIT), LIMIT * 3 / 4);
    }
}
