//! Who a client is: tokens of an issuer ([`jwt`]), and keys that the database knows ([`keys`]).
//!
//! What a client may do is decided elsewhere, by the table of routes.

pub mod jwt;
pub mod keys;
mod refusal;

use std::sync::Arc;

use jwt::Jwt;
use keys::Keys;
use pagebucket_engine::Deadline;
use pagebucket_model::domain::Principal;
pub use refusal::Refusal;

/// What it takes to find out who presents a token or a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// A key is looked up again whose record is usable, and answers if the database does not.
    Again,
    /// Nothing is waited for: a signature is verified, or what is presented is malformed.
    Signature,
    /// A key is looked up in the database.
    LookUp,
    /// The issuer's keys are fetched, because a token names one that is not among those that are known.
    Fetch,
}

/// Finds out who presents a token or a key.
#[derive(Debug)]
pub struct Authenticator {
    /// The tokens of an issuer, if they are accepted.
    pub jwt: Option<Jwt>,
    /// The keys of this server, if they are accepted.
    pub keys: Option<Keys>,
}

impl Authenticator {
    /// Who it is, if the token or key was seen recently. Waits for nothing.
    pub fn remembered(&self, credential: &str) -> Option<Arc<Principal>> {
        match is_key(credential) {
            true => self.keys.as_ref()?.remembered(credential),
            false => self.jwt.as_ref()?.remembered(credential),
        }
    }

    /// What [`Authenticator::authenticate`] does for a token or key that is not remembered.
    pub fn check(&self, credential: &str) -> Check {
        match (is_key(credential), &self.keys, &self.jwt) {
            (true, Some(keys), _) if keys.is_usable(credential) => Check::Again,
            (true, Some(_), _) => Check::LookUp,
            (false, _, Some(jwt)) if jwt.needs_fetch(credential) => Check::Fetch,
            _ => Check::Signature,
        }
    }

    /// Who it is. The database, if it is asked, answers until the deadline.
    ///
    /// # Errors
    /// The token or key is not valid, or that cannot be found out now.
    pub async fn authenticate(
        &self,
        credential: &str,
        deadline: Deadline,
    ) -> Result<Arc<Principal>, Refusal> {
        let none = |words: &'static str| Err(Refusal::invalid(words));
        match (is_key(credential), &self.keys, &self.jwt) {
            (true, Some(keys), _) => keys.principal(credential, deadline).await,
            (true, None, _) => none("This server accepts no API keys, only access tokens."),
            (false, _, Some(jwt)) => jwt.authenticate(credential).await,
            (false, _, None) => none("This server accepts no access tokens, only API keys."),
        }
    }
}

fn is_key(credential: &str) -> bool {
    credential.starts_with(keys::PREFIX)
}
