//! An answer over HTTP/1.1, in pieces.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Extensions;
use hyper::Response;
use hyper::body::{Frame, SizeHint};

/// Bytes of an answer, or of the body of a request, that are handed on at once: as much as a frame of HTTP/2
/// holds.
pub(crate) const PIECE: usize = 16 * 1024;

/// A body in pieces of at most [`PIECE`] bytes. hyper asks for the next when it has room for it, and drops
/// this after the last, so that what the answer holds, as its permit, is free when at most a buffer of it was
/// not taken.
pub(crate) struct Pieces {
    body: Body,
    /// What the body has given already.
    ready: Bytes,
    _held: Extensions,
}

impl Pieces {
    /// The answer in pieces, which keep its extensions until the last is handed on.
    pub(crate) fn of(answer: Response<Body>) -> Response<Self> {
        let (mut head, body) = answer.into_parts();
        let held = std::mem::take(&mut head.extensions);
        Response::from_parts(head, Self { body, ready: Bytes::new(), _held: held })
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, ready, .. } = &mut *self;
        if ready.is_empty() {
            match ready!(Pin::new(body).poll_frame(context)).map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => *ready = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        Poll::Ready(Some(Ok(Frame::data(ready.split_to(ready.len().min(PIECE))))))
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.body.is_end_stream()
    }

    /// It is asked for before the first piece.
    fn size_hint(&self) -> SizeHint {
        if self.ready.is_empty() { self.body.size_hint() } else { SizeHint::default() }
    }
}
