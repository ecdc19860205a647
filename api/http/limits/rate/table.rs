//! The buckets of the clients of one class, in bounded memory.
//!
//! A client whose bucket is full again may be forgotten. If all entries are taken, a new client replaces the one that was
//! idle longest, which starts with a full bucket when it returns. Many addresses gain at most a burst for each return;
//! other clients lose nothing.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use governor::nanos::Nanos;
use governor::state::StateStore;
use hashlink::LruCache;
use parking_lot::Mutex;

use crate::client::Client;

/// Parts of a table, each with a lock of its own.
const PARTS: usize = 16;

/// Most clients of a part.
const MOST_OF_PART: usize = 2_048;

/// Most clients of a table, at about 100 bytes each and the name of a principal.
#[cfg(test)]
pub const MOST: usize = PARTS * MOST_OF_PART;

/// Most idle clients that are forgotten when a new one comes: more than one, so that the table shrinks.
const FORGOTTEN: usize = 2;

/// When each client would have paid for everything so far (the "theoretical arrival time" of GCRA), by the time of the
/// limiter. Those that were used last are last. Clones share the table.
#[derive(Clone, derive_more::Debug)]
#[debug("Table")]
pub struct Table {
    parts: Arc<[Mutex<LruCache<Client, Nanos>>; PARTS]>,
    /// Who is in which part is random, so that no client can choose its part.
    hasher: Arc<RandomState>,
    /// After this time without a request every bucket is full.
    refilled: Nanos,
}

impl Table {
    /// An empty one. An empty bucket is full after `refilled`.
    pub fn new(refilled: Duration) -> Self {
        // Without room for clients that may never come.
        let part = |_| Mutex::new(LruCache::new_unbounded());
        Self { parts: Arc::new(std::array::from_fn(part)), hasher: Arc::default(), refilled: refilled.into() }
    }

    /// How many clients it has.
    pub fn clients(&self) -> usize {
        self.parts.iter().map(|part| part.lock().len()).sum()
    }
}

impl StateStore for Table {
    type Key = Client;

    fn measure_and_replace<T, F, E>(&self, client: &Client, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let part = self.hasher.hash_one(client) as usize % PARTS;
        let mut part = self.parts[part].lock();
        if let Some(paid) = part.get_mut(client) {
            let (outcome, next) = decide(Some(*paid))?;
            *paid = next;
            return Ok(outcome);
        }
        let (outcome, next) = decide(None)?;
        // A new client has used at most a burst, so this is not later than now.
        let now = next.saturating_sub(self.refilled);
        for _ in 0..FORGOTTEN {
            let idlest = part.iter().next();
            if idlest.is_some_and(|(_, paid)| *paid <= now || part.len() >= MOST_OF_PART) {
                part.remove_lru();
            }
        }
        part.insert(client.clone(), next);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn come(table: &Table, number: u32, at: u64) -> Option<u64> {
        let client = Client::Address(IpAddr::V4(Ipv4Addr::from(number)));
        let second = 1_000_000_000;
        let decide = |paid: Option<Nanos>| Ok::<_, Infallible>((paid, Nanos::new((at + 1) * second)));
        let Ok(paid) = table.measure_and_replace(&client, decide);
        paid.map(|paid| paid.as_u64() / second)
    }

    #[test]
    fn a_hundred_thousand_clients_take_no_more_than_their_places() {
        let table = Table::new(Duration::from_secs(10));
        for number in 0..100_000 {
            assert_eq!(come(&table, number, 1), None);
            // One that keeps coming is not forgotten.
            assert_eq!(come(&table, u32::MAX, 1), (number > 0).then_some(2));
        }
        // Random parts are full at different times.
        let clients = table.clients();
        assert!(clients <= MOST && clients > MOST * 9 / 10, "{clients}");
    }

    #[test]
    fn idle_clients_are_forgotten() {
        let table = Table::new(Duration::from_secs(10));
        (0..1_000).for_each(|number| assert_eq!(come(&table, number, 1), None));
        assert_eq!(table.clients(), 1_000);
        // Their buckets may not be full yet, so no client is forgotten.
        (1_000..1_100).for_each(|number| assert_eq!(come(&table, number, 10), None));
        assert_eq!(table.clients(), 1_100);
        (2_000..6_000).for_each(|number| assert_eq!(come(&table, number, 1_000), None));
        assert_eq!(table.clients(), 4_000);
    }
}
