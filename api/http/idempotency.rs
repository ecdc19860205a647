//! `Idempotency-Key`: a request that may be repeated.

use axum::extract::FromRequestParts;
use axum::http::HeaderName;
use axum::http::request::Parts;

use crate::domain::IdempotencyKey;
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
        let fault = |detail: String| {
            Problem::invalid_parameters(vec![ParameterFault { parameter: "Idempotency-Key".into(), detail }])
        };
        let mut given = parts.headers.get_all(KEY).iter();
        let Some(key) = given.next() else { return Ok(Self(None)) };
        if given.next().is_some() {
            return Err(fault("must not be given more than once".to_owned()));
        }
        match IdempotencyKey::parse(key.as_bytes()) {
            Ok(key) => Ok(Self(Some(key))),
            Err(invalid) => Err(fault(invalid.to_string())),
        }
    }
}
