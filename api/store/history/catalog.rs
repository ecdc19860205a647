//! The tails of recently active customers: a cache, bounded by count, least recently used out first.
//!
//! Losing it, or sharing the database with other instances, changes no result: a statement from a
//! tail that has moved on is refused, and costs one more read.
//!
//! Kept by hand because of its size: an entry is 40 bytes in a slab, threaded by indices in order of
//! use, and 16 bytes and a control byte in a table that is at most 7/8 and, right after growing,
//! 7/16 full. That is at most 40 * 2 + 17 * 16 / 7 = 119 bytes a customer, growth of the slab
//! included; a test holds it below 256.

use std::collections::HashMap;

use super::bucket_id::BucketId;
use super::tail::Tail;
use crate::domain::{CustomerId, PageNumber};

/// No slot: the end of the order of use.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Catalog {
    capacity: usize,
    slots: HashMap<CustomerId, u32>,
    slab: Vec<Slot>,
    /// Free slots, by number.
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    customer: CustomerId,
    second: u64,
    page: PageNumber,
    count: u8,
    newer: u32,
    older: u32,
}

impl Catalog {
    /// Of at most `capacity` customers, at least 1.
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, NONE as usize);
        Self {
            capacity,
            slots: HashMap::new(),
            slab: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The customer's tail, which is now the most recently used.
    pub(super) fn get(&mut self, customer: CustomerId) -> Option<Tail> {
        let slot = *self.slots.get(&customer)?;
        self.unlink(slot);
        self.link_newest(slot);
        let Slot { second, page, count, .. } = self.slab[slot as usize];
        Some(Tail { id: BucketId { customer, second }, page, count: usize::from(count) })
    }

    /// Remembers a known tail.
    pub(super) fn put(&mut self, tail: Tail) {
        let customer = tail.id.customer;
        let slot = match self.slots.get(&customer).copied() {
            Some(slot) => {
                self.unlink(slot);
                slot
            }
            None => {
                if self.slots.len() == self.capacity {
                    self.forget(self.slab[self.oldest as usize].customer);
                }
                self.free_slot(customer)
            }
        };
        let (second, page, count) = (tail.id.second, tail.page, tail.count as u8);
        self.slab[slot as usize] = Slot { customer, second, page, count, newer: NONE, older: NONE };
        self.link_newest(slot);
    }

    /// Forgets a tail that may have moved on.
    pub(super) fn forget(&mut self, customer: CustomerId) {
        if let Some(slot) = self.slots.remove(&customer) {
            self.unlink(slot);
            self.free.push(slot);
        }
    }

    fn free_slot(&mut self, customer: CustomerId) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            let empty =
                Slot { customer, second: 0, page: PageNumber::FIRST, count: 0, newer: NONE, older: NONE };
            self.slab.push(empty);
            (self.slab.len() - 1) as u32
        });
        self.slots.insert(customer, slot);
        slot
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slab[slot as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.slab[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slab[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, slot: u32) {
        let older = self.newest;
        self.slab[slot as usize].newer = NONE;
        self.slab[slot as usize].older = older;
        match older {
            NONE => self.oldest = slot,
            older => self.slab[older as usize].newer = slot,
        }
        self.newest = slot;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tail(customer: u64, page: u64) -> Tail {
        let customer = CustomerId::new(customer).unwrap();
        Tail { id: BucketId { customer, second: page }, page: PageNumber::new(page).unwrap(), count: 3 }
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut catalog = Catalog::new(2);
        let customer = |id| CustomerId::new(id).unwrap();
        catalog.put(tail(1, 1));
        catalog.put(tail(2, 1));
        assert_eq!(catalog.get(customer(1)), Some(tail(1, 1)));
        catalog.put(tail(3, 1));
        assert_eq!(catalog.get(customer(2)), None);
        assert_eq!(catalog.get(customer(1)), Some(tail(1, 1)));
        catalog.put(tail(1, 2));
        assert_eq!(catalog.get(customer(1)), Some(tail(1, 2)));
        assert_eq!(catalog.len(), 2);
    }

    #[test]
    fn a_customer_takes_less_than_256_bytes() {
        let mut catalog = Catalog::new(100_000);
        for id in 1..=150_000 {
            catalog.put(tail(id, 1));
        }
        assert_eq!(catalog.len(), 100_000);
        let table = catalog.slots.capacity() * 8 / 7 * (size_of::<(CustomerId, u32)>() + 1);
        let slab = catalog.slab.capacity() * size_of::<Slot>();
        assert!((table + slab) / 100_000 < 256, "{table} + {slab}");
    }

    proptest! {
        /// Against a list in order of use.
        #[test]
        fn does_what_a_list_would_do(steps in prop::collection::vec((0_u8..3, 1_u64..8, 1_u64..100), 1..200)) {
            let mut catalog = Catalog::new(4);
            let mut list: Vec<Tail> = Vec::new();
            for (step, id, page) in steps {
                let customer = CustomerId::new(id).unwrap();
                let at = list.iter().position(|tail| tail.id.customer == customer);
                match step {
                    0 => {
                        let expected = at.map(|at| list.remove(at));
                        list.extend(expected);
                        prop_assert_eq!(catalog.get(customer), expected);
                    }
                    1 => {
                        at.map(|at| list.remove(at));
                        if list.len() == 4 { list.remove(0); }
                        list.push(tail(id, page));
                        catalog.put(tail(id, page));
                    }
                    _ => {
                        at.map(|at| list.remove(at));
                        catalog.forget(customer);
                    }
                }
                prop_assert_eq!(catalog.len(), list.len());
            }
        }
    }
}
