//! Reads and drops what a handler leaves of a body, before the answer is sent.
//!
//! If a connection is closed while its client is still sending, it is reset, and the client sees a broken pipe instead
//! of the 413 or 415.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

use crate::http::api::Limits;

/// Marks an answer that continues to read the body.
#[derive(Debug, Clone, Copy)]
pub struct StillRead;

/// Most bytes that are read and dropped, as a multiple of the longest body. A client that sends more is cut off.
const MOST: usize = 16;

/// The request, and a handle to what its handler will leave of its body, if it has one.
pub fn rest(request: Request, limits: Limits) -> (Request, Option<Rest>) {
    // A client that waits for "100 Continue" has not begun, and reading the body would ask it to.
    if request.body().is_end_stream() || request.headers().contains_key(header::EXPECT) {
        return (request, None);
    }
    // A body that was too slow for its handler is not waited for a second time.
    let deadline = Instant::now() + limits.body_timeout;
    let (parts, body) = request.into_parts();
    let body = Shared(Arc::new(Mutex::new(body)));
    let rest = Rest { body: body.clone(), most: limits.body.saturating_mul(MOST), deadline };
    (Request::from_parts(parts, Body::new(body)), Some(rest))
}

/// What a handler leaves of a body.
pub struct Rest {
    body: Shared,
    /// In bytes.
    most: usize,
    deadline: Instant,
}

impl Rest {
    /// Reads and drops the rest until the deadline, or as long as it is short enough.
    pub async fn read_and_dropped(mut self) {
        let rest = async {
            let mut left = self.most;
            while let Some(Ok(frame)) = self.body.frame().await
                && let Some(less) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len))
            {
                left = less;
            }
        };
        let _ = tokio::time::timeout_at(self.deadline, rest).await;
    }
}

/// A body that the handler and [`Rest`] read, one after the other.
#[derive(Clone)]
struct Shared(Arc<Mutex<Body>>);

impl Shared {
    fn with<T>(&self, read: impl FnOnce(&mut Body) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpBody for Shared {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.with(|body| Pin::new(body).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.with(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.with(|body| body.size_hint())
    }
}
