//! Hashes that identify keyed requests and their items.

use std::borrow::Cow;
use std::collections::HashSet;

use mongodb::bson::Binary;
use mongodb::bson::raw::RawBsonRef;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{IdempotencyKey, Json, OwnerId};
use pagebucket_model::item::{Draft, decimal_text};
use sha2::{Digest, Sha256};

use crate::mongo::values::binary;

/// Identifies a key of one owner: SHA-256 of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RecordId(pub(crate) [u8; 32]);

/// Identifies one item of a keyed request: the first 12 bytes of SHA-256 of owner, key and index in the
/// request; or an item of another collection. With 96 bits, two among 10^9 items of one owner are equal with
/// a probability of 10^-11.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey(pub(crate) [u8; ItemKey::LEN]);

/// Identifies the content of a request: SHA-256 of its items before defaults are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(pub(crate) [u8; 32]);

impl RecordId {
    pub(crate) fn new(definition: &Definition, owner: &OwnerId, key: &IdempotencyKey) -> Self {
        // As an item's, with an index.
        let sha = begin(definition, b"record", owner).chain_update(0_u64.to_be_bytes());
        Self(sha.chain_update(key.as_str()).finalize().into())
    }
}

impl ItemKey {
    /// Its bytes.
    pub const LEN: usize = 12;

    /// The key of the item with this index in a request with an idempotency key.
    pub fn new(definition: &Definition, owner: &OwnerId, key: &IdempotencyKey, index: usize) -> Self {
        // Of an item of a history of trades "trade" is hashed, as before there were other histories.
        let sha = begin(definition, b"trade", owner).chain_update((index as u64).to_be_bytes());
        // The key is last, because only the key has no fixed length and no end.
        let digest = sha.chain_update(key.as_str()).finalize();
        Self(*digest.first_chunk().expect("a digest has 32 bytes"))
    }

    /// One byte of the hash; of the key of an upload's line the lowest byte of its number.
    pub fn last_byte(self) -> u8 {
        self.0[Self::LEN - 1]
    }

    /// The key of an item that is adopted from another collection, which is called `source`. `id` is the
    /// `_id` of its document, as the byte of its BSON type and the bytes of its value; `place` is its index
    /// in the document's array, if the document has many items.
    pub fn adopted(
        definition: &Definition,
        owner: &OwnerId,
        source: &str,
        id: &[u8],
        place: Option<u32>,
    ) -> Self {
        // A name has no NUL, and a document has either one item or many.
        let sha = begin(definition, b"adopted", owner).chain_update(source).chain_update([0]);
        let sha = match place {
            Some(place) => sha.chain_update([1]).chain_update(place.to_be_bytes()),
            None => sha.chain_update([0]),
        };
        Self(*sha.chain_update(id).finalize().first_chunk().expect("a digest has 32 bytes"))
    }

    /// Reads the key of a stored item.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// As it is stored.
    pub fn to_bson(self) -> Binary {
        binary(self.0)
    }
}

/// A hash that has begun with the history, with what is hashed, and with the owner.
///
/// Trades of customers with numbers are the history from before there were others: their hashes do not begin
/// with its name, so that a repeat finds what an earlier version has stored.
pub(crate) fn begin(definition: &Definition, what: &[u8], owner: &OwnerId) -> Sha256 {
    match owner {
        OwnerId::Integer(id) if definition.is_trades() => {
            Sha256::new().chain_update(what).chain_update(id.to_be_bytes())
        }
        // Neither a name nor an id has a NUL.
        owner => Sha256::new()
            .chain_update(format!("{}\0", definition.name))
            .chain_update(what)
            .chain_update(format!("\0{owner}\0")),
    }
}

impl Fingerprint {
    /// The one fingerprint of all uploads.
    pub(crate) fn of_upload() -> Self {
        Self(Sha256::digest(b"an upload").into())
    }

    /// The fingerprint of a request, whose items have these canonical forms
    /// ([`pagebucket_model::item::canonical`]). A single item and an array of that item are the same request.
    /// White space and the order of members do not matter.
    ///
    /// It is of what the client sent, so that a changed schema does not make a repeat look like another
    /// request. Only trades are hashed as they were before there were other histories, as long as they have
    /// no other members.
    pub(crate) fn of(definition: &Definition, drafts: &[Draft], canonical: &[Vec<u8>]) -> Self {
        if definition.is_trades()
            && let Some(trades) = as_trades(definition, drafts, canonical)
        {
            return Self(Sha256::digest(trades).into());
        }
        let mut sha = Sha256::new().chain_update(format!("{}\0", definition.name));
        // JSON has no line breaks outside its strings, and canonical strings escape them.
        canonical.iter().for_each(|item| sha.update([item, b"\n".as_slice()].concat()));
        Self(sha.finalize().into())
    }
}

/// Each item by the five members that trades had before there were other histories. `None` if there are
/// others.
fn as_trades(definition: &Definition, drafts: &[Draft], canonical: &[Vec<u8>]) -> Option<String> {
    let has_defaults = definition.item.has_defaults();
    let one = |(draft, item): (&Draft, &Vec<u8>)| {
        // What is filled in was not sent.
        let sent = if has_defaults { Some(names(item)?) } else { None };
        as_trade(draft, |name| sent.as_ref().is_none_or(|sent| sent.contains(name)))
    };
    drafts.iter().zip(canonical).map(one).collect()
}

/// The names of the members of an object.
fn names(item: &[u8]) -> Option<HashSet<String>> {
    match Json::read(Json::check(item).ok()?) {
        Json::Object(members) => members.into_iter().map(|member| member.name.map(Cow::into_owned)).collect(),
        _ => None,
    }
}

/// The members, each with its end. `None` if there are others.
fn as_trade(draft: &Draft, was_sent: impl Fn(&str) -> bool) -> Option<String> {
    let document = draft.document();
    let (mut side, mut ticker, mut qty, mut price) = (None, None, None, String::new());
    for member in document {
        match member.ok()? {
            (name, _) if !was_sent(name.as_str()) => {}
            (name, RawBsonRef::String(text)) if name == "type" => side = Some(text),
            (name, RawBsonRef::String(text)) if name == "ticker" => ticker = Some(text),
            (name, RawBsonRef::Int64(number)) if name == "qty" => qty = Some(number),
            (name, RawBsonRef::Decimal128(number)) if name == "price" => {
                price = decimal_text(number.bytes())?;
            }
            (name, RawBsonRef::DateTime(_)) if name == "date" => {}
            _ => return None,
        }
    }
    let date = draft.date().map(|date| date.millis().to_string()).unwrap_or_default();
    Some(format!("{}|{}|{}|{price}|{date}\n", side?, ticker?, qty?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagebucket_model::item::canonical;

    fn fingerprint(json: &str) -> [u8; 32] {
        let trades = Definition::trades();
        let drafts = trades.item.parse_drafts(json.as_bytes(), 10).unwrap();
        Fingerprint::of(&trades, &drafts, &canonical(json.as_bytes())).0
    }

    #[test]
    fn another_request_has_another_fingerprint() {
        let item = r#"{"type":"buy","ticker":"MDB","qty":1}"#;
        let others = [
            r#"{"type":"sell","ticker":"MDB","qty":1}"#.to_owned(),
            r#"{"type":"buy","ticker":"AMD","qty":1}"#.to_owned(),
            r#"{"type":"buy","ticker":"MDB","qty":2}"#.to_owned(),
            r#"{"type":"buy","ticker":"MDB","qty":1,"price":"1"}"#.to_owned(),
            r#"{"type":"buy","ticker":"MDB","qty":1,"price":"1.0"}"#.to_owned(),
            r#"{"type":"buy","ticker":"MDB","qty":1,"date":"2004-01-09T00:00:00Z"}"#.to_owned(),
            r#"{"type":"buy","ticker":"MDB","qty":1,"date":"2004-01-09T00:00:00.001Z"}"#.to_owned(),
            format!("[{item},{item}]"),
        ];
        let all: HashSet<_> = others.iter().map(String::as_str).chain([item]).map(fingerprint).collect();
        assert_eq!(all.len(), others.len() + 1);
        let same = r#"[ {"qty":1, "ticker":"MDB", "type":"buy"} ]"#;
        assert_eq!(fingerprint(item), fingerprint(same));
    }

    /// Also if a default is new, or has changed.
    #[test]
    fn what_is_filled_in_has_no_fingerprint() {
        let with_default = |default: &str| {
            let text = Definition::trades_text()
                .replace("\"exclusiveMinimum\": 0", &format!("\"default\": {default}"));
            Definition::parse(&text).unwrap()
        };
        let json = r#"{"type":"buy","ticker":"MDB","qty":1}"#;
        for definition in [with_default("\"1.50\""), with_default("\"2\"")] {
            let drafts = definition.item.parse_drafts(json.as_bytes(), 10).unwrap();
            assert!(drafts[0].document().get("price").is_ok_and(|price| price.is_some()));
            let found = Fingerprint::of(&definition, &drafts, &canonical(json.as_bytes()));
            assert_eq!(found.0, fingerprint(json));
        }
    }

    #[test]
    fn each_adopted_item_has_its_own_key() {
        let (trades, mut all) = (Definition::trades(), HashSet::new());
        for owner in [1, 2, 256] {
            for (source, id) in
                [("a.b", &b"\x02c"[..]), ("a.bc", b"\x02c"), ("a.b", b"\x02cc"), ("a.b", b"\x10c")]
            {
                for place in [None, Some(0), Some(1), Some(u32::MAX)] {
                    let key = ItemKey::adopted(&trades, &OwnerId::Integer(owner), source, id, place);
                    assert!(all.insert(key), "{owner} {source} {id:?} {place:?}");
                }
            }
        }
    }

    /// Of another one, items that an earlier version has adopted would be stored once more.
    #[test]
    fn the_key_of_an_adopted_item_is_that_of_earlier_versions() {
        let trades = Definition::trades();
        for (place, bytes) in [(None, "4c4dfbc7c7bf2c815f7aeea2"), (Some(3), "b3303ea1aec01cc1300dfa9e")] {
            let key = ItemKey::adopted(&trades, &OwnerId::Integer(7), "shop.old", b"\x10\x05\0\0\0", place);
            assert_eq!(key.0.map(|byte| format!("{byte:02x}")).concat(), bytes, "{place:?}");
        }
    }

    #[test]
    fn each_item_of_each_key_of_each_owner_has_its_own_key() {
        let key = |text: &str| IdempotencyKey::parse(text.as_bytes()).unwrap();
        let (trades, mut all) = (Definition::trades(), HashSet::new());
        for owner in [1, 2, 256] {
            for text in ["a", "b", "aa"] {
                for index in [0, 1, 255, 256] {
                    assert!(all.insert(ItemKey::new(&trades, &OwnerId::Integer(owner), &key(text), index)));
                }
            }
        }
    }
}
