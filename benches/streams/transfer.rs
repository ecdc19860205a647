//! Files over HTTP, by a client in a thread of its own.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{Request, Response, StatusCode, header};
use futures_util::stream;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::files::Trades;
use crate::harness::{Result, on_its_own};

/// Bytes that are sent at a time.
const PIECE: usize = 64 * 1024;

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

/// Sends a file as the body of one request; how many of its trades are stored, and how long it took until that was
/// answered.
pub async fn upload(address: SocketAddr, trades: &Trades) -> Result<(u64, Duration)> {
    let (path, to) = (trades.path.clone(), trades.upload_path());
    on_its_own(async move {
        let began = Instant::now();
        let file = File::open(path).await?;
        let pieces = stream::try_unfold(file, async |mut file| {
            let mut piece = Vec::with_capacity(PIECE);
            let read = (&mut file).take(PIECE as u64).read_to_end(&mut piece).await?;
            Ok::<_, std::io::Error>((read > 0).then_some((Bytes::from(piece), file)))
        });
        let request = Request::post(to).header(header::CONTENT_TYPE, "application/x-ndjson");
        let answer = ask(address, request.body(Body::from_stream(pieces))?).await?;
        let body = answer.into_body().collect().await?.to_bytes();
        let summary: serde_json::Value = serde_json::from_slice(&body)?;
        let stored = summary["stored"].as_u64().ok_or("a summary that does not say what is stored")?;
        Ok((stored, began.elapsed()))
    })
    .await
}

/// Reads an export to its end; how long it took.
pub async fn download(address: SocketAddr, customer: u64, format: &'static str) -> Result<(Rows, Duration)> {
    on_its_own(async move {
        let began = Instant::now();
        let request = Request::get(format!("/v1/customers/{customer}/trades/export.{format}"));
        let request = request.body(Body::empty())?;
        let mut body = ask(address, request).await?.into_body();
        let mut rows = Rows::default();
        while let Some(frame) = body.frame().await {
            if let Ok(piece) = frame?.into_data() {
                rows.add(&piece);
            }
        }
        Ok((rows, began.elapsed()))
    })
    .await
}

async fn ask(address: SocketAddr, mut request: Request<Body>) -> Result<Response<Incoming>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the answer.
    tokio::spawn(connection);
    request.headers_mut().insert(header::HOST, "localhost".parse()?);
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    if status == StatusCode::OK {
        return Ok(answer);
    }
    let said = answer.into_body().collect().await?.to_bytes();
    Err(format!("{status}: {}", String::from_utf8_lossy(&said)).into())
}
