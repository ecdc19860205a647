//! A client of the API, and trades to send.

use reqwest::{Method, StatusCode, header::HeaderMap};
use serde_json::{Value, json};

/// Sends requests to one service.
#[derive(Clone)]
pub struct Client {
    base: String,
    http: reqwest::Client,
}

/// Status, headers and body of an answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(base: String) -> Self {
        // Services of tests speak no TLS: reading the machine's certificates for each client would only take time.
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).tls_certs_only([]);
        Self { base, http: http.build().expect("a client") }
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

    /// Appends one trade, or an array of them.
    pub async fn append(&self, customer: u64, trades: &Value) -> Answer {
        self.post_text(&format!("/v1/customers/{customer}/trades"), trades.to_string()).await
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
        let response = with(self.http.request(method, self.url(path))).send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Answer { status, headers, body: response.bytes().await?.to_vec() })
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
        problem
    }

    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).unwrap_or_else(|| panic!("no header {name}: {self:?}"));
        value.to_str().expect("a text")
    }
}

/// A trade without a date.
pub fn trade(qty: u64) -> Value {
    json!({ "type": "buy", "ticker": "MDB", "qty": qty })
}

/// A trade at a date.
pub fn trade_at(qty: u64, date: &str) -> Value {
    json!({ "type": "sell", "ticker": "MDB", "qty": qty, "date": date })
}

/// The sequence numbers of a listing of trades whose quantities are their sequence numbers.
#[track_caller]
pub fn seqs(listing: &Value) -> Vec<u64> {
    let items = listing["items"].as_array().expect("items");
    let seq = |item: &Value| {
        assert_eq!(item["seq"], item["qty"], "a trade at another's address: {item}");
        item["seq"].as_u64().expect("a number")
    };
    items.iter().map(seq).collect()
}
