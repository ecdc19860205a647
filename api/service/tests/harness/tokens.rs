//! An issuer of access tokens, whose keys are replaced as tests want it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use pagebucket_engine::internal::tasks::KeptTasks;
use pagebucket_http::auth::Authenticator;
use pagebucket_http::auth::jwt::{Jwt, KeySource, OwnersClaim, Pace, Settings};
use pagebucket_http::{Gate, OpenParts};
use pagebucket_model::domain::{Clock, OwnerType};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::sync::watch;

pub const ISSUER: &str = "https://issuer.example";
pub const AUDIENCE: &str = "https://api.example";

/// Base64url without padding.
pub fn base64url(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Seconds since 1970.
pub fn now() -> i64 {
    Clock::system().now().seconds()
}

/// A key that signs tokens.
pub struct Signer {
    pub id: String,
    pair: Pair,
}

enum Pair {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

impl Signer {
    pub fn es256(id: &str) -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random);
        Self { id: id.to_owned(), pair: Pair::Es256(pair.expect("a key")) }
    }

    pub fn eddsa(id: &str) -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self {
            id: id.to_owned(),
            pair: Pair::EdDsa(Ed25519KeyPair::from_pkcs8(key.as_ref()).expect("a key")),
        }
    }

    fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Es256(_) => "ES256",
            Pair::EdDsa(_) => "EdDSA",
        }
    }

    /// The public key as bytes.
    pub fn public(&self) -> &[u8] {
        match &self.pair {
            Pair::Es256(pair) => pair.public_key().as_ref(),
            Pair::EdDsa(pair) => pair.public_key().as_ref(),
        }
    }

    /// The public key as a member of a set.
    pub fn jwk(&self) -> Value {
        let public = self.public();
        match self.pair {
            Pair::Es256(_) => json!({
                "kty": "EC", "crv": "P-256", "kid": self.id, "use": "sig", "alg": "ES256",
                "x": base64url(&public[1..33]), "y": base64url(&public[33..])
            }),
            Pair::EdDsa(_) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.id, "x": base64url(public) })
            }
        }
    }

    /// The header that its tokens have.
    pub fn header(&self) -> Value {
        json!({ "alg": self.algorithm(), "typ": "at+jwt", "kid": self.id })
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_as(&self.header(), claims)
    }

    /// A token with this header and these claims.
    pub fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", base64url(header.to_string()), base64url(claims.to_string()));
        let signature = match &self.pair {
            Pair::Es256(pair) => {
                pair.sign(&SystemRandom::new(), message.as_bytes()).expect("a signature").as_ref().to_vec()
            }
            Pair::EdDsa(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", base64url(signature))
    }
}

/// Claims that let their bearer do this with the histories of these customers, for five minutes.
pub fn claims(name: &str, scope: &str, customers: Value) -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": name, "client_id": "tests", "jti": "1",
        "iat": now(), "exp": now() + 300, "scope": scope, "customers": customers
    })
}

/// The claim of this name, for owners whose ids have this type.
pub fn owners_claim(name: &str, kind: OwnerType) -> OwnersClaim {
    OwnersClaim { name: name.to_owned(), kind }
}

/// All scopes, as in a token.
pub const EVERYTHING: &str = "read append list views metrics admin";

/// A server with the set of keys of an issuer.
pub struct Issuer {
    pub signer: Signer,
    pub keys: Arc<Mutex<Vec<Value>>>,
    /// Whether it answers.
    pub up: Arc<AtomicBool>,
    /// Whether it keeps those that ask waiting.
    pub slow: watch::Sender<bool>,
    /// How often its keys were fetched.
    pub fetched: Arc<AtomicUsize>,
    pub url: String,
}

impl Issuer {
    pub async fn start() -> Self {
        let signer = Signer::es256("first");
        let keys = Arc::new(Mutex::new(vec![signer.jwk()]));
        let (up, fetched) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let slow = watch::Sender::new(false);
        let answer = {
            let (keys, up, fetched) = (Arc::clone(&keys), Arc::clone(&up), Arc::clone(&fetched));
            let slow = slow.clone();
            move || {
                fetched.fetch_add(1, Ordering::SeqCst);
                let set = json!({ "keys": *keys.lock().expect("no test panics here") });
                let status = if up.load(Ordering::SeqCst) { StatusCode::OK } else { StatusCode::BAD_GATEWAY };
                let mut slow = slow.subscribe();
                async move {
                    slow.wait_for(|slow| !slow).await.expect("the test goes on");
                    (status, set.to_string()).into_response()
                }
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/jwks", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, Router::new().route("/jwks", get(answer))).await });
        Self { signer, keys, up, slow, fetched, url }
    }

    /// The keys that it has from now on.
    pub fn replace(&self, keys: impl IntoIterator<Item = Value>) {
        *self.keys.lock().expect("no test panics here") = keys.into_iter().collect();
    }

    pub fn fetched(&self) -> usize {
        self.fetched.load(Ordering::SeqCst)
    }

    /// What a server is told that accepts its tokens. Keys are fetched again only when a token has an unknown
    /// one.
    pub fn settings(&self) -> Settings {
        Settings {
            issuer: ISSUER.to_owned(),
            audience: AUDIENCE.to_owned(),
            types: vec!["at+jwt".to_owned()],
            claims: [("customers".into(), owners_claim("customers", OwnerType::Integer))].into(),
            keys: KeySource::parse(&self.url).expect("an address of this machine"),
            pace: Pace { refresh: Duration::from_secs(3600), ..Pace::default() },
        }
    }

    /// What accepts its tokens.
    pub async fn jwt(&self) -> Jwt {
        jwt(self.settings()).await
    }

    /// A gate that accepts its tokens.
    pub async fn gate(&self, open: OpenParts) -> Gate {
        gate(self.settings(), open).await
    }
}

/// A gate that accepts tokens by these settings.
pub async fn gate(settings: Settings, open: OpenParts) -> Gate {
    let jwt = jwt(settings).await;
    Gate::guarded(Authenticator { jwt: Some(jwt), keys: None }, open)
}

/// What accepts tokens by these settings.
pub async fn jwt(settings: Settings) -> Jwt {
    Jwt::start(settings, Clock::system(), &KeptTasks::default()).await.expect("a set of keys")
}
