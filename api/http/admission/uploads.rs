//! Limits on uploads: how many may be under way, and how much memory they hold together.

use super::permits::Permits;
use pagebucket_streams::ingest::Budget;

/// Lines that may wait in an upload to many histories: enough for batches with more than one line of an
/// owner.
pub(crate) const WAITING_OF_MANY: usize = 50_000;

/// Bytes that all uploads of a process may hold beyond their own shares ([`Budget`]): enough for one upload
/// to many histories with [`WAITING_OF_MANY`] waiting lines.
///
/// Each upload takes up to about half a MiB more that is not counted: its own share, the buffers of its
/// connection, pieces that are being parsed, and the owners and problems of its summary.
const BUDGET: usize = 24 * 1024 * 1024;

/// The permits and the memory budget of uploads. Clones share both.
#[derive(Debug, Clone)]
pub struct Uploads {
    /// Their permits.
    pub permits: Permits,
    /// Their memory budget.
    pub budget: Budget,
}

impl Uploads {
    /// At most this many at once.
    pub fn new(most: usize) -> Self {
        Self { permits: Permits::new(most, "uploads"), budget: Budget::of(BUDGET) }
    }
}
