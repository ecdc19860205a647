use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::Error;

/// A command waits so long for a primary to be known, and a read so long for the database to come
/// back.
pub const NO_PRIMARY: Duration = Duration::from_secs(5);

/// One database command, replays included.
pub const COMMAND: Duration = Duration::from_secs(30);

/// The least that a request has left when a commit takes it: enough to replay a command until another
/// primary is elected, 10 s by default, and has answered.
pub const COMMIT: Duration = Duration::from_secs(15);

/// The moment at which somebody stops waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// So far from now.
    pub fn within(limit: Duration) -> Self {
        Self(Instant::now() + limit)
    }

    /// The earlier of the two.
    #[must_use]
    pub fn or_within(self, limit: Duration) -> Self {
        Self(self.0.min(Instant::now() + limit))
    }

    /// The latest of them; without any, one command's time.
    pub(super) fn latest(deadlines: impl IntoIterator<Item = Self>) -> Self {
        deadlines.into_iter().max().unwrap_or_else(|| Self::within(COMMAND))
    }

    /// How much is left, zero when it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn passed(self) -> bool {
        self.remaining().is_zero()
    }

    /// Whole milliseconds left, at least 1: MongoDB reads 0 as "no limit".
    pub(super) fn remaining_millis(self) -> i64 {
        i64::try_from(self.remaining().as_millis()).unwrap_or(i64::MAX).max(1)
    }

    /// Waits a little before the next attempt, longer with every one, at most to the deadline:
    /// 2 ms doubled with each of at most eight attempts, of which a random half to all is waited.
    pub(super) async fn back_off(self, attempt: u32) {
        let longest = Duration::from_millis(2 << attempt.min(8));
        let wait = longest.mul_f64(rand::random_range(0.5..=1.0));
        tokio::time::sleep(wait.min(self.remaining())).await;
    }

    /// Waits for `work`, which may be dropped half-way, until the deadline. `None` when that has passed.
    pub(super) async fn wait_for<T>(self, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout_at(self.0, work).await.ok()
    }

    /// Runs `work` as a task of its own, and waits for it until the deadline. `None` when that
    /// has passed, or the work panicked.
    ///
    /// The driver's futures must not be dropped half-way, and both a deadline and a client that
    /// hangs up would drop them; in a task of its own the work goes on to its end.
    pub(super) async fn spawn<T: Send + 'static>(
        self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        self.wait_for(tokio::spawn(work)).await?.ok()
    }

    /// As [`Deadline::spawn`], for work that stores nothing.
    ///
    /// # Errors
    /// The work's own, or [`Error::Unavailable`] when there was no answer.
    pub(super) async fn read<T: Send + 'static>(
        self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let no_answer = || Err(Error::Unavailable("no answer within the deadline".to_owned()));
        self.spawn(work).await.unwrap_or_else(no_answer)
    }
}
