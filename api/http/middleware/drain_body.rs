//! Reads and drops what a handler leaves of a body, before the answer is sent.
//!
//! If a connection is closed while its client is still sending, it is reset, and the client sees a broken
//! pipe instead of the 413 or 415.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;

use crate::admission::limits::Limits;

/// Most bytes that are read and dropped, as a multiple of the longest body. A client that sends more is cut
/// off.
const MOST: usize = 16;

/// The request, and a future that reads and drops what its handler leaves of its body, if it has one: until a
/// deadline, or as long as the rest is short enough.
pub(crate) fn rest(request: Request, limits: Limits) -> (Request, Option<impl Future>) {
    // A client that waits for "100 Continue" has not begun, and reading the body would ask it to.
    if request.body().is_end_stream() || request.headers().contains_key(header::EXPECT) {
        return (request, None);
    }
    let (parts, body) = request.into_parts();
    let body = SharedBody(Arc::new(Mutex::new(body)));
    let mut rest = body.clone();
    let read_and_drop = async move {
        let mut left = limits.body.saturating_mul(MOST);
        while let Some(Ok(frame)) = rest.frame().await
            && let Some(less) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len))
        {
            left = less;
        }
    };
    // From now on: a body that was too slow for its handler is not waited for a second time.
    let in_time = tokio::time::timeout(limits.body_timeout, read_and_drop);
    (Request::from_parts(parts, Body::new(body)), Some(in_time))
}

/// A body that the handler and [`rest`] read, one after the other.
#[derive(Clone)]
struct SharedBody(Arc<Mutex<Body>>);

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut *self.0.lock()).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().size_hint()
    }
}
