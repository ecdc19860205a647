//! Admission of requests under `/v1`: how many at once, what their clients accept, and how long they may take. The
//! [`Policy`] of each route decides.
//!
//! Uploads have places of their own. However many there are, and however slow their clients are, they keep no other
//! requests out. (An export has one of `--max-requests` until its answer begins, and one of `--max-exports` until it
//! ends.) One client has at most a quarter of the places of each kind.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt, TryFutureExt};
use pagebucket_engine::Engine;
use tokio_util::sync::CancellationToken;

use super::accept;
use super::around::{Answer, Around, AroundLayer, Inner};
use super::gate::Gate;
use crate::auth::access::Access;
use crate::client::Client;
use crate::limits::concurrency::{LongPlace, Place, Places};
use crate::limits::rate::{Class, ClientQuota};
use crate::limits::unsent::WithPlace;
use crate::problem::{Kind, Problem};
use crate::request::body::JSON;
use crate::request::deadline::{self, REQUEST};

/// What a route answers, and how long that may take. It is given where the route is registered.
#[derive(Debug, Clone, Copy)]
pub enum Policy {
    /// JSON, within the time of a request.
    Json,
    /// Rows of this media type, which are streamed. The answer begins within the time of a request.
    Rows(&'static str),
    /// The answer of this media type to an upload, which takes as long as its client keeps its pace.
    Upload(&'static str),
}

/// Answers 503 at once if the limit of concurrent requests is reached.
pub async fn under_way(
    State((places, gate)): State<(Places, Gate)>,
    request: Request,
    next: Next,
) -> Response {
    match places.take(gate.client(request.extensions(), request.headers())) {
        Ok(place) => held(place, next.run(request).await),
        Err(problem) => problem.into_response(),
    }
}

/// Admits requests that their client may send: others are 401 or 403. Answers 503 at once if the service is stopping
/// (earlier requests continue) or has no free place, 429 if the client has used up its quota, and 406 or 505 if the client
/// cannot take the answer. Gives every request its deadline, which handlers pass to the store.
#[derive(Clone)]
pub struct Admission {
    /// Cancelled when the service stops.
    pub stop: CancellationToken,
    /// The places of requests, uploads aside.
    pub requests: Places,
    pub uploads: Places,
    /// Decides who may use a route.
    pub gate: Gate,
    /// Of the routes inside: [`Admission::layer`] sets it and the next two.
    pub policy: Policy,
    pub access: Access,
    /// The history of the routes inside, if they are of one: it becomes an extension of the request. Another layer for this
    /// would cost every request a copy of everything inside it.
    pub engine: Option<Engine>,
}

impl Admission {
    /// The layer for routes with this policy and this access, of this history.
    pub fn layer(&self, policy: Policy, access: Access, engine: Option<&Engine>) -> AroundLayer<Self> {
        AroundLayer(Self { policy, access, engine: engine.cloned(), ..self.clone() })
    }

    fn admit(&self, request: &Request, client: Client, quota: &ClientQuota) -> Result<Place, Problem> {
        if self.stop.is_cancelled() {
            return Err(Problem::stopping());
        }
        quota.charge(1)?;
        let (places, answer) = match self.policy {
            Policy::Json => (&self.requests, JSON),
            Policy::Rows(media_type) => (&self.requests, media_type),
            Policy::Upload(media_type) => (&self.uploads, media_type),
        };
        let place = places.take(client)?;
        accept::takes_answer(request, answer)?;
        Ok(place)
    }
}

impl<S: Inner> Around<S> for Admission {
    type Response = Response;

    fn call(&self, inner: &mut S, request: Request) -> Answer<Response> {
        // Without authentication no request pays for a copy of this layer.
        if !self.gate.is_guarded() {
            return self.call_permitted(inner, request);
        }
        let (admission, route) = (self.clone(), (self.access, self.engine.as_ref()));
        let pass = move |inner: &mut S, request| admission.call_permitted(inner, request);
        self.gate.guard(inner, request, route, pass)
    }
}

impl Admission {
    /// Answers a request that its client may send.
    fn call_permitted(&self, inner: &mut impl Inner, mut request: Request) -> Answer<Response> {
        let client = self.gate.client(request.extensions(), request.headers());
        let rates = self.gate.rates.as_ref();
        let quota = rates.map_or_else(ClientQuota::default, |rates| {
            ClientQuota::of(rates, self.class(&request), client.clone())
        });
        let place = match self.admit(&request, client, &quota) {
            Ok(place) => place,
            Err(problem) => return std::future::ready(Ok(told(&quota, problem.into_response()))).boxed(),
        };
        let extensions = request.extensions_mut();
        extensions.insert(deadline::from_now());
        if quota.is_limited() {
            extensions.insert(quota.clone());
        }
        if let Some(engine) = &self.engine {
            extensions.insert(engine.clone());
        }
        if let Policy::Upload(_) = self.policy {
            request.extensions_mut().insert(LongPlace::new(place));
            return inner.call(request).map_ok(move |answer| told(&quota, answer)).boxed();
        }
        let answer = tokio::time::timeout(REQUEST, inner.call(request));
        let streams = matches!(self.policy, Policy::Rows(_));
        Box::pin(async move {
            let Ok(answer) = answer.await.unwrap_or_else(|_elapsed| {
                let late = "The request took longer than the time limit.";
                Ok(Problem::new(Kind::TimedOut, late).into_response())
            });
            let answer = told(&quota, answer);
            // An export has a place of its own, because it may take long.
            Ok(if streams { answer } else { held(place, answer) })
        })
    }

    /// What a request counts as.
    fn class(&self, request: &Request) -> Class {
        match self.policy {
            Policy::Rows(_) | Policy::Upload(_) => Class::Streams,
            Policy::Json if request.method().is_safe() => Class::Reads,
            Policy::Json => Class::Appends,
        }
    }
}

/// The answer, which keeps the place of its request.
fn held(place: Place, mut answer: Response) -> Response {
    answer.extensions_mut().insert(WithPlace::new(place));
    answer
}

/// The answer, which tells the client what it may still use.
fn told(quota: &ClientQuota, mut answer: Response) -> Response {
    quota.tell(answer.headers_mut());
    answer
}
