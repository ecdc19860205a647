//! Hashes that identify keyed requests and their trades.

use mongodb::bson::Binary;
use mongodb::bson::spec::BinarySubtype;
use sha2::{Digest, Sha256};

use crate::domain::{CustomerId, IdempotencyKey, TradeDraft};

/// Identifies a key of one customer: SHA-256 of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::store::history) struct RecordId(pub(super) [u8; 32]);

/// Identifies one trade of a keyed request: the first 12 bytes of SHA-256 of customer, key and index in the
/// request. With 96 bits, two among 10^9 trades of one customer are equal with a probability of 10^-11.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::store::history) struct TradeKey(pub(super) [u8; TradeKey::LEN]);

/// Identifies the content of a request: SHA-256 of its trades before defaults are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::history) struct Fingerprint(pub(super) [u8; 32]);

impl RecordId {
    pub(in crate::store::history) fn new(customer: CustomerId, key: &IdempotencyKey) -> Self {
        Self(digest(b"record", customer, 0, key).into())
    }
}

impl TradeKey {
    pub(in crate::store::history) const LEN: usize = 12;

    pub(in crate::store::history) fn new(customer: CustomerId, key: &IdempotencyKey, index: usize) -> Self {
        let mut first = [0; Self::LEN];
        first.copy_from_slice(&digest(b"trade", customer, index as u64, key)[..Self::LEN]);
        Self(first)
    }

    /// Reads the `key` of a stored trade.
    pub(in crate::store::history) fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(in crate::store::history) fn to_bson(self) -> Binary {
        Binary { subtype: BinarySubtype::Generic, bytes: self.0.to_vec() }
    }
}

fn digest(
    what: &[u8],
    customer: CustomerId,
    index: u64,
    key: &IdempotencyKey,
) -> sha2::digest::Output<Sha256> {
    let numbers = [customer.get().to_be_bytes(), index.to_be_bytes()].concat();
    // The key is last, because only the key has no fixed length.
    Sha256::new().chain_update(what).chain_update(numbers).chain_update(key.as_str()).finalize()
}

impl Fingerprint {
    /// The one fingerprint of all uploads.
    pub(in crate::store::history) fn of_upload() -> Self {
        Self(Sha256::digest(b"an upload").into())
    }

    /// The fingerprint of a request. A single trade and an array of that trade are the same request. White
    /// space and the order of fields do not matter.
    pub(in crate::store::history) fn of(drafts: &[TradeDraft]) -> Self {
        let mut sha = Sha256::new();
        for draft in drafts {
            let TradeDraft { side, ticker, qty, price, date } = draft;
            // Each field ends with a character that it cannot contain.
            sha.update(format!("{}|{}|{}|", side.name(), ticker.as_str(), qty.get()));
            sha.update(price.map(|price| price.to_string()).unwrap_or_default());
            sha.update("|");
            sha.update(date.map(|date| date.millis().to_string()).unwrap_or_default());
            sha.update("\n");
        }
        Self(sha.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::domain::parse_drafts;

    fn fingerprint(json: &str) -> [u8; 32] {
        Fingerprint::of(&parse_drafts(json.as_bytes(), 10).unwrap()).0
    }

    #[test]
    fn another_request_has_another_fingerprint() {
        let trade = r#"{"type":"buy","ticker":"MDB","qty":1}"#;
        let others = [
            r#"{"type":"sell","ticker":"MDB","qty":1}"#.to_owned(),
            r#"{"type":"buy","ticker":"AMD","qty":1}"#.to_owned(),
            r#"{"type":"buy","ticker":"MDB","qty":2}"#.to_owned(),
            r#"{"type":"buy","ticker":"MDB","qty":1,"price":"1"}"#.to_owned(),
            r#"{"type":"buy","ticker":"MDB","qty":1,"price":"1.0"}"#.to_owned(),
            r#"{"type":"buy","ticker":"MDB","qty":1,"date":"2004-01-09T00:00:00Z"}"#.to_owned(),
            r#"{"type":"buy","ticker":"MDB","qty":1,"date":"2004-01-09T00:00:00.001Z"}"#.to_owned(),
            format!("[{trade},{trade}]"),
        ];
        let all: HashSet<_> = others.iter().map(String::as_str).chain([trade]).map(fingerprint).collect();
        assert_eq!(all.len(), others.len() + 1);
        let same = r#"[ {"qty":1, "ticker":"MDB", "type":"buy"} ]"#;
        assert_eq!(fingerprint(trade), fingerprint(same));
    }

    #[test]
    fn each_trade_of_each_key_of_each_customer_has_its_own_key() {
        let key = |text: &str| IdempotencyKey::parse(text.as_bytes()).unwrap();
        let mut all = HashSet::new();
        for customer in [1, 2, 256] {
            for text in ["a", "b", "aa"] {
                for index in [0, 1, 255, 256] {
                    assert!(all.insert(TradeKey::new(CustomerId::new(customer).unwrap(), &key(text), index)));
                }
            }
        }
    }
}
