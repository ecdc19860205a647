//! An access token, as an issuer would write it, and the gate that accepts it.

use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use pagebucket_engine::internal::tasks::KeptTasks;
use pagebucket_http::auth::Authenticator;
use pagebucket_http::auth::jwt::{Jwt, KeySource, OwnersClaim, Pace, Settings};
use pagebucket_http::{Gate, OpenParts};
use pagebucket_model::domain::{Clock, OwnerType};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::Result;

/// The token's header line, and the set of keys that it is accepted with.
static TOKEN: LazyLock<(String, Value)> = LazyLock::new(|| {
    let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("randomness");
    let key = Ed25519KeyPair::from_pkcs8(key.as_ref()).expect("a key");
    let encoded = |text: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(text);
    let header = json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": "bench" });
    // About as long as real tokens are.
    let claims = json!({
        "iss": "https://issuer.example", "aud": "https://api.example", "sub": "ann", "client_id": "frontend",
        "jti": "018f3c6e-7b1a-7c3d-9e2f-0123456789ab", "iat": 1, "exp": 253_402_300_799_i64,
        "scope": "openid profile read append", "customers": (1..=100).collect::<Vec<_>>()
    });
    let message =
        format!("{}.{}", encoded(header.to_string().as_bytes()), encoded(claims.to_string().as_bytes()));
    let signature = encoded(key.sign(message.as_bytes()).as_ref());
    let set = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "bench", "x": encoded(key.public_key().as_ref()) }] });
    (format!("authorization: Bearer {message}.{signature}\r\n"), set)
});

/// The header line of the token, with its end.
pub fn token_line() -> &'static str {
    &TOKEN.0
}

/// The gate that accepts the token.
pub async fn gate() -> Result<Gate> {
    let file = std::env::temp_dir().join(format!("pagebucket-bench-{}.json", std::process::id()));
    std::fs::write(&file, TOKEN.1.to_string())?;
    let claim = OwnersClaim { name: "customers".to_owned(), kind: OwnerType::Integer };
    let settings = Settings {
        issuer: "https://issuer.example".to_owned(),
        audience: "https://api.example".to_owned(),
        types: vec!["at+jwt".to_owned()],
        claims: [("customers".into(), claim)].into(),
        keys: KeySource::File(file.clone()),
        pace: Pace::default(),
    };
    let jwt = Jwt::start(settings, Clock::system(), &KeptTasks::default()).await;
    std::fs::remove_file(file)?;
    Ok(Gate::guarded(Authenticator { jwt: Some(jwt?), keys: None }, OpenParts::default()))
}
