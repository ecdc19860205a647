//! Admission of requests under `/v1`: how many at once, what their clients accept, and how long they may take. The
//! [`Policy`] of each route decides.
//!
//! Uploads have permits of their own. However many there are, and however slow their clients are, they keep no other
//! requests out. (An export has one of `--max-requests` until its answer begins, and one of `--max-exports` until it
//! ends.) One client has at most a quarter of the permits of each kind.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Uri;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt, TryFutureExt};
use pagebucket_engine::Engine;
use pagebucket_model::definition::Owner;
use tokio_util::sync::CancellationToken;

use super::accept;
use super::gate::{AccessRequest, Gate, answer_to};
use super::measure::{Gauges, UnderWay};
use super::service::{InnerService, Middleware, MiddlewareLayer, ResponseFuture, ready};
use crate::auth::access::Access;
use crate::client::Client;
use crate::limits::answer_memory::WithPermit;
use crate::limits::permits::{LongPermit, Permit, Permits};
use crate::limits::rate::{Class, ClientQuota};
use crate::problem::{Problem, ProblemKind};
use crate::request::body::JSON;
use crate::request::context::RequestContext;
use crate::request::deadline::{self, REQUEST};
use crate::request::owner::AddressedOwner;

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
    State((permits, gate)): State<(Permits, Gate)>,
    request: Request,
    next: Next,
) -> Response {
    match permits.take(gate.client(request.extensions(), request.headers())) {
        Ok(permit) => held(permit, next.run(request).await),
        Err(problem) => problem.into_response(),
    }
}

/// What all routes under `/v1` share.
pub struct Admission {
    /// Cancelled when the service stops.
    pub stop: CancellationToken,
    /// The permits of requests, uploads aside.
    pub requests: Permits,
    /// The permits of uploads.
    pub uploads: Permits,
    /// Decides who may use a route.
    pub gate: Gate,
    /// Count the requests that are admitted and have not ended.
    pub under_way: Gauges,
}

/// Admits requests to one route that their client may send: others are 401 or 403. Answers 503 at once if the service is
/// stopping (earlier requests continue) or has no free permit, 429 if the client has used up its quota, and 406 or 505 if the
/// client cannot take the answer. Completes the context of each request, with its deadline for example.
#[derive(Clone)]
pub struct RouteAdmission {
    shared: Arc<Admission>,
    policy: Policy,
    access: Access,
    /// The history of the route, or those of its collection of owners.
    histories: Option<Arc<[Engine]>>,
}

impl Admission {
    /// The layer for routes with this policy and this access, of these histories.
    pub fn layer(
        self: &Arc<Self>,
        policy: Policy,
        access: Access,
        histories: Option<&Arc<[Engine]>>,
    ) -> MiddlewareLayer<RouteAdmission> {
        let (shared, histories) = (Arc::clone(self), histories.cloned());
        MiddlewareLayer(RouteAdmission { shared, policy, access, histories })
    }
}

impl<S: InnerService> Middleware<S> for RouteAdmission {
    type Response = Response;

    fn call(&self, inner: &mut S, mut request: Request) -> ResponseFuture<Response> {
        // Without authentication no request pays for a copy of this layer.
        if self.shared.gate.is_open(self.access) {
            let owner = self.owner(request.uri()).map(|owner| owner.id);
            RequestContext::of_mut(request.extensions_mut()).owner = owner;
            return self.admit(inner, request);
        }
        let (route, mut inner) = (self.clone(), ready(inner));
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let owner = route.owner(&parts.uri);
            let asked = AccessRequest {
                access: route.access,
                collection: route.owner_type().map(|owner| &*owner.collection),
                owner: owner.as_ref().map(|owner| &*owner.text),
            };
            let principal = match route.shared.gate.decide(&parts, &asked).await {
                Ok(principal) => principal,
                Err(refused) => return Ok(refused.into_response()),
            };
            let owner = owner.map(|owner| owner.id);
            let context = RequestContext::of_mut(&mut parts.extensions);
            (context.principal, context.owner) = (principal.clone(), owner);
            let answer = route.admit(&mut inner, Request::from_parts(parts, body)).await?;
            Ok(answer_to(principal, answer))
        })
    }
}

impl RouteAdmission {
    /// What the definitions of its histories say of their owners.
    fn owner_type(&self) -> Option<&Owner> {
        self.histories.as_ref()?.first().map(|history| &history.definition().owner)
    }

    /// The owner that an address of the route names.
    fn owner<'a>(&self, address: &'a Uri) -> Option<AddressedOwner<'a>> {
        self.owner_type()
            .filter(|_| self.access.names_owner())
            .map(|owner| AddressedOwner::of(address, owner.kind))
    }

    /// Answers a request that its client may send.
    fn admit(&self, inner: &mut impl InnerService, mut request: Request) -> ResponseFuture<Response> {
        let client = self.shared.gate.client(request.extensions(), request.headers());
        let rates = self.shared.gate.rates.as_ref();
        let class = self.class(&request);
        let quota =
            rates.map_or_else(ClientQuota::default, |rates| ClientQuota::of(rates, class, client.clone()));
        let permit = match self.permit(&request, client, &quota) {
            Ok(permit) => permit,
            Err(problem) => {
                return std::future::ready(Ok(with_quota(&quota, problem.into_response()))).boxed();
            }
        };
        let under_way = self.shared.under_way.count(class);
        let context = RequestContext::of_mut(request.extensions_mut());
        context.deadline = deadline::from_now();
        context.quota = quota.clone();
        context.histories.clone_from(&self.histories);
        if let Policy::Upload(_) = self.policy {
            context.permit = Some(LongPermit::new(permit));
            let answer = inner.call(request);
            return answer.map_ok(move |answer| counted(under_way, with_quota(&quota, answer))).boxed();
        }
        let answer = tokio::time::timeout(REQUEST, inner.call(request));
        let streams = matches!(self.policy, Policy::Rows(_));
        Box::pin(async move {
            let Ok(answer) = answer.await.unwrap_or_else(|_elapsed| {
                let late = "The request took longer than the time limit.";
                Ok(Problem::new(ProblemKind::TimedOut, late).into_response())
            });
            let answer = counted(under_way, with_quota(&quota, answer));
            // An export has a permit of its own, because it may take long.
            Ok(if streams { answer } else { held(permit, answer) })
        })
    }

    /// The permit of a request, if it is admitted.
    fn permit(&self, request: &Request, client: Client, quota: &ClientQuota) -> Result<Permit, Problem> {
        if self.shared.stop.is_cancelled() {
            return Err(Problem::stopping());
        }
        quota.charge(1)?;
        let (permits, answer) = match self.policy {
            Policy::Json => (&self.shared.requests, JSON),
            Policy::Rows(media_type) => (&self.shared.requests, media_type),
            Policy::Upload(media_type) => (&self.shared.uploads, media_type),
        };
        let permit = permits.take(client)?;
        accept::takes_answer(request, answer)?;
        Ok(permit)
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

/// The answer, which keeps the permit of its request.
fn held(permit: Permit, mut answer: Response) -> Response {
    answer.extensions_mut().insert(WithPermit::new(permit));
    answer
}

/// The answer, until whose end its request is under way.
fn counted(under_way: UnderWay, mut answer: Response) -> Response {
    answer.extensions_mut().insert(Arc::new(under_way));
    answer
}

/// The answer, which tells the client what it may still use.
fn with_quota(quota: &ClientQuota, mut answer: Response) -> Response {
    quota.tell(answer.headers_mut());
    answer
}
