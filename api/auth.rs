//! Who a client is: tokens of an issuer ([`jwt`]).
//!
//! What a client may do is decided elsewhere, by the table of routes.

pub mod jwt;

use std::borrow::Cow;
use std::sync::Arc;

use crate::domain::Principal;
use crate::store;
use jwt::Jwt;

/// Why a client is not known.
#[derive(Debug)]
pub enum Refusal {
    /// The token or key is not valid. The words are for the client: a sentence without quotation marks or backslashes.
    Invalid(Cow<'static, str>),
    /// The database was asked, and failed.
    Database(store::Error),
}

/// Finds out who presents a token or a key.
#[derive(Debug)]
pub struct Authenticator {
    /// The tokens of an issuer, if they are accepted.
    pub jwt: Option<Jwt>,
}

impl Authenticator {
    /// Who it is, if the token or key was seen recently. Waits for nothing.
    pub fn remembered(&self, credential: &str) -> Option<Arc<Principal>> {
        self.jwt.as_ref()?.remembered(credential)
    }

    /// Who it is.
    ///
    /// # Errors
    /// The token or key is not valid, or that cannot be found out now.
    pub async fn authenticate(&self, credential: &str) -> Result<Arc<Principal>, Refusal> {
        match &self.jwt {
            Some(jwt) => jwt.authenticate(credential).await,
            None => Err(Refusal::Invalid("This server accepts no such token.".into())),
        }
    }
}
