//! Counts and times requests, by method, route and status.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ::metrics::{Counter, Histogram};
use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;

use crate::metric::{REQUEST_SECONDS, REQUESTS};

/// What the metrics say of a request, except its answer. The number of routes and methods is fixed, whatever clients
/// send.
#[derive(PartialEq, Eq, Hash)]
pub struct Measured {
    method: &'static str,
    route: String,
}

impl Measured {
    /// The labels of a request that is not answered yet.
    pub fn of(request: &Request) -> Self {
        let mut methods = ["GET", "HEAD", "POST", "OPTIONS"].into_iter();
        let method = methods.find(|method| request.method() == method).unwrap_or("other");
        let route = request.extensions().get().map_or("none", MatchedPath::as_str);
        Self { method, route: route.to_owned() }
    }
}

/// The metrics of requests, kept at hand: looking them up in the registry takes longer than counting.
/// Clones share them.
#[derive(Clone, Default)]
pub struct Meters(Arc<RwLock<HashMap<(Measured, StatusCode), Meter>>>);

type Meter = (Counter, Histogram);

impl Meters {
    /// Counts a request.
    pub fn count(&self, request: Measured, status: StatusCode, took: Duration) {
        let labels = (request, status);
        let count = |(requests, seconds): &Meter| {
            seconds.record(took.as_secs_f64());
            requests.increment(1);
        };
        if let Some(meter) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&labels) {
            return count(meter);
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        count(known.entry(labels).or_insert_with_key(|(Measured { method, route }, status)| {
            let seconds = metrics::histogram!(REQUEST_SECONDS, "method" => *method, "route" => route.clone());
            let status = status.as_u16().to_string();
            let requests =
                metrics::counter!(REQUESTS, "method" => *method, "route" => route.clone(), "status" => status);
            (requests, seconds)
        }));
    }
}
