//! A connection that is closed when its client reads too slowly.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use crate::service::ConnectionService;

/// Bytes that a client must take within the limit.
pub(crate) const LEAST: usize = 64 * 1024;

/// The first bytes of a client that speaks HTTP/2 (RFC 9113, 3.4). No request of HTTP/1.1 begins with them.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Approximate number of unsent bytes in the kernel's buffer. Without a bound the buffer grows to megabytes
/// and reports room only when a third is free, so that a slow client would seem to take nothing for a long
/// time.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 64 * 1024;

/// How often a client that takes nothing is looked at: its time may become less.
const LOOK: Duration = Duration::from_secs(1);

/// The number of bytes that were written.
type Written = Poll<io::Result<usize>>;

/// Resets the connection when the server has waited for its client, in total, for the limit, and the client
/// has taken less than [`LEAST`] bytes meanwhile. Without it a slow client could hold an answer, and its
/// permit, without end. Only time in which nothing can be written counts: a client that reads everything at
/// once never meets the limit. [`ConnectionService::patience`] may make it less.
pub(crate) struct WriteTimeout<S> {
    io: TcpStream,
    /// Bytes that were read to tell what the client speaks, and that are still to be read by the server.
    head: Bytes,
    limit: Duration,
    service: Arc<S>,
    /// How long its client has been waited for since it has last taken enough.
    waited: Duration,
    /// Bytes taken meanwhile.
    taken: usize,
    /// While nothing can be written; boxed, because few connections ever wait.
    stalled: Option<Box<Stalled>>,
}

/// Nothing can be written.
struct Stalled {
    since: Instant,
    /// Ends when the time of the client may be over.
    look: Pin<Box<Sleep>>,
}

impl<S: ConnectionService> WriteTimeout<S> {
    pub(crate) fn new(stream: TcpStream, limit: Duration, service: Arc<S>) -> Self {
        // If it cannot be set, slow clients are only measured in larger steps.
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
        let (head, waited) = (Bytes::new(), Duration::ZERO);
        Self { io: stream, head, limit, service, waited, taken: 0, stalled: None }
    }

    /// Reads until it is certain whether the client speaks HTTP/2. Nothing is lost of what was read.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) async fn speaks_http2(&mut self) -> io::Result<bool> {
        let (mut head, mut length) = ([0; PREFACE.len()], 0);
        while length < PREFACE.len() && head[..length] == PREFACE[..length] {
            match self.io.read(&mut head[length..]).await? {
                // The server will read the end, too.
                0 => break,
                bytes => length += bytes,
            }
        }
        self.head = Bytes::copy_from_slice(&head[..length]);
        Ok(head == *PREFACE)
    }

    /// What was written, or an error when the client is too slow.
    fn judge(&mut self, context: &mut Context<'_>, written: Written) -> Written {
        if let Poll::Ready(Ok(bytes)) = written {
            if let Some(stalled) = self.stalled.take() {
                self.waited += stalled.since.elapsed();
            }
            self.taken += bytes;
            if self.taken >= LEAST {
                (self.waited, self.taken) = (Duration::ZERO, 0);
            }
        }
        if written.is_ready() {
            return written;
        }
        let Self { limit, service, waited, stalled, .. } = self;
        let left = |since: Instant| service.patience(*limit).saturating_sub(*waited + since.elapsed());
        let stalled = stalled.get_or_insert_with(|| {
            let since = Instant::now();
            Box::new(Stalled { since, look: Box::pin(sleep(left(since).min(LOOK))) })
        });
        while stalled.look.as_mut().poll(context).is_ready() {
            let left = left(stalled.since);
            if left.is_zero() {
                return self.cut();
            }
            stalled.look.as_mut().reset(Instant::now() + left.min(LOOK));
        }
        Poll::Pending
    }

    /// Ends the connection with an error.
    fn cut(&self) -> Written {
        // Drops what the kernel has not sent: it would go on sending it to the slow client. That also happens
        // if this cannot be set.
        let _ = self.io.set_zero_linger();
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly")))
    }
}

impl<S: ConnectionService> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.head.is_empty() {
            return Pin::new(&mut self.io).poll_read(context, buffer);
        }
        let room = buffer.remaining().min(self.head.len());
        buffer.put_slice(&self.head.split_to(room));
        Poll::Ready(Ok(()))
    }
}

impl<S: ConnectionService> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Written {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Written {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
