//! Who a client is: tokens of an issuer ([`jwt`]), and keys that the database knows ([`keys`]).
//!
//! What a client may do is decided elsewhere, by the table of routes. Each row of `routes.rs` has an
//! *access*: for everyone; for clients with a scope, and then for the owner that the address names, for each
//! owner that the query names in `watch`, or only with access to all owners. Erasing has its own, because
//! without authentication it is not for everyone. A row without an access does not compile. The rows are also
//! what the OpenAPI document says.
//!
//! A client is a *principal*: a name, scopes, owners by collection, and a time after which it is no longer
//! valid. Handlers find it in the context of the request, and the log in the notes of the answer. A
//! token is verified by the algorithms of its key, once: verified tokens are remembered until they expire or
//! their key is withdrawn, in 16 MiB at most. Tokens and keys whose client is not known yet have permits by
//! address; those that wait for the issuer have other permits than those that wait for the database.
//!
//! An `Idempotency-Key` is hashed together with the name of the principal, so it belongs to its client.
//! Without authentication the hash is as it was before there were principals.

pub mod http_client;
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
