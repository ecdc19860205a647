//! One memory budget, in bytes, for all streams of a process.
//!
//! A stream reports how much it holds ([`BudgetAccount::hold`]): waiting rows, batches under way, outcomes
//! that the client has not taken, and the tables of all these. It asks before it reads more
//! ([`BudgetAccount::has_room`]), and before it sends more ([`BudgetAccount::may_send`]). Each stream has
//! [`OWN`] bytes of its own; beyond them it takes from a pool that all streams share. Reading leaves half of
//! the pool to batches under way, so that waiting rows do not block sending.
//!
//! A stream without room does not fail: it stops reading, which slows its client down, and stores what it has
//! read.
//!
//! **There is no deadlock**, because no stream needs the pool to finish what it holds. A batch may always be
//! sent while those under way take less than [`OWN`], whatever other streams hold, so that every row gets its
//! turn. The client takes the outcomes, or is disconnected. (What a stream remembers only for speed, it
//! forgets when there is no room.) So a stream that does not read will hold less than [`OWN`], and that is
//! room.
//!
//! A stream reports memory after it has taken it. It may therefore overdraw the pool: by a chunk of rows, by
//! outcomes that are longer than their rows, and by batches of the size of its own share.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Bytes that each stream may hold, whatever the others hold.
pub(crate) const OWN: usize = 64 * 1024;

/// The memory that streams may hold together. Clones share one budget.
#[derive(Debug, Clone)]
pub struct Budget(Arc<BudgetCounts>);

#[derive(Debug)]
struct BudgetCounts {
    /// Bytes left in the pool; negative where it is overdrawn.
    free: AtomicI64,
    /// Bytes of the pool that reading leaves.
    reserve: i64,
    /// Bytes held by all streams, their own shares included.
    held: AtomicI64,
}

impl Budget {
    /// A pool of `bytes` bytes.
    pub fn of(bytes: usize) -> Self {
        Self(Arc::new(BudgetCounts {
            free: AtomicI64::new(bytes as i64),
            reserve: bytes as i64 / 2,
            held: AtomicI64::new(0),
        }))
    }

    /// Bytes that all streams hold now.
    pub fn held(&self) -> u64 {
        self.0.held.load(Ordering::Relaxed).try_into().unwrap_or(0)
    }

    /// The account of a new stream, which holds nothing yet.
    pub(crate) fn open(&self) -> BudgetAccount {
        BudgetAccount { budget: self.clone(), held: 0 }
    }
}

/// What one stream holds. Dropping it frees that.
#[derive(Debug)]
pub(crate) struct BudgetAccount {
    budget: Budget,
    held: usize,
}

impl BudgetAccount {
    /// Reports that the stream holds `bytes` bytes.
    pub(crate) fn hold(&mut self, bytes: usize) {
        // The counts guard no other memory: no order is needed.
        let counts = &self.budget.0;
        counts.held.fetch_add(bytes as i64 - self.held as i64, Ordering::Relaxed);
        counts.free.fetch_sub(beyond(bytes) - beyond(self.held), Ordering::Relaxed);
        self.held = bytes;
    }

    /// Whether it may read more.
    pub(crate) fn has_room(&self) -> bool {
        self.held < OWN || self.free() > self.budget.0.reserve
    }

    /// Whether it may send one more batch, given the bytes of the batches under way.
    pub(crate) fn may_send(&self, under_way: usize) -> bool {
        under_way < OWN || self.free() > 0
    }

    fn free(&self) -> i64 {
        self.budget.0.free.load(Ordering::Relaxed)
    }
}

impl Drop for BudgetAccount {
    fn drop(&mut self) {
        self.hold(0);
    }
}

/// The part that comes out of the pool.
fn beyond(bytes: usize) -> i64 {
    bytes.saturating_sub(OWN) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_its_own_and_a_pool_for_all() {
        let budget = Budget::of(200_000);
        let (mut one, mut other) = (budget.open(), budget.open());
        one.hold(OWN + 99_999);
        assert!(one.has_room());
        one.hold(OWN + 100_000);
        assert!(!one.has_room() && one.may_send(OWN), "half is for batches under way");
        // It may overdraw.
        one.hold(OWN + 250_000);
        assert!(!one.may_send(OWN) && one.may_send(OWN - 1));
        // The other has its own share all the same, and no more.
        other.hold(OWN - 1);
        assert!(other.has_room());
        other.hold(OWN);
        assert!(!other.has_room() && other.may_send(OWN - 1));
        assert_eq!(budget.held(), 2 * OWN as u64 + 250_000);
        one.hold(OWN + 99_000);
        assert!(one.has_room() && other.has_room());
        drop(one);
        other.hold(OWN + 99_999);
        assert!(other.has_room());
        drop(other);
        assert_eq!(budget.held(), 0);
        assert_eq!(budget.0.free.load(Ordering::Relaxed), 200_000);
    }
}
