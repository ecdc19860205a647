//! The balances of the clients of one class, in bounded memory.
//!
//! Each client has a bucket of units, which is refilled at a steady pace up to a burst. What is kept of it is
//! the moment when it is full again: a full bucket needs no entry, and a refill no work. The moment may lie
//! further ahead than an empty bucket takes to be refilled: then the client owes units.
//!
//! A client whose bucket is full again may be forgotten. If all entries are taken, a new client replaces the
//! one that was idle longest, which starts with a full bucket when it returns. Many addresses gain at most a
//! burst for each return; other clients lose nothing.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use hashlink::LruCache;
use parking_lot::Mutex;

use crate::admission::client::Client;

/// Most bursts that a client may owe.
const MOST_OWED: u32 = 10;

/// Parts of the table, each with a lock of its own.
const PARTS: usize = 16;

/// Most clients of a part, at about 100 bytes each and the name of a principal.
const MOST_OF_PART: usize = 2_048;

/// Most idle clients that are forgotten when a new one comes: more than one, so that the table shrinks.
const FORGOTTEN: usize = 2;

/// The balances of all clients of one class.
#[derive(derive_more::Debug)]
#[debug("Balances")]
pub(crate) struct Balances {
    /// When the bucket of each client is full again. Those that were used last are last.
    full_at: [Mutex<LruCache<Client, Instant>>; PARTS],
    /// The part of a client is random, so that no client can choose it.
    hasher: RandomState,
    /// Units of a full bucket.
    pub burst: NonZeroU32,
    /// Time in which a unit is refilled.
    pub interval: Duration,
}

/// Too little is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Short {
    /// Units that are left.
    pub left: u32,
    /// Time after which there is enough.
    pub wait: Duration,
}

impl Balances {
    /// Refills a unit in each `interval`, up to `burst` of them.
    pub(crate) fn new(interval: Duration, burst: NonZeroU32) -> Self {
        assert!(!interval.is_zero(), "no limit refills units in no time");
        // Without room for clients that may never come.
        let part = |_| Mutex::new(LruCache::new_unbounded());
        Self { full_at: std::array::from_fn(part), hasher: RandomState::new(), burst, interval }
    }

    /// Takes these units, at most a burst. Returns how many are left.
    ///
    /// # Errors
    /// Fewer are left. None is taken.
    pub(crate) fn take(&self, client: &Client, units: NonZeroU32, now: Instant) -> Result<u32, Short> {
        self.change(client, now, |spent| {
            let after = spent + self.cost(units);
            match after.saturating_sub(self.empty()) {
                Duration::ZERO => (after, Ok(self.left(after))),
                wait => (spent, Err(Short { left: self.left(spent), wait })),
            }
        })
    }

    /// Takes these units, at most a burst, whether they are left or not, as far as debts go. Returns how many
    /// are left.
    pub(crate) fn owe(&self, client: &Client, units: NonZeroU32, now: Instant) -> u32 {
        self.change(client, now, |spent| {
            let after = (spent + self.cost(units)).min(self.empty() * (1 + MOST_OWED));
            (after, self.left(after))
        })
    }

    /// How many clients are remembered.
    pub(crate) fn clients(&self) -> usize {
        self.full_at.iter().map(|part| part.lock().len()).sum()
    }

    /// The time in which these units, at most a burst, are refilled.
    fn cost(&self, units: NonZeroU32) -> Duration {
        self.interval * units.min(self.burst).get()
    }

    /// The time in which an empty bucket is refilled.
    fn empty(&self) -> Duration {
        self.interval * self.burst.get()
    }

    /// The whole units of a bucket that is full after this time.
    fn left(&self, spent: Duration) -> u32 {
        let left = self.empty().saturating_sub(spent).as_nanos() / self.interval.as_nanos();
        u32::try_from(left).expect("at most a burst is left")
    }

    /// Changes the balance of a client: the time after which its bucket is full.
    fn change<T>(&self, client: &Client, now: Instant, change: impl FnOnce(Duration) -> (Duration, T)) -> T {
        let mut part = self.full_at[self.hasher.hash_one(client) as usize % PARTS].lock();
        if let Some(full_at) = part.get_mut(client) {
            let (spent, result) = change(full_at.saturating_duration_since(now));
            *full_at = now + spent;
            return result;
        }
        for _ in 0..FORGOTTEN {
            let idlest = part.iter().next();
            if idlest.is_some_and(|(_, full_at)| *full_at <= now || part.len() >= MOST_OF_PART) {
                part.remove_lru();
            }
        }
        let (spent, result) = change(Duration::ZERO);
        part.insert(client.clone(), now + spent);
        result
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// 10 units a second, 50 at once; and a moment.
    fn balances() -> (Balances, Instant) {
        (Balances::new(SECOND / 10, units(50)), Instant::now())
    }

    fn units(units: u32) -> NonZeroU32 {
        NonZeroU32::new(units).unwrap()
    }

    fn client(name: &str) -> Client {
        Client::Name(name.into())
    }

    fn address(number: u32) -> Client {
        Client::Address(IpAddr::V4(Ipv4Addr::from(number)))
    }

    #[test]
    fn the_limit_holds_over_time() {
        let (balances, mut now) = balances();
        let ann = client("ann");
        let mut taken = 0;
        for _ in 0..1_000 {
            while balances.take(&ann, units(3), now).is_ok() {
                taken += 3;
            }
            now += SECOND / 7;
        }
        let allowed = 50 + 10 * 1_000 / 7;
        assert!((allowed - 3..=allowed).contains(&taken), "{taken} of {allowed}");
        // A bucket never holds more than a burst.
        now += 1_000 * SECOND;
        assert_eq!(balances.take(&ann, units(50), now), Ok(0));
        assert_eq!(balances.take(&client("bob"), units(1), now), Ok(49), "others have their own");
    }

    #[test]
    fn a_retry_after_the_wait_succeeds() {
        let (balances, now) = balances();
        let ann = client("ann");
        assert_eq!(balances.take(&ann, units(45), now), Ok(5));
        let short = balances.take(&ann, units(20), now);
        assert_eq!(short, Err(Short { left: 5, wait: SECOND * 3 / 2 }));
        assert_eq!(balances.take(&ann, units(5), now), Ok(0), "a refusal takes nothing");
        let short = balances.take(&ann, units(1), now).unwrap_err();
        assert_eq!(short, Short { left: 0, wait: SECOND / 10 });
        let early = now + short.wait - Duration::from_nanos(1);
        assert_eq!(balances.take(&ann, units(1), early).unwrap_err().wait, Duration::from_nanos(1));
        assert_eq!(balances.take(&ann, units(1), now + short.wait), Ok(0));
    }

    #[test]
    fn what_is_more_than_a_burst_takes_a_full_bucket() {
        let (balances, now) = balances();
        let ann = client("ann");
        assert_eq!(balances.take(&ann, units(1), now), Ok(49));
        assert_eq!(balances.take(&ann, units(1_000), now).unwrap_err().wait, SECOND / 10);
        assert_eq!(balances.take(&ann, units(1_000), now + SECOND / 10), Ok(0));
    }

    #[test]
    fn debts_are_paid_first_and_bounded() {
        let (balances, mut now) = balances();
        let ann = client("ann");
        assert_eq!(balances.owe(&ann, units(10), now), 40);
        assert_eq!(balances.owe(&ann, units(50), now), 0);
        // It owes 10 now.
        assert_eq!(balances.take(&ann, units(1), now), Err(Short { left: 0, wait: SECOND * 11 / 10 }));
        now += SECOND * 11 / 10;
        assert_eq!(balances.take(&ann, units(1), now), Ok(0));
        for _ in 0..100 {
            assert_eq!(balances.owe(&ann, units(49), now), 0);
        }
        let wait = SECOND * 5 * MOST_OWED + SECOND / 10;
        assert_eq!(balances.take(&ann, units(1), now), Err(Short { left: 0, wait }));
        assert_eq!(balances.take(&ann, units(1), now + wait), Ok(0));
    }

    /// Against the obvious model: units that are counted one by one, each at the end of its interval.
    #[test]
    fn any_sequence_agrees_with_counted_units() {
        for burst in [1, 2, 7, 50] {
            let balances = Balances::new(SECOND, units(burst));
            let (ann, mut now, mut left) = (client("ann"), Instant::now(), i64::from(burst));
            let floor = -i64::from(burst * MOST_OWED);
            let mut random: u32 = 7;
            for step in 0..5_000 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Often the clock does not advance.
                let passed = (random >> 8) % 4 * ((random >> 16) % 3);
                let wanted = units((random >> 24) % (burst + 2) + 1);
                let taken = i64::from(wanted.get().min(burst));
                now += SECOND * passed;
                left = (left + i64::from(passed)).min(burst.into());
                if step % 3 == 0 {
                    left = (left - taken).max(floor);
                    assert_eq!(i64::from(balances.owe(&ann, wanted, now)), left.max(0));
                } else if taken <= left {
                    left -= taken;
                    assert_eq!(balances.take(&ann, wanted, now).map(i64::from), Ok(left));
                } else {
                    let wait = SECOND * u32::try_from(taken - left).unwrap();
                    let short = Short { left: u32::try_from(left.max(0)).unwrap(), wait };
                    assert_eq!(balances.take(&ann, wanted, now), Err(short));
                }
            }
        }
    }

    #[test]
    fn a_clock_that_is_read_early_gives_nothing() {
        let (balances, earlier) = balances();
        let ann = client("ann");
        let now = earlier + SECOND;
        assert_eq!(balances.take(&ann, units(50), now), Ok(0));
        // Of two requests at once the one may have read the clock before the other.
        let wait = SECOND + SECOND / 10;
        assert_eq!(balances.take(&ann, units(1), earlier), Err(Short { left: 0, wait }));
        assert_eq!(balances.take(&ann, units(10), now + SECOND), Ok(0));
    }

    #[test]
    fn a_hundred_thousand_clients_take_no_more_than_their_places() {
        let (balances, now) = balances();
        for number in 0..100_000 {
            assert_eq!(balances.take(&address(number), units(50), now), Ok(0));
            // One that keeps coming is not forgotten.
            assert_eq!(balances.take(&client("ann"), units(50), now).is_ok(), number == 0);
        }
        // Random parts are full at different times.
        let (clients, most) = (balances.clients(), PARTS * MOST_OF_PART);
        assert!(clients <= most && clients > most * 9 / 10, "{clients}");
    }

    #[test]
    fn idle_clients_are_forgotten() {
        let (balances, now) = balances();
        let come = |numbers: std::ops::Range<u32>, at| {
            numbers.for_each(|number| assert_eq!(balances.take(&address(number), units(50), at), Ok(0)));
        };
        come(0..1_000, now);
        assert_eq!(balances.clients(), 1_000);
        // Their buckets are not full yet, so no client is forgotten.
        come(1_000..1_100, now + SECOND * 4);
        assert_eq!(balances.clients(), 1_100);
        come(2_000..6_000, now + SECOND * 1_000);
        assert_eq!(balances.clients(), 4_000);
    }
}
