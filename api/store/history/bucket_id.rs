use std::fmt;

use mongodb::bson::{Document, doc};

use crate::domain::OwnerId;

/// The `_id` of a bucket: `owner_second`. The second has ten digits, zero-padded, so the order of the
/// texts is the order of the seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketId {
    /// The owner whose bucket this is.
    pub owner: OwnerId,
    /// The bucket second: at most [`BucketId::LAST_SECOND`].
    pub second: u64,
}

impl BucketId {
    /// The greatest second with ten digits, in the year 2286.
    pub const LAST_SECOND: u64 = 9_999_999_999;

    /// The range of `_id` that holds exactly the buckets of `owner`, up to `last` if it is given.
    ///
    /// The regular expression comes from the manual. Alone it would scan the whole clustered collection; the
    /// range bounds the scan. `:` follows `9` in ASCII, so no bucket has the upper bound as its `_id`. So the
    /// bound need not be exclusive; some servers get exclusive bounds wrong (SERVER-121822). No id of an owner has
    /// `_` or a character that a regular expression reads.
    pub(super) fn range(owner: &OwnerId, last: Option<&Self>) -> Document {
        let last = last.map_or_else(|| format!("{owner}_:"), Self::to_string);
        doc! { "$regex": format!("^{owner}_"), "$gte": format!("{owner}_"), "$lte": last }
    }

    /// Parses `id`. `None` if it is not the `_id` of a bucket of `owner`.
    pub(super) fn parse(id: &str, owner: &OwnerId) -> Option<Self> {
        let second = id.strip_prefix(&owner.to_string())?.strip_prefix('_')?;
        let digits = second.len() == 10 && second.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| second.parse().ok().map(|second| Self { owner: owner.clone(), second }))?
    }
}

impl fmt::Display for BucketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{:010}", self.owner, self.second)
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
        }
        for id in ["51_0000000001", "5_1", "5_000000000x", "5_00000000010", "5"] {
            assert_eq!(BucketId::parse(id, &owner), None, "{id}");
        }
    }
}
