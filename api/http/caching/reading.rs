//! The state of a read request: its deadline, the tags that the client has, and the time spent in the
//! database.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::IF_NONE_MATCH;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use pagebucket_engine::internal::Epoch;
use pagebucket_engine::{Deadline, Engine};

use super::control::{Caching, KeptBy};
use super::etag::IfNoneMatch;
use crate::admission::context::Granted;
use crate::admission::rate::ClientQuota;

/// Server Timing, W3C.
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// What all reads of a server have in common.
#[derive(Debug, Clone, Copy)]
pub struct ReadTerms {
    /// The epoch of the database.
    pub epoch: Epoch,
    /// Which caches may keep an answer that never changes.
    pub kept_by: KeptBy,
}

/// One read, from its request to its answer.
pub struct Reading {
    /// The deadline of its database commands.
    pub deadline: Deadline,
    /// The epoch of the database.
    pub epoch: Epoch,
    /// What its client may still use.
    pub quota: ClientQuota,
    condition: Condition,
    kept_by: KeptBy,
    /// How long it has waited for the database.
    waited: Duration,
    /// Whether it found its pages in the page cache; `None` if no page was looked up.
    hit: Option<bool>,
}

/// The tags that the client of a read has, if it has any.
pub(crate) struct Condition(Option<IfNoneMatch>);

impl Condition {
    /// Of a request with these headers.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self(headers.contains_key(IF_NONE_MATCH).then(|| IfNoneMatch::of(headers)))
    }

    /// The tag for a 304 if the client names it itself, unless pages of the history may have been deleted.
    pub(crate) fn named(
        &self,
        engine: &Engine,
        caching: impl FnOnce() -> Caching,
    ) -> Option<(Caching, HeaderValue)> {
        let known = self.0.as_ref().filter(|_| !engine.reads().may_have_lost_pages())?;
        let caching = caching();
        known.known(&caching.tag).map(|tag| (caching, tag))
    }

    /// The tag for a 304 if the client's copy is current.
    pub(crate) fn met_by(&self, caching: &Caching) -> Option<HeaderValue> {
        self.0.as_ref()?.met_by(&caching.tag)
    }
}

impl<S: Sync> FromRequestParts<S> for Reading
where
    ReadTerms: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(
        Parts { headers, extensions, .. }: &mut Parts,
        state: &S,
    ) -> Result<Self, Infallible> {
        Ok(Self::begin(Granted::of(extensions), ReadTerms::from_ref(state), headers))
    }
}

impl Reading {
    /// Begins a read that a request with these headers asks for.
    pub(crate) fn begin(granted: Granted, terms: ReadTerms, headers: &HeaderMap) -> Self {
        let (Granted { deadline, quota }, ReadTerms { epoch, kept_by }) = (granted, terms);
        let condition = Condition::of(headers);
        Self { deadline, epoch, quota, condition, kept_by, waited: Duration::ZERO, hit: None }
    }

    /// Waits for the database.
    pub async fn database<T>(&mut self, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let result = work.await;
        self.waited += started.elapsed();
        result
    }

    /// Notes whether a page was in the page cache.
    pub fn note_lookup(&mut self, hit: bool) {
        self.hit = Some(hit && self.hit.unwrap_or(true));
    }

    /// 304 if the client names this tag itself. Needs no look-up: a client with the tag has seen the answer.
    /// If pages of the history may have been deleted since, the answer must be looked up.
    pub fn named(&self, engine: &Engine, caching: impl FnOnce(Epoch) -> Caching) -> Option<Response> {
        let (caching, tag) = self.condition.named(engine, || caching(self.epoch))?;
        Some(self.not_modified(&caching, tag))
    }

    /// 304 if the client's copy is current.
    pub fn unchanged(&self, caching: &Caching) -> Option<Response> {
        self.condition.met_by(caching).map(|tag| self.not_modified(caching, tag))
    }

    /// 304 with this tag.
    pub fn not_modified(&self, caching: &Caching, tag: HeaderValue) -> Response {
        self.headed(StatusCode::NOT_MODIFIED, caching, tag)
    }

    /// The answer, or 304 if the client's copy is current.
    pub fn answer(&self, caching: &Caching, body: impl IntoResponse) -> Response {
        let unchanged = self.unchanged(caching);
        unchanged.unwrap_or_else(|| self.headed(body, caching, caching.tag.header()))
    }

    /// An answer without a tag, because it depends on more than one history.
    pub fn untagged(self, body: impl IntoResponse) -> Response {
        ([(SERVER_TIMING, self.timing())], body).into_response()
    }

    fn headed(&self, body: impl IntoResponse, caching: &Caching, tag: HeaderValue) -> Response {
        let mut response = body.into_response();
        let headers = response.headers_mut();
        // Includes room for the headers of the layers, so that the map does not grow repeatedly.
        headers.reserve(12);
        headers.extend(caching.headers(tag, self.kept_by));
        headers.insert(SERVER_TIMING, self.timing());
        response
    }

    /// The value of `Server-Timing`.
    fn timing(&self) -> HeaderValue {
        let cache = match self.hit {
            None if self.waited.is_zero() => return HeaderValue::from_static("db;dur=0.000"),
            None => "",
            Some(true) if self.waited.is_zero() => {
                return HeaderValue::from_static("db;dur=0.000, cache;desc=hit");
            }
            Some(true) => ", cache;desc=hit",
            Some(false) => ", cache;desc=miss",
        };
        let millis = self.waited.as_secs_f64() * 1000.0;
        HeaderValue::try_from(format!("db;dur={millis:.3}{cache}")).expect("a number and words")
    }
}
