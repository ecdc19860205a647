//! Clients that speak over a connection of their own.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use h2::client::{Builder, SendRequest};
use h2::{RecvStream, SendStream};
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::harness::PATIENCE;

pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Wire for T {}

pub async fn plain(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("a connection")
}

pub async fn secure(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = "localhost".try_into().expect("a name");
    let stream = TcpStream::connect(address).await?;
    timeout(PATIENCE, TlsConnector::from(Arc::clone(config)).connect(name, stream)).await?
}

/// Asks over HTTP/1.1; the head and the body of the answer.
pub async fn get(mut wire: impl Wire, path: &str) -> std::io::Result<(String, Vec<u8>)> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    wire.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    timeout(PATIENCE, wire.read_to_end(&mut answer)).await??;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let body = answer.split_off(end.ok_or(std::io::ErrorKind::UnexpectedEof)? + 4);
    Ok((String::from_utf8(answer).expect("a head"), body))
}

/// Waits until the server closes the connection, in order or not.
pub async fn closed(mut wire: impl Wire) {
    let end = timeout(PATIENCE, wire.read_to_end(&mut Vec::new())).await;
    // A reset is an end, too.
    end.expect("the connection to end").ok();
}

/// A client of HTTP/2.
pub struct Http2 {
    pub send: SendRequest<Bytes>,
    /// Ends as the connection does.
    pub connection: JoinHandle<Result<(), h2::Error>>,
}

/// An answer whose body was not read yet.
pub struct Begun {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: RecvStream,
}

impl Http2 {
    pub async fn over(wire: impl Wire) -> Self {
        Self::with(&Builder::new(), wire).await.expect("to begin")
    }

    pub async fn with(builder: &Builder, wire: impl Wire) -> Result<Self, h2::Error> {
        let (send, connection) = builder.handshake(wire).await?;
        Ok(Self { send, connection: tokio::spawn(connection) })
    }

    /// Sends the head of a request; the rest of it, and its answer.
    pub async fn begin(
        &self,
        method: Method,
        path: &str,
        media_type: Option<&str>,
    ) -> Result<(SendStream<Bytes>, JoinHandle<Result<Begun, h2::Error>>), h2::Error> {
        let request = Request::builder().method(method).uri(format!("https://localhost{path}"));
        let request = media_type.into_iter().fold(request, |request, it| request.header("content-type", it));
        let mut send = self.send.clone().ready().await?;
        let (answer, body) = send.send_request(request.body(()).expect("a request"), media_type.is_none())?;
        let answer = tokio::spawn(async move {
            let (head, body) = answer.await?.into_parts();
            Ok(Begun { status: head.status, headers: head.headers, body })
        });
        Ok((body, answer))
    }

    pub async fn try_get(&self, path: &str) -> Result<Begun, h2::Error> {
        let (_, answer) = self.begin(Method::GET, path, None).await?;
        timeout(PATIENCE, answer).await.expect("an answer in time").expect("no panic")
    }

    pub async fn get(&self, path: &str) -> Begun {
        self.try_get(path).await.expect("an answer")
    }

    pub async fn post(&self, path: &str, media_type: &str, body: String) -> Begun {
        let (mut send, answer) = self.begin(Method::POST, path, Some(media_type)).await.expect("to send");
        send.send_data(body.into(), true).expect("to send");
        timeout(PATIENCE, answer).await.expect("an answer in time").expect("no panic").expect("an answer")
    }

    /// Waits until the connection has ended.
    pub async fn ended(self) -> Result<(), h2::Error> {
        timeout(PATIENCE, self.connection).await.expect("the connection to end").expect("no panic")
    }
}

impl Begun {
    /// The next piece of the body, after which the server may send more.
    pub async fn piece(&mut self) -> Option<Result<Bytes, h2::Error>> {
        let piece = timeout(PATIENCE, self.body.data()).await.expect("a piece in time");
        if let Some(Ok(bytes)) = &piece {
            self.body.flow_control().release_capacity(bytes.len()).expect("what was there");
        }
        piece
    }

    pub async fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(piece) = self.piece().await {
            all.extend_from_slice(&piece.expect("all of it"));
        }
        all
    }

    pub async fn json(&mut self) -> serde_json::Value {
        serde_json::from_slice(&self.rest().await).expect("JSON")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a text"))
    }
}
