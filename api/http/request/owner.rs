//! The owner that the address of a request names: `/v1/{owners}/{ownerId}`.

use std::borrow::Cow;

use axum::http::Uri;
use pagebucket_model::domain::{Invalid, OwnerId, OwnerType};
use percent_encoding::percent_decode_str;

/// An owner, as an address names it. It is read once: the gate decides by its text, and the handler uses its id.
pub struct AddressedOwner<'a> {
    /// The text, decoded, as ids of its type are compared; empty if it is not UTF-8.
    pub text: Cow<'a, str>,
    /// The id, if the text is one.
    pub id: Result<OwnerId, Invalid>,
}

impl<'a> AddressedOwner<'a> {
    /// The owner, with an id of this type, that an address names.
    pub fn of(address: &'a Uri, kind: OwnerType) -> Self {
        let segment = address.path().split('/').nth(3).unwrap_or_default();
        let text = decoded(segment);
        let id = text.as_ref().map_err(Clone::clone).and_then(|text| kind.parse(text));
        let spelled = |text: Cow<'a, str>| match text {
            Cow::Borrowed(text) => kind.spelled(text),
            Cow::Owned(text) => Cow::Owned(kind.spelled(&text).into_owned()),
        };
        Self { text: text.map(spelled).unwrap_or_default(), id }
    }
}

/// A segment of a path without its percent-encoding.
///
/// # Errors
/// It is not UTF-8.
pub fn decoded(segment: &str) -> Result<Cow<'_, str>, Invalid> {
    let invalid = |_| Invalid::new("must be UTF-8 after percent-decoding");
    percent_decode_str(segment).decode_utf8().map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: &str, kind: OwnerType) -> (String, Option<OwnerId>) {
        let address = address.parse().unwrap();
        let AddressedOwner { text, id } = AddressedOwner::of(&address, kind);
        (text.into_owned(), id.ok())
    }

    #[test]
    fn is_decoded_and_parsed() {
        let seven = ("7".to_owned(), Some(OwnerId::Integer(7)));
        for address in ["/v1/customers/7", "/v1/customers/7/trades?page=2", "/v1/customers/%37/trades"] {
            assert_eq!(read(address, OwnerType::Integer), seven, "{address}");
        }
        assert_eq!(
            read("/v1/rooms/a-B", OwnerType::String),
            ("a-B".to_owned(), Some(OwnerId::Text("a-B".into())))
        );
        let (upper, lower) = ("018F3C6E-7B1A-7C3D-9E2F-0123456789AB", "018f3c6e-7b1a-7c3d-9e2f-0123456789ab");
        let uuid = (lower.to_owned(), Some(OwnerId::Text(lower.into())));
        for text in [upper, lower, &upper.replace('F', "%46")] {
            assert_eq!(read(&format!("/v1/rooms/{text}"), OwnerType::Uuid), uuid, "{text}");
        }
        assert_eq!(read("/v1/rooms/a%5Fb", OwnerType::String), ("a_b".to_owned(), None));
        assert_eq!(read("/v1/rooms/%ff", OwnerType::String), (String::new(), None));
        assert_eq!(read("/v1/customers/007", OwnerType::Integer), ("007".to_owned(), None));
    }
}
