//! The last known trade of each history. A snapshot that names a trade up to it can be served without reading
//! the tail.
//!
//! A history only grows: if it has a trade, it has all trades before it, and the full pages up to there never
//! change. Only trades that were read at majority are remembered, because they cannot be rolled back. They are
//! kept in memory, so after a restart the first request for a history reads the database.

use std::sync::{Mutex, PoisonError};

use crate::domain::{CustomerId, Seq};

/// The most histories that are remembered, at 32 bytes each. Two histories that share a slot replace each
/// other; a request that finds another history in its slot reads one more tail.
const SLOTS: usize = 8192;

/// The last known trade of some histories.
#[derive(Debug)]
pub(super) struct HighWater(Box<[Mutex<Slot>]>);

/// A customer and the last known trade of its history.
type Slot = Option<(CustomerId, Seq)>;

impl Default for HighWater {
    fn default() -> Self {
        Self((0..SLOTS).map(|_| Mutex::new(None)).collect())
    }
}

impl HighWater {
    /// Remembers that a history has the trade `last`.
    pub(super) fn note(&self, customer: CustomerId, last: Seq) {
        self.with(customer, |slot| {
            let before = slot.filter(|(owner, _)| *owner == customer).map(|(_, seq)| seq);
            *slot = Some((customer, before.map_or(last, |before| before.max(last))));
        });
    }

    /// Whether the history is known to have the trade `last`. It may have the trade even if this is false.
    pub(super) fn held(&self, customer: CustomerId, last: Seq) -> bool {
        self.with(customer, |slot| slot.is_some_and(|(owner, known)| owner == customer && last <= known))
    }

    fn with<T>(&self, customer: CustomerId, work: impl FnOnce(&mut Slot) -> T) -> T {
        let slot = &self.0[customer.spread() as usize % SLOTS];
        work(&mut slot.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_as_much_as_was_seen_and_no_more() {
        let (seen, seq) = (HighWater::default(), |n| Seq::new(n).unwrap());
        let customers = || (1..=3 * SLOTS as u64).map(|id| CustomerId::new(id).unwrap());
        assert!(!customers().any(|customer| seen.held(customer, Seq::FIRST)));
        for customer in customers() {
            // Two simultaneous reads, of which the slower one saw less.
            seen.note(customer, seq(20 + customer.get()));
            seen.note(customer, seq(19));
            assert!(seen.held(customer, seq(20 + customer.get())));
            assert!(!seen.held(customer, seq(21 + customer.get())));
        }
        let remembered = customers().filter(|customer| seen.held(*customer, Seq::FIRST)).count();
        assert!((SLOTS / 2..=SLOTS).contains(&remembered), "{remembered}");
        assert!(!customers().any(|customer| seen.held(customer, seq(21 + customer.get()))));
    }
}
