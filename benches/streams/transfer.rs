//! Files over HTTP, by a client in a thread of its own.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, Response};

use super::files::Trades;
use crate::harness::{Result, on_its_own};

/// The rows of an export, counted.
#[derive(Default)]
pub struct Rows {
    pub count: u64,
    /// Enough for the last row, wherever pieces end.
    tail: Vec<u8>,
}

impl Rows {
    pub fn add(&mut self, piece: &[u8]) {
        self.count += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.tail.extend_from_slice(&piece[piece.len().saturating_sub(512)..]);
        self.tail.drain(..self.tail.len().saturating_sub(512));
    }

    /// The last row, without its end.
    pub fn last(&self) -> String {
        let last = self.tail.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
        String::from_utf8_lossy(last.unwrap_or_default()).into_owned()
    }
}

/// Sends a file as the body of one request; how many of its trades are stored, and how long it took until
/// that was answered.
pub async fn upload(address: SocketAddr, trades: &Trades) -> Result<(u64, Duration)> {
    let (path, url) = (trades.path.clone(), format!("http://{address}{}", trades.upload_path()));
    on_its_own(async move {
        let (client, began) = (client()?, Instant::now());
        let request = client.post(url).header("content-type", "application/x-ndjson");
        let answer = answer(request.body(tokio::fs::read(path).await?)).await?;
        let summary: serde_json::Value = serde_json::from_slice(&answer.bytes().await?)?;
        let stored = summary["stored"].as_u64().ok_or("a summary that does not say what is stored")?;
        Ok((stored, began.elapsed()))
    })
    .await
}

/// Reads an export to its end; how long it took.
pub async fn download(address: SocketAddr, customer: u64, format: &'static str) -> Result<(Rows, Duration)> {
    on_its_own(async move {
        let (client, began) = (client()?, Instant::now());
        let url = format!("http://{address}/v1/customers/{customer}/trades/export.{format}");
        let mut answer = answer(client.get(url)).await?;
        let mut rows = Rows::default();
        while let Some(piece) = answer.chunk().await? {
            rows.add(&piece);
        }
        Ok((rows, began.elapsed()))
    })
    .await
}

fn client() -> Result<Client> {
    Ok(pagebucket_http::http_client::client(reqwest::ClientBuilder::no_proxy)?)
}

/// # Errors
/// Anything but success, with what the server said.
async fn answer(request: RequestBuilder) -> Result<Response> {
    let answer = request.send().await?;
    if answer.status().is_success() {
        return Ok(answer);
    }
    Err(format!("{}: {}", answer.status(), answer.text().await?).into())
}
