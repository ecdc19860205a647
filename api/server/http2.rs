//! A connection of HTTP/2: its limits, and the watch over its streams.
//!
//! One connection carries many requests, so that three guards of HTTP/1.1 do not suffice. An idle connection is not one
//! that waits for a head. A client that opens no flow-control window for an answer holds it, and its place, while the socket
//! never stalls, so that [`super::must_read`] sees nothing. And a client that has gone away silently is not noticed by
//! writing, as long as there is nothing to write.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::rt::{Read, Write};
use hyper::server::conn::http2;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::deadlines::Deadlines;
use super::must_read::LEAST;

/// Streams that a client may have open at once. RFC 9113 advises at least 100, and a browser opens no more. It also bounds
/// what one connection can make the service hold: each open stream has up to [`LONGEST_HEAD`] and [`UNSENT`].
const STREAMS: u32 = 128;

/// Longest head of a request, unpacked, in bytes: as with HTTP/1.1. It also bounds the number of CONTINUATION frames
/// (CVE-2024-27316).
const LONGEST_HEAD: u32 = 64 * 1024;

/// Streams that a client may have opened and reset before the service has seen them. More of them, which only an attack
/// has, end the connection (CVE-2023-44487).
const RESET_UNSEEN: usize = 20;

/// Streams of one connection that the service resets because of a client's mistakes, before it ends the connection
/// (CVE-2025-8671: mistakes that make the server reset are a way around the limit on resets).
const RESET_BY_MISTAKE: usize = 256;

/// Bytes of one request's body that a client may send before they are read. An upload gets at most this much in each round
/// trip: 2.5 MB/s over 50 ms.
const UNREAD: u32 = 128 * 1024;

/// The same of all requests of a connection, so that seven uploads that wait do not hold up the other requests.
const UNREAD_IN_ALL: u32 = 8 * UNREAD;

/// Bytes of one answer that are ready before the client has room for them.
const UNSENT: usize = LEAST;

/// How often the watch looks.
const LOOK: Duration = Duration::from_secs(1);

/// Time in which a client without open requests must confirm the end of its connection, and take the last 64 KiB of its
/// last answers. One that has gone away silently delays a stop by this time.
const FAREWELL: Duration = Duration::from_secs(5);

/// What serves connections of HTTP/2.
pub(super) fn builder(deadlines: Deadlines) -> http2::Builder<TokioExecutor> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(LONGEST_HEAD)
        .max_pending_accept_reset_streams(RESET_UNSEEN)
        .max_local_error_reset_streams(RESET_BY_MISTAKE)
        .initial_stream_window_size(UNREAD)
        .initial_connection_window_size(UNREAD_IN_ALL)
        .max_send_buf_size(UNSENT)
        // A client that is there answers a ping at once, unless the ping waits for what the client reads too slowly.
        .keep_alive_interval(deadlines.head)
        .keep_alive_timeout(deadlines.write);
    http
}

/// Serves one connection, until its client closes it or is too slow, or, after `stop`, until its requests have ended.
pub(super) async fn serve<I, S>(
    http: &http2::Builder<TokioExecutor>,
    io: I,
    service: S,
    deadlines: Deadlines,
    stop: CancellationToken,
) where
    I: Read + Write + Unpin,
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>,
{
    let streams = Arc::new(Streams::new());
    let watched = service_fn(|request| {
        let (stream, answer) = (streams.open(), service.call(request));
        async move {
            let Ok(answer) = answer.await;
            Ok::<_, Infallible>(answer.map(|body| stream.answer(body)))
        }
    });
    let mut connection = pin!(http.serve_connection(io, watched));
    let mut look = tokio::time::interval(LOOK);
    // Since when the client knows that it is to open no more streams, and how long it may do without any.
    let mut closing: Option<(Instant, Duration)> = None;
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                tracing::trace!(?ended, "connection closed");
                return;
            }
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                closing = Some((Instant::now(), FAREWELL));
                connection.as_mut().graceful_shutdown();
            }
            _ = look.tick() => match (streams.quiet_since(deadlines.write), closing) {
                (Some(quiet), None) if quiet.elapsed() >= deadlines.head => {
                    // The end of the last answers may still be on its way.
                    let patience = if streams.were_any() { deadlines.write } else { FAREWELL };
                    closing = Some((Instant::now(), patience));
                    connection.as_mut().graceful_shutdown();
                }
                (Some(quiet), Some((since, patience))) if quiet.max(since).elapsed() >= patience => {
                    tracing::trace!("an idle connection was cut");
                    return;
                }
                _ => {}
            }
        }
    }
}

/// The streams of a connection.
struct Streams(Mutex<Open>);

struct Open {
    /// The number of the next stream.
    next: u64,
    streams: BTreeMap<u64, Arc<Mutex<Answer>>>,
    /// When the last stream ended.
    quiet: Instant,
}

/// The part of an answer that the connection has not taken yet.
#[derive(Default)]
struct Answer {
    /// Nothing before the handler has answered, and after the client was too slow.
    body: Option<Body>,
    /// What the body has given already.
    ready: Bytes,
    /// Since when the client could have taken more. Nothing while the service has to make it.
    waiting: Option<Instant>,
}

/// A stream that is open until this is dropped.
struct Stream {
    number: u64,
    answer: Arc<Mutex<Answer>>,
    streams: Arc<Streams>,
}

impl Streams {
    fn new() -> Self {
        Self(Mutex::new(Open { next: 0, streams: BTreeMap::new(), quiet: Instant::now() }))
    }

    fn open(self: &Arc<Self>) -> Stream {
        let (mut open, answer) = (self.0.lock(), Arc::<Mutex<Answer>>::default());
        let number = open.next;
        open.next += 1;
        open.streams.insert(number, Arc::clone(&answer));
        Stream { number, answer, streams: Arc::clone(self) }
    }

    fn were_any(&self) -> bool {
        self.0.lock().next > 0
    }

    /// Drops the bodies of answers that their client could have taken for `limit`, and with them the places that they hold.
    /// Returns since when there has been no other stream.
    fn quiet_since(&self, limit: Duration) -> Option<Instant> {
        let mut open = self.0.lock();
        let (mut busy, mut dropped) = (false, Vec::new());
        for answer in open.streams.values() {
            // An answer that is being taken at this moment is not waited for.
            let Some(mut answer) = answer.try_lock() else {
                busy = true;
                continue;
            };
            match answer.waiting {
                Some(since) if since.elapsed() >= limit => {
                    answer.ready = Bytes::new();
                    dropped.extend(answer.body.take());
                }
                _ => busy = true,
            }
        }
        if !dropped.is_empty() {
            open.quiet = Instant::now();
        }
        let quiet = open.quiet;
        drop(open);
        (!busy).then_some(quiet)
    }
}

impl Stream {
    fn answer(self, body: Body) -> Watched {
        let mut answer = self.answer.lock();
        (answer.body, answer.waiting) = (Some(body), Some(Instant::now()));
        drop(answer);
        Watched(self)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock();
        open.streams.remove(&self.number);
        open.quiet = Instant::now();
    }
}

/// The body of an answer in pieces of at most [`LEAST`] bytes: hyper asks for the next when the client has taken the last. So
/// a client must take as much, or all that is ready, within the limit, as of an answer of HTTP/1.1.
struct Watched(Stream);

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut answer = self.0.answer.lock();
        let Answer { body, ready, waiting } = &mut *answer;
        *waiting = None;
        let Some(body) = body else {
            let slow = io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly");
            return Poll::Ready(Some(Err(axum::Error::new(slow))));
        };
        if ready.is_empty() {
            match ready!(Pin::new(body).poll_frame(context)).map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => *ready = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        *waiting = Some(Instant::now());
        let piece = ready.split_to(ready.len().min(LEAST));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        let answer = self.0.answer.lock();
        answer.ready.is_empty() && answer.body.as_ref().is_some_and(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let answer = self.0.answer.lock();
        // It is asked for before the first piece.
        answer.body.as_ref().filter(|_| answer.ready.is_empty()).map(HttpBody::size_hint).unwrap_or_default()
    }
}
