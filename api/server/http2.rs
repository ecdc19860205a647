//! A connection of HTTP/2: its limits, and the watch over its streams.
//!
//! One connection carries many requests, so that three guards of HTTP/1.1 do not suffice. An idle connection
//! need not be waiting for a request head. A client that opens no flow-control window for an answer holds it,
//! and its permit, while the socket never stalls, so that [`crate::write_timeout`] sees nothing: [`answer`]
//! watches each stream. And a client that has gone away silently is not noticed by writing, as long as there
//! is nothing to write: it is asked for a sign ([`Signs`]).
//!
//! It uses the crate h2 directly, because hyper neither tells how much of an answer its client has room for,
//! nor reads the frames of a body before the request asks for them ([`request_body`]).

mod answer;
mod bounded_reads;
mod request_body;

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::Bytes;
use h2::server::Builder;
use h2::{Ping, PingPong};
use hyper::header;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::bounded_reads::Portions;
use self::request_body::Bodies;
use crate::deadlines::{Deadlines, in_time};
use crate::http1_answer::PIECE;
use crate::service::ConnectionService;

/// Streams that a client may have open at once. RFC 9113 advises at least 100, and a browser opens no more.
/// It also bounds what one connection can make the service hold: each open stream has up to [`LONGEST_HEAD`],
/// and [`PIECE`] of its answer in h2, besides what the answer itself holds.
const STREAMS: u32 = 128;

/// Longest head of a request, unpacked, in bytes: as with HTTP/1.1. It also bounds the number of CONTINUATION
/// frames (CVE-2024-27316).
const LONGEST_HEAD: u32 = 64 * 1024;

/// Streams that a client may have opened and reset before the service has seen them. More of them, which only
/// an attack has, end the connection (CVE-2023-44487).
const RESET_UNSEEN: usize = 20;

/// Streams of one connection that the service resets because of a client's mistakes, before it ends the
/// connection (CVE-2025-8671: mistakes that make the server reset are a way around the limit on resets).
const RESET_BY_MISTAKE: usize = 256;

/// Bytes of one request's body that a client may send before they are taken. An upload gets at most this much
/// in each round trip: 2.5 MB/s over 50 ms.
const UNREAD: u32 = 128 * 1024;

/// The same of all requests of a connection, so that seven uploads that wait do not hold up the other
/// requests.
const UNREAD_IN_ALL: u32 = 8 * UNREAD;

/// How often the watch looks.
const LOOK: Duration = Duration::from_secs(1);

/// Time in which a client without open requests must confirm the end of its connection, and take the last 64
/// KiB of its last answers. One that has gone away silently delays a stop by this time.
const FAREWELL: Duration = Duration::from_secs(5);

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(LONGEST_HEAD)
        .max_pending_accept_reset_streams(RESET_UNSEEN)
        .max_local_error_reset_streams(Some(RESET_BY_MISTAKE))
        .initial_window_size(UNREAD)
        .initial_connection_window_size(UNREAD_IN_ALL)
        .max_send_buffer_size(PIECE);
    builder
}

/// Serves one connection, until its client closes it or is too slow, or, after `stop`, until its requests
/// have ended.
pub(crate) async fn serve<S: ConnectionService>(
    io: impl AsyncRead + AsyncWrite + Unpin,
    service: Arc<S>,
    deadlines: Deadlines,
    stop: CancellationToken,
) {
    let heard = Arc::new(AtomicBool::new(true));
    let opening = builder().handshake::<_, Bytes>(Portions::new(io, Arc::clone(&heard)));
    let opening = timeout(deadlines.head, opening);
    let Some(Ok(Ok(mut connection))) = in_time(&stop, opening).await else { return };
    let pings = connection.ping_pong().expect("it is asked for once");
    let mut signs = Signs { heard, last: Instant::now(), pings, asked: None };
    let (mut bodies, streams) = (Bodies::default(), Arc::new(Streams::new()));
    let mut look = tokio::time::interval(LOOK);
    // Since when the client knows that it is to open no more streams, and how long it may do without any.
    let mut closing: Option<(Instant, Duration)> = None;
    let mut stopping = false;
    loop {
        let next = poll_fn(|context| {
            let accepted = connection.poll_accept(context);
            bodies.read(context);
            accepted
        });
        tokio::select! {
            biased;
            request = next => match request {
                Some(Ok((request, respond))) => {
                    let length = request.headers().get(header::CONTENT_LENGTH);
                    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
                    let (stream, service) = (streams.open(), Arc::clone(&service));
                    let answer = service.answer(request.map(|body| bodies.open(body, length)));
                    tokio::spawn(async move {
                        let ended = answer::send(answer, respond, &*service, deadlines.write).await;
                        tracing::trace!(?ended, "a stream ended");
                        drop(stream);
                    });
                }
                ended => {
                    tracing::trace!(?ended, "connection closed");
                    return;
                }
            },
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                closing = Some((Instant::now(), FAREWELL));
                connection.graceful_shutdown();
            }
            _ = look.tick() => {
                if signs.is_gone(deadlines).await {
                    tracing::trace!("a silent connection was cut");
                    return;
                }
                match (streams.quiet_since(), closing) {
                    (Some(quiet), None) if quiet.elapsed() >= deadlines.head => {
                        // The end of the last answers may still be on its way.
                        let patience = if streams.were_any() { deadlines.write } else { FAREWELL };
                        closing = Some((Instant::now(), patience));
                        connection.graceful_shutdown();
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
}

/// Signs of a client: bytes that it sends, if only the answer to a ping. A client that is there answers at
/// once, unless the ping waits for what the client reads too slowly.
struct Signs {
    /// Whether there was one since this was last looked at.
    heard: Arc<AtomicBool>,
    last: Instant,
    pings: PingPong,
    /// When a ping was sent that was not answered yet.
    asked: Option<Instant>,
}

impl Signs {
    /// Whether the client has not answered a ping in time. After some time without a sign it is sent one.
    async fn is_gone(&mut self, deadlines: Deadlines) -> bool {
        if self.heard.swap(false, Ordering::Relaxed) {
            (self.last, self.asked) = (Instant::now(), None);
        }
        // Takes note of an answer: before that there can be no other ping.
        poll_fn(|context| Poll::Ready(self.pings.poll_pong(context).is_ready())).await;
        if self.asked.is_none() && self.last.elapsed() >= deadlines.head {
            // It fails if an earlier ping is still on its way, or if the connection has ended.
            let _ = self.pings.send_ping(Ping::opaque());
            self.asked = Some(Instant::now());
        }
        self.asked.is_some_and(|asked| asked.elapsed() >= deadlines.write)
    }
}

/// The number of open streams of a connection.
struct Streams(Mutex<OpenStreams>);

struct OpenStreams {
    streams: usize,
    /// Whether there was ever one.
    any: bool,
    /// When the last stream ended.
    quiet: Instant,
}

/// A stream that is open until this is dropped.
struct Stream(Arc<Streams>);

impl Streams {
    fn new() -> Self {
        Self(Mutex::new(OpenStreams { streams: 0, any: false, quiet: Instant::now() }))
    }

    fn open(self: &Arc<Self>) -> Stream {
        let mut open = self.0.lock();
        open.streams += 1;
        open.any = true;
        Stream(Arc::clone(self))
    }

    fn were_any(&self) -> bool {
        self.0.lock().any
    }

    /// Since when there has been no stream.
    fn quiet_since(&self) -> Option<Instant> {
        let open = self.0.lock();
        (open.streams == 0).then_some(open.quiet)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut open = self.0.0.lock();
        open.streams -= 1;
        open.quiet = Instant::now();
    }
}
