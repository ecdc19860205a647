//! The owners of histories: their ids and the types of these.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use serde::Serialize;

use super::Invalid;
use super::number::{MAX_SAFE_INTEGER, parse_digits, whole};

/// Whose history it is: the id of its owner, in one spelling. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, derive_more::Display)]
#[serde(untagged)]
pub enum OwnerId {
    /// A whole number from 1 to 2^53 - 1.
    Integer(u64),
    /// 1 to 64 of the characters `A`-`Z`, `a`-`z`, `0`-`9` and `-`; or a UUID in lower case.
    Text(Arc<str>),
}

/// An owner as a member of a JSON object: its id, under the name that a definition gives it.
#[derive(Debug, Serialize)]
pub struct OwnerMember(BTreeMap<String, OwnerId>);

impl OwnerMember {
    /// `field` is the name, such as `customerId`.
    pub fn new(field: &str, id: &OwnerId) -> Self {
        Self([(field.to_owned(), id.clone())].into())
    }
}

/// Of which type the ids of the owners of a history are. It is shown as its name in a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
#[display(rename_all = "lowercase")]
pub enum OwnerType {
    /// [`OwnerId::Integer`]
    Integer,
    /// [`OwnerId::Text`], any
    String,
    /// [`OwnerId::Text`], a UUID
    Uuid,
}

impl OwnerType {
    /// All types.
    pub const ALL: [Self; 3] = [Self::Integer, Self::String, Self::Uuid];

    /// The longest text of an id, in bytes.
    pub const MAX_LEN: usize = 64;

    /// The regular expression of a stored UUID.
    pub const STORED_UUID: &str = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$";

    /// Whether ids are strings in JSON and in the database.
    pub fn is_text(self) -> bool {
        self != Self::Integer
    }

    /// The text as ids of this type are compared: UUIDs in lower case, others as they are.
    pub fn spelled(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Uuid if text.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                text.to_ascii_lowercase().into()
            }
            _ => text.into(),
        }
    }

    /// The id that is stored as this text, which has only one spelling.
    pub fn parse_stored(self, text: &str) -> Option<OwnerId> {
        self.parse(text).ok().filter(|_| self.spelled(text) == text)
    }

    /// Accepts numbers without a sign or a leading zero, and UUIDs in either case: their id is in lower case.
    /// Every other id has one spelling.
    ///
    /// # Errors
    /// The text is not an id of this type.
    pub fn parse(self, text: &str) -> Result<OwnerId, Invalid> {
        match self {
            Self::Integer => whole(parse_digits(text), 1..=MAX_SAFE_INTEGER).map(OwnerId::Integer),
            Self::String => {
                let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                if !(1..=Self::MAX_LEN).contains(&text.len()) || !text.bytes().all(allowed) {
                    return Err(Invalid::new("must be 1 to 64 of the characters A-Z, a-z, 0-9 and \"-\""));
                }
                Ok(OwnerId::Text(text.into()))
            }
            Self::Uuid if is_uuid(text) => Ok(OwnerId::Text(self.spelled(text).into())),
            Self::Uuid => Err(Invalid::new(UUID_RULE)),
        }
    }
}

/// The rule that a text breaks which is no UUID.
pub const UUID_RULE: &str = "must be a UUID, such as \"123e4567-e89b-42d3-a456-426614174000\"";

/// Whether a text is a UUID (RFC 9562), in either case.
pub fn is_uuid(text: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_right)
}

impl OwnerId {
    /// A hash that distributes owners evenly. Clients choose texts: their hashes differ from process to
    /// process, so that no client can choose two texts with the same hash.
    pub fn spread(&self) -> u64 {
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        match self {
            // Fibonacci hashing (Knuth, TAOCP 6.4): numbers may have a common stride.
            Self::Integer(id) => id.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32),
            Self::Text(id) => KEYS.hash_one(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        for text in ["1", "7", "9007199254740991"] {
            assert_eq!(OwnerType::Integer.parse(text).unwrap().to_string(), text);
        }
        for text in ["", "0", "-1", "+1", "01", "1.0", "1e3", "9007199254740992", "٣", "1_2", " 1"] {
            assert!(OwnerType::Integer.parse(text).is_err(), "{text:?}");
        }
        let longest = "a".repeat(64);
        for text in ["a", "A", "0", "018f3c6e-7b1a-7c3d-9e2f-0123456789ab", &longest] {
            assert_eq!(OwnerType::String.parse(text).unwrap().to_string(), text);
        }
        let too_long = "a".repeat(65);
        for text in ["", "a_b", "a.b", "a/b", "ä", "a b", "$a", "a\0", &too_long] {
            assert!(OwnerType::String.parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_uuid_is_in_lower_case() {
        let id = OwnerId::Text("018f3c6e-7b1a-7c3d-9e2f-0123456789ab".into());
        for text in ["018f3c6e-7b1a-7c3d-9e2f-0123456789ab", "018F3C6E-7B1A-7C3D-9E2F-0123456789aB"] {
            assert_eq!(OwnerType::Uuid.parse(text).as_ref(), Ok(&id));
        }
        assert_eq!(OwnerType::Uuid.parse_stored(&id.to_string()), Some(id));
        assert_eq!(OwnerType::Uuid.parse_stored("018F3C6E-7B1A-7C3D-9E2F-0123456789AB"), None);
        for text in [
            "",
            "a",
            "018f3c6e7b1a7c3d9e2f0123456789ab",
            "018f3c6e-7b1a-7c3d-9e2f-0123456789ag",
            "018f3c6e-7b1a-7c3d-9e2f-0123456789abc",
        ] {
            assert!(OwnerType::Uuid.parse(text).is_err(), "{text:?}");
        }
        // Of strings, case counts.
        assert_eq!(OwnerType::String.parse("A").unwrap().to_string(), "A");
    }

    #[test]
    fn an_id_is_small() {
        assert_eq!(size_of::<OwnerId>(), 16);
    }
}
