//! Streams that outlive the token of their client.

use std::time::Duration;

use pagebucket_http::OpenParts;

use serde_json::json;

use crate::harness::tokens::{Issuer, claims, gate, now};
use crate::harness::uploads::lines;
use crate::harness::uploads::wire::Upload;
use crate::harness::{Client, Service, Setup, TRADES, eventually, fill, http, shared, spawn};

const LONG: Duration = Duration::from_secs(60);

/// A service, and the issuer of its tokens.
async fn service() -> (Service, Issuer) {
    let issuer = Issuer::start().await;
    let mut setup = Setup::on(shared().await);
    setup.gate = issuer.gate(OpenParts::default()).await;
    (setup.start().await, issuer)
}

/// A token that expires in some seconds.
fn token(issuer: &Issuer) -> String {
    let mut claims = claims("ann", "append read", json!([7]));
    // The leeway is a minute.
    claims["exp"] = json!(now() - 60 + 8);
    issuer.signer.sign(&claims)
}

async fn until_expired(client: &Client) {
    eventually("the token expires", LONG, async || client.get("/v1/customers/7").await.status == 401).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_ends_when_its_token_expires() {
    let (service, issuer) = service().await;
    let token = token(&issuer);
    let client = service.client.with_token(&token);
    let authorization = format!("Bearer {token}");
    let path = "/v1/customers/7/trades/upload.ndjson";
    let mut upload = Upload::begin(service.address(), path, &[("authorization", &authorization)]).await;
    upload.send(&lines(1..=20)).await;
    for line in 1..=20 {
        assert_eq!(upload.line().await.expect("an outcome")["line"], line);
    }
    until_expired(&client).await;
    // The client sends nothing more, and could have waited longer.
    let ending = upload.line().await.expect("an ending");
    let problem = &ending["problem"];
    assert_eq!(problem["type"], "/problems#partly-stored", "{ending}");
    let detail = problem["detail"].as_str().expect("words");
    assert!(detail.starts_with("The token or key is no longer valid."), "{ending}");
    assert_eq!(problem["notStoredLines"], json!([{ "first": 21 }]), "{ending}");
    assert_eq!(service.stored(7).await.numbers, (1..=20).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_of_nothing_says_that_its_token_expired() {
    let (service, issuer) = service().await;
    let token = token(&issuer);
    let authorization = format!("Bearer {token}");
    let path = "/v1/customers/7/trades/upload";
    let mut upload = Upload::begin(service.address(), path, &[("authorization", &authorization)]).await;
    until_expired(&service.client.with_token(&token)).await;
    let problem = upload.line().await.expect("a problem");
    assert_eq!((&problem["status"], &problem["type"]), (&json!(401), &json!("/problems#unauthorized")));
    let head = upload.head().await.to_lowercase();
    assert!(
        head.contains("www-authenticate: bearer realm=\"pagebucket\", error=\"invalid_token\""),
        "{head}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_never_pauses_ends_too() {
    let (service, issuer) = service().await;
    let token = token(&issuer);
    let authorization = format!("Bearer {token}");
    let path = "/v1/customers/7/trades/upload";
    let upload = Upload::begin(service.address(), path, &[("authorization", &authorization)]).await;
    let (mut read, mut write) = upload.split();
    let chunk = lines(1..=50);
    let writing = spawn(async move { while write.try_send(&chunk).await.is_ok() {} });
    let ending = tokio::time::timeout(LONG, read.line()).await.expect("an end");
    let problem = ending.expect("a problem");
    assert!(problem["stored"].as_u64().is_some_and(|stored| stored > 0), "{problem}");
    assert_eq!(problem["notStoredLines"][0].get("last"), None, "{problem}");
    drop(read);
    writing.await.expect("no panic");
    assert_eq!(service.stored(7).await.numbers.len() as u64, problem["stored"].as_u64().expect("a number"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_ends_after_its_key_is_withdrawn() {
    let issuer = Issuer::start().await;
    let mut settings = issuer.settings();
    settings.pace.refresh = Duration::from_millis(200);
    let mut setup = Setup::on(shared().await);
    setup.gate = gate(settings, OpenParts::default()).await;
    setup.config.api.body_timeout = Duration::from_secs(20);
    let service = setup.start().await;
    let token = issuer.signer.sign(&claims("ann", "append", json!([7])));
    let authorization = format!("Bearer {token}");
    let path = "/v1/customers/7/trades/upload.ndjson";
    let upload = Upload::begin(service.address(), path, &[("authorization", &authorization)]).await;
    let (mut read, mut write) = upload.split();
    issuer.replace([]);
    let writing = spawn(async move {
        for number in 1.. {
            if write.try_send(&lines([number])).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let ended = async {
        while let Some(line) = read.line().await {
            if line.get("line").is_none() {
                return line;
            }
        }
        panic!("no ending");
    };
    let ending = tokio::time::timeout(2 * LONG, ended).await.expect("an end");
    let detail = ending["problem"]["detail"].as_str().expect("words");
    assert!(detail.starts_with("The token or key is no longer valid."), "{ending}");
    drop(read);
    writing.await.expect("no panic");
    service.stored(7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_ends_when_its_token_expires() {
    let (service, issuer) = service().await;
    fill(&service.database, TRADES, 7, 50_000, 10).await;
    let token = token(&issuer);
    let client = service.client.with_token(&token);
    let url = client.url("/v1/customers/7/trades/export.ndjson");
    let http = http().build().expect("a client");
    let mut answer = http.get(url).bearer_auth(&token).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    // Far more is to come than buffers hold.
    answer.chunk().await.expect("a piece").expect("a first piece");
    until_expired(&client).await;
    let rest = loop {
        match answer.chunk().await {
            Ok(Some(_)) => {}
            end => break end,
        }
    };
    assert!(rest.is_err(), "the answer looks complete: {rest:?}");
}
