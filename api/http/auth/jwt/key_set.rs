//! The issuer's public keys (JWKS, RFC 7517), which may be replaced at any time.
//!
//! The set is fetched at the start, then at an interval, and when a token names a key that is not in it. The
//! last set stays in use while the issuer does not answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use pagebucket_engine::internal::tasks::KeptTasks;
use pagebucket_model::domain::Invalid;
use parking_lot::RwLock;
use reqwest::{Client, StatusCode, Url};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

use crate::auth::http_client::{NoClient, cause, client, whole};

/// Time within which the issuer must answer.
const ANSWER: Duration = Duration::from_secs(5);

/// How long a token with an unknown key waits for a fetch.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest set, in bytes.
const LONGEST: usize = 1024 * 1024;

/// Most keys of a set. Further ones are left out.
const MOST: usize = 100;

/// Where the keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A file of this machine.
    File(PathBuf),
    /// An address of the issuer: https, or http on this machine.
    Url(Url),
}

impl KeySource {
    /// Parses an address, or the path of a file.
    ///
    /// # Errors
    /// The address is http, and of another machine.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let Some(url) = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme())) else {
            return Ok(Self::File(text.into()));
        };
        let host = url.host_str().unwrap_or_default();
        if url.scheme() == "http" && !["localhost", "127.0.0.1", "[::1]"].contains(&host) {
            let rule =
                "must be https, a file, or http on this machine: anyone between could replace the keys";
            return Err(Invalid::new(rule));
        }
        Ok(Self::Url(url))
    }
}

/// Why the issuer's keys cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum KeySetError {
    /// The file of the user is no set of keys.
    #[error("{}: {why}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: Box<Self>,
    },
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] std::io::Error),
    /// There is no client to ask the issuer with.
    #[error(transparent)]
    NoClient(#[from] NoClient),
    /// The issuer does not answer, or breaks off.
    #[error("{}", cause(.0))]
    NoAnswer(#[from] reqwest::Error),
    /// The issuer answers with another status than 200.
    #[error("the issuer answers {0}")]
    Status(StatusCode),
    /// The issuer's answer is too long.
    #[error("the issuer's answer has more than {LONGEST} bytes")]
    TooLong,
    /// What was read is not JSON.
    #[error("not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// What was read is not a set of keys.
    #[error("not a set of keys: `keys` is no array")]
    NotASet,
}

/// When the set is fetched.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Time between two fetches. A key that the issuer has withdrawn is accepted for at most this time, while
    /// the issuer answers.
    pub refresh: Duration,
    /// Time between two fetches because of tokens that name an unknown key.
    pub unknown: Duration,
    /// Time until the next fetch after one that failed.
    pub retry: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let [refresh, unknown, retry] = [300, 30, 5].map(Duration::from_secs);
        Self { refresh, unknown, retry }
    }
}

/// A key that verifies signatures.
#[derive(Debug)]
pub(crate) struct IssuerKey {
    id: Option<String>,
    /// The member of the set that it was read from.
    source: Value,
    /// The key itself.
    pub decoding: DecodingKey,
    /// The algorithms that it may be used with. They follow from the key, never from a token (RFC 8725, 3.1).
    pub algorithms: Vec<Algorithm>,
    withdrawn: AtomicBool,
}

impl IssuerKey {
    /// `None` if it is not a public key for signatures, or of an unknown kind.
    pub(crate) fn of(source: &Value) -> Option<Self> {
        use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        let jwk: Jwk = serde_json::from_value(source.clone()).ok()?;
        let common = &jwk.common;
        let verifies = |operations: &Vec<KeyOperations>| operations.contains(&KeyOperations::Verify);
        if common.public_key_use.as_ref().is_some_and(|used| *used != PublicKeyUse::Signature)
            || !common.key_operations.as_ref().is_none_or(verifies)
        {
            return None;
        }
        let of_type: &[Algorithm] = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => &[RS256, RS384, RS512, PS256, PS384, PS512],
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => &[ES256],
                EllipticCurve::P384 => &[ES384],
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => &[EdDSA],
            _ => return None,
        };
        let named = |named: &KeyAlgorithm| Algorithm::try_from(*named).ok();
        let algorithms = match common.key_algorithm.as_ref().map(named) {
            None => of_type.to_vec(),
            Some(named) => vec![named.filter(|named| of_type.contains(named))?],
        };
        let decoding = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self {
            id: common.key_id.clone(),
            source: source.clone(),
            decoding,
            algorithms,
            withdrawn: AtomicBool::new(false),
        })
    }

    /// Whether the issuer has withdrawn it.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }
}

/// The keys of an issuer, which are fetched again and again.
#[derive(Debug)]
pub(crate) struct KeySet {
    source: KeySource,
    client: Client,
    pace: Pace,
    current: RwLock<Vec<Arc<IssuerKey>>>,
    /// When an unknown key was last fetched for. Held during a fetch, so that there is one at a time.
    fetched: Arc<Mutex<Option<Instant>>>,
}

impl KeySet {
    /// Reads the set for the first time, and again for as long as it is used.
    ///
    /// # Errors
    /// The file is not a set of keys. An issuer that does not answer is asked again later.
    pub(crate) async fn start(
        source: KeySource,
        pace: Pace,
        tasks: &KeptTasks,
    ) -> Result<Arc<Self>, KeySetError> {
        // A proxy between would see plain text, and could replace the keys.
        let plain = matches!(&source, KeySource::Url(url) if url.scheme() == "http");
        let client = client(|builder| {
            let builder = builder.timeout(ANSWER);
            if plain { builder.no_proxy() } else { builder }
        })?;
        let set = Self { source, client, pace, current: RwLock::default(), fetched: Arc::default() };
        let fetched = match (set.fetch().await, &set.source) {
            (Err(why), KeySource::File(file)) => {
                return Err(KeySetError::File { file: file.clone(), why: Box::new(why) });
            }
            (fetched, _) => set.logged(fetched),
        };
        let set = Arc::new(set);
        let weak = Arc::downgrade(&set);
        tasks.keep("issuer-keys", move || Self::refresh(weak.clone(), pace, fetched)).detach();
        Ok(set)
    }

    async fn refresh(set: std::sync::Weak<Self>, pace: Pace, mut fetched: bool) {
        loop {
            tokio::time::sleep(if fetched { pace.refresh } else { pace.retry.min(pace.refresh) }).await;
            let Some(set) = set.upgrade() else { return };
            let one_at_a_time = set.fetched.lock().await;
            let result = set.fetch().await;
            drop(one_at_a_time);
            fetched = set.logged(result);
        }
    }

    /// Logs a fetch that failed. Returns whether it succeeded.
    fn logged(&self, fetched: Result<(), KeySetError>) -> bool {
        if let Err(error) = &fetched {
            tracing::warn!(%error, "the issuer's keys could not be fetched; the last ones stay in use");
        }
        fetched.is_ok()
    }

    /// The key with this id for this algorithm. A token without an id gets the only key for its algorithm. A
    /// key that is unknown is fetched, unless this was tried a short time ago.
    ///
    /// # Errors
    /// The issuer does not answer soon. The fetch goes on.
    pub(crate) async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Option<Arc<IssuerKey>>, Elapsed> {
        match self.known(id, algorithm) {
            Some(found) => Ok(Some(found)),
            None => timeout(PATIENCE, self.fetch_for(id, algorithm)).await,
        }
    }

    /// Fetches the set for a key that is unknown, after the fetch that is under way, if there is one.
    async fn fetch_for(self: &Arc<Self>, id: Option<&str>, algorithm: Algorithm) -> Option<Arc<IssuerKey>> {
        let mut fetched = Arc::clone(&self.fetched).lock_owned().await;
        // Another request may have fetched it meanwhile.
        if let Some(found) = self.known(id, algorithm) {
            return Some(found);
        }
        if fetched.is_some_and(|at| at.elapsed() < self.pace.unknown) {
            return None;
        }
        *fetched = Some(Instant::now());
        let set = Arc::clone(self);
        // It goes on if the client disconnects or gives up: the next may not fetch for some time.
        let fetch = tokio::spawn(async move {
            let result = set.fetch().await;
            set.logged(result);
            drop(fetched);
        });
        fetch.await.expect("a fetch does not panic");
        self.known(id, algorithm)
    }

    /// The key with this id for this algorithm, if it is known. Waits for nothing.
    pub(crate) fn known(&self, id: Option<&str>, algorithm: Algorithm) -> Option<Arc<IssuerKey>> {
        let keys = self.current.read();
        let mut fitting = keys
            .iter()
            .filter(|key| (id.is_none() || key.id.as_deref() == id) && key.algorithms.contains(&algorithm));
        let found = fitting.next().cloned();
        found.filter(|_| id.is_some() || fitting.next().is_none())
    }

    /// Replaces the keys.
    ///
    /// # Errors
    /// The set cannot be read. The keys stay as they are.
    async fn fetch(&self) -> Result<(), KeySetError> {
        let text = match &self.source {
            KeySource::File(path) => tokio::fs::read(path).await?,
            KeySource::Url(url) => self.get(url.clone()).await?,
        };
        let set: Value = serde_json::from_slice(&text)?;
        let source = set["keys"].as_array().ok_or(KeySetError::NotASet)?;
        // Tokens are verified meanwhile: there is one fetch at a time.
        let current = self.current.read().clone();
        // A key that stays is the same value, so that tokens remember whether theirs was withdrawn.
        let kept = |source: &Value| current.iter().find(|key| key.source == *source).cloned();
        let key = |source| kept(source).or_else(|| IssuerKey::of(source).map(Arc::new));
        let keys: Vec<_> = source.iter().filter_map(key).take(MOST).collect();
        if keys.is_empty() {
            tracing::warn!("the issuer's set has no key that this server can use: every token is refused");
        }
        for old in current.iter().filter(|old| !keys.iter().any(|key| Arc::ptr_eq(key, old))) {
            old.withdrawn.store(true, Ordering::Release);
        }
        *self.current.write() = keys;
        Ok(())
    }

    async fn get(&self, url: Url) -> Result<Vec<u8>, KeySetError> {
        let answer = self.client.get(url).send().await?;
        match answer.status() {
            StatusCode::OK => whole(answer, LONGEST).await?.ok_or(KeySetError::TooLong),
            status => Err(KeySetError::Status(status)),
        }
    }
}
