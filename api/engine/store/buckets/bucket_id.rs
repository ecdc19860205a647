//! The `_id` of a bucket.

use mongodb::bson::{Document, doc};
use pagebucket_model::domain::{OwnerId, OwnerType, PageNumber, PageSize, Seq};

/// The `_id` of a bucket: `owner_second`. The second has ten digits, zero-padded, so the order of the
/// texts is the order of the seconds.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{owner}_{second:010}")]
pub struct BucketId {
    /// The owner whose bucket this is.
    pub owner: OwnerId,
    /// The bucket second: at most [`BucketId::LAST_SECOND`].
    pub second: u64,
}

/// What is wrong where [`BucketId::parse`] finds none.
pub(crate) const NO_ID: &str = "is not the owner's id, _ and ten digits";

impl BucketId {
    /// The greatest second with ten digits, in the year 2286.
    pub const LAST_SECOND: u64 = 9_999_999_999;

    /// The range of `_id` that holds exactly the buckets of `owner`, up to `last` if it is given.
    ///
    /// The regular expression comes from the manual. Alone it would scan the whole clustered collection; the
    /// range bounds the scan. `:` follows `9` in ASCII, so no bucket has the upper bound as its `_id`. So the
    /// bound need not be exclusive; some servers get exclusive bounds wrong (SERVER-121822). No id of an
    /// owner has `_` or a character that a regular expression reads.
    pub(crate) fn range(owner: &OwnerId, last: Option<&Self>) -> Document {
        let last = last.map_or_else(|| format!("{owner}_:"), Self::to_string);
        doc! { "$regex": format!("^{owner}_"), "$gte": format!("{owner}_"), "$lte": last }
    }

    /// Parses `id`. `None` if it is not the `_id` of a bucket of `owner`.
    pub(crate) fn parse(id: &str, owner: &OwnerId) -> Option<Self> {
        let second = id.strip_prefix(&owner.to_string())?.strip_prefix('_')?;
        let digits = second.len() == 10 && second.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| second.parse().ok().map(|second| Self { owner: owner.clone(), second }))?
    }
}

/// The owner of a bucket or a marker with this `_id`. No id of an owner has `_`. `None` if it is not the
/// `_id` of either.
pub(crate) fn owner_of(id: &str, kind: OwnerType) -> Option<OwnerId> {
    id.split_once('_').and_then(|(owner, _)| kind.parse_stored(owner))
}

/// The last bucket of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The second in the bucket's `_id`.
    pub(crate) second: u64,
    pub(crate) page: PageNumber,
    /// The number of items in the bucket: 1 to the page size, or 0 before the bucket is opened.
    pub(crate) count: u16,
    pub(crate) page_size: PageSize,
}

impl Tail {
    /// The bucket's `_id` in the history of `owner`.
    pub(crate) fn id(self, owner: &OwnerId) -> BucketId {
        BucketId { owner: owner.clone(), second: self.second }
    }

    /// How many more items fit into the bucket.
    pub(crate) fn free(self) -> usize {
        self.page_size.get() - usize::from(self.count)
    }

    pub(crate) fn last_seq(self) -> Seq {
        self.page_size.first_seq(self.page).plus(usize::from(self.count) - 1)
    }

    /// The number of items of a history that ends with this bucket; 0 without one.
    pub(crate) fn items(tail: Option<Self>) -> u64 {
        tail.map_or(0, |tail| tail.last_seq().get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_order_is_time_order() {
        let owner = OwnerId::Integer(5);
        let seconds = [0, 1, 999_999_999, 1_000_000_000, 1_698_349_623, BucketId::LAST_SECOND];
        let ids: Vec<_> =
            seconds.iter().map(|&second| BucketId { owner: owner.clone(), second }.to_string()).collect();
        assert!(ids.is_sorted());
        assert_eq!(ids[2], "5_0999999999");
        for (id, second) in ids.iter().zip(seconds) {
            assert_eq!(BucketId::parse(id, &owner), Some(BucketId { owner: owner.clone(), second }));
            assert!(id.as_str() < "5_:");
            assert_eq!(owner_of(id, OwnerType::Integer), Some(owner.clone()));
        }
        for id in ["51_0000000001", "5_1", "5_000000000x", "5_00000000010", "5"] {
            assert_eq!(BucketId::parse(id, &owner), None, "{id}");
        }
        assert_eq!(owner_of("5_:", OwnerType::Integer), Some(owner));
        for id in ["", "5", "_0000000001", "05_0000000001", "a_0000000001"] {
            assert_eq!(owner_of(id, OwnerType::Integer), None, "{id}");
        }
    }
}
