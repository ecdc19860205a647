//! The decision on each request: who sends it (a bearer token, RFC 6750), and whether it may use the route.
//!
//! It is made before the parameters are parsed, and before anything that is stored is read, except the record of an API key.
//! So a refusal says nothing about histories.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use pagebucket_model::domain::{Clock, Principal, Scope};
use pagebucket_model::metric::REFUSALS;

use super::service::{InnerService, Middleware, MiddlewareLayer, ResponseFuture, ready};
use crate::auth::access::Access;
use crate::auth::jwt::Jwt;
use crate::auth::{Authenticator, Check, Refusal};
use crate::client::peer::Peer;
use crate::client::{Client, Proxies};
use crate::limits::permits::{Permit, Permits};
use crate::limits::rate::RateLimits;
use crate::problem::{Problem, ProblemKind};
use crate::request::context::{RequestContext, SentBy};
use crate::request::deadline;
use crate::request::lifetime::Lifetime;

/// The address of the metadata of this server as a resource of OAuth (RFC 9728).
pub const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Most API keys that are looked up at once, and most tokens that wait at once for the issuer's keys. Their clients are not known
/// yet, so one address has a quarter.
const WAITING: usize = 256;

/// What a client can do that may not erase.
const ERASING_IS_OFF: &str = "This server does not authenticate its clients, so none of them may erase. Nothing was erased. \
                              Run `pagebucket erase`, or start the server with `--allow-erase` or with `--auth`.";

const AUTHORIZATION: HeaderValue = HeaderValue::from_static("authorization");

/// What may be used without a token, besides the probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenParts {
    /// The home page, the documentation and the OpenAPI document.
    pub docs: bool,
    /// The metrics.
    pub metrics: bool,
}

impl OpenParts {
    /// Who may use a route of this access.
    pub fn access(self, access: Access) -> Access {
        if self.metrics && access == Access::With(Scope::Metrics) { Access::Everyone } else { access }
    }
}

/// Decides on requests.
#[derive(Debug, Clone)]
pub struct Gate {
    /// `None`: everyone may use everything, except that erasing is decided by `erasing`.
    authenticator: Option<Arc<Authenticator>>,
    /// Whether everyone may erase if there is no authenticator.
    erasing: bool,
    /// What may be used without a token.
    pub open: OpenParts,
    /// Permits of API keys that are looked up.
    look_ups: Permits,
    /// Permits of tokens that wait for the issuer's keys. They are others, so that a slow issuer keeps out no client whose token has
    /// a known key, or who has an API key.
    fetches: Permits,
    /// The proxies before the server.
    pub proxies: Arc<Proxies>,
    /// The rate limits, if there are any.
    pub rates: Option<Arc<RateLimits>>,
}

/// What a request asks for.
#[derive(Debug)]
pub struct AccessRequest<'a> {
    /// The access of its route.
    pub access: Access,
    /// The collection of owners of its route.
    pub collection: Option<&'a str>,
    /// The owner that its address names.
    pub owner: Option<&'a str>,
}

/// The refusal of a request.
#[derive(Debug)]
pub struct RefusedRequest {
    problem: Problem,
    /// What is wrong with its token or key (RFC 6750).
    challenge: Option<HeaderValue>,
    /// Its client, if that is known.
    principal: Option<Arc<Principal>>,
}

impl IntoResponse for RefusedRequest {
    fn into_response(self) -> Response {
        let mut answer = self.problem.into_response();
        if let Some(challenge) = self.challenge {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        answer_to(self.principal, answer)
    }
}

/// The answer of a guarded route to this client, whom the log finds in it.
pub fn answer_to(principal: Option<Arc<Principal>>, mut answer: Response) -> Response {
    answer.headers_mut().append(header::VARY, AUTHORIZATION);
    if let Some(principal) = principal {
        answer.extensions_mut().insert(SentBy(principal));
    }
    answer
}

/// Why a request may not pass.
#[derive(Debug)]
enum Denial {
    /// It has no token.
    NoToken,
    /// Its token or key is not valid.
    Invalid(Cow<'static, str>, Option<Arc<str>>),
    /// The client does not have the scope.
    Scope(Scope),
    /// The client may not use these histories.
    Owner(Scope),
    /// The database or the issuer was asked, and failed; or too many tokens or keys of its address are verified.
    Failed(Problem),
}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(words, name) => Self::Invalid(words, name),
            Refusal::Database(error) => Self::Failed(error.into()),
            Refusal::Issuer => Self::Failed(Problem::new(
                ProblemKind::Overloaded,
                "The issuer did not answer in time whether it has the token's key. Nothing was done.",
            )),
        }
    }
}

impl Gate {
    /// Lets everyone use everything, except that no client may erase.
    pub fn unguarded() -> Self {
        let look_ups = Permits::new(WAITING, "look-ups of API keys");
        let fetches = Permits::new(WAITING, "tokens with an unknown key");
        let proxies = Arc::new(Proxies::none());
        let open = OpenParts::default();
        Self { authenticator: None, erasing: false, open, look_ups, fetches, proxies, rates: None }
    }

    /// The same, and without an authenticator everyone may erase.
    #[must_use]
    pub fn allowing_erasure(self) -> Self {
        Self { erasing: true, ..self }
    }

    /// Lets in who is authenticated.
    pub fn guarded(authenticator: Authenticator, open: OpenParts) -> Self {
        Self { authenticator: Some(Arc::new(authenticator)), open, ..Self::unguarded() }
    }

    /// The same behind these proxies, and with these rate limits.
    #[must_use]
    pub fn counting(self, proxies: Proxies, rates: Option<Arc<RateLimits>>) -> Self {
        Self { proxies: Arc::new(proxies), rates, ..self }
    }

    /// The client of a request with these extensions and headers, as it is counted.
    pub fn client(&self, extensions: &Extensions, headers: &HeaderMap) -> Client {
        let RequestContext { principal, connection, .. } = RequestContext::of(extensions);
        Client::of(principal.as_deref(), connection.peer, headers, &self.proxies)
    }

    /// Whether everyone may use a route with this access.
    pub fn is_open(&self, access: Access) -> bool {
        match self.authenticator {
            Some(_) => access == Access::Everyone,
            None => access != Access::Erasing || self.erasing,
        }
    }

    /// Finds out who a client is. `None` if everyone is served.
    pub fn authenticator(&self) -> Option<&Authenticator> {
        self.authenticator.as_deref()
    }

    /// What verifies access tokens, if they are accepted.
    pub fn jwt(&self) -> Option<&Jwt> {
        self.authenticator()?.jwt.as_ref()
    }

    /// Decides whether a request may have what it asks for. Its principal, unless everyone may.
    ///
    /// # Errors
    /// It may not.
    pub async fn decide(
        &self,
        parts: &Parts,
        asked: &AccessRequest<'_>,
    ) -> Result<Option<Arc<Principal>>, RefusedRequest> {
        if self.is_open(asked.access) {
            return Ok(None);
        }
        let Some(authenticator) = &self.authenticator else {
            let problem = Problem::new(ProblemKind::ErasingOff, ERASING_IS_OFF);
            return Err(RefusedRequest { problem, challenge: None, principal: None });
        };
        let (identified, charged) = self.identify(authenticator, parts).await;
        let (principal, denial) = match identified {
            Ok(principal) => match allow(&principal, asked) {
                Ok(()) => return Ok(Some(principal)),
                Err(denial) => (Some(principal), denial),
            },
            Err(denial) => (None, denial),
        };
        let paid = if charged { Ok(()) } else { self.charge(&self.address(parts)) };
        Err(match paid {
            Ok(()) => self.refused(parts, principal, denial),
            Err(problem) => RefusedRequest { problem, challenge: None, principal },
        })
    }

    /// Whose token or key a request has; and whether its address was charged for finding out.
    async fn identify(
        &self,
        authenticator: &Authenticator,
        parts: &Parts,
    ) -> (Result<Arc<Principal>, Denial>, bool) {
        let credential = match credential(&parts.headers) {
            Ok(credential) => credential,
            Err(denial) => return (Err(denial), false),
        };
        if let Some(principal) = authenticator.remembered(credential) {
            return (Ok(principal), false);
        }
        let check = authenticator.check(credential);
        let principal = match self.admit(check, parts) {
            Ok(_permit) => {
                let principal = authenticator.authenticate(credential, deadline::from_now()).await;
                principal.map_err(Denial::from)
            }
            Err(problem) => Err(Denial::Failed(problem)),
        };
        (principal, check != Check::Again)
    }

    /// Charges a check to the address of a request, and takes a permit if something is waited for. To look a usable key up again
    /// is free, whatever else comes from its address: that happens seldom, and the remembered record is used if it takes long.
    fn admit(&self, check: Check, parts: &Parts) -> Result<Option<Permit>, Problem> {
        let permits = match check {
            Check::Again => return Ok(None),
            Check::Signature => None,
            Check::LookUp => Some(&self.look_ups),
            Check::Fetch => Some(&self.fetches),
        };
        let address = self.address(parts);
        self.charge(&address)?;
        permits.map(|permits| permits.take(address)).transpose()
    }

    /// The address of the client of a request.
    fn address(&self, parts: &Parts) -> Client {
        let peer = RequestContext::of(&parts.extensions).connection.peer;
        Client::at(peer, &parts.headers, &self.proxies)
    }

    /// Charges a check or a refusal to an address.
    fn charge(&self, address: &Client) -> Result<(), Problem> {
        self.rates.as_ref().map_or(Ok(()), |rates| rates.charge_sign_in(address))
    }

    /// How long a stream of this request may last, once the request has passed.
    pub fn lifetime(&self, parts: &Parts, clock: &Clock) -> Lifetime {
        let principal = &RequestContext::of(&parts.extensions).principal;
        let (Some(authenticator), Some(principal), Ok(credential)) =
            (&self.authenticator, principal, credential(&parts.headers))
        else {
            return Lifetime::default();
        };
        Lifetime::of(Arc::clone(authenticator), credential.to_owned(), principal, clock.clone())
    }

    /// Refuses a request. Writes a line to the audit log.
    fn refused(&self, parts: &Parts, principal: Option<Arc<Principal>>, denial: Denial) -> RefusedRequest {
        let no_token = "The request has no token. It is sent as `Authorization: Bearer TOKEN`.";
        let mut known = principal.as_ref().map(|principal| Arc::clone(&principal.name));
        let (reason, problem, error) = match denial {
            Denial::NoToken => ("no_token", Problem::new(ProblemKind::Unauthorized, no_token), String::new()),
            Denial::Invalid(words, name) => {
                known = name;
                let error = format!(", error=\"invalid_token\", error_description=\"{words}\"");
                ("invalid_token", Problem::new(ProblemKind::Unauthorized, words), error)
            }
            Denial::Scope(scope) => {
                let words = format!("The token or key does not have the scope `{scope}`.");
                ("scope", Problem::new(ProblemKind::Forbidden, words), insufficient(scope))
            }
            Denial::Owner(scope) => {
                let words =
                    "The token or key does not allow access to these histories, whether they exist or not.";
                ("owner", Problem::new(ProblemKind::Forbidden, words), insufficient(scope))
            }
            Denial::Failed(problem) => return RefusedRequest { problem, challenge: None, principal },
        };
        metrics::counter!(REFUSALS, "reason" => reason).increment(1);
        let (method, path) = (&parts.method, parts.uri.path());
        let (name, Peer(peer)) = (known.as_deref(), RequestContext::of(&parts.extensions).connection.peer);
        tracing::warn!(target: "pagebucket::audit", reason, principal = name, %peer, %method, path, "a request was refused");
        let challenge = format!("Bearer realm=\"pagebucket\"{error}{}", self.metadata());
        let challenge = HeaderValue::try_from(challenge).expect("words of ours, and an address");
        RefusedRequest { problem, challenge: Some(challenge), principal }
    }

    /// The parameter of a challenge that says where the metadata are, if this server knows its own address.
    fn metadata(&self) -> String {
        let address =
            self.jwt().and_then(|jwt| jwt.settings.audience.parse::<Uri>().ok()).and_then(|audience| {
                let (scheme, authority) = (audience.scheme_str()?, audience.authority()?);
                let path = audience.path().trim_end_matches('/');
                ["http", "https"].contains(&scheme).then(|| format!("{scheme}://{authority}{METADATA}{path}"))
            });
        address.map_or_else(String::new, |address| format!(", resource_metadata=\"{address}\""))
    }
}

fn insufficient(scope: Scope) -> String {
    format!(", error=\"insufficient_scope\", scope=\"{scope}\"")
}

/// The token or key of a request.
fn credential(headers: &HeaderMap) -> Result<&str, Denial> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let given = match (given.next(), given.next()) {
        (None, _) => return Err(Denial::NoToken),
        (Some(given), None) => given.to_str().unwrap_or_default(),
        (Some(_), Some(_)) => {
            return Err(Denial::Invalid("The request has more than one token.".into(), None));
        }
    };
    let (scheme, credential) = given.split_once(' ').unwrap_or((given, ""));
    if !scheme.eq_ignore_ascii_case("bearer") || credential.is_empty() {
        return Err(Denial::Invalid("The Authorization header is not a bearer token.".into(), None));
    }
    Ok(credential.trim())
}

/// The layer of routes that have no admission: it only decides.
#[derive(Clone)]
pub struct Guard(Gate, Access);

impl Guard {
    /// The layer for routes with this access.
    pub fn layer(gate: &Gate, access: Access) -> MiddlewareLayer<Self> {
        MiddlewareLayer(Self(gate.clone(), access))
    }
}

impl<S: InnerService> Middleware<S> for Guard {
    type Response = Response;

    fn call(&self, inner: &mut S, request: Request) -> ResponseFuture<Response> {
        if self.0.is_open(self.1) {
            return inner.call(request).boxed();
        }
        let (Self(gate, access), mut inner) = (self.clone(), ready(inner));
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            match gate.decide(&parts, &AccessRequest { access, collection: None, owner: None }).await {
                Ok(principal) => {
                    RequestContext::of_mut(&mut parts.extensions).principal.clone_from(&principal);
                    let answer = inner.call(Request::from_parts(parts, body)).await?;
                    Ok(answer_to(principal, answer))
                }
                Err(refused) => Ok(refused.into_response()),
            }
        })
    }
}

/// Whether this client may have what its request asks for.
///
/// # Errors
/// It may not.
fn allow(principal: &Principal, asked: &AccessRequest<'_>) -> Result<(), Denial> {
    let Some(scope) = asked.access.scope() else { return Ok(()) };
    if !principal.scopes.has(scope) {
        return Err(Denial::Scope(scope));
    }
    let reached = match (asked.access, asked.collection, asked.owner) {
        (Access::Everyone | Access::Authenticated | Access::With(_), ..) => true,
        (Access::OfOwner(_) | Access::Erasing, Some(collection), Some(owner)) => {
            principal.reaches(collection, owner)
        }
        (Access::OfAllOwners(_), Some(collection), _) => principal.reaches_all(collection),
        (Access::OfOwner(_) | Access::OfAllOwners(_) | Access::Erasing, ..) => false,
    };
    if reached { Ok(()) } else { Err(Denial::Owner(scope)) }
}
