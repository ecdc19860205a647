//! Keys of the issuer that are replaced, and an issuer that does not answer.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use pagebucket_http::auth::Authenticator;
use pagebucket_http::auth::jwt::Pace;
use pagebucket_http::auth::keys::Keys;
use pagebucket_http::{Gate, OpenParts};
use pagebucket_model::domain::{Clock, Scope};
use serde_json::json;
use tokio::task::JoinSet;

use super::keys::key;
use crate::harness::tokens::{Issuer, Signer, claims, gate, jwt};
use crate::harness::{Service, Setup, eventually, shared};

const TRADES: &str = "/v1/customers/7/trades";

async fn guarded(issuer: &Issuer, pace: Pace) -> Service {
    let mut setup = Setup::on(shared().await);
    let mut settings = issuer.settings();
    settings.pace = pace;
    setup.gate = gate(settings, OpenParts::default()).await;
    setup.start().await
}

fn seldom() -> Pace {
    Pace { refresh: Duration::from_secs(3600), unknown: Duration::from_secs(3600), ..Pace::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_is_fetched_once() {
    let issuer = Issuer::start().await;
    let service = guarded(&issuer, seldom()).await;
    let mine = claims("ann", "read", json!(["7"]));
    let old = service.client.with_token(issuer.signer.sign(&mine));
    old.get(TRADES).await.expect(200);
    assert_eq!(issuer.fetched(), 1);
    let next = Signer::eddsa("next");
    issuer.replace([issuer.signer.jwk(), next.jwk()]);
    // Many requests need the new key at once.
    let token = next.sign(&mine);
    let clients: Vec<_> = (0..50).map(|_| service.client.with_token(&token)).collect();
    let answers = join_all(clients.iter().map(|client| client.get(TRADES))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(issuer.fetched(), 2);
    old.get(TRADES).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_keys_are_not_fetched_again_and_again() {
    let issuer = Issuer::start().await;
    let service = guarded(&issuer, seldom()).await;
    let mine = claims("ann", "read", json!(["7"]));
    for number in 0..50 {
        let token = Signer::eddsa(&format!("unknown-{number}")).sign(&mine);
        service.client.with_token(token).get(TRADES).await.problem(401, "unauthorized");
    }
    // At the start, and once for all unknown keys.
    assert_eq!(issuer.fetched(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_key_is_refused_after_its_time() {
    let issuer = Issuer::start().await;
    let refresh = Duration::from_millis(200);
    let service = guarded(&issuer, Pace { refresh, ..seldom() }).await;
    let mine = claims("ann", "read", json!(["7"]));
    let old = service.client.with_token(issuer.signer.sign(&mine));
    let next = Signer::es256("next");
    issuer.replace([issuer.signer.jwk(), next.jwk()]);
    let new = service.client.with_token(next.sign(&mine));
    new.get(TRADES).await.expect(200);
    old.get(TRADES).await.expect(200);
    issuer.replace([next.jwk()]);
    // It was remembered, and is not any more.
    let refused = async || {
        new.get(TRADES).await.expect(200);
        old.get(TRADES).await.status == 401
    };
    eventually("the withdrawn key is refused", Duration::from_secs(20), refused).await;
    // A key with the id of a withdrawn one is another key.
    issuer.replace([next.jwk(), Signer::es256("first").jwk()]);
    let fetched = issuer.fetched();
    eventually("a fetch", Duration::from_secs(20), async || issuer.fetched() > fetched + 1).await;
    old.get(TRADES).await.problem(401, "unauthorized");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_set_stays_in_use() {
    let issuer = Issuer::start().await;
    let often = Duration::from_millis(50);
    let pace = Pace { refresh: often, unknown: often, retry: often };
    let service = guarded(&issuer, pace).await;
    let mine = claims("ann", "read", json!(["7"]));
    issuer.up.store(false, Ordering::SeqCst);
    let fetched = issuer.fetched();
    eventually("failed fetches", Duration::from_secs(20), async || issuer.fetched() > fetched + 3).await;
    service.client.with_token(issuer.signer.sign(&mine)).get(TRADES).await.expect(200);
    let next = Signer::es256("next");
    issuer.replace([next.jwk()]);
    let client = service.client.with_token(next.sign(&mine));
    client.get(TRADES).await.problem(401, "unauthorized");
    issuer.up.store(true, Ordering::SeqCst);
    let accepted = async || client.get(TRADES).await.status == 200;
    eventually("the new key is accepted", Duration::from_secs(20), accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_without_its_issuer() {
    let issuer = Issuer::start().await;
    issuer.up.store(false, Ordering::SeqCst);
    let often = Duration::from_millis(50);
    let service = guarded(&issuer, Pace { retry: often, ..seldom() }).await;
    let client = service.client.with_token(issuer.signer.sign(&claims("ann", "read", json!(["7"]))));
    client.get(TRADES).await.problem(401, "unauthorized");
    service.client.get("/readyz").await.expect(200);
    issuer.up.store(true, Ordering::SeqCst);
    let accepted = async || client.get(TRADES).await.status == 200;
    eventually("tokens are accepted", Duration::from_secs(20), accepted).await;
}

/// A refresh is under way, and many tokens name keys that only it could tell.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_issuer_keeps_out_no_client_that_is_known() {
    const FLOOD: usize = 280;
    const GOOD: usize = 20;
    let issuer = Issuer::start().await;
    let mut setup = Setup::on(shared().await);
    let store = setup.store().await;
    let mut settings = issuer.settings();
    settings.pace = Pace { refresh: Duration::from_millis(50), ..seldom() };
    let keys = Some(Keys::new(&store, Clock::system()));
    setup.gate = Gate::guarded(Authenticator { jwt: Some(jwt(settings).await), keys }, OpenParts::default());
    let service = setup.start().await;
    // None of them was seen before.
    let mut good = Vec::new();
    for number in 0..GOOD {
        good.push(key(&store, &format!("backend-{number}"), &[Scope::Read], None).await);
        let mut claims = claims("ann", "read", json!(["7"]));
        claims["jti"] = json!(number);
        good.push(issuer.signer.sign(&claims));
    }
    issuer.slow.send_replace(true);
    let fetched = issuer.fetched();
    eventually("a refresh", Duration::from_secs(20), async || issuer.fetched() > fetched).await;
    let unknown = Signer::eddsa("unknown").sign(&claims("ann", "read", json!(["7"])));
    let mut flood = JoinSet::new();
    for _ in 0..FLOOD {
        let client = service.client.with_token(&unknown);
        flood.spawn(async move { client.get(TRADES).await });
    }
    // All places are taken when one of them gets none.
    let mut refused = vec![flood.join_next().await.expect("some").expect("no panic")];
    let clients: Vec<_> = good.into_iter().map(|good| service.client.with_token(good)).collect();
    for answer in join_all(clients.iter().map(|client| client.get(TRADES))).await {
        answer.expect(200);
    }
    // They waited for no answer of the issuer: those who do wait for it still do.
    let waiting = FLOOD
        - refused.len()
        - std::iter::from_fn(|| flood.try_join_next())
            .map(|answer| refused.push(answer.expect("no panic")))
            .count();
    assert_eq!(waiting, 64, "one address has a quarter of the places");
    refused.extend(flood.join_all().await);
    let details = refused.iter().map(|answer| {
        assert_eq!(answer.header("retry-after"), "1");
        answer.problem(503, "overloaded")["detail"].to_string()
    });
    let (crowded, late): (Vec<_>, Vec<_>) =
        details.partition(|detail| detail.contains("tokens with an unknown key"));
    assert!(late.iter().all(|detail| detail.contains("The issuer did not answer in time")), "{late:?}");
    assert_eq!((crowded.len(), late.len()), (FLOOD - 64, 64), "one address has a quarter of the places");
    issuer.slow.send_replace(false);
}
