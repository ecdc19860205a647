//! The tails of recently active customers: a cache, bounded by count, that evicts the least recently used
//! first.
//!
//! If the cache is lost, or other instances write to the same database, no result changes: a statement from an
//! old tail is refused and costs one more read.

use std::hash::RandomState;

use hashlink::LruCache;

use super::tail::Tail;
use crate::domain::CustomerId;

// Clients choose the customers: a hash that they can predict would let them slow it down.
#[derive(Debug)]
pub(super) struct Catalog(LruCache<CustomerId, Tail, RandomState>);

impl Catalog {
    /// A cache of at most `capacity` customers, at least 1.
    pub(super) fn new(capacity: usize) -> Self {
        Self(LruCache::with_hasher(capacity.max(1), RandomState::new()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The customer's tail, which becomes the most recently used.
    pub(super) fn get(&mut self, customer: CustomerId) -> Option<Tail> {
        self.0.get(&customer).copied()
    }

    /// Remembers a known tail.
    pub(super) fn put(&mut self, tail: Tail) {
        self.0.insert(tail.id.customer, tail);
    }

    /// Forgets a tail that may be out of date.
    pub(super) fn forget(&mut self, customer: CustomerId) {
        self.0.remove(&customer);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::PageNumber;
    use crate::store::history::bucket_id::BucketId;

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
        // Two links, and a pointer in a table that is at least 7/16 full.
        let entry = size_of::<(CustomerId, Tail)>() + 2 * size_of::<usize>();
        let table = catalog.0.capacity() * 16 / 7 * (size_of::<usize>() + 1);
        assert!(entry + table / 100_000 < 256, "{entry} + {table}");
    }

    proptest! {
        /// Compares the cache with a list in order of use.
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
