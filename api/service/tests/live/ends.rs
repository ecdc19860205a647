//! Why live streams end, and what their last event says.

use std::time::Duration;

use mongodb::bson::{Document, doc};
use pagebucket_engine::Deadline;
use pagebucket_engine::internal::COMMAND;
use pagebucket_engine::internal::api_keys::KeyRecord;
use pagebucket_http::auth::Authenticator;
use pagebucket_http::auth::keys::{ApiKey, Keys};
use pagebucket_http::{Gate, OpenParts};
use pagebucket_model::domain::{Clock, Instant, Scope};
use reqwest::Method;
use serde_json::json;

use crate::harness::events::Events;
use crate::harness::tokens::{Issuer, claims, now};
use crate::harness::{Mongod, PATIENCE, Service, Setup, TRADES, eventually, shared, spawn};

/// The last event of a stream that may be resumed.
async fn last(mut events: Events, reason: &str) {
    let retry = events.retry;
    let event = events.next().await;
    assert_eq!((event.name.as_str(), &event.data), ("end", &json!({ "reason": reason })));
    assert_ne!(events.retry, retry, "clients come back at random times");
    events.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_at_its_greatest_age() {
    let mut setup = Setup::on(shared().await);
    setup.config.api.live_max_age = Duration::from_secs(1);
    let service = setup.start().await;
    service.client.append_all(1, 1..=12).await;
    let mut events = Events::of(&service.client, 1, "?after=0", &[]).await;
    events.read(TRADES, 1, 12).await;
    last(events, "max-age").await;
}

/// At once, although it could go on for an hour.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_the_service_stops() {
    let service = Service::filled(TRADES, 3).await;
    let mut events = [
        Events::of(&service.client, 1, "?after=0", &[]).await,
        Events::of(&service.client, 2, "?after=0", &[]).await,
    ];
    events[0].read(TRADES, 1, 3).await;
    assert!(service.stop().await, "nothing is left under way");
    for events in events {
        last(events, "stopping").await;
    }
}

/// What its client has may be of a history that is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_the_database_gets_another_epoch() {
    let standalone = Mongod::standalone().await;
    for mongod in [shared().await, &standalone] {
        let setup = Setup::on(mongod);
        let database = mongod.client().await.database(&setup.connection.database);
        let service = setup.start().await;
        service.client.append_all(1, 1..=3).await;
        let mut events = Events::of(&service.client, 1, "?after=0", &[]).await;
        events.read(TRADES, 1, 3).await;
        // Housekeeping of others writes there, too.
        let migrations = database.collection::<Document>("migrations");
        migrations.insert_one(doc! { "_id": "other" }).await.expect("to write");
        service.client.append_all(1, 4..=4).await;
        events.read(TRADES, 4, 4).await;
        Setup::on(mongod).in_database(&database).store().await.renew_epoch().await.expect("to renew");
        last(events, "epoch").await;
        // It is told once.
        let mut again = Events::of(&service.client, 1, "?after=3", &[]).await;
        again.read(TRADES, 4, 4).await;
        service.client.append_all(1, 5..=5).await;
        again.read(TRADES, 5, 5).await;
    }
    standalone.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_token_or_key() {
    let issuer = Issuer::start().await;
    let mut setup = Setup::on(shared().await);
    let store = setup.store().await;
    let keys = Some(Keys::new(&store, Clock::system()));
    let authenticator = Authenticator { jwt: Some(issuer.jwt().await), keys };
    setup.gate = Gate::guarded(authenticator, OpenParts::default());
    let service = setup.start().await;
    let key = ApiKey::new();
    let record = KeyRecord {
        name: "short".to_owned(),
        scopes: [Scope::Read].into_iter().collect(),
        owners: None,
        created: Clock::system().now(),
        last_used: None,
        expires: Some(Instant::from_millis(1_000 * (now() + 20)).expect("a time")),
        revoked: None,
    };
    store.api_keys().create(key.hash(), &record, Deadline::within(COMMAND)).await.expect("a new name");
    let with = format!("Bearer {}", key.expose());
    let of_key = Events::of(&service.client, 7, "?after=0", &[("Authorization", with.as_str())]).await;
    let mut claims = claims("ann", "read", json!([7]));
    // The leeway is a minute.
    claims["exp"] = json!(now() - 60 + 20);
    let authorization = format!("Bearer {}", issuer.signer.sign(&claims));
    let with = [("Authorization", authorization.as_str())];
    // A long poll is answered then.
    let client = service.client.with_token(issuer.signer.sign(&claims));
    let poll = spawn(async move { client.get(&TRADES.at(7, "?after=0&wait=60")).await.expect(200) });
    last(Events::of(&service.client, 7, "?after=0", &with).await, "expired").await;
    assert!(TRADES.seqs(&poll.await.expect("no panic")).is_empty());
    last(of_key, "expired").await;
    let refused = service.client.get(&TRADES.at(7, "/live")).await;
    refused.problem(401, "unauthorized");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_owner_is_erased() {
    let one = Service::filled(TRADES, 12).await;
    let other = one.sibling(shared().await).await;
    let mut streams = [
        Events::of(&one.client, 1, "?after=9", &[]).await,
        Events::of(&other.client, 1, "?after=12", &[]).await,
    ];
    streams[0].read(TRADES, 10, 12).await;
    let erase = other.client.send(Method::DELETE, &TRADES.owner_path(1), |request| request).await;
    assert!(erase.status.is_success(), "{erase:?}");
    for events in &mut streams {
        let event = events.next().await;
        assert_eq!(
            (event.name.as_str(), &event.data["type"]),
            ("gone", &json!("/problems#erased")),
            "{event:?}"
        );
        assert_eq!(event.data["status"], 410);
        events.end().await;
    }
    let gone = || async { one.client.get(&TRADES.at(1, "/live?after=12")).await.status == 410 };
    eventually("it is gone", PATIENCE, gone).await;
}
