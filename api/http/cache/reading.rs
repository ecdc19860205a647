//! The state of a read request: its deadline, the tags that the client has, and the time spent in the database.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::control::{Caching, KeptBy};
use super::etag::IfNoneMatch;
use super::timing::Timing;
use crate::http::api::Api;
use crate::http::deadline::RequestDeadline;
use crate::http::problem::Problem;
use crate::store::{Deadline, Epoch};

/// Server Timing, W3C.
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// One read, from its request to its answer.
pub struct Reading {
    /// The deadline of its database commands.
    pub deadline: Deadline,
    /// The epoch of the database.
    pub epoch: Epoch,
    known: IfNoneMatch,
    kept_by: KeptBy,
    timing: Timing,
}

impl FromRequestParts<Arc<Api>> for Reading {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let RequestDeadline(deadline) = RequestDeadline::of(&parts.extensions);
        Ok(Self {
            deadline,
            epoch: api.store.epoch(deadline).await?,
            known: IfNoneMatch::of(&parts.headers),
            kept_by: api.kept_by,
            timing: Timing::default(),
        })
    }
}

impl Reading {
    /// Waits for the database.
    pub async fn database<T>(&mut self, work: impl Future<Output = T>) -> T {
        self.timing.database(work).await
    }

    /// Takes what the page cache found, and adds its time to this read's.
    pub fn looked_up<T>(&mut self, (found, timing): (T, Timing)) -> T {
        self.timing.add(timing);
        found
    }

    /// 304 if the client names this tag itself. Needs no look-up: a client with the tag has seen the answer.
    pub fn named(&self, caching: impl FnOnce(Epoch) -> Caching) -> Option<Response> {
        if self.known == IfNoneMatch::Nothing {
            return None;
        }
        let caching = caching(self.epoch);
        self.known.known(&caching.tag).map(|tag| self.not_modified(&caching, tag))
    }

    /// 304 if the client's copy is current.
    pub fn unchanged(&self, caching: &Caching) -> Option<Response> {
        self.known.met_by(&caching.tag).map(|tag| self.not_modified(caching, tag))
    }

    fn not_modified(&self, caching: &Caching, tag: HeaderValue) -> Response {
        self.headed(StatusCode::NOT_MODIFIED.into_response(), caching, tag)
    }

    /// The answer, or 304 if the client's copy is current.
    pub fn answer(self, caching: &Caching, body: impl IntoResponse) -> Response {
        let unchanged = self.unchanged(caching);
        unchanged.unwrap_or_else(|| self.headed(body.into_response(), caching, caching.tag.header()))
    }

    /// An answer without a tag, because it depends on more than one history.
    pub fn untagged(self, body: impl IntoResponse) -> Response {
        ([(SERVER_TIMING, self.timing.header())], body).into_response()
    }

    fn headed(&self, mut response: Response, caching: &Caching, tag: HeaderValue) -> Response {
        let headers = response.headers_mut();
        // Includes room for the headers of the layers, so that the map does not grow repeatedly.
        headers.reserve(12);
        headers.extend(caching.headers(tag, self.kept_by));
        headers.insert(SERVER_TIMING, self.timing.header());
        response
    }
}
