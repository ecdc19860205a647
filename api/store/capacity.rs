use std::time::Duration;

use super::COMMIT;

/// How much may be held in memory, and what may wait for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Trades that wait to be committed, or are being committed. A trade is of a fixed size, and so is
    /// its part of a command, so that this bounds bytes, too. Apart from them as many counters of page views.
    /// One customer, or one page's minute, may hold a quarter.
    pub queued_trades: usize,
    /// The least that a request must have left to be committed. Only tests have another than [`COMMIT`].
    pub commit_time: Duration,
    /// Customers whose tails are remembered, at less than 256 bytes each.
    pub catalog_customers: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { queued_trades: 100_000, commit_time: COMMIT, catalog_customers: 100_000 }
    }
}
