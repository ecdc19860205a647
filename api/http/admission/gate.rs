//! The decision on each request: who sends it (a bearer token, RFC 6750), and whether it may use the route.
//!
//! It is made before the parameters are parsed, and before anything that is stored is read, except the record
//! of an API key. So a refusal says nothing about histories.

mod refusal;

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method, header};
use pagebucket_model::domain::{Clock, Principal, Scope};

use super::client::{Client, Proxies};
use super::context::RequestContext;
use super::lifetime::Lifetime;
use super::permits::{Permit, Permits};
use super::rate::RateLimits;
use crate::auth::jwt::Jwt;
use crate::auth::{Authenticator, Check};
use crate::problem::Problem;
use refusal::Denial;
pub(crate) use refusal::{METADATA, RefusedRequest, answer_to};

/// Most API keys that are looked up at once, and most tokens that wait at once for the issuer's keys. Their
/// clients are not known yet, so one address has a quarter.
const WAITING: usize = 256;

/// Who may use a route, if clients are authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everyone, also without a token.
    Everyone,
    /// Every client with a valid token or key.
    Authenticated,
    /// Clients with this scope.
    With(Scope),
    /// Clients with this scope who may use the histories of the owner that the address names:
    /// `/v1/{owners}/{ownerId}`.
    OfOwner(Scope),
    /// Clients with this scope who may use the histories of every owner.
    OfAllOwners(Scope),
    /// Clients with this scope who may use the histories of each owner that the query names in `watch`.
    OfWatched(Scope),
    /// Erases the owner that the address names: clients with the scope `admin` who may use its histories.
    /// Without authentication, everyone or no client, as the operator decides.
    Erasing,
}

impl Access {
    /// The scope that a client must have.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::Everyone | Self::Authenticated => None,
            Self::With(scope) | Self::OfOwner(scope) | Self::OfAllOwners(scope) | Self::OfWatched(scope) => {
                Some(scope)
            }
            Self::Erasing => Some(Scope::Admin),
        }
    }

    /// Whether the address names an owner whose histories the client must be allowed to use.
    pub fn names_owner(self) -> bool {
        matches!(self, Self::OfOwner(_) | Self::Erasing)
    }
}

/// What may be used without a token, besides the probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenParts {
    /// The documentation and the OpenAPI document, and without the explorer the home page.
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

/// A public client of the issuer, by which users of the explorer sign in.
#[derive(Debug, Clone)]
pub struct ExplorerClient {
    /// Its id at the issuer.
    pub id: String,
    /// The scopes that it asks for.
    pub scopes: Vec<String>,
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
    /// How users of the explorer get tokens from the issuer, if they do.
    pub explorer_client: Option<Arc<ExplorerClient>>,
    /// Permits of API keys that are looked up.
    look_ups: Permits,
    /// Permits of tokens that wait for the issuer's keys. They are others, so that a slow issuer keeps out no
    /// client whose token has a known key, or who has an API key.
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
    /// The owners that its query names in `watch`, each with its collection.
    pub watched: &'a [(String, String)],
}

/// Whose token or key a request has.
struct Identified {
    principal: Result<Arc<Principal>, Denial>,
    /// Whether its address was charged for finding out.
    charged: bool,
}

impl Gate {
    /// Lets everyone use everything, except that no client may erase.
    pub fn unguarded() -> Self {
        let look_ups = Permits::new(WAITING, "look-ups of API keys");
        let fetches = Permits::new(WAITING, "tokens with an unknown key");
        let proxies = Arc::new(Proxies::none());
        let open = OpenParts::default();
        Self {
            authenticator: None,
            erasing: false,
            open,
            explorer_client: None,
            look_ups,
            fetches,
            proxies,
            rates: None,
        }
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

    /// The same, whose users of the explorer sign in at the issuer.
    #[must_use]
    pub fn signing_in_as(self, client: ExplorerClient) -> Self {
        Self { explorer_client: Some(Arc::new(client)), ..self }
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
            // Another method of this address is not allowed to anyone, and the route says so.
            return if parts.method == Method::DELETE {
                Err(RefusedRequest::erasing_off())
            } else {
                Ok(None)
            };
        };
        let Identified { principal, charged } = self.identify(authenticator, parts).await;
        let (principal, denial) = match principal {
            Ok(principal) => match allow(&principal, asked) {
                Ok(()) => return Ok(Some(principal)),
                Err(denial) => (Some(principal), denial),
            },
            Err(denial) => (None, denial),
        };
        let paid = if charged { Ok(()) } else { self.charge(&self.address(parts)) };
        Err(match paid {
            Ok(()) => {
                let audience = self.jwt().map(|jwt| &*jwt.settings.audience);
                RefusedRequest::of(denial, principal, audience)
            }
            Err(problem) => RefusedRequest::failed(problem, principal),
        })
    }

    /// Finds out whose token or key a request has.
    async fn identify(&self, authenticator: &Authenticator, parts: &Parts) -> Identified {
        let credential = match credential(&parts.headers) {
            Ok(credential) => credential,
            Err(denial) => return Identified { principal: Err(denial), charged: false },
        };
        if let Some(principal) = authenticator.remembered(credential) {
            return Identified { principal: Ok(principal), charged: false };
        }
        let check = authenticator.check(credential);
        let principal = match self.admit(check, parts) {
            Ok(_permit) => {
                let deadline = RequestContext::of(&parts.extensions).deadline;
                authenticator.authenticate(credential, deadline).await.map_err(Denial::from)
            }
            Err(problem) => Err(Denial::Failed(problem)),
        };
        Identified { principal, charged: check != Check::Again }
    }

    /// Charges a check to the address of a request, and takes a permit if something is waited for. To look a
    /// usable key up again is free, whatever else comes from its address: that happens seldom, and the
    /// remembered record is used if it takes long.
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
        (Access::OfWatched(_), ..) => {
            asked.watched.iter().all(|(collection, owner)| principal.reaches(collection, owner))
        }
        (Access::OfOwner(_) | Access::OfAllOwners(_) | Access::Erasing, ..) => false,
    };
    if reached { Ok(()) } else { Err(Denial::Owner(scope)) }
}
