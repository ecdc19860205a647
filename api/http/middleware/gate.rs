//! The decision on each request: who sends it (a bearer token, RFC 6750), and whether it may use the route.
//!
//! It is made before anything else is done with the request: before the page cache and the database are asked, and before
//! the parameters are parsed. So a refusal says nothing about what is stored.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use percent_encoding::percent_decode_str;
use tower_service::Service;

use super::around::{Answer, Around, AroundLayer};
use crate::auth::{Authenticator, Refusal};
use crate::domain::{Principal, Scope};
use crate::http::access::Access;
use crate::http::deadline;
use crate::http::peer::Peer;
use crate::http::problem::{Kind, Problem};
use crate::http::rate::RateLimits;
use crate::metric::REFUSALS;
use crate::store::history::Engine;

/// The address of the metadata of this server as a resource of OAuth (RFC 9728).
pub const METADATA: &str = "/.well-known/oauth-protected-resource";

const AUTHORIZATION: HeaderValue = HeaderValue::from_static("authorization");

/// What may be used without a token, besides the probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Open {
    /// The home page, the documentation and the OpenAPI document.
    pub docs: bool,
    /// The metrics.
    pub metrics: bool,
}

/// Decides on requests.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    /// `None`: everyone may use everything.
    authenticator: Option<Arc<Authenticator>>,
    /// What may be used without a token.
    pub open: Open,
    /// The limits of pace, if there are any.
    pub rates: Option<Arc<RateLimits>>,
}

/// Why a request may not pass.
#[derive(Debug)]
enum Why {
    /// It has no token.
    NoToken,
    /// Its token or key is not valid.
    Invalid(Cow<'static, str>, Option<Arc<str>>),
    /// The client does not have the scope.
    Scope(Scope),
    /// The client may not use these histories.
    Owner(Scope),
    /// The database was asked, and failed; or too many tokens of its address were verified.
    Failed(Problem),
}

impl Gate {
    /// Lets everyone use everything.
    pub fn open() -> Self {
        Self::default()
    }

    /// Lets in who is authenticated.
    pub fn guarded(authenticator: Authenticator, open: Open) -> Self {
        Self { authenticator: Some(Arc::new(authenticator)), open, rates: None }
    }

    /// The same with these limits of pace.
    #[must_use]
    pub fn limited(self, rates: Option<Arc<RateLimits>>) -> Self {
        Self { rates, ..self }
    }

    /// Whether clients are authenticated.
    pub fn is_guarded(&self) -> bool {
        self.authenticator.is_some()
    }

    /// What authenticates clients, if anything does.
    pub fn authenticator(&self) -> Option<&Authenticator> {
        self.authenticator.as_deref()
    }

    /// Answers a request for a route with this access, of a history or of none: by `pass`, if it may pass. Handlers find
    /// the client in the extensions of the request, and the log in those of the answer.
    pub fn guard<S: Clone + Send + 'static>(
        &self,
        inner: &mut S,
        mut request: Request,
        (access, engine): (Access, Option<&Engine>),
        pass: impl FnOnce(&mut S, Request) -> Answer<Response> + Send + 'static,
    ) -> Answer<Response> {
        let Some(authenticator) = self.authenticator.as_ref().filter(|_| access != Access::Everyone) else {
            return pass(inner, request);
        };
        let remembered = credential(&request)
            .map(|credential| authenticator.remembered(credential).ok_or_else(|| credential.to_owned()));
        let (gate, authenticator) = (self.clone(), Arc::clone(authenticator));
        // The service that is ready is this one, and not its clone.
        let (engine, clone) = (engine.cloned(), inner.clone());
        let mut inner = std::mem::replace(inner, clone);
        Box::pin(async move {
            let principal = match remembered {
                Ok(Ok(principal)) => Ok(principal),
                Ok(Err(credential)) => {
                    match gate.rates.as_ref().map_or(Ok(()), |it| it.charge_sign_in(&request)) {
                        Ok(()) => authenticate(&authenticator, &credential).await,
                        Err(problem) => Err(Why::Failed(problem)),
                    }
                }
                Err(why) => Err(why),
            };
            let (principal, permitted) = match principal {
                Ok(principal) => {
                    let permitted = permit(&principal, request.uri(), access, engine.as_ref());
                    (Some(principal), permitted)
                }
                Err(why) => (None, Err(why)),
            };
            let mut response = match permitted {
                Ok(()) => {
                    request
                        .extensions_mut()
                        .insert(principal.clone().expect("a client that may do something"));
                    pass(&mut inner, request).await?
                }
                Err(why) => gate.refuse(&request, principal.as_deref(), why),
            };
            response.headers_mut().append(header::VARY, AUTHORIZATION);
            response.extensions_mut().insert(principal);
            Ok(response)
        })
    }

    /// The answer to a request that may not pass. Writes a line to the audit log.
    fn refuse(&self, request: &Request, principal: Option<&Principal>, why: Why) -> Response {
        let no_token = "The request has no token. It is sent as `Authorization: Bearer TOKEN`.";
        let mut known = principal.map(|principal| Arc::clone(&principal.name));
        let (reason, problem, error) = match why {
            Why::NoToken => ("no_token", Problem::new(Kind::Unauthorized, no_token), String::new()),
            Why::Invalid(words, name) => {
                known = name;
                let error = format!(", error=\"invalid_token\", error_description=\"{words}\"");
                ("invalid_token", Problem::new(Kind::Unauthorized, words), error)
            }
            Why::Scope(scope) => {
                let name = scope.name();
                let words = format!("The token or key does not have the scope `{name}`.");
                ("scope", Problem::new(Kind::Forbidden, words), insufficient(scope))
            }
            Why::Owner(scope) => {
                let words =
                    "The token or key does not allow access to these histories, whether they exist or not.";
                ("owner", Problem::new(Kind::Forbidden, words), insufficient(scope))
            }
            Why::Failed(problem) => return problem.into_response(),
        };
        metrics::counter!(REFUSALS, "reason" => reason).increment(1);
        let (method, path) = (request.method(), request.uri().path());
        let principal = known.as_deref();
        let peer = request.extensions().get().map(|Peer(address)| tracing::field::display(address));
        tracing::warn!(target: "pagebucket::audit", reason, principal, peer, %method, path, "a request was refused");
        let challenge = format!("Bearer realm=\"pagebucket\"{error}{}", self.metadata());
        let mut response = problem.into_response();
        let challenge = HeaderValue::try_from(challenge).expect("words of ours, and an address");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        response
    }

    /// The parameter of a challenge that says where the metadata are, if this server knows its own address.
    fn metadata(&self) -> String {
        let jwt = self.authenticator.as_ref().and_then(|authenticator| authenticator.jwt.as_ref());
        let address = jwt.and_then(|jwt| jwt.audience().parse::<Uri>().ok()).and_then(|audience| {
            let (scheme, authority) = (audience.scheme_str()?, audience.authority()?);
            let path = audience.path().trim_end_matches('/');
            ["http", "https"].contains(&scheme).then(|| format!("{scheme}://{authority}{METADATA}{path}"))
        });
        address.map_or_else(String::new, |address| format!(", resource_metadata=\"{address}\""))
    }
}

/// Finds out whose token or key it is.
async fn authenticate(authenticator: &Authenticator, credential: &str) -> Result<Arc<Principal>, Why> {
    authenticator.authenticate(credential, deadline::from_now()).await.map_err(|refusal| match refusal {
        Refusal::Invalid(words, name) => Why::Invalid(words, name),
        Refusal::Database(error) => Why::Failed(error.into()),
    })
}

fn insufficient(scope: Scope) -> String {
    format!(", error=\"insufficient_scope\", scope=\"{}\"", scope.name())
}

/// The token or key of a request.
fn credential(request: &Request) -> Result<&str, Why> {
    let mut given = request.headers().get_all(header::AUTHORIZATION).iter();
    let given = match (given.next(), given.next()) {
        (None, _) => return Err(Why::NoToken),
        (Some(given), None) => given.to_str().unwrap_or_default(),
        (Some(_), Some(_)) => return Err(Why::Invalid("The request has more than one token.".into(), None)),
    };
    let (scheme, credential) = given.split_once(' ').unwrap_or((given, ""));
    if !scheme.eq_ignore_ascii_case("bearer") || credential.is_empty() {
        return Err(Why::Invalid("The Authorization header is not a bearer token.".into(), None));
    }
    Ok(credential.trim())
}

/// The layer of routes that have no admission: it only decides.
#[derive(Clone)]
pub struct Guard(Gate, Access);

impl Guard {
    /// The layer for routes with this access.
    pub fn layer(gate: &Gate, access: Access) -> AroundLayer<Self> {
        AroundLayer(Self(gate.clone(), access))
    }
}

impl<S> Around<S> for Guard
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + 'static,
{
    type Response = Response;

    fn call(&self, inner: &mut S, request: Request) -> Answer<Response> {
        self.0.guard(inner, request, (self.1, None), |inner, request| inner.call(request).boxed())
    }
}

/// Whether this client may use the route.
///
/// # Errors
/// It may not.
fn permit(principal: &Principal, address: &Uri, access: Access, engine: Option<&Engine>) -> Result<(), Why> {
    let Some(scope) = access.scope() else { return Ok(()) };
    if !principal.scopes.has(scope) {
        return Err(Why::Scope(scope));
    }
    let collection =
        || &*engine.expect("a route of owners is mounted with an engine").definition().owner.collection;
    let reached = match access {
        Access::OfOwner(_) => {
            let owner = address.path().split('/').nth(3).unwrap_or_default();
            let owner = percent_decode_str(owner).decode_utf8().unwrap_or_default();
            principal.reaches(collection(), &owner)
        }
        Access::OfAllOwners(_) => principal.reaches_all(collection()),
        Access::Everyone | Access::Authenticated | Access::With(_) => true,
    };
    if reached { Ok(()) } else { Err(Why::Owner(scope)) }
}
