//! Deadlines of requests.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;

use crate::store::{self, Deadline};

/// Longest time for one request, its body included.
pub const REQUEST: Duration = Duration::from_secs(35);
/// Time that is kept back for writing the answer after the last database command.
const ANSWER: Duration = Duration::from_secs(2);

// Inner deadlines end before outer ones.
const _: () = assert!(store::NO_PRIMARY.as_secs() < store::COMMAND.as_secs());
const _: () = assert!(store::COMMAND.as_secs() + ANSWER.as_secs() < REQUEST.as_secs());

/// The deadline of a request's database commands. Every request under `/v1` has one. Uploads ignore it, because they
/// may take longer.
#[derive(Debug, Clone, Copy)]
pub struct RequestDeadline(pub Deadline);

impl RequestDeadline {
    /// The deadline of a request that begins now.
    pub fn from_now() -> Self {
        Self(Deadline::within(REQUEST - ANSWER))
    }

    /// The deadline of a request under `/v1`.
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
