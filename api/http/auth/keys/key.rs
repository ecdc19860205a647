//! The text of an API key.

use pagebucket_engine::internal::api_keys::KeyHash;
use rand::distr::{Alphanumeric, SampleString};
use sha2::{Digest, Sha256};

/// What every key begins with. No JWT does: the first character of one is `e`.
pub const PREFIX: &str = "pb_";

/// Characters after the prefix. Each is one of 62: together 256 random bits.
const RANDOM: usize = 43;

/// A new key: [`PREFIX`], and 43 random letters and digits. Neither `Debug` nor `Display` shows it.
#[derive(derive_more::Debug)]
#[debug("ApiKey(..)")]
pub struct ApiKey(String);

impl ApiKey {
    /// A new random key.
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        Self(format!("{PREFIX}{}", Alphanumeric.sample_string(&mut rand::rng(), RANDOM)))
    }

    /// The text that its client sends.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The hash under which it is stored.
    pub fn hash(&self) -> KeyHash {
        KeyHash(Sha256::digest(&self.0).into())
    }

    /// The hash of a text that has the form of a key.
    pub fn hash_of(text: &str) -> Option<KeyHash> {
        let random = text.strip_prefix(PREFIX)?;
        let fits = random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
        fits.then(|| KeyHash(Sha256::digest(text).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_form_and_is_not_shown() {
        let (one, other) = (ApiKey::new(), ApiKey::new());
        assert_ne!(one.expose(), other.expose());
        assert_eq!(ApiKey::hash_of(one.expose()), Some(one.hash()));
        assert_ne!(one.hash(), other.hash());
        assert_eq!(format!("{one:?} {:?}", one.hash()), "ApiKey(..) KeyHash(..)");
        let random = &one.expose()[PREFIX.len()..];
        for text in [
            "",
            "pb_",
            random,
            &format!("PB_{random}"),
            &format!("pb_{}", &random[1..]),
            &format!("pb_{random}0"),
            &format!(" {}", one.expose()),
            &format!("pb_{} ", &random[1..]),
            &format!("pb_{}_", &random[1..]),
            &format!("pb_{}ä", &random[2..]),
        ] {
            assert_eq!(ApiKey::hash_of(text), None, "{text:?}");
        }
    }
}
