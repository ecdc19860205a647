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
use serde_json::Value;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::files::Trades;
use crate::harness::Result;

/// Bytes that are sent at a time.
const PIECE: usize = 64 * 1024;

/// What has come of a download.
#[derive(Default)]
pub struct Downloaded {
    pub rows: u64,
    /// The last row, without its end.
    pub last: String,
    pub took: Duration,
}

/// Sends a file as the body of one request; how many of its trades are stored, and how long it took until that
/// was said.
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
        let summary: Value = serde_json::from_slice(&answer.into_body().collect().await?.to_bytes())?;
        let stored = summary["stored"].as_u64().ok_or("a summary that does not say what is stored")?;
        Ok((stored, began.elapsed()))
    })
    .await
}

/// Reads an answer to its end.
pub async fn download(address: SocketAddr, path: String, accept: &'static str) -> Result<Downloaded> {
    on_its_own(async move {
        let began = Instant::now();
        let request = Request::get(path).header(header::ACCEPT, accept).body(Body::empty())?;
        let mut body = ask(address, request).await?.into_body();
        let (mut rows, mut tail) = (0, Vec::new());
        while let Some(frame) = body.frame().await {
            let Ok(piece) = frame?.into_data() else { continue };
            rows += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
            // Enough for the last row, wherever pieces end.
            let begin = piece.len().saturating_sub(512);
            tail.extend_from_slice(&piece[begin..]);
            tail.drain(..tail.len().saturating_sub(512));
        }
        let took = began.elapsed();
        let last = tail.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        Ok(Downloaded { rows, last: String::from_utf8_lossy(last).into_owned(), took })
    })
    .await
}

async fn ask(address: SocketAddr, mut request: Request<Body>) -> Result<Response<Incoming>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Its end is that of the answer.
    tokio::spawn(connection);
    request.headers_mut().insert(header::HOST, "bench".parse()?);
    let answer = sender.send_request(request).await?;
    if answer.status() == StatusCode::OK {
        return Ok(answer);
    }
    let status = answer.status();
    let said = answer.into_body().collect().await?.to_bytes();
    Err(format!("{status}: {}", String::from_utf8_lossy(&said)).into())
}

/// As all load: a scheduler shared with the servers would let them wake each other for free.
async fn on_its_own<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(work)
    };
    tokio::task::spawn_blocking(run).await?
}
