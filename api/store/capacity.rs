use std::time::Duration;

use super::COMMIT;

/// Limits on memory and on the queue of requests that wait for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// The most memory of items that wait for a commit or are in one, in bytes, of all histories together. The same
    /// limit applies, separately, to counters of page views. One owner, or one minute of a page, may hold a quarter.
    pub queued_bytes: usize,
    /// The least time that a request must have left to be committed. Only tests set another value than
    /// [`COMMIT`].
    pub commit_time: Duration,
    /// The most owners of each history whose tails are kept in memory, at less than 256 bytes each.
    pub catalog_owners: usize,
}

impl Capacity {
    /// A counter that waits, in bytes, with its part of a command.
    pub const COUNTER: usize = 256;

    /// The most counters of page views that may wait.
    pub fn counters(self) -> usize {
        (self.queued_bytes / Self::COUNTER).max(1)
    }
}

impl Default for Capacity {
    fn default() -> Self {
        Self { queued_bytes: 32 << 20, commit_time: COMMIT, catalog_owners: 100_000 }
    }
}
