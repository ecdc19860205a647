//! Why a client is not known.

use std::borrow::Cow;
use std::sync::Arc;

use pagebucket_engine as engine;

/// Why a client is not known.
#[derive(Debug, derive_more::From)]
pub enum Refusal {
    /// The token or key is not valid. The words are for the client: a sentence without quotation marks or
    /// backslashes. The name is that of a client whose key was valid once.
    Invalid(Cow<'static, str>, Option<Arc<str>>),
    /// The database was asked, and failed: the key may be valid.
    #[from]
    Database(engine::Error),
    /// The issuer takes too long to answer which keys it has: the token may be valid.
    Issuer,
}

impl Refusal {
    /// A refusal that names no client.
    pub fn invalid(words: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(words.into(), None)
    }
}
