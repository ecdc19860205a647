//! The key under which a client may repeat a request.

use std::sync::Arc;

use super::Invalid;

/// A name that a client gives a request so that it may repeat the request: 1 to 255 visible ASCII characters.
/// Clones share the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Arc<str>);

impl IdempotencyKey {
    /// The longest key, in characters.
    pub const MAX_LEN: usize = 255;

    /// # Errors
    /// The key is too short or too long, or contains another character.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        let text = str::from_utf8(bytes).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
        match text {
            Some(text) if (1..=Self::MAX_LEN).contains(&text.len()) => Ok(Self(text.into())),
            _ => Err(Invalid::new("must be 1 to 255 visible ASCII characters, without a space")),
        }
    }

    /// The key of this client. Two clients may give their requests the same key.
    #[must_use]
    pub fn of_client(&self, name: &str) -> Self {
        // Neither a key nor a name has a NUL.
        Self(format!("{}\0{name}", self.0).into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_visible() {
        for key in ["k", "8e03978e-40d5-43e8-bc93-6894a57f9324", "\"quoted\"", "~!*", &"x".repeat(255)] {
            assert_eq!(IdempotencyKey::parse(key.as_bytes()).unwrap().as_str(), key);
        }
        for key in ["", " ", "a b", "a\t", "\u{7f}", "ä", &"x".repeat(256)] {
            assert!(IdempotencyKey::parse(key.as_bytes()).is_err(), "{key:?}");
        }
        assert!(IdempotencyKey::parse(b"\xff").is_err());
    }
}
