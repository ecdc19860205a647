//! Admission of requests under `/v1`: how many at once, what their clients accept, and how long they may
//! take. The [`Policy`] of each route decides.
//!
//! Uploads have permits of their own, and so have live streams, with long polls. However many there are, and
//! however slow their clients are, they keep no other requests out. (An export has one of `--max-requests`
//! until its answer begins, and one of `--max-exports` until it ends.) One client has at most a quarter of
//! the permits of each kind.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt, TryFutureExt};
use pagebucket_engine::Engine;
use pagebucket_engine::internal::QueueClient;
use pagebucket_model::definition::Owner;
use pagebucket_model::domain::{OwnerId, Principal};
use tokio_util::sync::CancellationToken;

use super::accept::{self, EVENTS, JSON};
use super::address::{AddressedOwner, WAIT, gives};
use super::client::Client;
use super::clients::Clients;
use super::context::RequestContext;
use super::deadline::{self, Times};
use super::gate::{Access, AccessRequest, Gate, answer_to};
use super::permits::{LongPermit, Permit, Permits};
use super::rate::{Class, ClientQuota};
use super::under_way::{Gauges, UnderWay};
use super::watch;
use crate::answer::memory::WithPermit;
use crate::answer::notes::AnswerNotes;
use crate::problem::{Problem, ProblemKind};
use crate::service::{InnerService, Middleware, MiddlewareLayer, ResponseFuture, ready};

/// What a route answers, and how long that may take. It is given where the route is registered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Policy {
    /// JSON, within the time of a request.
    Json,
    /// The same, unless the request asks to wait: then it is a long poll, which has a permit of live streams.
    Listing,
    /// Rows of this media type, which are streamed. The answer begins within the time of a request.
    Rows(&'static str),
    /// The answer of this media type to an upload, which takes as long as its client keeps its pace.
    Upload(&'static str),
    /// Events, which come until the stream or its client ends.
    Live,
}

/// Answers 503 at once if the limit of concurrent requests is reached.
pub(crate) async fn under_way(
    State((permits, clients)): State<(Permits, Clients)>,
    request: Request,
    next: Next,
) -> Response {
    match permits.take(clients.of(request.extensions(), request.headers())) {
        Ok(permit) => held(WithPermit::new(permit), next.run(request).await),
        Err(problem) => problem.into_response(),
    }
}

/// What all routes under `/v1` share.
pub(crate) struct Admission {
    /// Cancelled when the service stops.
    pub stop: CancellationToken,
    /// The permits of requests, uploads, live streams and long polls aside.
    pub requests: Permits,
    /// The permits of uploads.
    pub uploads: Permits,
    /// The permits of live streams and long polls.
    pub live: Permits,
    /// Decides who may use a route.
    pub gate: Gate,
    /// Tells clients apart.
    pub clients: Clients,
    /// How long requests may take, uploads and live streams aside.
    pub times: Times,
    /// Count the requests that are admitted and have not ended.
    pub under_way: Gauges,
}

/// Admits requests to one route that their client may send: others are 401 or 403. Answers 503 at once if the
/// service is stopping (earlier requests continue) or has no free permit, 429 if the client has used up its
/// quota, and 406 or 505 if the client cannot take the answer. Completes the context of each request, with
/// its deadline for example.
pub(crate) struct RouteAdmission {
    shared: Arc<Admission>,
    policy: Policy,
    access: Access,
    /// The history of the route, or those of its collection of owners.
    histories: Option<Arc<[Engine]>>,
    /// The owners of these histories.
    owners: Option<Owner>,
}

/// What [`RouteAdmission::admit_at_once`] grants.
pub(crate) struct AdmittedAtOnce {
    /// What the client may still use.
    pub quota: ClientQuota,
    /// Until the client has taken the answer.
    pub held: (Permit, UnderWay),
}

impl Admission {
    /// The layer for routes with this policy and this access, of these histories. It is in an `Arc`, because
    /// each request copies it.
    pub(crate) fn layer(
        self: &Arc<Self>,
        policy: Policy,
        access: Access,
        histories: Option<&Arc<[Engine]>>,
    ) -> MiddlewareLayer<Arc<RouteAdmission>> {
        MiddlewareLayer(Arc::new(self.of_route(policy, access, histories)))
    }

    /// The admission of these routes.
    pub(crate) fn of_route(
        self: &Arc<Self>,
        policy: Policy,
        access: Access,
        histories: Option<&Arc<[Engine]>>,
    ) -> RouteAdmission {
        let first = histories.and_then(|histories| histories.first());
        RouteAdmission {
            shared: Arc::clone(self),
            policy,
            access,
            histories: histories.cloned(),
            owners: first.map(|history| history.definition().owner.clone()),
        }
    }
}

impl<S: InnerService> Middleware<S> for Arc<RouteAdmission> {
    type Response = Response;

    fn call(&self, inner: &mut S, mut request: Request) -> ResponseFuture<Response> {
        // Without authentication no request pays for a copy of this layer.
        if self.shared.gate.is_open(self.access) {
            let owner = self.owner(request.uri()).map(|owner| owner.id);
            RequestContext::of_mut(request.extensions_mut()).owner = owner;
            return self.admit(inner, request);
        }
        let (route, mut inner) = (Self::clone(self), ready(inner));
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let (owner, watched) = (route.owner(&parts.uri), route.watched(&parts.uri));
            let asked = route.asked(owner.as_ref(), &watched);
            let principal = match route.shared.gate.decide(&route.shared.clients, &parts, &asked).await {
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
    /// The owner that an address of the route names.
    fn owner<'a>(&self, address: &'a Uri) -> Option<AddressedOwner<'a>> {
        let owners = self.owners.as_ref().filter(|_| self.access.names_owner())?;
        Some(AddressedOwner::of(address, owners.kind))
    }

    /// The owners that a query names in `watch`.
    fn watched(&self, address: &Uri) -> Vec<(String, String)> {
        match (self.access, &self.histories) {
            (Access::OfWatched(_), Some(histories)) => watch::owners(address, histories),
            _ => Vec::new(),
        }
    }

    /// What a request to the route asks for.
    fn asked<'a>(
        &'a self,
        owner: Option<&'a AddressedOwner<'_>>,
        watched: &'a [(String, String)],
    ) -> AccessRequest<'a> {
        AccessRequest {
            access: self.access,
            collection: self.owners.as_ref().map(|owners| &*owners.collection),
            owner: owner.map(|owner| &*owner.text),
            watched,
        }
    }

    /// Whether everyone may use the route.
    pub(crate) fn is_open(&self) -> bool {
        self.shared.gate.is_open(self.access)
    }

    /// Who sends a request with these headers, which its client may send, and the owner that this segment of
    /// its address names. `None` if that is not known without waiting.
    pub(crate) fn client_and_owner(
        &self,
        headers: &HeaderMap,
        owner: &str,
    ) -> Option<(Option<Arc<Principal>>, OwnerId)> {
        let owner = AddressedOwner::of_segment(owner, self.owners.as_ref()?.kind);
        let principal = self.shared.gate.admits(headers, &self.asked(Some(&owner), &[]))?;
        Some((principal, owner.id.ok()?))
    }

    /// Admits a request whose answer is in memory, as [`RouteAdmission::admit`] would. If it is refused,
    /// nothing is taken, so that the way of all requests can refuse it: the charge comes last.
    pub(crate) fn admit_at_once(&self, request: &Request, client: Client) -> Option<AdmittedAtOnce> {
        let Admission { stop, requests, clients, under_way, .. } = &*self.shared;
        if stop.is_cancelled() || accept::takes_answer(request, JSON).is_err() {
            return None;
        }
        let quota = clients.quota(Class::Reads, &client);
        let permit = requests.take(client).ok()?;
        quota.charge(1).ok()?;
        Some(AdmittedAtOnce { quota, held: (permit, under_way.count(Class::Reads)) })
    }

    /// Answers a request that its client may send.
    fn admit(&self, inner: &mut impl InnerService, mut request: Request) -> ResponseFuture<Response> {
        let client = self.shared.clients.of(request.extensions(), request.headers());
        let class = self.class(&request);
        let waits = matches!(self.policy, Policy::Listing) && gives(request.uri(), WAIT);
        let quota = self.shared.clients.quota(class, &client);
        // Reads queue nothing.
        let queue_client = (!request.method().is_safe()).then(|| QueueClient::new(&client));
        let permit = match self.permit(&request, waits, client, &quota) {
            Ok(permit) => permit,
            Err(problem) => {
                return std::future::ready(Ok(with_quota(&quota, problem.into_response()))).boxed();
            }
        };
        let under_way = self.shared.under_way.count(if waits { Class::Streams } else { class });
        let context = RequestContext::of_mut(request.extensions_mut());
        context.deadline = deadline::from_now();
        context.quota = quota.clone();
        context.queue_client = queue_client;
        context.histories.clone_from(&self.histories);
        if let Policy::Upload(_) | Policy::Live = self.policy {
            context.permit = Some(LongPermit::new(permit));
            let answer = inner.call(request);
            return answer.map_ok(move |answer| counted(under_way, with_quota(&quota, answer))).boxed();
        }
        let times = self.shared.times;
        let answer =
            tokio::time::timeout(if waits { times.poll } else { times.request }, inner.call(request));
        let streams = matches!(self.policy, Policy::Rows(_));
        Box::pin(async move {
            let Ok(answer) = answer.await.unwrap_or_else(|_elapsed| {
                let late = "The request took longer than the time limit.";
                Ok(Problem::new(ProblemKind::TimedOut, late).into_response())
            });
            let mut answer = with_quota(&quota, answer);
            if waits {
                AnswerNotes::of_mut(answer.extensions_mut()).untimed = true;
                return Ok(held(WithPermit::of_poll((permit, under_way)), answer));
            }
            // An export has a permit of its own, because it may take long.
            Ok(match streams {
                true => counted(under_way, answer),
                false => held(WithPermit::new((permit, under_way)), answer),
            })
        })
    }

    /// The permit of a request, if it is admitted.
    fn permit(
        &self,
        request: &Request,
        waits: bool,
        client: Client,
        quota: &ClientQuota,
    ) -> Result<Permit, Problem> {
        if self.shared.stop.is_cancelled() {
            return Err(Problem::stopping());
        }
        quota.charge(1)?;
        let (permits, answer) = match self.policy {
            Policy::Listing if waits => (&self.shared.live, JSON),
            Policy::Json | Policy::Listing => (&self.shared.requests, JSON),
            Policy::Rows(media_type) => (&self.shared.requests, media_type),
            Policy::Upload(media_type) => (&self.shared.uploads, media_type),
            Policy::Live => (&self.shared.live, EVENTS),
        };
        let permit = permits.take(client)?;
        accept::takes_answer(request, answer)?;
        Ok(permit)
    }

    /// What a request counts as.
    fn class(&self, request: &Request) -> Class {
        match self.policy {
            Policy::Rows(_) | Policy::Upload(_) | Policy::Live => Class::Streams,
            Policy::Listing => Class::Reads,
            Policy::Json if request.method().is_safe() => Class::Reads,
            Policy::Json => Class::Appends,
        }
    }
}

/// The answer, which keeps the permit of its request.
fn held(permit: WithPermit, mut answer: Response) -> Response {
    AnswerNotes::of_mut(answer.extensions_mut()).permit = Some(permit);
    answer
}

/// The answer, until whose end its request is under way.
fn counted(under_way: UnderWay, mut answer: Response) -> Response {
    AnswerNotes::of_mut(answer.extensions_mut()).under_way = Some(Arc::new(under_way));
    answer
}

/// The answer, which tells the client what it may still use.
fn with_quota(quota: &ClientQuota, mut answer: Response) -> Response {
    quota.tell(answer.headers_mut());
    answer
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use tower_service::Service;

    use super::*;
    use crate::admission::client::Proxies;
    use crate::admission::context::RequestConnection;

    #[tokio::test]
    async fn live_streams_and_long_polls_outlast_other_requests() {
        let permits = || Permits::new(8, "requests");
        let admission = Arc::new(Admission {
            stop: CancellationToken::default(),
            requests: permits(),
            uploads: permits(),
            live: permits(),
            gate: Gate::unguarded(),
            clients: Clients::new(Proxies::none(), None),
            times: Times { request: Duration::from_millis(1), poll: Duration::from_secs(3_600) },
            under_way: Gauges::default(),
        });
        for (policy, path, status) in [
            (Policy::Json, "/", 503),
            (Policy::Listing, "/?after=1", 503),
            (Policy::Listing, "/?after=1&wait=60", 200),
            (Policy::Live, "/", 200),
        ] {
            let slow = get(async || tokio::time::sleep(Duration::from_millis(100)).await);
            let layer = admission.layer(policy, Access::Everyone, None);
            let mut routes: Router = Router::new().route("/", slow).layer(layer);
            let mut request = Request::get(path).body(Body::empty()).unwrap();
            let context = RequestContext::new(Default::default(), RequestConnection::default());
            request.extensions_mut().insert(context);
            let answer = routes.call(request).await.unwrap();
            assert_eq!(answer.status(), status, "{policy:?} {path}");
        }
    }
}
