//! What a client learns of the histories of others: nothing, not even whether they exist.

use pagebucket_http::OpenParts;
use reqwest::Method;
use serde_json::json;

use crate::harness::tokens::{Issuer, claims};
use crate::harness::{Answer, Client, Service, Setup, shared, trade};

async fn service(issuer: &Issuer) -> Service {
    let mut setup = Setup::on(shared().await);
    setup.gate = issuer.gate(OpenParts::default()).await;
    setup.start().await
}

/// Head and body of a refusal, without the id of the owner.
fn refusal(answer: &Answer, owner: &str) -> String {
    answer.problem(403, "forbidden");
    let mut headers: Vec<_> =
        answer.headers.iter().filter(|(name, _)| *name != "date" && *name != "content-length").collect();
    headers.sort_by_key(|(name, _)| name.as_str());
    let body = String::from_utf8_lossy(&answer.body).replace(&format!("/customers/{owner}"), "/customers/?");
    format!("{headers:?}\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_the_same_for_histories_that_do_not_exist() {
    let issuer = Issuer::start().await;
    let service = service(&issuer).await;
    let token = |name: &str, customers| issuer.signer.sign(&claims(name, "read append", customers));
    let theirs = service.client.with_token(token("bob", json!([7])));
    let mine = service.client.with_token(token("ann", json!([8])));
    theirs.append_all(7, 1..=25).await;
    theirs.append_once(7, "secret", &trade(26)).await.expect(201);
    // In the page cache from now on.
    let page = theirs.get("/v1/customers/7/trades/pages/1").await;
    page.expect(200);
    let tag = page.header("etag").to_owned();
    let not_modified = |client: &Client, path: String| {
        let (client, tag) = (client.clone(), tag.clone());
        async move {
            let with = |request: reqwest::RequestBuilder| named(request).header("if-none-match", tag);
            client.send(Method::GET, &path, with).await
        }
    };
    assert_eq!(not_modified(&theirs, "/v1/customers/7/trades/pages/1".to_owned()).await.status, 304);
    let paths = [
        "",
        "/trades",
        "/trades?page=1",
        "/trades?asOf=25&offset=3",
        "/trades/pages/1",
        "/trades/pages/3",
        "/trades/pages/9",
        "/trades/1",
        "/trades/999",
        "/trades/export.ndjson",
        "/trades/export.csv",
        "/trades?limit=0",
        "/trades/pages/zero",
    ];
    for path in paths {
        let mut refusals = Vec::new();
        // An escaped digit is the digit.
        for (owner, shown) in [("7", "7"), ("9", "9"), ("%37", "7"), ("seven", "seven"), ("07", "07")] {
            let address = format!("/v1/customers/{owner}{path}");
            let plain = mine.send(Method::GET, &address, named).await;
            let head = mine.send(Method::HEAD, &address, named).await;
            assert_eq!(head.status, 403, "{address}");
            refusals.push(refusal(&plain, shown));
            refusals.push(refusal(&not_modified(&mine, address).await, shown));
        }
        assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "{path}: {refusals:#?}");
    }
    for path in ["/trades", "/trades/upload", "/trades/upload.ndjson"] {
        let mut refusals = Vec::new();
        for (owner, key) in [("7", "secret"), ("9", "secret"), ("7", "other"), ("7", "")] {
            let with = |request: reqwest::RequestBuilder| {
                let media_type = if path == "/trades" { "application/json" } else { "application/x-ndjson" };
                let request = named(request).header("content-type", media_type);
                request.header("idempotency-key", key).body(trade(26).to_string())
            };
            let address = format!("/v1/customers/{owner}{path}");
            refusals.push(refusal(&mine.send(Method::POST, &address, with).await, owner));
        }
        assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "{path}: {refusals:#?}");
    }
    assert_eq!(service.stored(7).await.numbers.len(), 26);
    assert_eq!(service.stored(9).await.numbers.len(), 0);
}

/// With an id that the answers repeat.
fn named(request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
    request.header("x-request-id", "1")
}

/// Two clients that may append to one history do not see each other's keys; each sees its own with every
/// token.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_its_client() {
    let issuer = Issuer::start().await;
    let service = service(&issuer).await;
    let client = |name: &str, id: &str| {
        let mut claims = claims(name, "append", json!([7]));
        claims["jti"] = json!(id);
        service.client.with_token(issuer.signer.sign(&claims))
    };
    let replayed = |answer: &Answer| {
        answer.expect(201);
        answer.headers.contains_key("idempotency-replayed")
    };
    assert!(!replayed(&client("ann", "1").append_once(7, "k", &trade(1)).await));
    assert!(replayed(&client("ann", "2").append_once(7, "k", &trade(1)).await));
    assert!(!replayed(&client("bob", "3").append_once(7, "k", &trade(2)).await));
    assert!(replayed(&client("bob", "4").append_once(7, "k", &trade(2)).await));
    client("ann", "5").append_once(7, "k", &trade(2)).await.problem(422, "idempotency-key-reused");
    assert_eq!(service.stored(7).await.numbers.len(), 2);
}
