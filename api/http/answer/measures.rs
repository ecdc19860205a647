//! Counts and times requests, by method, route and status.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::metrics::{Counter, Histogram};
use axum::extract::Request;
use axum::http::StatusCode;
use hashlink::DefaultHashBuilder;
use pagebucket_model::domain::Principal;
use pagebucket_model::metric::{CLIENT_REQUESTS, REQUEST_SECONDS, REQUESTS};
use parking_lot::RwLock;

use super::route_name::RouteName;

/// What the metrics say of a request, except its answer. The number of routes and methods is fixed, whatever
/// clients send.
pub(crate) struct Measured {
    method: &'static str,
    route: Option<RouteName>,
}

impl Measured {
    /// The labels of a request that is not answered yet.
    pub(crate) fn of(request: &Request, route: Option<RouteName>) -> Self {
        let mut methods = ["GET", "HEAD", "POST", "DELETE", "OPTIONS"].into_iter();
        let method = methods.find(|method| request.method() == method).unwrap_or("other");
        Self { method, route }
    }
}

/// Registers what counts the failures of a route at 0, so that an alarm sees the first one.
pub(crate) fn begin(methods: impl Iterator<Item = &'static str>, route: &str) {
    for method in methods {
        for status in ["500", "503"] {
            drop(
                metrics::counter!(REQUESTS, "method" => method, "route" => route.to_owned(), "status" => status),
            );
        }
    }
}

/// Most clients with a metric of their own.
const MOST_CLIENTS: usize = 100;

/// The metrics of requests, kept at hand: looking them up in the registry takes longer than counting.
/// Clones share them. There are few routes, so the hash need not withstand chosen names, only be fast.
#[derive(Clone, Default)]
pub(crate) struct Meters {
    routes: Arc<RwLock<HashMap<String, OfRoute, DefaultHashBuilder>>>,
    clients: Arc<RwLock<HashMap<String, Counter>>>,
}

type OfRoute = HashMap<(&'static str, StatusCode), (Counter, Histogram), DefaultHashBuilder>;

impl Meters {
    /// Counts a request, also for its client, if clients are authenticated. Without a time it is not in the
    /// histogram of durations.
    pub(crate) fn count(
        &self,
        Measured { method, route }: &Measured,
        status: StatusCode,
        took: Option<Duration>,
        client: Option<&Principal>,
    ) {
        if let Some(client) = client {
            self.count_of(&client.name);
        }
        let (labels, route) = ((*method, status), route.as_ref().map_or("none", RouteName::as_str));
        let count = |(requests, seconds): &(Counter, Histogram)| {
            if let Some(took) = took {
                seconds.record(took.as_secs_f64());
            }
            requests.increment(1);
        };
        let known = self.routes.read();
        if let Some(meter) = known.get(route).and_then(|of_route| of_route.get(&labels)) {
            return count(meter);
        }
        drop(known);
        let mut known = self.routes.write();
        count(known.entry(route.to_owned()).or_default().entry(labels).or_insert_with(|| {
            let seconds = metrics::histogram!(REQUEST_SECONDS, "method" => *method, "route" => route.to_owned());
            let status = status.as_u16().to_string();
            let requests =
                metrics::counter!(REQUESTS, "method" => *method, "route" => route.to_owned(), "status" => status);
            (requests, seconds)
        }));
    }

    /// Counts a request of a client. There may be any number of clients: those after the first hundred share
    /// a metric.
    fn count_of(&self, name: &str) {
        let known = self.clients.read();
        if let Some(counter) = known.get(name) {
            return counter.increment(1);
        }
        let named = if known.len() < MOST_CLIENTS { name } else { "other" };
        drop(known);
        let counter = metrics::counter!(CLIENT_REQUESTS, "principal" => named.to_owned());
        counter.increment(1);
        if named == name {
            let mut known = self.clients.write();
            known.insert(name.to_owned(), counter);
        }
    }
}
