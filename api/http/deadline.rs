//! How long a request may take.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;

use crate::store::{self, Deadline};

/// One request, its body included.
pub const REQUEST: Duration = Duration::from_secs(35);
/// What a request keeps back, to write its answer after its last database command.
const ANSWER: Duration = Duration::from_secs(2);

// What is inside ends before what is around it.
const _: () = assert!(store::NO_PRIMARY.as_secs() < store::COMMAND.as_secs());
const _: () = assert!(store::COMMAND.as_secs() + ANSWER.as_secs() < REQUEST.as_secs());

/// The moment by which a request's database commands must have ended. Every request under `/v1` has one; an upload,
/// which may take longer, does not look at it.
#[derive(Debug, Clone, Copy)]
pub struct RequestDeadline(pub Deadline);

impl RequestDeadline {
    /// That of a request that begins now.
    pub fn from_now() -> Self {
        Self(Deadline::within(REQUEST - ANSWER))
    }

    /// That of a request under `/v1`.
    pub fn of(extensions: &Extensions) -> Self {
        *extensions.get().expect("admission gives every request under /v1 its deadline")
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestDeadline {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}
