//! Limits of memory and of queues, and how long knowledge is relied on.

use std::time::Duration;

use crate::mongo::COMMIT;

/// Limits on memory and on the queue of requests that wait for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// The most memory of items that wait for a commit or are in one, in bytes, of all histories together.
    /// The same limit applies, separately, to counters of page views. One owner may hold a quarter, and one
    /// client, or one minute of a page.
    pub queued_bytes: usize,
    /// The least time that a request must have left to be committed. Only tests set another value than
    /// [`COMMIT`].
    pub commit_time: Duration,
    /// The most owners of each history whose tails are kept in memory, at less than 256 bytes each.
    pub catalog_owners: usize,
    /// How long knowledge is relied on. Only tests set other values.
    #[doc(hidden)]
    pub ages: Ages,
}

/// How long knowledge of a history is relied on while pages may be deleted. The documentation of
/// `care/deletion.rs` has the reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ages {
    /// How often each instance asks whether a history has markers.
    pub poll: Duration,
    /// Up to which age a tail may be followed by a new page, a page of a history with markers may be in a
    /// page cache, and an answer that a history has no markers is relied on.
    pub tail: Duration,
    /// How long a command that opens pages or writes a marker may run in the database.
    pub command: Duration,
    /// The age of a marker, by the server's clock, at which nothing can come any more that relies on what was
    /// before it: more than `tail`, twice `command` and two seconds.
    pub marker: Duration,
    /// How often housekeeping looks for pages that were stored after a tombstone of the last day was swept.
    pub late: Duration,
}

impl Default for Ages {
    fn default() -> Self {
        let [poll, tail, command, marker, late] = [2, 60, 10, 120, 3_600].map(Duration::from_secs);
        Self { poll, tail, command, marker, late }
    }
}

impl Default for Capacity {
    fn default() -> Self {
        Self { queued_bytes: 32 << 20, commit_time: COMMIT, catalog_owners: 100_000, ages: Ages::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation of `care/deletion.rs` adds them up.
    #[test]
    fn a_marker_is_aged_when_nothing_can_come_any_more() {
        let Ages { tail, command, marker, .. } = Ages::default();
        assert!(marker >= tail + 2 * command + Duration::from_secs(2));
    }
}
