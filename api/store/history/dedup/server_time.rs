//! What time it is on the database's clock, as far as its answers have told.
//!
//! A record that is inserted must say when it was touched, in the time by which the server will remove
//! it. The clock of this machine may be wrong by more than a record lives, so the time is that of the
//! server's last answer, counted on from there. The count stops while the machine sleeps or its VM is paused,
//! and then the time is too early, until the next answer. So the answer to an insert is compared with the
//! time that was inserted ([`was_born_old`]), and a record that was born old is touched again.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mongodb::bson::Timestamp;
use tokio::time::Instant;

/// A record may be this much older at its birth than the server's clock says: more than an insert usually takes,
/// and little beside the time for which a record is kept.
const TOLERANCE: Duration = Duration::from_secs(5);

/// Whether a record that was inserted as touched at `touched`, in milliseconds since 1970, was too old when
/// its insert was answered at this time of the cluster.
pub(in crate::store::history) fn was_born_old(answered: Option<Timestamp>, touched: i64) -> bool {
    answered.is_none_or(|at| i64::from(at.time) * 1000 - touched > TOLERANCE.as_millis() as i64)
}

#[derive(Debug, Default)]
pub(in crate::store::history) struct ServerTime {
    /// Milliseconds since 1970 at an instant here.
    told: Mutex<Option<(i64, Instant)>>,
}

impl ServerTime {
    /// Milliseconds since 1970; nothing before the first answer. It never goes back. Early by the time that
    /// this machine has slept since the last answer, and by up to a second more.
    pub(in crate::store::history) fn now(&self) -> Option<i64> {
        self.at(Instant::now())
    }

    /// An answer that has just come tells the cluster's time, in whole seconds.
    pub(in crate::store::history) fn learn(&self, told: Option<Timestamp>) {
        self.learn_at(told, Instant::now());
    }

    fn at(&self, instant: Instant) -> Option<i64> {
        let told = *self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.map(|(millis, at)| millis.saturating_add(instant.duration_since(at).as_millis() as i64))
    }

    fn learn_at(&self, told: Option<Timestamp>, instant: Instant) {
        let Some(told) = told else { return };
        let millis = i64::from(told.time) * 1000;
        // Later is safe: a record is kept longer then.
        if self.at(instant).is_none_or(|now| millis > now) {
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some((millis, instant));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_goes_on_from_the_last_answer() {
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
    fn an_answer_tells_that_the_time_was_too_early() {
        let at = |seconds| Some(Timestamp { time: seconds, increment: 7 });
        assert!(!was_born_old(at(1_000), 1_000_400), "the server tells whole seconds");
        assert!(!was_born_old(at(1_005), 1_000_000));
        assert!(was_born_old(at(1_006), 1_000_999));
        assert!(!was_born_old(at(1_000), 9_000_000), "a clock that was set back: the record is kept longer");
        assert!(was_born_old(None, 1_000_000), "nothing says when it was born");
    }
}
