//! Keys of servers at the gate.

use pagebucket_engine::internal::COMMAND;
use pagebucket_engine::internal::api_keys::KeyRecord;
use pagebucket_engine::{Deadline, Store};
use pagebucket_http::auth::Authenticator;
use pagebucket_http::auth::keys::{ApiKey, Keys};
use pagebucket_http::{Gate, OpenParts};
use pagebucket_model::domain::{Clock, Scope};

use tokio::task::JoinSet;

use crate::harness::tokens::{Issuer, claims};
use crate::harness::{Harm, Proxy, Service, Setup, Way, shared};

const TRADES: &str = "/v1/customers/7/trades";

/// A new key for these owners.
pub async fn key(store: &Store, name: &str, scopes: &[Scope], owners: Option<&[&str]>) -> String {
    let key = ApiKey::new();
    let record = KeyRecord {
        name: name.to_owned(),
        scopes: scopes.iter().copied().collect(),
        owners: owners.map(|owners| owners.iter().map(|&owner| owner.to_owned()).collect()),
        created: Clock::system().now(),
        last_used: None,
        expires: None,
        revoked: None,
    };
    store.api_keys().create(key.hash(), &record, Deadline::within(COMMAND)).await.expect("a new name");
    key.expose().to_owned()
}

/// A service that accepts keys, and tokens of an issuer, if there is one. And its store.
async fn guarded(issuer: Option<&Issuer>) -> (Service, Store) {
    let mut setup = Setup::on(shared().await);
    let store = setup.store().await;
    let jwt = match issuer {
        Some(issuer) => Some(issuer.jwt().await),
        None => None,
    };
    let keys = Some(Keys::new(&store, Clock::system()));
    setup.gate = Gate::guarded(Authenticator { jwt, keys }, OpenParts::default());
    (setup.start().await, store)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_lets_its_bearer_in() {
    let (service, store) = guarded(None).await;
    let all = key(&store, "all", &[Scope::Append, Scope::Read], None).await;
    let one = key(&store, "one", &[Scope::Append], Some(&["8"])).await;
    let [all, one] = [all, one].map(|key| service.client.with_token(key));
    all.append_to(TRADES).await.expect(201);
    all.get(TRADES).await.expect(200);
    all.get("/v1/customers").await.problem(403, "forbidden");
    one.append_to(TRADES).await.problem(403, "forbidden");
    one.append_to("/v1/customers/8/trades").await.expect(201);
    one.get("/v1/customers/8/trades").await.problem(403, "forbidden");
    let unknown = service.client.with_token(ApiKey::new().expose());
    let answer = unknown.get(TRADES).await;
    assert_eq!(answer.problem(401, "unauthorized")["detail"], "The API key is unknown.");
    assert!(answer.header("www-authenticate").contains("error=\"invalid_token\""), "{answer:?}");
    let token = Issuer::start().await.signer.sign(&claims("ann", "read", serde_json::json!("*")));
    service.client.with_token(token).get(TRADES).await.problem(401, "unauthorized");
    service.client.get("/.well-known/oauth-protected-resource").await.problem(404, "not-found");
    // Revoked in another process; how long it is remembered here is tested with keys themselves.
    let revoked = key(&store, "revoked", &[Scope::Read], None).await;
    let now = Clock::system().now();
    store.api_keys().revoke("revoked", now, Deadline::within(COMMAND)).await.expect("a revocation");
    let answer = service.client.with_token(revoked).get(TRADES).await;
    assert_eq!(answer.problem(401, "unauthorized")["detail"], "The API key was revoked.");
    service.stored(7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_tokens_go_together() {
    let issuer = Issuer::start().await;
    let (service, store) = guarded(Some(&issuer)).await;
    let key = key(&store, "backend", &[Scope::Append], None).await;
    service.client.with_token(key).append_to(TRADES).await.expect(201);
    let token = issuer.signer.sign(&claims("ann", "read", serde_json::json!([7])));
    assert_eq!(service.client.with_token(token).get(TRADES).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_keys_of_an_address_leave_places_to_others() {
    const SHARE: usize = 64;
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::at(&proxy.uri());
    let store = setup.store().await;
    let keys = Some(Keys::new(&store, Clock::system()));
    setup.gate = Gate::guarded(Authenticator { jwt: None, keys }, OpenParts::default());
    let service = setup.start().await;
    // Keys that are looked up one after the other, and one that does not wait for them.
    let same_turn = |key: &ApiKey| key.hash().0[0].is_multiple_of(16);
    let good = loop {
        let good = key(&store, &format!("key-{}", ApiKey::new().expose()), &[Scope::Read], None).await;
        if !ApiKey::hash_of(&good).is_some_and(|hash| hash.0[0].is_multiple_of(16)) {
            break good;
        }
    };
    proxy.harm("find api_keys", Way::There, Harm::Hold, 1);
    let mut flood = JoinSet::new();
    for key in std::iter::repeat_with(ApiKey::new).filter(same_turn).take(SHARE + 5) {
        let client = service.client.with_token(key.expose());
        flood.spawn(async move { client.get(TRADES).await });
    }
    for _ in 0..5 {
        let refused = flood.join_next().await.expect("some").expect("no panic");
        let problem = refused.problem(503, "overloaded");
        let expected = "Too many look-ups of API keys of this client are under way: it may have 64 at once.";
        assert_eq!(problem["detail"], expected);
    }
    service.client.at([127, 0, 0, 2]).with_token(good).get(TRADES).await.expect(200);
    proxy.relent();
    for answer in flood.join_all().await {
        answer.problem(401, "unauthorized");
    }
}
