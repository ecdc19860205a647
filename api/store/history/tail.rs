use super::bucket_id::BucketId;
use crate::domain::{OwnerId, PageNumber, PageSize, Seq};

/// The last bucket of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    /// The second in the bucket's `_id`.
    pub(super) second: u64,
    pub(super) page: PageNumber,
    /// The number of items in the bucket: 1 to the page size.
    pub(super) count: u16,
    pub(super) page_size: PageSize,
}

impl Tail {
    /// The bucket's `_id` in the history of `owner`.
    pub(super) fn id(self, owner: &OwnerId) -> BucketId {
        BucketId { owner: owner.clone(), second: self.second }
    }

    /// How many more items fit into the bucket.
    pub(super) fn room(self) -> usize {
        self.page_size.get() - usize::from(self.count)
    }

    pub(super) fn last_seq(self) -> Seq {
        self.page_size.first_seq(self.page).plus(usize::from(self.count) - 1)
    }

    /// The number of items of a history that ends with this bucket; 0 without one.
    pub(super) fn items(tail: Option<Self>) -> u64 {
        tail.map_or(0, |tail| tail.last_seq().get())
    }
}
