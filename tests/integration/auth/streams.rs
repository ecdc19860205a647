//! Streams that outlive the token of their client.

use std::time::Duration;

use pagebucket::http::Open;
use serde_json::json;

use crate::harness::tokens::{Issuer, claims, now};
use crate::harness::{Client, Service, Setup, TRADES, eventually, fill, shared, tests};
use crate::uploads::lines;
use crate::uploads::wire::Upload;

tests!["auth::streams":
    an_upload_ends_when_its_token_expires,
    an_export_ends_when_its_token_expires,
];

const LONG: Duration = Duration::from_secs(60);

/// A service, and a token that expires in some seconds.
async fn service() -> (Service, String) {
    let issuer = Issuer::start().await;
    let mut setup = Setup::on(shared().await);
    setup.gate = issuer.gate(Open::default()).await;
    let mut claims = claims("ann", "append read", json!([7]));
    // The leeway is a minute.
    claims["exp"] = json!(now() - 60 + 8);
    (setup.start().await, issuer.signer.sign(&claims))
}

async fn until_expired(client: &Client) {
    eventually("the token expires", LONG, async || client.get("/v1/customers/7").await.status == 401).await;
}

async fn an_upload_ends_when_its_token_expires() {
    let (service, token) = service().await;
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
    assert!(detail.starts_with("The token or key has expired."), "{ending}");
    assert_eq!(problem["notStoredLines"], json!([{ "first": 21 }]), "{ending}");
    assert_eq!(service.stored(7).await.numbers, (1..=20).collect::<Vec<_>>());
}

async fn an_export_ends_when_its_token_expires() {
    let (service, token) = service().await;
    fill(&service.database, TRADES, 7, 50_000, 10).await;
    let client = service.client.with_token(&token);
    let url = client.url("/v1/customers/7/trades/export.ndjson");
    let http = reqwest::Client::builder().tls_certs_only([]).build().expect("a client");
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
