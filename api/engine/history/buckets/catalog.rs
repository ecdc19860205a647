//! The tails of recently active owners: a cache, bounded by count, that evicts the least recently used
//! first.
//!
//! If the cache is lost, or other instances write to the same database, no result changes: a statement from an
//! old tail is refused and costs one more read.

use std::hash::RandomState;
use std::sync::Arc;

use hashlink::LruCache;
use pagebucket_model::domain::OwnerId;
use parking_lot::Mutex;

use super::bucket_id::Tail;
use crate::history::collection::fence::ReadTime;

/// A tail, and when it was read. Acknowledged appends move it, and do not make it newer: they show nothing about markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownTail {
    pub(crate) tail: Tail,
    pub(crate) read: ReadTime,
}

/// The tail of each owner. Clients choose the owners: a hash that they can predict would let them slow it down.
type Cache = LruCache<OwnerId, KnownTail, RandomState>;

/// The tails that one committer knows. Clones share them.
pub(crate) type Catalog = Arc<Mutex<Cache>>;

/// A catalog of at most `capacity` owners, at least 1.
pub(crate) fn new(capacity: usize) -> Catalog {
    Arc::new(Mutex::new(Cache::with_hasher(capacity.max(1), RandomState::new())))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::history::collection::moment::Moment;
    use pagebucket_model::domain::{Clock, PageNumber, PageSize};

    fn catalog(capacity: usize) -> Cache {
        Cache::with_hasher(capacity, RandomState::new())
    }

    fn tail(page: u64) -> KnownTail {
        static READ: LazyLock<ReadTime> =
            LazyLock::new(|| ReadTime { moment: Moment::now(&Clock::system()), server: 0 });
        let page_size = PageSize::new(10).unwrap();
        let tail = Tail { second: page, page: PageNumber::new(page).unwrap(), count: 3, page_size };
        KnownTail { tail, read: *READ }
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut catalog = catalog(2);
        let owner = OwnerId::Integer;
        catalog.insert(OwnerId::Integer(1), tail(1));
        catalog.insert(OwnerId::Integer(2), tail(1));
        assert_eq!(catalog.get(&owner(1)), Some(&tail(1)));
        catalog.insert(OwnerId::Integer(3), tail(1));
        assert_eq!(catalog.get(&owner(2)), None);
        assert_eq!(catalog.get(&owner(1)), Some(&tail(1)));
        catalog.insert(OwnerId::Integer(1), tail(2));
        assert_eq!(catalog.get(&owner(1)), Some(&tail(2)));
        assert_eq!(catalog.len(), 2);
    }

    #[test]
    fn an_owner_takes_less_than_256_bytes() {
        let mut catalog = catalog(100_000);
        for id in 1..=150_000 {
            catalog.insert(OwnerId::Integer(id), tail(1));
        }
        assert_eq!(catalog.len(), 100_000);
        // Two links, and a pointer in a table that is at least 7/16 full.
        let entry = size_of::<(OwnerId, KnownTail)>() + 2 * size_of::<usize>();
        let table = catalog.capacity() * 16 / 7 * (size_of::<usize>() + 1);
        assert!(entry + table / 100_000 < 256, "{entry} + {table}");
    }

    proptest! {
        /// Compares the cache with a list in order of use.
        #[test]
        fn does_what_a_list_would_do(steps in prop::collection::vec((0_u8..3, 1_u64..8, 1_u64..100), 1..200)) {
            let mut catalog = catalog(4);
            let mut list: Vec<(OwnerId, KnownTail)> = Vec::new();
            for (step, id, page) in steps {
                let owner = OwnerId::Integer(id);
                let at = list.iter().position(|(known, _)| *known == owner);
                match step {
                    0 => {
                        let expected = at.map(|at| list.remove(at));
                        list.extend(expected.clone());
                        prop_assert_eq!(catalog.get(&owner).copied(), expected.map(|(_, tail)| tail));
                    }
                    1 => {
                        at.map(|at| list.remove(at));
                        if list.len() == 4 { list.remove(0); }
                        list.push((owner, tail(page)));
                        catalog.insert(OwnerId::Integer(id), tail(page));
                    }
                    _ => {
                        at.map(|at| list.remove(at));
                        catalog.remove(&owner);
                    }
                }
                prop_assert_eq!(catalog.len(), list.len());
            }
        }
    }
}
