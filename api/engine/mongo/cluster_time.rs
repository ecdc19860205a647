//! The time of the database, by its answers.
//!
//! The *newest time* that a majority has: the `operationTime` of a majority read, or of a write that was acknowledged at majority. That
//! of any other answer may belong to a write that is rolled back.
//!
//! The *server's clock*, estimated: the time of the last write that was acknowledged, plus the time elapsed since. An inserted record
//! must say when it was touched, in the server's time, because the server removes it by its own clock. This machine's clock may be
//! wrong by more than the lifetime of a record. The elapsed time stops while the machine sleeps or its VM is paused; then the
//! estimate is too early until the next answer, and a record that was inserted meanwhile is touched again.

use mongodb::bson::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

/// What is known of the database's time.
#[derive(Debug, Default)]
pub struct ClusterTime {
    newest: Mutex<Option<Timestamp>>,
    /// The server's time in milliseconds since 1970, and the local instant at which it was learned.
    clock: Mutex<Option<(i64, Instant)>>,
}

impl ClusterTime {
    /// Learns a time that a majority has.
    pub fn learn(&self, at: Option<Timestamp>) {
        let mut newest = self.newest.lock();
        *newest = at.max(*newest);
    }

    /// The same, of a write that was acknowledged just now. Its time is also that of the server's clock, in whole seconds.
    pub fn acknowledged(&self, at: Option<Timestamp>) {
        self.learn(at);
        self.learn_clock(at, Instant::now());
    }

    /// The newest time.
    pub fn newest(&self) -> Option<Timestamp> {
        *self.newest.lock()
    }

    /// Forgets the newest time, if it is this one.
    pub fn forget(&self, newest: Option<Timestamp>) {
        self.newest.lock().take_if(|known| Some(*known) == newest);
    }

    /// The server's clock, in milliseconds since 1970; `None` before the first write. It never goes back. It is early by the time
    /// that this machine has slept since the last answer, and by up to a second more.
    pub fn clock(&self) -> Option<i64> {
        self.clock_at(Instant::now())
    }

    fn clock_at(&self, instant: Instant) -> Option<i64> {
        let clock = *self.clock.lock();
        clock.map(|(millis, at)| millis.saturating_add(instant.duration_since(at).as_millis() as i64))
    }

    fn learn_clock(&self, at: Option<Timestamp>, instant: Instant) {
        let Some(at) = at else { return };
        let millis = i64::from(at.time) * 1000;
        // Only a later time is taken: it is safe, because records are then kept longer.
        if self.clock_at(instant).is_none_or(|now| millis > now) {
            *self.clock.lock() = Some((millis, instant));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_clock_continues_from_the_last_answer() {
        let (time, start) = (ClusterTime::default(), Instant::now());
        let told = |seconds| Some(Timestamp { time: seconds, increment: 7 });
        time.learn(told(900));
        time.acknowledged(None);
        assert_eq!((time.newest(), time.clock()), (told(900), None));
        time.learn_clock(told(1_000), start);
        let later = start + Duration::from_millis(2_500);
        assert_eq!(time.clock_at(later), Some(1_002_500));
        time.learn_clock(told(1_001), later);
        assert_eq!(time.clock_at(later), Some(1_002_500), "never back");
        time.learn_clock(told(2_000), later);
        assert_eq!(time.clock_at(later), Some(2_000_000));
    }

    #[test]
    fn the_newest_time_only_grows() {
        let (time, told) = (ClusterTime::default(), |increment| Some(Timestamp { time: 5, increment }));
        for (at, newest) in [(2, 2), (1, 2), (3, 3)] {
            time.acknowledged(told(at));
            assert_eq!(time.newest(), told(newest));
        }
        time.forget(told(2));
        assert_eq!(time.newest(), told(3), "another one");
        time.forget(told(3));
        assert_eq!(time.newest(), None);
    }
}
