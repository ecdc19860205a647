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
        let told = *self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.map(|(millis, at)| millis.saturating_add(at.elapsed().as_millis() as i64))
    }

    /// An answer tells the cluster's time, in whole seconds.
    pub(in crate::store::trades) fn learn(&self, at: Option<Timestamp>) {
        let Some(at) = at else { return };
        let millis = i64::from(at.time) * 1000;
        // Later is safe: a record is kept longer then.
        if self.now().is_none_or(|now| millis > now) {
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some((millis, Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_from_the_last_answer() {
        let time = ServerTime::default();
        assert_eq!(time.now(), None);
        time.learn(None);
        assert_eq!(time.now(), None);
        time.learn(Some(Timestamp { time: 1_000, increment: 7 }));
        tokio::time::advance(std::time::Duration::from_millis(2_500)).await;
        assert_eq!(time.now(), Some(1_002_500));
        time.learn(Some(Timestamp { time: 1_001, increment: 0 }));
        assert_eq!(time.now(), Some(1_002_500), "never back");
        time.learn(Some(Timestamp { time: 2_000, increment: 0 }));
        assert_eq!(time.now(), Some(2_000_000));
    }
}
