//! Moments on the clocks of this machine: how long ago something was learned.

use std::time::Duration;

use pagebucket_model::domain::{Clock, Instant};
use tokio::time::Instant as Monotonic;

/// A moment, on two clocks: the monotonic one stands still while a machine sleeps, the other may be set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    monotonic: Monotonic,
    clock: Instant,
}

impl Moment {
    pub(crate) fn now(clock: &Clock) -> Self {
        Self { monotonic: Monotonic::now(), clock: clock.now() }
    }

    /// Whether at least `limit` has passed on the monotonic clock, which no step of the other one moves.
    pub(crate) fn has_run(self, limit: Duration) -> bool {
        self.monotonic.elapsed() >= limit
    }

    /// A moment that is past, on both clocks.
    #[cfg(test)]
    pub(crate) fn before_now(elapsed: Duration, clock: &Clock) -> Self {
        let now = Self::now(clock);
        let monotonic = now.monotonic.checked_sub(elapsed).expect("the machine has run for longer");
        let millis = now.clock.millis() - elapsed.as_millis() as i64;
        Self { monotonic, clock: Instant::from_millis(millis).expect("a date") }
    }

    /// Whether less than `limit` has passed on either clock.
    pub(crate) fn is_within(self, limit: Duration, clock: &Clock) -> bool {
        let millis = clock.now().millis().saturating_sub(self.clock.millis());
        let elapsed = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
        self.monotonic.elapsed().max(elapsed) < limit
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    #[test]
    fn the_clock_that_went_further_counts() {
        let wall = Arc::new(AtomicI64::new(1_000_000));
        let read = Arc::clone(&wall);
        let clock = Clock::from_fn(move || Instant::from_millis(read.load(Ordering::Relaxed)).unwrap());
        let limit = Duration::from_secs(60);
        let begin = Moment::now(&clock);
        assert!(begin.is_within(limit, &clock));
        wall.store(500_000, Ordering::Relaxed);
        assert!(begin.is_within(limit, &clock), "a clock that is set back says nothing");
        wall.store(1_060_000, Ordering::Relaxed);
        assert!(!begin.is_within(limit, &clock), "the machine slept");
        let past = Moment { clock: clock.now(), ..Moment::before_now(limit, &clock) };
        assert!(!past.is_within(limit, &clock));
        assert!(
            past.has_run(limit) && !begin.has_run(limit),
            "a clock that is put forward does not make it longer"
        );
    }
}
