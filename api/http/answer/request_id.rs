//! The id of a request: in the request, the answer, the log and every problem.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The header that carries it.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

const LONGEST: usize = 128;

/// The client's own, or 16 random hexadecimal digits: visible ASCII.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub HeaderValue);

impl RequestId {
    /// The client's, if it is harmless, or a new one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        headers.get(HEADER).filter(|id| is_harmless(id)).cloned().map_or_else(Self::default, Self)
    }

    /// As text.
    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().expect("an id is visible ASCII")
    }
}

impl Default for RequestId {
    fn default() -> Self {
        let chance: u64 = rand::random();
        let digit = |place| b"0123456789abcdef"[(chance >> (4 * place)) as usize & 15];
        let digits: [u8; 16] = std::array::from_fn(digit);
        Self(HeaderValue::from_bytes(&digits).expect("hexadecimal digits are visible ASCII"))
    }
}

/// Only what can stand in a log line and a header without harm.
fn is_harmless(id: &HeaderValue) -> bool {
    let harmless = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    (1..=LONGEST).contains(&id.len()) && id.as_bytes().iter().all(harmless)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_id_must_be_harmless() {
        let accept = |text: &'static str| is_harmless(&HeaderValue::from_static(text));
        assert!(accept("3f9c-A_b.c:1"));
        assert!(!accept("") && !accept("a b") && !accept("a\"b") && !accept("<b>"));
        assert!(!is_harmless(&HeaderValue::from_str(&"a".repeat(129)).unwrap()));
    }

    #[test]
    fn ours_are_16_digits_and_never_the_same() {
        let (one, other) = (RequestId::default(), RequestId::default());
        assert_ne!(one.as_str(), other.as_str());
        assert_eq!(one.as_str().len(), 16);
        assert!(u64::from_str_radix(one.as_str(), 16).is_ok(), "{one:?}");
    }
}
