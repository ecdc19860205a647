//! Uploads: an item a line, any number of lines, told exactly.

pub mod wire;

use reqwest::Method;

use crate::{Answer, Client, TRADES};

pub const NDJSON: &str = "application/x-ndjson";

pub async fn upload(client: &Client, path: &str, body: impl Into<String>) -> Answer {
    let body = body.into();
    client.send(Method::POST, path, |request| request.header("content-type", NDJSON).body(body)).await
}

pub async fn upload_with(client: &Client, path: &str, key: &str, body: &str) -> Answer {
    let body = body.to_owned();
    let with = |request: reqwest::RequestBuilder| {
        request.header("content-type", NDJSON).header("idempotency-key", key).body(body)
    };
    client.send(Method::POST, path, with).await
}

/// Trades of these quantities, a line each.
pub fn lines(quantities: impl IntoIterator<Item = u64>) -> String {
    TRADES.lines(quantities)
}

/// A line of an upload of many customers.
pub fn of(customer: u64, qty: u64) -> String {
    TRADES.line_of(customer, qty)
}

/// Where an upload is answered line by line.
pub const BY_LINE: &str = "/upload.ndjson";

/// Where an upload to one history is answered line by line, and not.
pub const ANSWERS: [&str; 2] = ["/upload", BY_LINE];
