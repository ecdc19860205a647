//! What the routes share: the database, what is kept in memory, limits and settings.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::cache::control::KeptBy;
use super::cache::pages::Pages;
use super::history::upload::quota::Uploads;
use super::metrics::Metrics;
use super::middleware::cors::Origins;
use super::middleware::hosts::Hosts;
use super::places::Places;
use crate::domain::Clock;
use crate::store::Store;

/// What the routes need.
pub struct Api {
    /// The database.
    pub store: Store,
    /// Full pages in memory.
    pub pages: Pages,
    /// The places of exports.
    pub exports: Places,
    /// The places of reads of page views that may take long.
    pub scans: Places,
    /// The places of uploads, and their memory.
    pub uploads: Uploads,
    /// Who may keep a full page.
    pub kept_by: KeptBy,
    /// What time it is.
    pub clock: Clock,
    /// How much a request may ask for.
    pub limits: Limits,
    /// Which origins may call from a browser.
    pub origins: Origins,
    /// Which hosts a request may name.
    pub hosts: Hosts,
    /// Whether new requests should be sent here.
    pub ready: Ready,
    /// What `/metrics` shows.
    pub metrics: Metrics,
}

/// How much a request may ask for.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most requests at once, uploads aside.
    pub requests: usize,
    /// Longest body, in bytes.
    pub body: usize,
    /// Time in which a body must arrive. An upload must keep its pace in each such span.
    pub body_timeout: Duration,
}

/// Whether new requests should be sent here: true until [`Ready::end`]. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Ready(CancellationToken);

impl Ready {
    /// From now on `/readyz` says no.
    pub fn end(&self) {
        self.0.cancel();
    }

    /// Whether `/readyz` says yes.
    pub fn get(&self) -> bool {
        !self.0.is_cancelled()
    }

    /// Waits until `/readyz` says no.
    pub async fn ended(&self) {
        self.0.cancelled().await;
    }
}
