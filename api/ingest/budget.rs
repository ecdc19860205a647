//! One budget in bytes for what all streams of a process hold.
//!
//! A stream says how much it holds ([`Account::hold`]): rows that wait or are under way, and outcomes that are not
//! taken yet, with the tables that they are in. It asks before it reads more ([`Account::has_room`]). Up to [`OWN`]
//! bytes are its own; what it holds beyond them comes out of a pool that all streams share.
//!
//! A stream without room does not fail: it stops reading, so that its client is slowed down, and goes on storing what
//! it has read.
//!
//! **There is no deadlock**, because nothing waits for the pool but reading. A stream always may have one batch under
//! way, and more within [`OWN`], so that each row that it holds comes to its end whatever others hold. What remains
//! are outcomes, which the client takes or is cut off for not taking. (What it remembers to be faster, it forgets when
//! there is no room.) So it holds less than [`OWN`] after a while, and that is room.
//!
//! A stream counts what it holds after it has taken it. It may therefore overdraw the pool, at most by a chunk of rows
//! and the batches of its own share.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Bytes that each stream may hold, whatever the others hold.
pub(super) const OWN: usize = 64 * 1024;

/// What streams may hold together. Clones are the same budget.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    /// Bytes left in the pool; negative where it is overdrawn.
    free: AtomicI64,
    /// Bytes held by all streams, their own shares included.
    held: AtomicI64,
}

impl Budget {
    /// A pool of so many bytes.
    pub fn of(bytes: usize) -> Self {
        Self(Arc::new(Counts { free: AtomicI64::new(signed(bytes)), held: AtomicI64::new(0) }))
    }

    /// Bytes that all streams hold now.
    pub fn held(&self) -> u64 {
        self.0.held.load(Ordering::Relaxed).try_into().unwrap_or(0)
    }

    /// The account of a new stream, which holds nothing yet.
    pub(super) fn open(&self) -> Account {
        Account { budget: self.clone(), held: 0 }
    }
}

/// What one stream holds. It holds nothing any more when this is dropped.
#[derive(Debug)]
pub(super) struct Account {
    budget: Budget,
    held: usize,
}

impl Account {
    /// From now on it holds so many bytes.
    pub(super) fn hold(&mut self, bytes: usize) {
        // Nothing else is read or written by whoever sees a count: no order is needed.
        let counts = &self.budget.0;
        counts.held.fetch_add(signed(bytes) - signed(self.held), Ordering::Relaxed);
        counts.free.fetch_sub(signed(beyond(bytes)) - signed(beyond(self.held)), Ordering::Relaxed);
        self.held = bytes;
    }

    /// Whether it may take in more.
    pub(super) fn has_room(&self) -> bool {
        self.held < OWN || self.budget.0.free.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.hold(0);
    }
}

/// The part that comes out of the pool.
fn beyond(bytes: usize) -> usize {
    bytes.saturating_sub(OWN)
}

fn signed(bytes: usize) -> i64 {
    bytes.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_its_own_and_a_pool_for_all() {
        let budget = Budget::of(100_000);
        let (mut one, mut other) = (budget.open(), budget.open());
        one.hold(OWN + 99_999);
        assert!(one.has_room());
        // It may overdraw.
        one.hold(OWN + 150_000);
        assert!(!one.has_room());
        // The other has its own share all the same, and no more.
        other.hold(OWN - 1);
        assert!(other.has_room());
        other.hold(OWN);
        assert!(!other.has_room());
        assert_eq!(budget.held(), 2 * OWN as u64 + 150_000);
        one.hold(OWN + 99_000);
        assert!(one.has_room() && other.has_room());
        drop(one);
        other.hold(OWN + 99_999);
        assert!(other.has_room());
        drop(other);
        assert_eq!(budget.held(), 0);
        assert_eq!(budget.0.free.load(Ordering::Relaxed), 100_000);
    }
}
