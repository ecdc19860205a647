//! The decision on each request: who sends it (a bearer token, RFC 6750), and whether it may use the route.
//!
//! It is made before the parameters are parsed, and before anything that is stored is read, except the record
//! of an API key. So a refusal says nothing about histories.

mod refusal;

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use pagebucket_model::domain::{Principal, Scope};

use super::clients::Clients;
use super::context::RequestContext;
use super::permits::{Permit, Permits};
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
    /// Permits of tokens that wait for the issuer's keys. They are others, so that a slow issuer keeps out no
    /// client whose token has a known key, or who has an API key.
    fetches: Permits,
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
        Self { authenticator: None, erasing: false, open: OpenParts::default(), look_ups, fetches }
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

    /// Whether everyone may use a route with this access.
    pub fn is_open(&self, access: Access) -> bool {
        match self.authenticator {
            Some(_) => access == Access::Everyone,
            None => access != Access::Erasing || self.erasing,
        }
    }

    /// Finds out who a client is. `None` if everyone is served.
    pub fn authenticator(&self) -> Option<&Arc<Authenticator>> {
        self.authenticator.as_ref()
    }

    /// What verifies access tokens, if they are accepted.
    pub fn jwt(&self) -> Option<&Jwt> {
        self.authenticator()?.jwt.as_ref()
    }

    /// Decides whether a request may have what it asks for. Its principal, unless everyone may. Checks and
    /// refusals are charged to its address.
    ///
    /// # Errors
    /// It may not.
    pub async fn decide(
        &self,
        clients: &Clients,
        parts: &Parts,
        asked: &AccessRequest<'_>,
    ) -> Result<Option<Arc<Principal>>, RefusedRequest> {
        if let Some(principal) = self.admits(&parts.headers, asked) {
            return Ok(principal);
        }
        let Some(authenticator) = &self.authenticator else {
            // Another method of this address is not allowed to anyone, and the route says so.
            return if parts.method == Method::DELETE {
                Err(RefusedRequest::erasing_off())
            } else {
                Ok(None)
            };
        };
        let Identified { principal, charged } = self.identify(authenticator, clients, parts).await;
        let (principal, denial) = match principal {
            Ok(principal) => match allow(&principal, asked) {
                Ok(()) => return Ok(Some(principal)),
                Err(denial) => (Some(principal), denial),
            },
            Err(denial) => (None, denial),
        };
        let paid = if charged { Ok(()) } else { clients.charge(&clients.address(parts)) };
        Err(match paid {
            Ok(()) => {
                let audience = self.jwt().map(|jwt| &*jwt.settings.audience);
                RefusedRequest::of(denial, principal, audience)
            }
            Err(problem) => RefusedRequest::failed(problem, principal),
        })
    }

    /// The principal of a request that may have what it asks for, unless everyone may. Waits for nothing and
    /// charges nothing: `None` if that does not suffice.
    pub fn admits(&self, headers: &HeaderMap, asked: &AccessRequest<'_>) -> Option<Option<Arc<Principal>>> {
        if self.is_open(asked.access) {
            return Some(None);
        }
        let principal = self.authenticator()?.remembered(credential(headers).ok()?)?;
        allow(&principal, asked).is_ok().then_some(Some(principal))
    }

    /// Finds out whose token or key a request has.
    async fn identify(&self, authenticator: &Authenticator, clients: &Clients, parts: &Parts) -> Identified {
        let credential = match credential(&parts.headers) {
            Ok(credential) => credential,
            Err(denial) => return Identified { principal: Err(denial), charged: false },
        };
        if let Some(principal) = authenticator.remembered(credential) {
            return Identified { principal: Ok(principal), charged: false };
        }
        let check = authenticator.check(credential);
        let principal = match self.charge(check, clients, parts) {
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
    fn charge(&self, check: Check, clients: &Clients, parts: &Parts) -> Result<Option<Permit>, Problem> {
        let permits = match check {
            Check::Again => return Ok(None),
            Check::Signature => None,
            Check::LookUp => Some(&self.look_ups),
            Check::Fetch => Some(&self.fetches),
        };
        let address = clients.address(parts);
        clients.charge(&address)?;
        permits.map(|permits| permits.take(address)).transpose()
    }
}

/// The token or key of a request.
///
/// # Errors
/// It has none, or several, or what it has is no bearer token.
pub(crate) fn credential(headers: &HeaderMap) -> Result<&str, Denial> {
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
