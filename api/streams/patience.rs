//! How long a database may fail before work that needs it ends.

use std::time::Duration;

use pagebucket_engine::Error;
use tokio::time::{Instant, sleep};

/// An outage that work outlasts: time enough to elect another primary, or to start a server again.
pub const OUTAGE: Duration = Duration::from_secs(60);

/// Pause between two attempts.
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

/// What is left of the time that a database may fail.
#[derive(Debug)]
pub struct Patience {
    limit: Duration,
    since: Instant,
}

impl Patience {
    /// The database may fail for `limit` from now on.
    pub fn of(limit: Duration) -> Self {
        Self { limit, since: Instant::now() }
    }

    /// The database has answered: it may fail for the whole limit once more.
    pub fn renew(&mut self) {
        self.since = Instant::now();
    }

    /// Whether another attempt may help, and there is time for it.
    pub fn allows(&self, error: &Error) -> bool {
        error.passes() && self.since.elapsed() < self.limit
    }

    /// Waits until the next attempt may begin.
    pub async fn pause(&self) {
        sleep(BETWEEN_ATTEMPTS).await;
    }

    /// Waits after `error` until the next attempt may begin.
    ///
    /// # Errors
    /// Returns `error` if another attempt would not help, or there is no time for it.
    pub async fn after(&self, error: Error) -> Result<(), Error> {
        if !self.allows(&error) {
            return Err(error);
        }
        tracing::warn!(why = %error, "a database does not answer");
        self.pause().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_outage_is_outlasted_and_only_within_its_limit() {
        let (away, bug) = (Error::unavailable("no primary"), Error::internal("a bug"));
        let hour = Duration::from_secs(3_600);
        let mut patience = Patience::of(hour);
        assert!(patience.allows(&away) && !patience.allows(&bug));
        patience.since -= hour;
        assert!(!patience.allows(&away));
        patience.renew();
        assert!(patience.allows(&away));
        assert!(!Patience::of(Duration::ZERO).allows(&away));
    }
}
