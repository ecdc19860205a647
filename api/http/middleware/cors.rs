//! CORS: which origins may call the API from a browser.

use std::time::Duration;

use axum::http::{HeaderValue, Method, header, request::Parts};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::hosts::LOOPBACK;
use super::request_id;
use crate::http::idempotency;

/// The origins that may call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origins {
    /// All origins.
    pub any: bool,
    /// `localhost`, `127.0.0.1` and `[::1]`, with any port.
    pub localhost: bool,
    /// These origins, as a browser sends them.
    pub exactly: Vec<String>,
}

impl Origins {
    fn allow(&self, origin: &HeaderValue) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        self.any
            || (self.localhost && is_localhost(origin))
            || self.exactly.iter().any(|allowed| allowed == origin)
    }
}

fn is_localhost(origin: &str) -> bool {
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    host.is_some_and(|host| {
        LOOPBACK.iter().any(|name| {
            host.strip_prefix(name).is_some_and(|rest| {
                rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
            })
        })
    })
}

/// The layer that allows calls from these origins.
pub fn layer(origins: Origins) -> CorsLayer {
    let allow = move |origin: &HeaderValue, _: &Parts| origins.allow(origin);
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(allow))
        .allow_methods([Method::GET, Method::HEAD, Method::POST])
        .allow_headers([
            header::ACCEPT,
            header::CONTENT_TYPE,
            header::IF_NONE_MATCH,
            idempotency::KEY,
            request_id::HEADER,
        ])
        .expose_headers([
            header::LINK,
            header::LOCATION,
            header::ETAG,
            header::RETRY_AFTER,
            idempotency::REPLAYED,
            request_id::HEADER,
        ])
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
