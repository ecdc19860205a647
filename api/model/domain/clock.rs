//! The current time, as a value that tests replace.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Instant;

/// The source of the current time. Tests replace it.
#[derive(Clone, derive_more::Debug)]
#[debug("Clock")]
pub struct Clock(Arc<dyn Fn() -> Instant + Send + Sync>);

impl Clock {
    /// The machine's clock. A clock before 1970 reads as 1970.
    pub fn system() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads it")]
        Self::from_fn(|| {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
            let millis = since_epoch.map_or(0, |elapsed| elapsed.as_millis());
            Instant::from_millis(i64::try_from(millis).unwrap_or(i64::MAX)).unwrap_or(Instant::MAX)
        })
    }

    /// A clock that calls `now` for every reading.
    pub fn from_fn(now: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The current time, in whole milliseconds.
    pub fn now(&self) -> Instant {
        (self.0)()
    }
}
