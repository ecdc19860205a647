//! `Idempotency-Key`: a request that may be repeated.

use axum::extract::FromRequestParts;
use axum::http::HeaderName;
use axum::http::request::Parts;
use pagebucket_model::domain::{IdempotencyKey, Invalid};
use serde_json::json;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use super::context::RequestContext;
use super::params::in_header;
use crate::problem::{ParameterFault, Problem};
use crate::schemas::schema;

/// The client's name for the request. (IETF draft `draft-ietf-httpapi-idempotency-key-header`.)
pub const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Set on an answer whose items were stored by an earlier request with the key.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The header `Idempotency-Key`, if there is one. It is the client's own: another client may use the same key.
pub struct KeyHeader(pub Option<IdempotencyKey>);

impl<S: Send + Sync> FromRequestParts<S> for KeyHeader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut given = parts.headers.get_all(KEY).iter();
        let key = match (given.next(), given.next()) {
            (None, _) => return Ok(Self(None)),
            (Some(key), None) => IdempotencyKey::parse(key.as_bytes()),
            (Some(_), Some(_)) => Err(Invalid::new("must not be given more than once")),
        };
        let client = RequestContext::of(&parts.extensions).principal_name();
        let key = key.map(|key| client.map_or(key.clone(), |client| key.of_client(client)));
        key.map(|key| Self(Some(key))).map_err(|Invalid(detail)| {
            Problem::invalid_parameters(vec![ParameterFault { parameter: "Idempotency-Key".into(), detail }])
        })
    }
}

impl IntoParams for KeyHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "A unique key for the request, such as a UUID: 1 to 255 visible ASCII characters. A repeat of the request has the same key.";
        let key = json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]{1,255}$" });
        vec![in_header("Idempotency-Key", description, schema(key))]
    }
}
