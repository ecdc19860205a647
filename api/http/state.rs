//! What the routes share: the database, the page cache, limits and settings.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use pagebucket_engine::Store;
use pagebucket_model::domain::Clock;
use pagebucket_page_views::PageViews;
use tokio_util::sync::CancellationToken;

use super::admission::client::Client;
use super::admission::clients::Clients;
use super::admission::gate::Gate;
use super::admission::limits::Limits;
use super::admission::permits::Permits;
use super::admission::uploads::Uploads;
use super::answer::log::Traces;
use super::caching::reading::ReadTerms;
use super::middleware::hosts::Hosts;
use super::pages::cache::Pages;

/// The state of the routes.
pub struct Api {
    /// The database.
    pub store: Store,
    /// Its page views.
    pub page_views: PageViews,
    /// What all reads have in common.
    pub reads: ReadTerms,
    /// The cache of full pages.
    pub pages: Pages,
    /// The permits of exports.
    pub exports: Permits,
    /// The permits of reads of page views that may take long.
    pub scans: Permits,
    /// The permits of uploads, and their memory budget.
    pub uploads: Uploads,
    /// Decides who may use which route.
    pub gate: Gate,
    /// Tells clients apart, and limits each.
    pub clients: Clients,
    /// The clock of the service.
    pub clock: Clock,
    /// The limits of requests.
    pub limits: Limits,
    /// Which origins may call from a browser: `*`, `localhost`, or origins as a browser sends them.
    pub origins: Vec<String>,
    /// Which hosts a request may name.
    pub hosts: Hosts,
    /// Whether the explorer is served.
    pub explorer: bool,
    /// Set when the service is told to stop: `/readyz` fails from then on, and everything else is served
    /// until `stop`.
    pub leaving: Arc<AtomicBool>,
    /// Cancelled when the service refuses new requests and ends streams.
    pub stop: CancellationToken,
    /// Renders all that this process has measured, in Prometheus' text format, for every `GET /metrics`.
    pub metrics: fn() -> String,
    /// Which requests are traced. `None`: none.
    pub traces: Option<Traces>,
}

impl FromRef<Arc<Api>> for ReadTerms {
    fn from_ref(api: &Arc<Api>) -> Self {
        api.reads
    }
}

impl FromRequestParts<Arc<Api>> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Infallible> {
        Ok(api.clients.of(&parts.extensions, &parts.headers))
    }
}
