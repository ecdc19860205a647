//! `Idempotency-Key`: a request that may be repeated.

use axum::extract::FromRequestParts;
use axum::http::HeaderName;
use axum::http::request::Parts;

use crate::domain::{IdempotencyKey, Invalid};
use crate::http::problem::{ParameterFault, Problem};

/// The client's name for the request. (IETF draft `draft-ietf-httpapi-idempotency-key-header`.)
pub const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Set on an answer whose items were stored by an earlier request with the key.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The header `Idempotency-Key`, if there is one.
pub struct Key(pub Option<IdempotencyKey>);

impl<S: Send + Sync> FromRequestParts<S> for Key {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut given = parts.headers.get_all(KEY).iter();
        let key = match (given.next(), given.next()) {
            (None, _) => return Ok(Self(None)),
            (Some(key), None) => IdempotencyKey::parse(key.as_bytes()),
            (Some(_), Some(_)) => Err(Invalid::new("must not be given more than once")),
        };
        key.map(|key| Self(Some(key))).map_err(|Invalid(detail)| {
            Problem::invalid_parameters(vec![ParameterFault { parameter: "Idempotency-Key".into(), detail }])
        })
    }
}
