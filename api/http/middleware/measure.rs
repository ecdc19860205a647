//! Counts and times requests, by method, route and status.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use ::metrics::{Counter, Histogram};
use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};

use crate::metric::{REQUEST_SECONDS, REQUESTS};

/// What the metrics say of a request, except its answer. The number of routes and methods is fixed, whatever clients
/// send.
pub struct Measured {
    method: &'static str,
    route: Option<MatchedPath>,
}

impl Measured {
    /// The labels of a request that is not answered yet.
    pub fn of(request: &Request) -> Self {
        let method = match *request.method() {
            Method::GET => "GET",
            Method::HEAD => "HEAD",
            Method::POST => "POST",
            Method::OPTIONS => "OPTIONS",
            _ => "other",
        };
        Self { method, route: request.extensions().get().cloned() }
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("none", MatchedPath::as_str)
    }
}

/// The metrics of requests, kept at hand: looking them up in the registry takes longer than counting.
#[derive(Default)]
pub struct Meters(RwLock<HashMap<String, Vec<Meter>>>);

/// The metrics of one route, method and status.
struct Meter {
    method: &'static str,
    status: StatusCode,
    requests: Counter,
    seconds: Histogram,
}

impl Meters {
    /// Counts a request.
    pub fn count(&self, request: &Measured, status: StatusCode, took: Duration) {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let meters = known.get(request.route()).map_or(&[][..], Vec::as_slice);
        if let Some(meter) = meters.iter().find(|meter| meter.is_of(request, status)) {
            return meter.count(took);
        }
        drop(known);
        let meter = Meter::new(request, status);
        meter.count(took);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let meters = known.entry(request.route().to_owned()).or_default();
        // A concurrent request may have added the same one.
        if !meters.iter().any(|meter| meter.is_of(request, status)) {
            meters.push(meter);
        }
    }
}

impl Meter {
    fn new(request: &Measured, status: StatusCode) -> Self {
        let (method, route) = (request.method, request.route().to_owned());
        let seconds = metrics::histogram!(REQUEST_SECONDS, "method" => method, "route" => route.clone());
        let status_text = status.as_u16().to_string();
        let requests =
            metrics::counter!(REQUESTS, "method" => method, "route" => route, "status" => status_text);
        Self { method, status, requests, seconds }
    }

    fn is_of(&self, request: &Measured, status: StatusCode) -> bool {
        self.method == request.method && self.status == status
    }

    fn count(&self, took: Duration) {
        self.seconds.record(took.as_secs_f64());
        self.requests.increment(1);
    }
}
