//! A connection that is read a portion at a time.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes after which h2 has to return; the last read may exceed them by its buffer, another 8 KiB. All frames
/// of a body that come in so few bytes may wait in h2. It counts up to 256 for each, and ends a connection at
/// half of its window: 512 KiB.
const PORTION: usize = 8 * 1024;

/// Lets h2 return after each [`PORTION`], so that the frames that it has read can be taken before there are
/// too many.
pub(crate) struct Portions<I> {
    io: I,
    /// Bytes of this portion.
    read: usize,
    /// Set whenever something is read.
    heard: Arc<AtomicBool>,
}

impl<I> Portions<I> {
    pub(crate) fn new(io: I, heard: Arc<AtomicBool>) -> Self {
        Self { io, read: 0, heard }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Portions<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { io, read, heard } = &mut *self;
        if *read >= PORTION {
            *read = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let result = Pin::new(io).poll_read(context, buffer);
        *read += buffer.filled().len() - before;
        match result {
            Poll::Ready(_) => heard.store(true, Ordering::Relaxed),
            // Now it returns in any case.
            Poll::Pending => *read = 0,
        }
        result
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Portions<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, slices)
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
