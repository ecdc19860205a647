//! What every read has of its request, and leaves on its answer: its deadline, what the client
//! already has, and what the database took.

use std::sync::Arc;

use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::Api;
use super::caching::{Caching, KeptBy};
use super::etag::IfNoneMatch;
use super::problem::{Kind, Problem};
use crate::store::{Deadline, Epoch};

/// Server Timing, W3C.
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// One read, from its request to its answer.
pub struct Reading {
    /// When nobody waits any more.
    pub deadline: Deadline,
    /// The database's.
    pub epoch: Epoch,
    known: IfNoneMatch,
    kept_by: KeptBy,
    database: Duration,
    /// Whether all that was looked for in the page cache was there.
    hit: Option<bool>,
}

impl FromRequestParts<Arc<Api>> for Reading {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let missing = || Problem::new(Kind::Internal, "A route is without its deadline.");
        let deadline = *parts.extensions.get::<Deadline>().ok_or_else(missing)?;
        Ok(Self {
            deadline,
            epoch: api.store.epoch(deadline).await?,
            known: IfNoneMatch::of(&parts.headers),
            kept_by: api.kept_by,
            database: Duration::ZERO,
            hit: None,
        })
    }
}

impl Reading {
    /// Waits for the database.
    pub async fn database<T>(&mut self, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let result = work.await;
        self.database += started.elapsed();
        result
    }

    /// Notes whether something was in the page cache.
    pub fn cached(&mut self, hit: bool) {
        self.hit = Some(hit && self.hit.unwrap_or(true));
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
        ([(SERVER_TIMING, self.timing())], body).into_response()
    }

    fn headed(&self, mut response: Response, caching: &Caching, tag: HeaderValue) -> Response {
        let headers = response.headers_mut();
        // With those of the layers, so that the map need not grow again and again.
        headers.reserve(12);
        headers.extend(caching.headers(tag, self.kept_by));
        headers.insert(SERVER_TIMING, self.timing());
        response
    }

    fn timing(&self) -> HeaderValue {
        match (self.database, self.hit) {
            (Duration::ZERO, None) => return HeaderValue::from_static("db;dur=0.000"),
            (Duration::ZERO, Some(true)) => return HeaderValue::from_static("db;dur=0.000, cache;desc=hit"),
            _ => {}
        }
        let mut text = format!("db;dur={:.3}", self.database.as_secs_f64() * 1000.0);
        if let Some(hit) = self.hit {
            text.push_str(if hit { ", cache;desc=hit" } else { ", cache;desc=miss" });
        }
        // Cannot fail: a number and words.
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("db"))
    }
}
