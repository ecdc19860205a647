//! Which requests are let in, and until when: how many at once, what each of them takes, and how long.
//!
//! Requests of different [`Length`] have different places: however many long ones there are and however slow their
//! clients, they keep no others out. (An export has one of `--max-requests` until its answer begins, and one of
//! `--max-exports` until it ends.)

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tower_layer::Layer;
use tower_service::Service;

use super::problem::{Kind, Problem};
use super::{ANSWER, REQUEST, Ready, accept, uploads};
use crate::store::Deadline;

/// How many of a kind may be under way at once. Clones are the same places.
#[derive(Debug, Clone)]
pub struct Places {
    free: Arc<AtomicUsize>,
    /// What has the places, in the plural.
    what: &'static str,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Place(Places);

/// The place of a request whose answer outlives its handler.
#[derive(Debug, Clone)]
pub(super) struct LongPlace(#[expect(dead_code, reason = "it is held")] Arc<Place>);

/// How long a request may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    /// Until its deadline.
    Bounded,
    /// For as long as its client keeps its pace: an upload.
    Unbounded,
}

impl Length {
    fn of(request: &Request) -> Self {
        if uploads::is_one(request) { Self::Unbounded } else { Self::Bounded }
    }
}

impl Places {
    /// As many places as `free`, for `what`, in the plural.
    pub fn new(free: usize, what: &'static str) -> Self {
        Self { free: Arc::new(AtomicUsize::new(free)), what }
    }

    /// # Errors
    /// All places are taken.
    pub(super) fn take(&self) -> Result<Place, Problem> {
        // A place guards no other data: no order is needed.
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(1));
        match taken {
            Ok(_) => Ok(Place(self.clone())),
            Err(_) => Err(Problem::new(Kind::Overloaded, format!("Too many {} are under way.", self.what))),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}

/// Answers 503 at once when as many requests are under way as may be.
pub(super) async fn under_way(State(places): State<Places>, request: Request, next: Next) -> Response {
    match places.take() {
        Ok(_place) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// The layer around `/v1`. Answers 503 at once when the service is stopping (requests that came before go
/// on) or has no place left, and 406 to clients whose `Accept` excludes our media types. Gives every
/// request of bounded length its deadline: handlers pass it to the store, which keeps it.
#[derive(Clone)]
pub(super) struct Admission {
    pub(super) ready: Ready,
    /// Of requests of bounded length.
    pub(super) requests: Places,
    pub(super) uploads: Places,
}

impl Admission {
    fn admit(&self, request: &Request, length: Length) -> Result<Place, Problem> {
        if !self.ready.get() {
            return Err(Problem::stopping());
        }
        let places = match length {
            Length::Bounded => &self.requests,
            Length::Unbounded => &self.uploads,
        };
        let place = places.take()?;
        accept::json_or_nothing(request)?;
        Ok(place)
    }
}

impl<S> Layer<S> for Admission {
    type Service = Admitted<S>;

    fn layer(&self, inner: S) -> Admitted<S> {
        Admitted { admission: self.clone(), inner }
    }
}

/// The layer, around something.
#[derive(Clone)]
pub(super) struct Admitted<S> {
    admission: Admission,
    inner: S,
}

impl<S> Service<Request> for Admitted<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let length = Length::of(&request);
        let place = match self.admission.admit(&request, length) {
            Ok(place) => place,
            Err(problem) => return std::future::ready(Ok(problem.into_response())).boxed(),
        };
        if length == Length::Unbounded {
            request.extensions_mut().insert(LongPlace(Arc::new(place)));
            return self.inner.call(request).boxed();
        }
        request.extensions_mut().insert(Deadline::within(REQUEST - ANSWER));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let _place = place;
            let mut answer = pin!(answer);
            // Most answers out of memory are there at once: they need no timer.
            if let Poll::Ready(at_once) = poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await
            {
                return at_once;
            }
            match tokio::time::timeout(REQUEST, answer).await {
                Ok(answer) => answer,
                Err(_elapsed) => {
                    let late = "The request took longer than a request may.";
                    Ok(Problem::new(Kind::TimedOut, late).into_response())
                }
            }
        })
    }
}
