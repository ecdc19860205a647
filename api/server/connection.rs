//! One connection: detects HTTP/1.1 or HTTP/2, then serves it until it ends.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::http::{HeaderValue, header};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use pagebucket_model::domain::Peer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::deadlines::{Deadlines, in_time};
use crate::http1_answer::Pieces;
use crate::http2;
use crate::service::ConnectionService;
use crate::tls::HTTP2;
use crate::write_timeout::WriteTimeout;

/// Bytes of a request that a connection of HTTP/1.1 holds unread, and of an answer unwritten; the longest
/// head of a request.
const BUFFER: usize = 64 * 1024;

/// Makes what serves a connection with this peer.
type Connect<S> = Box<dyn Fn(Peer) -> S + Send + Sync>;

/// What serves connections.
pub(crate) struct Connections<S> {
    connect: Connect<S>,
    /// Without it they speak plain text.
    tls: Option<TlsAcceptor>,
    deadlines: Deadlines,
    http1: http1::Builder,
    leaving: Arc<AtomicBool>,
}

impl<S: ConnectionService> Connections<S> {
    /// As soon as `leaving` is set, each answer of HTTP/1.1 ends its connection. A proxy that keeps
    /// connections would otherwise send a request on one that is just being closed, and could not tell
    /// whether it was served.
    pub(crate) fn new(
        connect: Connect<S>,
        tls: Option<TlsAcceptor>,
        deadlines: Deadlines,
        leaving: Arc<AtomicBool>,
    ) -> Self {
        let mut http1 = http1::Builder::new();
        http1.timer(TokioTimer::new()).header_read_timeout(deadlines.head);
        http1.max_buf_size(BUFFER);
        Self { connect, tls, deadlines, http1, leaving }
    }

    /// Serves one connection, until its client closes it or is too slow, or, after `stop`, until its requests
    /// have ended.
    pub(crate) async fn serve(&self, stream: TcpStream, peer: Peer, stop: CancellationToken) {
        let service = Arc::new((self.connect)(peer));
        let mut stream = WriteTimeout::new(stream, self.deadlines.write, Arc::clone(&service));
        match &self.tls {
            None => {
                let opening = timeout(self.deadlines.head, stream.speaks_http2());
                let Some(Ok(Ok(http2))) = in_time(&stop, opening).await else { return };
                self.speak(http2, stream, service, stop).await;
            }
            Some(tls) => {
                let opening = timeout(self.deadlines.handshake, tls.accept(stream));
                let Some(Ok(Ok(stream))) = in_time(&stop, opening).await else { return };
                let http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
                self.speak(http2, stream, service, stop).await;
            }
        }
    }

    async fn speak(
        &self,
        http2: bool,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        service: Arc<S>,
        stop: CancellationToken,
    ) {
        if http2 {
            // Boxed, so that connections of HTTP/1.1 take no memory for it.
            Box::pin(http2::serve(io, service, self.deadlines, stop)).await;
        } else {
            self.speak_http1(io, service, stop).await;
        }
    }

    async fn speak_http1(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        service: Arc<S>,
        stop: CancellationToken,
    ) {
        let service = service_fn(|request: Request<Incoming>| {
            let answer = service.answer(request.map(Body::new));
            async move {
                let mut answer = answer.await?;
                if self.leaving.load(Ordering::Relaxed) {
                    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(Pieces::of(answer))
            }
        });
        let mut connection = pin!(self.http1.serve_connection(TokioIo::new(io), service));
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        // An error means that the client has disconnected or is too slow: it gets no answer.
        tracing::trace!(?ended, "connection closed");
    }
}
