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
use pagebucket_engine::Engine;
use pagebucket_model::domain::{Clock, Principal, Scope};
use pagebucket_model::metric::REFUSALS;
use percent_encoding::percent_decode_str;

use super::around::{Answer, Around, AroundLayer, Inner};
use crate::auth::access::Access;
use crate::auth::jwt::Jwt;
use crate::auth::{Authenticator, Check, Refusal};
use crate::client::peer::Peer;
use crate::client::{Client, Proxies};
use crate::limits::concurrency::{Place, Places};
use crate::limits::rate::RateLimits;
use crate::problem::{Kind, Problem};
use crate::request::deadline;
use crate::request::lifetime::Lifetime;

/// The address of the metadata of this server as a resource of OAuth (RFC 9728).
pub const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Most API keys that are looked up at once, and most tokens that wait at once for the issuer's keys. Their clients are not known
/// yet, so one address has a quarter.
const WAITING: usize = 256;

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
#[derive(Debug, Clone)]
pub struct Gate {
    /// `None`: everyone may use everything.
    authenticator: Option<Arc<Authenticator>>,
    /// What may be used without a token.
    pub open: Open,
    /// Places of API keys that are looked up.
    look_ups: Places,
    /// Places of tokens that wait for the issuer's keys. They are others, so that a slow issuer keeps out no client whose token has
    /// a known key, or who has an API key.
    fetches: Places,
    /// The proxies before the server.
    proxies: Arc<Proxies>,
    /// The rate limits, if there are any.
    pub rates: Option<Arc<RateLimits>>,
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

impl Gate {
    /// Lets everyone use everything.
    pub fn unguarded() -> Self {
        let look_ups = Places::new(WAITING, "look-ups of API keys");
        let fetches = Places::new(WAITING, "tokens with an unknown key");
        let proxies = Arc::new(Proxies::none());
        Self { authenticator: None, open: Open::default(), look_ups, fetches, proxies, rates: None }
    }

    /// Lets in who is authenticated.
    pub fn guarded(authenticator: Authenticator, open: Open) -> Self {
        Self { authenticator: Some(Arc::new(authenticator)), open, ..Self::unguarded() }
    }

    /// The same behind these proxies, and with these rate limits.
    #[must_use]
    pub fn counting(self, proxies: Proxies, rates: Option<Arc<RateLimits>>) -> Self {
        Self { proxies: Arc::new(proxies), rates, ..self }
    }

    /// The client of a request with these extensions and headers, as it is counted.
    pub fn client(&self, extensions: &Extensions, headers: &HeaderMap) -> Client {
        Client::of(extensions, headers, &self.proxies)
    }

    /// Whether clients are authenticated.
    pub fn is_guarded(&self) -> bool {
        self.authenticator.is_some()
    }

    /// What verifies access tokens, if they are accepted.
    pub fn jwt(&self) -> Option<&Jwt> {
        self.authenticator.as_ref()?.jwt.as_ref()
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
        let remembered = credential(request.headers())
            .map(|credential| authenticator.remembered(credential).ok_or_else(|| credential.to_owned()));
        let (gate, authenticator) = (self.clone(), Arc::clone(authenticator));
        // The service that is ready is this one, and not its clone.
        let (engine, clone) = (engine.cloned(), inner.clone());
        let mut inner = std::mem::replace(inner, clone);
        Box::pin(async move {
            let (principal, charged) = match remembered {
                Ok(Ok(principal)) => (Ok(principal), false),
                Ok(Err(credential)) => {
                    let check = authenticator.check(&credential);
                    let admitted = gate.admit(check, &request);
                    (gate.identify(&authenticator, &credential, admitted).await, check != Check::Again)
                }
                Err(denial) => (Err(denial), false),
            };
            let (principal, permitted) = match principal {
                Ok(principal) => {
                    let permitted = permit(&principal, request.uri(), access, engine.as_ref());
                    (Some(principal), permitted)
                }
                Err(denial) => (None, Err(denial)),
            };
            let mut response = match permitted {
                Ok(()) => {
                    request
                        .extensions_mut()
                        .insert(principal.clone().expect("a client that may do something"));
                    pass(&mut inner, request).await?
                }
                Err(denial) => {
                    let paid = if charged { Ok(()) } else { gate.charge(&gate.address(&request)) };
                    match paid {
                        Ok(()) => gate.refuse(&request, principal.as_deref(), denial),
                        Err(problem) => problem.into_response(),
                    }
                }
            };
            response.headers_mut().append(header::VARY, AUTHORIZATION);
            response.extensions_mut().insert(principal);
            Ok(response)
        })
    }

    /// Charges a check to the address of a request, and takes a place if something is waited for. To look a usable key up again
    /// is free, whatever else comes from its address: that happens seldom, and the remembered record is used if it takes long.
    fn admit(&self, check: Check, request: &Request) -> Result<Option<Place>, Problem> {
        let places = match check {
            Check::Again => return Ok(None),
            Check::Signature => None,
            Check::LookUp => Some(&self.look_ups),
            Check::Fetch => Some(&self.fetches),
        };
        let address = self.address(request);
        self.charge(&address)?;
        places.map(|places| places.take(address)).transpose()
    }

    /// Finds out whose token or key it is, if it is admitted.
    async fn identify(
        &self,
        authenticator: &Authenticator,
        credential: &str,
        admitted: Result<Option<Place>, Problem>,
    ) -> Result<Arc<Principal>, Denial> {
        let _place = admitted.map_err(Denial::Failed)?;
        authenticator.authenticate(credential, deadline::from_now()).await.map_err(|refusal| match refusal {
            Refusal::Invalid(words, name) => Denial::Invalid(words, name),
            Refusal::Database(error) => Denial::Failed(error.into()),
            Refusal::Issuer => Denial::Failed(Problem::new(
                Kind::Overloaded,
                "The issuer takes long to answer whether it has the key of the token. Nothing was done.",
            )),
        })
    }

    /// The address of the client of a request.
    fn address(&self, request: &Request) -> Client {
        Client::at(request.extensions(), request.headers(), &self.proxies)
    }

    /// Charges a check or a refusal to an address.
    fn charge(&self, address: &Client) -> Result<(), Problem> {
        self.rates.as_ref().map_or(Ok(()), |rates| rates.charge_sign_in(address))
    }

    /// How long a stream of this request may last, once the request has passed.
    pub fn lifetime(&self, parts: &Parts, clock: &Clock) -> Lifetime {
        let principal: Option<&Arc<Principal>> = parts.extensions.get();
        let (Some(authenticator), Some(principal), Ok(credential)) =
            (&self.authenticator, principal, credential(&parts.headers))
        else {
            return Lifetime::default();
        };
        Lifetime::of(Arc::clone(authenticator), credential.to_owned(), principal, clock.clone())
    }

    /// The answer to a request that may not pass. Writes a line to the audit log.
    fn refuse(&self, request: &Request, principal: Option<&Principal>, denial: Denial) -> Response {
        let no_token = "The request has no token. It is sent as `Authorization: Bearer TOKEN`.";
        let mut known = principal.map(|principal| Arc::clone(&principal.name));
        let (reason, problem, error) = match denial {
            Denial::NoToken => ("no_token", Problem::new(Kind::Unauthorized, no_token), String::new()),
            Denial::Invalid(words, name) => {
                known = name;
                let error = format!(", error=\"invalid_token\", error_description=\"{words}\"");
                ("invalid_token", Problem::new(Kind::Unauthorized, words), error)
            }
            Denial::Scope(scope) => {
                let words = format!("The token or key does not have the scope `{scope}`.");
                ("scope", Problem::new(Kind::Forbidden, words), insufficient(scope))
            }
            Denial::Owner(scope) => {
                let words =
                    "The token or key does not allow access to these histories, whether they exist or not.";
                ("owner", Problem::new(Kind::Forbidden, words), insufficient(scope))
            }
            Denial::Failed(problem) => return problem.into_response(),
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
    pub fn layer(gate: &Gate, access: Access) -> AroundLayer<Self> {
        AroundLayer(Self(gate.clone(), access))
    }
}

impl<S: Inner> Around<S> for Guard {
    type Response = Response;

    fn call(&self, inner: &mut S, request: Request) -> Answer<Response> {
        self.0.guard(inner, request, (self.1, None), |inner, request| inner.call(request).boxed())
    }
}

/// Whether this client may use the route.
///
/// # Errors
/// It may not.
fn permit(
    principal: &Principal,
    address: &Uri,
    access: Access,
    engine: Option<&Engine>,
) -> Result<(), Denial> {
    let Some(scope) = access.scope() else { return Ok(()) };
    if !principal.scopes.has(scope) {
        return Err(Denial::Scope(scope));
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
    if reached { Ok(()) } else { Err(Denial::Owner(scope)) }
}
