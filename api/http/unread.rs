//! What a handler leaves of a body is read and dropped before the answer is sent.
//!
//! A connection that is closed while its client is still sending is reset, and the client learns of
//! a broken pipe instead of the 413 or 415 that was meant for it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

use super::Limits;

/// On an answer that goes on reading the body itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct StillRead;

/// So many times the longest body is read and dropped; whoever sends more is cut off.
const MOST: usize = 16;

pub(super) async fn drain(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    // Who waits for "100 Continue" has not begun, and would be asked to if the body were read.
    if body.is_end_stream() || parts.headers.contains_key(header::EXPECT) {
        return next.run(Request::from_parts(parts, body)).await;
    }
    // A body that was too slow for its handler is not waited for a second time.
    let deadline = tokio::time::Instant::now() + limits.body_timeout;
    let body = Shared(Arc::new(Mutex::new(body)));
    let response = next.run(Request::from_parts(parts, Body::new(body.clone()))).await;
    if response.extensions().get::<StillRead>().is_some() {
        return response;
    }
    let rest = async {
        let (mut body, mut left) = (body, limits.body.saturating_mul(MOST));
        while let Some(Ok(frame)) = body.frame().await
            && let Some(less) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len))
        {
            left = less;
        }
    };
    // Late or not, the answer is the same.
    let _ = tokio::time::timeout_at(deadline, rest).await;
    response
}

/// A body that the handler and [`drain`] read, one after the other.
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
