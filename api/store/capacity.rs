use std::time::Duration;

use super::COMMIT;

/// Limits on memory and on the queue of requests that wait for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// The most trades that may wait for a commit or be in one. A trade and its part of a command have a fixed
    /// size, so this limits bytes too. The same limit applies, separately, to counters of page views. One
    /// customer, or one minute of a page, may hold a quarter.
    pub queued_trades: usize,
    /// The least time that a request must have left to be committed. Only tests set another value than
    /// [`COMMIT`].
    pub commit_time: Duration,
    /// The most customers whose tails are kept in memory, at less than 256 bytes each.
    pub catalog_customers: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { queued_trades: 100_000, commit_time: COMMIT, catalog_customers: 100_000 }
    }
}
