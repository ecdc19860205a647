//! Access tokens of an issuer: JSON Web Tokens (RFC 7519), by the profile of RFC 9068 and with the
//! precautions of RFC 8725.

mod crypto;
mod key_set;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hashlink::DefaultHashBuilder;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Header, Validation, decode, decode_header};
use moka::sync::Cache;
use pagebucket_engine::internal::tasks::KeptTasks;
use pagebucket_model::domain::{AllowedOwners, Clock, Instant, OwnerType, Principal, Scope};
use serde_json::Value;

use super::refusal::Refusal;
use key_set::{IssuerKey, KeySet};
pub use key_set::{KeySetError, KeySource, Pace};

/// By how much the clocks of the issuer and of this machine may differ.
const LEEWAY: Duration = Duration::from_secs(60);

/// Longest token, in bytes.
const LONGEST: usize = 8 * 1024;

/// Longest name of a client, in characters: the longest `sub` of OpenID Connect.
const LONGEST_NAME: usize = 255;

/// Memory for verified tokens, in bytes.
const REMEMBERED: u64 = 16 * 1024 * 1024;

/// What a token must say.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The `iss` of every token.
    pub issuer: String,
    /// One of the `aud` of every token.
    pub audience: String,
    /// The `typ` of a token may be one of these, compared without regard to case and without `application/`.
    pub types: Vec<String>,
    /// The claim that names the owners whose histories the client may use, for each collection of owners.
    pub claims: BTreeMap<Box<str>, OwnersClaim>,
    /// Where the issuer's keys are.
    pub keys: KeySource,
    /// When they are fetched.
    pub pace: Pace,
}

/// The claim that names owners of one collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnersClaim {
    /// The name of the claim.
    pub name: String,
    /// The type of the owners' ids.
    pub kind: OwnerType,
}

/// A public client of the issuer, by which users of the explorer sign in.
#[derive(Debug, Clone)]
pub struct ExplorerClient {
    /// Its id at the issuer.
    pub id: String,
    /// The scopes that it asks for.
    pub scopes: Vec<String>,
}

/// Verifies the tokens of one issuer.
#[derive(Debug)]
pub struct Jwt {
    /// What its tokens must say.
    pub settings: Settings,
    /// How users of the explorer get its tokens, if they do.
    pub explorer_client: Option<ExplorerClient>,
    keys: Arc<KeySet>,
    clock: Clock,
    /// Verified tokens, until they expire or their key is withdrawn. No client chooses them, so the hash need
    /// only be fast.
    verified: Cache<Box<str>, Verified, DefaultHashBuilder>,
}

/// A verified token.
#[derive(Debug, Clone)]
struct Verified {
    principal: Arc<Principal>,
    /// The key that has verified it.
    key: Arc<IssuerKey>,
}

impl Jwt {
    /// Reads the issuer's keys, for the first time and then again by one of these tasks.
    ///
    /// # Errors
    /// The keys are in a file that is no set of keys.
    pub async fn start(settings: Settings, clock: Clock, tasks: &KeptTasks) -> Result<Self, KeySetError> {
        crypto::install();
        let keys = KeySet::start(settings.keys.clone(), settings.pace, tasks).await?;
        // An id takes more memory in the principal than in its token: about 64 bytes, in each collection.
        #[expect(clippy::borrowed_box, reason = "the cache calls it so")]
        let weigh = |token: &Box<str>, verified: &Verified| {
            let ids =
                |owners: &AllowedOwners| if let AllowedOwners::These(ids) = owners { ids.len() } else { 0 };
            let ids: usize = verified.principal.owners.values().map(ids).sum();
            (2 * token.len() + 64 * ids + 256) as u32
        };
        let verified = Cache::builder().weigher(weigh).max_capacity(REMEMBERED);
        let verified = verified.build_with_hasher(DefaultHashBuilder::default());
        Ok(Self { settings, explorer_client: None, keys, clock, verified })
    }

    /// The same, whose users of the explorer sign in at the issuer.
    #[must_use]
    pub fn signing_in_as(self, client: ExplorerClient) -> Self {
        Self { explorer_client: Some(client), ..self }
    }

    /// Whose token it is, if it was verified before and is still valid.
    pub fn remembered(&self, token: &str) -> Option<Arc<Principal>> {
        let Verified { principal, key } = self.verified.get(token)?;
        let expired = principal.expires.is_some_and(|expires| expires <= self.clock.now());
        (!expired && !key.is_withdrawn()).then_some(principal)
    }

    /// Whether the key of a token is not among those that are known.
    pub fn needs_fetch(&self, token: &str) -> bool {
        let is_unknown = |header: Header| self.keys.known(header.kid.as_deref(), header.alg).is_none();
        header(token, &self.settings.types).is_ok_and(is_unknown)
    }

    /// Whose token it is.
    ///
    /// # Errors
    /// The token is not valid, or its key is unknown and the issuer does not answer soon.
    pub async fn authenticate(&self, token: &str) -> Result<Arc<Principal>, Refusal> {
        let header = header(token, &self.settings.types)?;
        let found = self.keys.find(header.kid.as_deref(), header.alg).await;
        let unknown = || Refusal::invalid("The issuer has no key with the kid and the alg of the token.");
        let key = found.map_err(|_elapsed| Refusal::Issuer)?.ok_or_else(unknown)?;
        let claims = decode::<Value>(token, &key.decoding, &self.validation(&key));
        let principal = self.principal(&claims.map_err(refusal)?.claims)?;
        let principal = Arc::new(principal);
        self.verified.insert(token.into(), Verified { principal: Arc::clone(&principal), key });
        Ok(principal)
    }

    fn validation(&self, key: &IssuerKey) -> Validation {
        let mut validation = Validation::new(key.algorithms[0]);
        validation.algorithms.clone_from(&key.algorithms);
        validation.leeway = LEEWAY.as_secs();
        validation.validate_nbf = true;
        validation.set_audience(&[&self.settings.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation
    }

    /// # Errors
    /// A claim that was not checked with the signature is not what it must be.
    fn principal(&self, claims: &Value) -> Result<Principal, Refusal> {
        let invalid = |words: &'static str| Err(Refusal::invalid(words));
        // The library would also accept an array that contains the issuer.
        if claims["iss"] != *self.settings.issuer {
            return invalid("The token is from another issuer.");
        }
        let printable = |name: &&str| name.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let named = claims["sub"].as_str().filter(printable);
        let named =
            named.filter(|name| (1..=LONGEST_NAME).contains(&name.len()) && !name.starts_with("key:"));
        let Some(name) = named else {
            return invalid(
                "The sub of the token is not 1 to 255 printable ASCII characters, or begins with key:",
            );
        };
        let leeway = LEEWAY.as_secs() as i64;
        let issued = claims.get("iat").map(|issued| issued.as_f64().unwrap_or(f64::MAX));
        if issued.is_some_and(|issued| issued > (self.clock.now().seconds() + leeway) as f64) {
            return invalid("The iat of the token is in the future.");
        }
        let scopes = claims.get("scope").and_then(Value::as_str).unwrap_or_default();
        let owners = self.settings.claims.iter().map(|(collection, OwnersClaim { name: claim, kind })| {
            let owners = match claim.as_str() {
                // A user may be able to choose `sub`: `*` in it must not mean all owners.
                "sub" => AllowedOwners::These([kind.spelled(name).into()].into()),
                claim => owners(claims.get(claim), *kind),
            };
            (collection.clone(), owners)
        });
        // As a float it may be beyond the last instant.
        let expires = claims["exp"].as_f64().unwrap_or_default() * 1000.0 + LEEWAY.as_millis() as f64;
        Ok(Principal {
            name: name.into(),
            scopes: scopes.split(' ').filter_map(|name| Scope::parse(name).ok()).collect(),
            owners: owners.collect(),
            expires: Some(Instant::from_millis(expires as i64).unwrap_or(Instant::MAX)),
        })
    }
}

/// The header of a token, before its signature is verified.
///
/// # Errors
/// The token is too long, it is not of one of these types, or something in its header is critical: nothing is
/// known here.
fn header(token: &str, types: &[String]) -> Result<Header, Refusal> {
    let invalid = |words: &'static str| Err(Refusal::invalid(words));
    if token.len() > LONGEST {
        return invalid("The token is longer than 8,192 bytes.");
    }
    let header = decode_header(token).map_err(refusal)?;
    let kind = header.typ.as_deref().unwrap_or_default().to_ascii_lowercase();
    let kind = kind.strip_prefix("application/").unwrap_or(&kind);
    if !types.iter().any(|allowed| allowed.eq_ignore_ascii_case(kind)) {
        return invalid("The typ of the token is not that of an access token.");
    }
    if header.crit.is_some() {
        return invalid("The token has a critical header that this server does not know.");
    }
    Ok(header)
}

/// The owners that a claim names: an id, a number, or an array of these.
fn owners(claim: Option<&Value>, kind: OwnerType) -> AllowedOwners {
    let id = |value: &Value| match value {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => id.as_u64().map(|id| id.to_string()),
        _ => None,
    };
    match claim {
        Some(Value::Array(ids)) => AllowedOwners::of_ids(ids.iter().filter_map(id), kind),
        claim => AllowedOwners::of_ids(claim.and_then(id), kind),
    }
}

/// Says what is wrong with a token. The text repeats nothing of the token except the name of a claim.
fn refusal(error: Error) -> Refusal {
    let words: Cow<'static, str> = match error.kind() {
        ErrorKind::ExpiredSignature => "The token has expired.".into(),
        ErrorKind::ImmatureSignature => "The token is not valid yet.".into(),
        ErrorKind::InvalidAudience => "The token is for another audience.".into(),
        ErrorKind::InvalidAlgorithm => "The algorithm of the token is not that of its key.".into(),
        ErrorKind::InvalidSignature => "The signature of the token is wrong.".into(),
        ErrorKind::MissingRequiredClaim(claim) => format!("The token has no {claim}.").into(),
        ErrorKind::InvalidClaimFormat(claim) => format!("The {claim} of the token is malformed.").into(),
        _ => "The token is malformed.".into(),
    };
    Refusal::invalid(words)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The vectors of Project Wycheproof. Their payloads are no claims, so that a token whose signature is
    /// right is refused for its claims, after its signature.
    #[test]
    fn only_right_signatures_pass() {
        crypto::install();
        let vectors = include_str!("../test_data/wycheproof/json_web_signature_test.json");
        let vectors: Value = serde_json::from_str(vectors).unwrap();
        let groups = vectors["testGroups"].as_array().unwrap();
        // Passed and refused vectors, by the algorithm of the key.
        let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for group in groups {
            let jwk = group.get("public").or_else(|| group.get("private")).unwrap();
            let key = IssuerKey::of(jwk);
            for vector in group["tests"].as_array().unwrap() {
                let token = vector["jws"].as_str().unwrap_or_default();
                let passes = key.as_ref().is_some_and(|key| passes(token, key));
                let is_valid = vector["result"] == "valid";
                // Secrets and curves of 521 bits are no keys here, and a key has one algorithm if it names
                // one.
                let supported = key.as_ref().is_some_and(|key| {
                    decode_header(token).is_ok_and(|header| key.algorithms.contains(&header.alg))
                });
                assert_eq!(passes, is_valid && supported, "{vector} with {jwk}");
                let algorithm = jwk["alg"].as_str().unwrap_or("none");
                counts.entry(algorithm).or_default()[usize::from(!passes)] += 1;
            }
        }
        println!("passed and refused: {counts:?}");
        for algorithm in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256"] {
            assert!(counts[algorithm][0] > 0, "{algorithm}: {counts:?}");
        }
        assert_eq!(counts["HS256"][0], 0);
    }

    fn passes(token: &str, key: &IssuerKey) -> bool {
        let mut validation = Validation::new(key.algorithms[0]);
        validation.algorithms.clone_from(&key.algorithms);
        header(token, &[String::new()]).is_ok()
            && decode::<Value>(token, &key.decoding, &validation)
                .is_err_and(|error| matches!(error.kind(), ErrorKind::Json(_)))
    }
}
