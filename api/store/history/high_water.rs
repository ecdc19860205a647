//! How far histories have been seen to come, so that no look at the database is needed for a part of a history that is
//! named by its last trade.
//!
//! A history only grows: one that holds a trade holds each before it, and every page that is full up to there stays
//! as it is. Only what was read at majority is remembered, because nothing takes
//! that back; and only in this process, so that after a restart the first to ask looks again.

use std::sync::{Mutex, PoisonError};

use crate::domain::{CustomerId, Seq};

/// Histories remembered at most, at 32 bytes each. Two that share a place take turns in it: whoever finds
/// another's there reads one tail more.
const PLACES: usize = 8192;

/// The greatest trade seen of some histories.
#[derive(Debug)]
pub(super) struct HighWater(Box<[Mutex<Place>]>);

/// Whose, and which.
type Place = Option<(CustomerId, Seq)>;

impl Default for HighWater {
    fn default() -> Self {
        Self((0..PLACES).map(|_| Mutex::new(None)).collect())
    }
}

impl HighWater {
    /// Remembers that a history held this trade.
    pub(super) fn note(&self, customer: CustomerId, last: Seq) {
        self.with(customer, |place| {
            let before = place.filter(|(whose, _)| *whose == customer).map(|(_, seq)| seq);
            *place = Some((customer, before.map_or(last, |before| before.max(last))));
        });
    }

    /// Whether it is known to have held it. What is not known may be so all the same.
    pub(super) fn held(&self, customer: CustomerId, last: Seq) -> bool {
        self.with(customer, |place| place.is_some_and(|(whose, seen)| whose == customer && last <= seen))
    }

    fn with<T>(&self, customer: CustomerId, work: impl FnOnce(&mut Place) -> T) -> T {
        let place = &self.0[customer.spread() as usize % PLACES];
        work(&mut place.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_as_much_as_was_seen_and_no_more() {
        let (seen, seq) = (HighWater::default(), |n| Seq::new(n).unwrap());
        let customers = || (1..=3 * PLACES as u64).map(|id| CustomerId::new(id).unwrap());
        assert!(!customers().any(|customer| seen.held(customer, Seq::FIRST)));
        for customer in customers() {
            // Read at once by two, of whom the slower one saw less.
            seen.note(customer, seq(20 + customer.get()));
            seen.note(customer, seq(19));
            assert!(seen.held(customer, seq(20 + customer.get())));
            assert!(!seen.held(customer, seq(21 + customer.get())));
        }
        let remembered = customers().filter(|customer| seen.held(*customer, Seq::FIRST)).count();
        assert!((PLACES / 2..=PLACES).contains(&remembered), "{remembered}");
        assert!(!customers().any(|customer| seen.held(customer, seq(21 + customer.get()))));
    }
}
