//! How long a stream may last: until the token of its client expires.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Extensions;

use crate::domain::{Clock, Instant, Principal};

/// What is left of the life of a token or key. Without authentication it has no end.
#[derive(Debug, Clone)]
pub struct Lifetime {
    expires: Option<Instant>,
    clock: Clock,
}

impl Lifetime {
    /// Of the client of a request with these extensions.
    pub fn among(extensions: &Extensions, clock: &Clock) -> Self {
        let principal = extensions.get::<Arc<Principal>>();
        Self { expires: principal.and_then(|principal| principal.expires), clock: clock.clone() }
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.left() == Some(Duration::ZERO)
    }

    /// Waits until it is over.
    pub async fn over(&self) {
        match self.left() {
            Some(left) => tokio::time::sleep(left).await,
            None => std::future::pending().await,
        }
    }

    fn left(&self) -> Option<Duration> {
        let left = self.expires?.millis() - self.clock.now().millis();
        Some(Duration::from_millis(u64::try_from(left).unwrap_or_default()))
    }
}
