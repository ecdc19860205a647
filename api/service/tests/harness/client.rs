//! A client of the API, and trades to send.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::Path;

use reqwest::{Method, StatusCode, header::HeaderMap};
use serde_json::{Value, json};

use super::{History, TOTAL};

/// The most items of one array.
const MOST_ITEMS: u64 = 1_000;

/// Sends requests to one service, most of them about one history.
#[derive(Clone)]
pub struct Client {
    pub history: &'static History,
    base: String,
    http: reqwest::Client,
    token: Option<String>,
}

/// Status, headers and body of an answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(history: &'static History, base: String) -> Self {
        Self::trusting(history, base, None)
    }

    /// One that trusts the certificate in a file, if any, and no other.
    pub fn trusting(history: &'static History, base: String, certificate: Option<&Path>) -> Self {
        // Reading the machine's certificates for each client would only take time.
        let certificate = certificate.map(|file| {
            let text = std::fs::read(file).expect("a certificate");
            reqwest::Certificate::from_pem(&text).expect("a certificate")
        });
        let http = http().redirect(reqwest::redirect::Policy::none()).tls_certs_only(certificate);
        Self { history, base, http: http.build().expect("a client"), token: None }
    }

    /// The same with this token on every request.
    #[must_use]
    pub fn with_token(&self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self.clone() }
    }

    /// The same from this address of the machine, without TLS.
    #[must_use]
    pub fn at(&self, address: impl Into<IpAddr>) -> Self {
        let http = http().local_address(address.into());
        Self { http: http.build().expect("a client"), ..self.clone() }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, |request| request).await
    }

    /// Posts JSON text as it is, well-formed or not.
    pub async fn post_text(&self, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        self.send(Method::POST, path, |request| request.header("content-type", "application/json").body(body))
            .await
    }

    /// Appends one good trade to an address that may not be one.
    pub async fn append_to(&self, path: &str) -> Answer {
        self.post_text(path, trade(1).to_string()).await
    }

    /// Appends one item, or an array of them.
    pub async fn append(&self, owner: u64, items: &Value) -> Answer {
        self.post_text(&self.history.path(owner), items.to_string()).await
    }

    /// Appends one item, or an array of them, under a key.
    pub async fn append_once(&self, owner: u64, key: &str, items: &Value) -> Answer {
        let body = items.to_string();
        let with = |request: reqwest::RequestBuilder| {
            request.header("content-type", "application/json").header("idempotency-key", key).body(body)
        };
        self.send(Method::POST, &self.history.path(owner), with).await
    }

    /// Appends one item, or an array of them, if the history has this total; under a key, if there is one.
    pub async fn append_after(&self, owner: u64, total: u64, key: Option<&str>, items: &Value) -> Answer {
        let body = items.to_string();
        let with = |request: reqwest::RequestBuilder| {
            let request = request.header("content-type", "application/json").body(body);
            key.into_iter().fold(request, |request, key| request.header("idempotency-key", key))
        };
        let path = self.history.at(owner, &format!("?expectedSeq={total}"));
        self.send(Method::POST, &path, with).await
    }

    /// Appends generated items, in as few arrays as may be.
    pub async fn append_all(&self, owner: u64, numbers: RangeInclusive<u64>) {
        let (first, last) = numbers.into_inner();
        for from in (first..=last).step_by(MOST_ITEMS as usize) {
            let items = self.history.items(from..=last.min(from + MOST_ITEMS - 1));
            self.append(owner, &items).await.expect(201);
        }
    }

    /// How many items the history of an owner has.
    pub async fn total(&self, owner: u64) -> u64 {
        let owner = self.get(&self.history.owner_path(owner)).await.expect(200);
        self.history.totals(&owner)[TOTAL].as_u64().expect("a total")
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        with: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Answer {
        self.try_send(method, path, with).await.expect("an answer")
    }

    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        with: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> reqwest::Result<Answer> {
        let response = self.begin(method, path, with).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Answer { status, headers, body: response.bytes().await?.to_vec() })
    }

    /// An answer whose body is not read yet.
    pub async fn begin(
        &self,
        method: Method,
        path: &str,
        with: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> reqwest::Result<reqwest::Response> {
        let mut request = self.http.request(method, self.url(path));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        with(request).send().await
    }
}

impl Answer {
    /// The body as JSON, whatever the status.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body, if the status is this one.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// Checks that this is a whole problem of this status and kind.
    #[track_caller]
    pub fn problem(&self, status: u16, slug: &str) -> Value {
        let problem = self.expect(status);
        assert_eq!(self.header("content-type"), "application/problem+json", "{problem}");
        assert_eq!(problem["type"], format!("/problems#{slug}"), "{problem}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["requestId"], self.header("x-request-id"));
        for member in ["title", "detail", "instance"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{member} of {problem}");
        }
        // The first fault is a sentence of its own, for clients that show no more.
        if let Some(rule) = problem["errors"][0]["detail"].as_str() {
            let detail = problem["detail"].as_str().expect("a sentence");
            assert!(detail.contains(rule) && detail.len() < rule.len() + 2_000, "{detail}");
        }
        problem
    }

    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).unwrap_or_else(|| panic!("no header {name}: {self:?}"));
        value.to_str().expect("a text")
    }
}

/// A client of HTTP that trusts no certificate.
///
/// reqwest has TLS since `import --url` needs it, and asks for a provider also where no test needs TLS.
pub fn http() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().tls_certs_only([])
}

/// A trade without a date.
pub fn trade(qty: u64) -> Value {
    json!({ "type": "buy", "ticker": "MDB", "qty": qty })
}

/// A trade at a date.
pub fn trade_at(qty: u64, date: &str) -> Value {
    json!({ "type": "sell", "ticker": "MDB", "qty": qty, "date": date })
}
