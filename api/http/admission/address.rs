//! What an address says before its parameters are parsed: the gate and admission decide by it.

use std::borrow::Cow;

use axum::http::Uri;
use pagebucket_model::domain::{Invalid, OwnerId, OwnerType};
use percent_encoding::percent_decode_str;

/// The parameter with which a listing is a long poll.
pub(crate) const WAIT: &str = "wait";

/// The owner that an address names: `/v1/{owners}/{ownerId}`. It is read once: the gate decides by its text,
/// and the handler uses its id.
pub(crate) struct AddressedOwner<'a> {
    /// The text, decoded, as ids of its type are compared; empty if it is not UTF-8.
    pub text: Cow<'a, str>,
    /// The id, if the text is one.
    pub id: Result<OwnerId, Invalid>,
}

impl<'a> AddressedOwner<'a> {
    /// The owner, with an id of this type, that an address names.
    pub(crate) fn of(address: &'a Uri, kind: OwnerType) -> Self {
        Self::of_segment(address.path().split('/').nth(3).unwrap_or_default(), kind)
    }

    /// The same of the segment that is the owner.
    pub(crate) fn of_segment(segment: &'a str, kind: OwnerType) -> Self {
        let text = decoded(segment);
        let id = text.as_ref().map_err(Clone::clone).and_then(|text| kind.parse(text));
        let spelled = |text: Cow<'a, str>| match text {
            Cow::Borrowed(text) => kind.spelled(text),
            Cow::Owned(text) => Cow::Owned(kind.spelled(&text).into_owned()),
        };
        Self { text: text.map(spelled).unwrap_or_default(), id }
    }
}

/// Whether the query of an address has the parameter, well-formed or not.
pub(crate) fn gives(address: &Uri, name: &str) -> bool {
    let may_give = |query: &str| query.contains(name) || query.contains('%');
    address.query().is_some_and(may_give) && pairs(address).iter().any(|(given, _)| given == name)
}

/// The value of a parameter of a query.
pub(crate) struct QueryValue {
    /// As far as it is UTF-8.
    pub(crate) text: String,
    /// Whether that is what was sent: what is not UTF-8 has become another text.
    pub(crate) is_utf8: bool,
}

impl QueryValue {
    /// Parses it.
    ///
    /// # Errors
    /// It is not UTF-8, or has another fault.
    pub(crate) fn parse<T>(&self, parse: impl Fn(&str) -> Result<T, Invalid>) -> Result<T, Invalid> {
        let parsed = parse(&self.text)?;
        if self.is_utf8 { Ok(parsed) } else { Err(Invalid::new(NOT_UTF8)) }
    }
}

/// The parameters of a query, as forms write them. Not axum's own extractor, which hides what is not UTF-8.
pub(crate) fn pairs(address: &Uri) -> Vec<(String, QueryValue)> {
    let pairs = address.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let spaced = pair.replace('+', " ");
        let (name, value) = spaced.split_once('=').unwrap_or((&spaced, ""));
        let [name, text] =
            [name, value].map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned());
        (name, QueryValue { text, is_utf8: decoded(value).is_ok() })
    };
    pairs.map(pair).collect()
}

const NOT_UTF8: &str = "must be UTF-8 after percent-decoding";

/// A segment of a path without its percent-encoding.
///
/// # Errors
/// It is not UTF-8.
pub(crate) fn decoded(segment: &str) -> Result<Cow<'_, str>, Invalid> {
    let invalid = |_| Invalid::new(NOT_UTF8);
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
    fn an_owner_is_decoded_and_parsed() {
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
