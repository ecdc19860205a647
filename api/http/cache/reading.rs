//! What every read has of its request, and leaves on its answer: its deadline, what the client
//! already has, and what the database took.

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
    /// By when its database commands must have ended.
    pub deadline: Deadline,
    /// The database's.
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

    /// What the page cache found, whose time is added to this read's.
    pub fn looked_up<T>(&mut self, (found, timing): (T, Timing)) -> T {
        self.timing.add(timing);
        found
    }

    /// 304, when the client names the very tag: before it is known whether there is anything.
    pub fn named(&self, caching: impl FnOnce(Epoch) -> Caching) -> Option<Response> {
        if self.known == IfNoneMatch::Nothing {
            return None;
        }
        let caching = caching(self.epoch);
        self.known.known(&caching.tag).map(|tag| self.not_modified(&caching, tag))
    }

    /// 304, when the client has what there is.
    pub fn unchanged(&self, caching: &Caching) -> Option<Response> {
        self.known.met_by(&caching.tag).map(|tag| self.not_modified(caching, tag))
    }

    fn not_modified(&self, caching: &Caching, tag: HeaderValue) -> Response {
        self.headed(StatusCode::NOT_MODIFIED.into_response(), caching, tag)
    }

    /// The answer, or 304 when the client has it.
    pub fn answer(self, caching: &Caching, body: impl IntoResponse) -> Response {
        let unchanged = self.unchanged(caching);
        unchanged.unwrap_or_else(|| self.headed(body.into_response(), caching, caching.tag.header()))
    }

    /// The answer that changes with more than one history, and has no tag.
    pub fn untagged(self, body: impl IntoResponse) -> Response {
        ([(SERVER_TIMING, self.timing.header())], body).into_response()
    }

    fn headed(&self, mut response: Response, caching: &Caching, tag: HeaderValue) -> Response {
        let headers = response.headers_mut();
        // With those of the layers, so that the map need not grow again and again.
        headers.reserve(12);
        headers.extend(caching.headers(tag, self.kept_by));
        headers.insert(SERVER_TIMING, self.timing.header());
        response
    }
}
