//! The limit of one class: a bucket for each client, by the algorithm GCRA of the crate `governor`.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, MonotonicClock};
use governor::middleware::StateInformationMiddleware;
use governor::{NotUntil, Quota, RateLimiter};

use super::table::Table;
use crate::client::Client;

/// Most bursts that a client may owe.
const MOST_OWED: u32 = 10;

/// The limiter of one class.
#[derive(derive_more::Debug)]
#[debug("Limiter")]
pub struct Limiter<C: Clock = MonotonicClock> {
    /// Has room for a burst.
    bucket: Gcra<C>,
    /// The same buckets with room for debts, too.
    debts: Gcra<C>,
    table: Table,
    clock: C,
    /// Units of a full bucket.
    pub burst: NonZeroU32,
    /// Time in which a unit is refilled.
    pub interval: Duration,
}

type Gcra<C> = RateLimiter<Client, Table, C, StateInformationMiddleware>;

/// Too little is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// Units that are left.
    pub left: u32,
    /// Time after which there is enough.
    pub wait: Duration,
}

impl<C: Clock + Clone> Limiter<C> {
    /// Refills a unit in each `interval`, up to `burst` of them.
    pub fn new(interval: Duration, burst: NonZeroU32, clock: C) -> Self {
        let table = Table::new(interval * burst.get());
        let bucket = |bursts| -> Gcra<C> {
            let quota = Quota::with_period(interval).expect("no limit refills units in no time");
            let burst = burst.checked_mul(bursts).expect("bursts are small");
            RateLimiter::new(quota.allow_burst(burst), table.clone(), clock.clone())
        };
        let owing = NonZeroU32::MIN.saturating_add(MOST_OWED);
        Self { bucket: bucket(NonZeroU32::MIN), debts: bucket(owing), table, clock, burst, interval }
    }

    /// Takes these units, at most a burst. Returns how many are left.
    ///
    /// # Errors
    /// Fewer are left. None is taken.
    pub fn take(&self, client: &Client, units: NonZeroU32) -> Result<u32, Short> {
        let taken = self.bucket.check_key_n(client, units.min(self.burst));
        match taken.expect("a burst has room for itself") {
            Ok(state) => Ok(state.remaining_burst_capacity()),
            Err(refused) => Err(self.short(units.min(self.burst), &refused)),
        }
    }

    /// Takes these units, at most a burst, whether they are left or not, as far as debts go. Returns how many are left.
    pub fn owe(&self, client: &Client, units: NonZeroU32) -> u32 {
        let take = |units| self.debts.check_key_n(client, units).expect("a burst has room for itself");
        let units = units.min(self.burst);
        let left = match take(units) {
            Ok(state) => state.remaining_burst_capacity(),
            Err(refused) => {
                let part = NonZeroU32::new(self.short(units, &refused).left);
                part.and_then(|part| take(part).ok()).map_or(0, |state| state.remaining_burst_capacity())
            }
        };
        left.saturating_sub(self.burst.get() * MOST_OWED)
    }

    /// How many clients are remembered.
    pub fn clients(&self) -> usize {
        self.table.clients()
    }

    fn short(&self, units: NonZeroU32, refused: &NotUntil<C::Instant>) -> Short {
        let wait = refused.wait_time_from(self.clock.now());
        let missing = wait.as_nanos().div_ceil(self.interval.as_nanos());
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        Short { left: units.get().saturating_sub(missing), wait }
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// 10 units a second, 50 at once.
    fn limiter() -> (Limiter<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (Limiter::new(SECOND / 10, units(50), clock.clone()), clock)
    }

    fn units(units: u32) -> NonZeroU32 {
        NonZeroU32::new(units).unwrap()
    }

    fn client(name: &str) -> Client {
        Client::Name(name.into())
    }

    #[test]
    fn the_limit_holds_over_time() {
        let (limiter, clock) = limiter();
        let ann = client("ann");
        let mut taken = 0;
        for _ in 0..1_000 {
            while limiter.take(&ann, units(3)).is_ok() {
                taken += 3;
            }
            clock.advance(SECOND / 7);
        }
        let allowed = 50 + 10 * 1_000 / 7;
        assert!((allowed - 3..=allowed).contains(&taken), "{taken} of {allowed}");
        // A bucket never holds more than a burst.
        clock.advance(1_000 * SECOND);
        assert_eq!(limiter.take(&ann, units(50)), Ok(0));
        assert_eq!(limiter.take(&client("bob"), units(1)), Ok(49), "others have their own");
    }

    #[test]
    fn a_retry_after_the_wait_succeeds() {
        let (limiter, clock) = limiter();
        let ann = client("ann");
        assert_eq!(limiter.take(&ann, units(45)), Ok(5));
        let short = limiter.take(&ann, units(20)).unwrap_err();
        assert_eq!(short, Short { left: 5, wait: SECOND * 3 / 2 });
        assert_eq!(limiter.take(&ann, units(5)), Ok(0), "a refusal takes nothing");
        let short = limiter.take(&ann, units(1)).unwrap_err();
        assert_eq!(short, Short { left: 0, wait: SECOND / 10 });
        clock.advance(short.wait);
        assert_eq!(limiter.take(&ann, units(1)), Ok(0));
    }

    #[test]
    fn what_is_more_than_a_burst_takes_a_full_bucket() {
        let (limiter, clock) = limiter();
        let ann = client("ann");
        assert_eq!(limiter.take(&ann, units(1)), Ok(49));
        assert_eq!(limiter.take(&ann, units(1_000)).unwrap_err().wait, SECOND / 10);
        clock.advance(SECOND / 10);
        assert_eq!(limiter.take(&ann, units(1_000)), Ok(0));
    }

    #[test]
    fn debts_are_paid_first_and_bounded() {
        let (limiter, clock) = limiter();
        let ann = client("ann");
        assert_eq!(limiter.owe(&ann, units(10)), 40);
        assert_eq!(limiter.owe(&ann, units(50)), 0);
        // It owes 10 now.
        assert_eq!(limiter.take(&ann, units(1)), Err(Short { left: 0, wait: SECOND * 11 / 10 }));
        clock.advance(SECOND * 11 / 10);
        assert_eq!(limiter.take(&ann, units(1)), Ok(0));
        for _ in 0..100 {
            assert_eq!(limiter.owe(&ann, units(49)), 0);
        }
        let wait = SECOND * 5 * MOST_OWED + SECOND / 10;
        assert_eq!(limiter.take(&ann, units(1)), Err(Short { left: 0, wait }));
        clock.advance(wait);
        assert_eq!(limiter.take(&ann, units(1)), Ok(0));
    }
}
