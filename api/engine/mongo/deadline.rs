//! How long work on the database may take.

use std::future::Future;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use tokio::time::Instant;

use super::error::{Error, Result};
use super::values::in_millis;

/// How long a command waits until a primary is known, and how long a read waits until the database is
/// available again.
pub const NO_PRIMARY: Duration = Duration::from_secs(5);

/// The longest time for one database command, including replays.
pub const COMMAND: Duration = Duration::from_secs(30);

/// The least time that a request has left when a commit takes it. It is enough to replay a command until
/// another primary is elected, which takes 10 s by default, and has answered.
pub const COMMIT: Duration = Duration::from_secs(15);

/// The moment at which a caller stops waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// A deadline `limit` from now.
    pub fn within(limit: Duration) -> Self {
        Self(Instant::now() + limit)
    }

    /// The earlier of this deadline and `limit` from now.
    #[must_use]
    pub fn or_within(self, limit: Duration) -> Self {
        Self(self.0.min(Instant::now() + limit))
    }

    /// The latest of `deadlines`, or [`COMMAND`] from now if there are none.
    #[doc(hidden)]
    pub fn latest(deadlines: impl IntoIterator<Item = Self>) -> Self {
        deadlines.into_iter().max().unwrap_or_else(|| Self::within(COMMAND))
    }

    /// The time left; zero after the deadline.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether the deadline has passed.
    pub fn passed(self) -> bool {
        self.remaining().is_zero()
    }

    /// Whole milliseconds left, at least 1: MongoDB reads 0 as "no limit".
    pub(crate) fn remaining_millis(self) -> i64 {
        in_millis(self.remaining()).max(1)
    }

    /// Waits before the next attempt, at most until the deadline. The limit is 2 ms, doubles with each
    /// attempt, and stays at 512 ms. The wait is random, from half the limit to all of it.
    pub(crate) async fn back_off(self, attempt: u32) {
        let longest = Duration::from_millis(2 << attempt.min(8));
        let wait = longest.mul_f64(rand::random_range(0.5..=1.0));
        tokio::time::sleep(wait.min(self.remaining())).await;
    }

    /// Does `work`, and again as long as its error passes, until the deadline.
    pub(crate) async fn retry<T, W: Future<Output = Result<T>>>(self, work: impl Fn() -> W) -> Result<T> {
        let mut attempt = 0;
        loop {
            match work().await {
                Err(error) if error.passes() && !self.passed() => {
                    tracing::debug!(attempt, %error, "tried again");
                }
                ended => return ended,
            }
            self.back_off(attempt).await;
            attempt += 1;
        }
    }

    /// Waits for `work` until the deadline, then drops it and returns `None`.
    pub(crate) async fn wait_for<T>(self, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout_at(self.0, work).await.ok()
    }

    /// Starts `work` as a separate task. The future waits for it until the deadline, and is `None` if the
    /// deadline passes or the work panics.
    ///
    /// The driver's futures must be polled to their ends, as its README asks (RUST-937): a deadline and a
    /// client that disconnects would drop them. A separate task always runs to its end. It starts at once, so
    /// that its memory is not part of the future, too.
    ///
    /// Every command that may store something keeps this rule. Two futures that only read are dropped: that
    /// of a kept task ([`KeptTasks`](crate::tasks::KeptTasks)) when its store is dropped, and the answer that
    /// a change log waits for, whose connection is given up with it
    /// ([`ChangeLog`](super::change_log::ChangeLog)).
    pub(crate) fn spawn<T: Send + 'static>(
        self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send {
        let task = tokio::spawn(work);
        async move { self.wait_for(task).await?.ok() }
    }

    /// Same as [`Deadline::spawn`], for work that stores nothing.
    ///
    /// # Errors
    /// The error of `work`, or [`Error::Unavailable`] if `work` gave no answer.
    pub(crate) fn read<T: Send + 'static>(
        self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        let task = self.spawn(work);
        async move { task.await.unwrap_or_else(|| Err(Error::no_answer())) }
    }
}

/// The write concern of durable writes: acknowledged once they are in the journals of a majority, within the
/// deadline.
pub(crate) fn durable(deadline: Deadline) -> Document {
    doc! { "w": "majority", "j": true, "wtimeout": deadline.remaining_millis() }
}
