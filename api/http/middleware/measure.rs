//! Requests are counted and timed, by method, route and status.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use ::metrics::{Counter, Histogram};
use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};

use crate::metric::{REQUEST_SECONDS, REQUESTS};

/// What is known of a request before its answer. Routes and methods are of a fixed number, whatever a
/// client sends.
pub struct Measured {
    method: &'static str,
    route: Option<MatchedPath>,
}

impl Measured {
    /// Before the request is answered.
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

/// Where requests are counted: kept, because looking for it among all that is measured takes longer
/// than counting.
#[derive(Default)]
pub struct Meters(RwLock<HashMap<String, Vec<Meter>>>);

/// That of a route's answers of one kind.
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
        // Two that came at once have the same.
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
