use super::bucket_id::BucketId;
use crate::domain::{PAGE_SIZE, PageNumber, Seq, Totals};

/// The last bucket of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) id: BucketId,
    pub(super) page: PageNumber,
    /// The number of trades in the bucket, 1 to 10.
    pub(super) count: usize,
}

impl Tail {
    /// How many more trades fit into the bucket.
    pub(super) fn room(self) -> usize {
        PAGE_SIZE - self.count
    }

    pub(super) fn last_seq(self) -> Seq {
        self.page.first_seq().plus(self.count - 1)
    }

    pub(super) fn totals(tail: Option<Self>) -> Totals {
        Totals::ending_with(tail.map(Self::last_seq))
    }
}
