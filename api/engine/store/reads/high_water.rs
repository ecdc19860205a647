//! The last known item of each history. A snapshot that names an item up to it can be served without reading
//! the tail.
//!
//! Until its pages are deleted a history only grows: if it has an item, it has all items before it, and the
//! full pages up to there never change. With the first marker all of it is forgotten, and nothing is relied
//! on ([`crate::store::collection::marker_count`]). Only items that were read at majority are remembered,
//! because they cannot be rolled back. They are kept in memory, so after a restart the first request for a
//! history reads the database.

use std::sync::Arc;

use pagebucket_model::domain::{OwnerId, Seq};
use parking_lot::Mutex;

/// The most histories that are remembered, at 32 bytes each. Two histories that share a slot replace each
/// other; a request that finds another history in its slot reads one more tail.
const SLOTS: usize = 8192;

/// The last known item of some histories. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct HighWater(Arc<[Mutex<Slot>]>);

/// An owner and the last known item of its history.
type Slot = Option<(OwnerId, Seq)>;

impl Default for HighWater {
    fn default() -> Self {
        Self((0..SLOTS).map(|_| Mutex::new(None)).collect())
    }
}

impl HighWater {
    /// Remembers that a history has the item `last`.
    pub(crate) fn note(&self, owner: &OwnerId, last: Seq) {
        self.with(owner, |slot| match slot {
            Some((known, seq)) if known == owner => *seq = last.max(*seq),
            _ => *slot = Some((owner.clone(), last)),
        });
    }

    /// Whether the history is known to have the item `last`. It may have the item even if this is false.
    pub(crate) fn held(&self, owner: &OwnerId, last: Seq) -> bool {
        self.with(owner, |slot| slot.as_ref().is_some_and(|(known, seq)| known == owner && last <= *seq))
    }

    /// Forgets all histories.
    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|slot| *slot.lock() = None);
    }

    fn with<T>(&self, owner: &OwnerId, work: impl FnOnce(&mut Slot) -> T) -> T {
        let slot = &self.0[owner.spread() as usize % SLOTS];
        work(&mut slot.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_as_much_as_was_seen_and_no_more() {
        let (seen, seq) = (HighWater::default(), |n| Seq::new(n).unwrap());
        let owners = || (1..=3 * SLOTS as u64).map(OwnerId::Integer);
        assert!(!owners().any(|owner| seen.held(&owner, Seq::FIRST)));
        for (id, owner) in (1..).zip(owners()) {
            // Two simultaneous reads, of which the slower one saw less.
            seen.note(&owner, seq(20 + id));
            seen.note(&owner, seq(19));
            assert!(seen.held(&owner, seq(20 + id)));
            assert!(!seen.held(&owner, seq(21 + id)));
        }
        let remembered = owners().filter(|owner| seen.held(owner, Seq::FIRST)).count();
        assert!((SLOTS / 2..=SLOTS).contains(&remembered), "{remembered}");
        assert!(!(1..).zip(owners()).any(|(id, owner)| seen.held(&owner, seq(21 + id))));
    }
}
