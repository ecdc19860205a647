//! The tails of recently active owners: a cache, bounded by count, that evicts the least recently used
//! first.
//!
//! If the cache is lost, or other instances write to the same database, no result changes: a statement from
//! an old tail is refused and costs one more read.

use std::hash::RandomState;
use std::sync::Arc;

use hashlink::LruCache;
use pagebucket_model::domain::OwnerId;
use parking_lot::Mutex;

use super::bucket_id::Tail;
use crate::store::collection::fence::ReadTime;

/// A tail, and when it was read. Acknowledged appends move it, and do not make it newer: they show nothing
/// about markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownTail {
    pub(crate) tail: Tail,
    pub(crate) read: ReadTime,
}

/// The tail of each owner. Clients choose the owners: a hash that they can predict would let them slow it
/// down.
type Cache = LruCache<OwnerId, KnownTail, RandomState>;

/// The tails that one committer knows. Clones share them.
pub(crate) type Catalog = Arc<Mutex<Cache>>;

/// A catalog of at most `capacity` owners, at least 1.
pub(crate) fn new(capacity: usize) -> Catalog {
    Arc::new(Mutex::new(Cache::with_hasher(capacity.max(1), RandomState::new())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::collection::moment::Moment;
    use pagebucket_model::domain::{Clock, PageNumber, PageSize};

    #[test]
    fn an_owner_takes_less_than_256_bytes() {
        let mut catalog = Cache::with_hasher(100_000, RandomState::new());
        let page_size = PageSize::new(10).unwrap();
        let tail = Tail { second: 1, page: PageNumber::FIRST, count: 3, page_size };
        let read = ReadTime { moment: Moment::now(&Clock::system()), server: 0 };
        for id in 1..=150_000 {
            catalog.insert(OwnerId::Integer(id), KnownTail { tail, read });
        }
        assert_eq!(catalog.len(), 100_000);
        // Two links, and a pointer in a table that is at least 7/16 full.
        let entry = size_of::<(OwnerId, KnownTail)>() + 2 * size_of::<usize>();
        let table = catalog.capacity() * 16 / 7 * (size_of::<usize>() + 1);
        assert!(entry + table / 100_000 < 256, "{entry} + {table}");
    }
}
