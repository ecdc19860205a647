//! The id of a request: in the request, the answer, the log and every problem.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The header that carries it.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

const LONGEST: usize = 128;

/// The client's own, or 16 random hexadecimal digits.
#[derive(Debug, Clone)]
pub enum RequestId {
    Clients(Arc<str>),
    Ours([u8; 16]),
}

impl RequestId {
    /// The client's, if it is harmless, or a new one.
    pub fn of(headers: &HeaderMap) -> Self {
        headers.get(HEADER).and_then(Self::accept).unwrap_or_default()
    }

    /// As text: visible ASCII.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Clients(text) => text,
            Self::Ours(digits) => str::from_utf8(digits).expect("hexadecimal digits are UTF-8"),
        }
    }

    /// As the value of [`HEADER`].
    pub fn header(&self) -> HeaderValue {
        HeaderValue::from_str(self.as_str()).expect("an id is visible ASCII")
    }

    /// Only what can stand in a log line and a header without harm.
    fn accept(header: &HeaderValue) -> Option<Self> {
        let text = header.to_str().ok()?;
        let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        ((1..=LONGEST).contains(&text.len()) && text.bytes().all(harmless))
            .then(|| Self::Clients(text.into()))
    }
}

impl Default for RequestId {
    fn default() -> Self {
        let chance: u64 = rand::random();
        let digit = |place: usize| b"0123456789abcdef"[(chance >> (60 - 4 * place)) as usize & 15];
        Self::Ours(std::array::from_fn(digit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_id_must_be_harmless() {
        let accept = |text: &'static str| RequestId::accept(&HeaderValue::from_static(text)).is_some();
        assert!(accept("3f9c-A_b.c:1"));
        assert!(!accept("") && !accept("a b") && !accept("a\"b") && !accept("<b>"));
        assert!(RequestId::accept(&HeaderValue::from_str(&"a".repeat(129)).unwrap()).is_none());
    }

    #[test]
    fn ours_are_16_digits_and_never_the_same() {
        let (one, other) = (RequestId::default(), RequestId::default());
        assert_ne!(one.as_str(), other.as_str());
        assert_eq!(one.as_str().len(), 16);
        assert!(u64::from_str_radix(one.as_str(), 16).is_ok(), "{one:?}");
    }
}
