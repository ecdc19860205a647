//! What the routes share: the database, the page cache, limits and settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::cache::control::KeptBy;
use super::cache::pages::Pages;
use super::history::upload::quota::Uploads;
use super::middleware::cors::Origins;
use super::middleware::hosts::Hosts;
use super::places::Places;
use crate::domain::Clock;
use crate::store::Store;

/// The state of the routes.
pub struct Api {
    /// The database.
    pub store: Store,
    /// The cache of full pages.
    pub pages: Pages,
    /// The places of exports.
    pub exports: Places,
    /// The places of reads of page views that may take long.
    pub scans: Places,
    /// The places of uploads, and their memory budget.
    pub uploads: Uploads,
    /// Which caches may keep a full page.
    pub kept_by: KeptBy,
    /// The clock of the service.
    pub clock: Clock,
    /// The limits of requests.
    pub limits: Limits,
    /// Which origins may call from a browser.
    pub origins: Origins,
    /// Which hosts a request may name.
    pub hosts: Hosts,
    /// Whether the service accepts new requests.
    pub ready: Ready,
    /// What `/metrics` shows.
    pub metrics: Metrics,
}

/// Limits of requests.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most requests at once, uploads aside.
    pub requests: usize,
    /// Longest body, in bytes.
    pub body: usize,
    /// Time within which a body must arrive. An upload must keep its minimum pace in each such span.
    pub body_timeout: Duration,
}

/// Whether the service accepts new requests: true until [`Ready::end`]. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct Ready(CancellationToken);

impl Ready {
    /// Refuses new requests from now on: `/readyz` fails.
    pub fn end(&self) {
        self.0.cancel();
    }

    /// Whether the service accepts new requests.
    pub fn get(&self) -> bool {
        !self.0.is_cancelled()
    }

    /// Waits for [`Ready::end`].
    pub async fn ended(&self) {
        self.0.cancelled().await;
    }
}

/// Renders all that this process has measured, in Prometheus' text format.
#[derive(Clone)]
pub struct Metrics(Arc<dyn Fn() -> String + Send + Sync>);

impl Metrics {
    /// `render` is called for every `GET /metrics`.
    pub fn new(render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(render))
    }

    /// All that has been measured, as text.
    pub fn render(&self) -> String {
        (self.0)()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}
