//! The settings of requests.

use std::time::Duration;

/// Limits of requests, and of the connections that they come over.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most requests at once, uploads, live streams and long polls aside.
    pub requests: usize,
    /// Most live streams and long polls at once.
    pub live: usize,
    /// How long a live stream may last.
    pub live_age: Duration,
    /// Longest body, in bytes.
    pub body: usize,
    /// Whether clients must reach the service over TLS. Every answer then tells browsers to use nothing else.
    pub tls: bool,
    /// Time within which a body must arrive. An upload must keep its minimum pace in each such span.
    pub body_timeout: Duration,
}
