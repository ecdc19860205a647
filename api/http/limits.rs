//! How many requests at once, how long each, and until when.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::{Kind, Problem};
use super::{ANSWER, REQUEST, Ready, uploads};
use crate::store::Deadline;

/// Answers 503 at once when the service is stopping; requests that came before go on.
pub(super) async fn not_stopping(State(ready): State<Ready>, request: Request, next: Next) -> Response {
    if ready.get() { next.run(request).await } else { Problem::stopping().into_response() }
}

/// The place of a request among those under way, for an answer that outlives its handler.
#[derive(Debug, Clone)]
pub(super) struct Place(#[expect(dead_code, reason = "it is held")] Arc<OwnedSemaphorePermit>);

/// Answers 503 at once when as many requests are under way as may be.
pub(super) async fn under_way(
    State(places): State<Arc<Semaphore>>,
    mut request: Request,
    next: Next,
) -> Response {
    match places.try_acquire_owned() {
        Ok(place) => {
            let place = Place(Arc::new(place));
            request.extensions_mut().insert(place.clone());
            next.run(request).await
        }
        Err(_) => Problem::new(Kind::Overloaded, "Too many requests are under way.").into_response(),
    }
}

/// Gives a request its deadline: handlers pass it to the store, which keeps it. An upload has none as a
/// whole: each of its pieces has.
pub(super) async fn deadline(mut request: Request, next: Next) -> Response {
    if uploads::is_one(request.method(), request.headers()) {
        return next.run(request).await;
    }
    request.extensions_mut().insert(Deadline::within(REQUEST - ANSWER));
    match tokio::time::timeout(REQUEST, next.run(request)).await {
        Ok(response) => response,
        Err(_elapsed) => {
            Problem::new(Kind::TimedOut, "The request took longer than a request may.").into_response()
        }
    }
}
