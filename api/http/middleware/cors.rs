//! CORS: which origins may call the API from a browser.

use std::time::Duration;

use axum::http::header::{
    ACCEPT, ACCEPT_RANGES, AUTHORIZATION, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LINK, LOCATION,
    RANGE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderName, HeaderValue, Method, request::Parts};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::hosts::LOOPBACK;
use crate::admission::rate;
use crate::answer::request_id;
use crate::request::params;

/// How many items a history has, as grids read it.
pub(crate) const TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");

/// The event of a live stream that a browser had last, when it connects again.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What scripts may send, besides what every browser lets them.
const ALLOWED: [HeaderName; 8] = [
    ACCEPT,
    AUTHORIZATION,
    CONTENT_TYPE,
    IF_NONE_MATCH,
    LAST_EVENT_ID,
    RANGE,
    params::IDEMPOTENCY_KEY,
    request_id::HEADER,
];

/// What scripts may read of an answer, besides what every browser shows them.
const EXPOSED: [HeaderName; 12] = [
    LINK,
    LOCATION,
    ETAG,
    RETRY_AFTER,
    WWW_AUTHENTICATE,
    rate::POLICY,
    rate::LEFT,
    ACCEPT_RANGES,
    CONTENT_RANGE,
    TOTAL_COUNT,
    params::IDEMPOTENCY_REPLAYED,
    request_id::HEADER,
];

/// Whether one of these, each `*`, `localhost` or an origin, is this origin.
fn allow(origins: &[String], origin: &HeaderValue) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    origins.iter().any(|allowed| match allowed.as_str() {
        "*" => true,
        "localhost" => is_localhost(origin),
        exactly => exactly == origin,
    })
}

/// Whether the origin is `localhost`, `127.0.0.1` or `[::1]`, with any port.
fn is_localhost(origin: &str) -> bool {
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let mut rests = LOOPBACK.iter().filter_map(|name| host?.strip_prefix(name));
    let is_port = |rest: &str| rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    rests.any(|rest| rest.is_empty() || is_port(rest))
}

/// The layer that allows calls from these origins.
pub(crate) fn layer(origins: Vec<String>) -> CorsLayer {
    let allow = move |origin: &HeaderValue, _: &Parts| allow(&origins, origin);
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(allow))
        // Not DELETE: a page of another origin does not erase.
        .allow_methods([Method::GET, Method::HEAD, Method::POST])
        .allow_headers(ALLOWED)
        .expose_headers(EXPOSED)
        .max_age(Duration::from_secs(3600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_is_only_localhost() {
        for origin in
            ["http://localhost", "http://localhost:5173", "https://127.0.0.1:8443", "http://[::1]:3000"]
        {
            assert!(is_localhost(origin), "{origin}");
        }
        for origin in [
            "http://localhost.evil.example",
            "http://localhost:5173@evil.example",
            "null",
            "http://evil.example",
            "file://localhost",
        ] {
            assert!(!is_localhost(origin), "{origin}");
        }
    }
}
