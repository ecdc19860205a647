//! The database's clock, estimated from its answers.
//!
//! An inserted record must say when it was touched, in the server's time, because the server removes it by its
//! own clock. This machine's clock may be wrong by more than the lifetime of a record. So the time is that of
//! the server's last answer plus the time elapsed since. The elapsed time stops while the machine sleeps or its
//! VM is paused; then the estimate is too early until the next answer. So the answer to an insert is compared
//! with the inserted time ([`was_outdated`]), and a record with an outdated time is touched again.

use std::time::Duration;

use mongodb::bson::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How far the `touched` time of a new record may be behind the server's clock. This is more than an insert
/// usually takes, and little compared with the time for which a record is kept.
const TOLERANCE: Duration = Duration::from_secs(5);

/// Whether a record was inserted with an outdated time: `touched`, in milliseconds since 1970, is too far
/// before `answered`, the cluster time of the answer to the insert.
pub fn was_outdated(answered: Option<Timestamp>, touched: i64) -> bool {
    answered.is_none_or(|at| i64::from(at.time) * 1000 - touched > TOLERANCE.as_millis() as i64)
}

/// An estimate of the server's time.
#[derive(Debug, Default)]
pub struct ServerTime {
    /// The server's time in milliseconds since 1970, and the local instant at which it was learned.
    latest: Mutex<Option<(i64, Instant)>>,
}

impl ServerTime {
    /// Milliseconds since 1970; `None` before the first answer. It never goes back. It is early by the time
    /// that this machine has slept since the last answer, and by up to a second more.
    pub fn now(&self) -> Option<i64> {
        self.at(Instant::now())
    }

    /// Learns the cluster time of an answer that has just arrived, in whole seconds.
    pub fn learn(&self, at: Option<Timestamp>) {
        self.learn_at(at, Instant::now());
    }

    fn at(&self, instant: Instant) -> Option<i64> {
        let latest = *self.latest.lock();
        latest.map(|(millis, at)| millis.saturating_add(instant.duration_since(at).as_millis() as i64))
    }

    fn learn_at(&self, at: Option<Timestamp>, instant: Instant) {
        let Some(at) = at else { return };
        let millis = i64::from(at.time) * 1000;
        // Only a later time is taken: it is safe, because records are then kept longer.
        if self.at(instant).is_none_or(|now| millis > now) {
            *self.latest.lock() = Some((millis, instant));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_continues_from_the_last_answer() {
        let (time, start) = (ServerTime::default(), Instant::now());
        let told = |seconds| Some(Timestamp { time: seconds, increment: 7 });
        assert_eq!(time.now(), None);
        time.learn(None);
        assert_eq!(time.now(), None);
        time.learn_at(told(1_000), start);
        let later = start + Duration::from_millis(2_500);
        assert_eq!(time.at(later), Some(1_002_500));
        time.learn_at(told(1_001), later);
        assert_eq!(time.at(later), Some(1_002_500), "never back");
        time.learn_at(told(2_000), later);
        assert_eq!(time.at(later), Some(2_000_000));
    }

    #[test]
    fn an_answer_shows_that_the_time_was_too_early() {
        let at = |seconds| Some(Timestamp { time: seconds, increment: 7 });
        assert!(!was_outdated(at(1_000), 1_000_400), "the server reports whole seconds");
        assert!(!was_outdated(at(1_005), 1_000_000));
        assert!(was_outdated(at(1_006), 1_000_999));
        assert!(!was_outdated(at(1_000), 9_000_000), "a clock that was set back: the record is kept longer");
        assert!(was_outdated(None, 1_000_000), "the time of the insert is unknown");
    }
}
