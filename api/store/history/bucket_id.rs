use std::fmt;

use mongodb::bson::{Document, doc};

use crate::domain::CustomerId;

/// The `_id` of a bucket: `customerId_second`. The second has ten digits, zero-padded, so the order of the
/// texts is the order of the seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketId {
    /// The customer whose bucket this is.
    pub customer: CustomerId,
    /// The bucket second: at most [`BucketId::LAST_SECOND`].
    pub second: u64,
}

impl BucketId {
    /// The greatest second with ten digits, in the year 2286.
    pub const LAST_SECOND: u64 = 9_999_999_999;

    /// A filter for exactly the buckets of `customer`.
    ///
    /// The regular expression comes from the manual. Alone it would scan the whole clustered collection; the
    /// range bounds the scan. `:` follows `9` in ASCII, so no bucket has the upper bound as its `_id`. So the
    /// bound need not be exclusive; some servers get exclusive bounds wrong (SERVER-121822). `customerId`
    /// targets one shard.
    pub(super) fn all_of(customer: CustomerId) -> Document {
        doc! {
            "customerId": customer.get() as i64,
            "_id": {
                "$regex": format!("^{customer}_"),
                "$gte": format!("{customer}_"),
                "$lte": format!("{customer}_:"),
            },
        }
    }

    /// A filter for the buckets of this one's customer up to and including this one.
    pub(super) fn up_to(self) -> Document {
        let customer = self.customer;
        doc! {
            "customerId": customer.get() as i64,
            "_id": {
                "$regex": format!("^{customer}_"),
                "$gte": format!("{customer}_"),
                "$lte": self.to_string(),
            },
        }
    }

    /// Parses `id`. `None` if it is not the `_id` of a bucket of `customer`.
    pub(super) fn parse(id: &str, customer: CustomerId) -> Option<Self> {
        let second = id.strip_prefix(&customer.to_string())?.strip_prefix('_')?;
        let digits = second.len() == 10 && second.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| second.parse().ok().map(|second| Self { customer, second }))?
    }
}

impl fmt::Display for BucketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{:010}", self.customer, self.second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_order_is_time_order() {
        let customer = CustomerId::new(5).unwrap();
        let seconds = [0, 1, 999_999_999, 1_000_000_000, 1_698_349_623, BucketId::LAST_SECOND];
        let ids: Vec<_> = seconds.iter().map(|&second| BucketId { customer, second }.to_string()).collect();
        assert!(ids.is_sorted());
        assert_eq!(ids[2], "5_0999999999");
        for (id, second) in ids.iter().zip(seconds) {
            assert_eq!(BucketId::parse(id, customer), Some(BucketId { customer, second }));
            assert!(id.as_str() < "5_:");
        }
        for id in ["51_0000000001", "5_1", "5_000000000x", "5_00000000010", "5"] {
            assert_eq!(BucketId::parse(id, customer), None, "{id}");
        }
    }
}
