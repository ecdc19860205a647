//! What time it is on the database's clock, as far as its answers have told.
//!
//! A record that is inserted must say when it was touched, in the time by which the server will remove
//! it. The clock of this machine may be wrong by more than a record lives; the server's own, read
//! from its last answer and counted on from there, cannot.

use std::sync::{Mutex, PoisonError};

use mongodb::bson::Timestamp;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(in crate::store::trades) struct ServerTime {
    /// Milliseconds since 1970 at an instant here.
    told: Mutex<Option<(i64, Instant)>>,
}

impl ServerTime {
    /// Milliseconds since 1970, at most a little early; nothing before the first answer.
    pub(super) fn now(&self) -> Option<i64> {
        self.at(Instant::now())
    }

    /// An answer that has just come tells the cluster's time, in whole seconds.
    pub(in crate::store::trades) fn learn(&self, told: Option<Timestamp>) {
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
}
