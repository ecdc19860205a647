//! Long polls: a window is shown as soon as it has an item, or when its client has waited for long enough.
//!
//! A poll waits for a live reader's first page, and is then answered as the same window is without a wait.
//! Admission gives it the permit of a live stream, and its answer less memory of its own than other answers,
//! because there may be many polls.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use pagebucket_engine::Error;
use pagebucket_engine::live::LiveStart;
use pagebucket_model::domain::Position;
use pagebucket_model::metric::LIVE_READERS;
use tokio::time::sleep;

use super::params::Poll;
use super::plan::Listing;
use crate::admission::address::{WAIT, gives};
use crate::admission::deadline;
use crate::admission::lifetime::Lifetime;
use crate::caching::reading::Reading;
use crate::problem::Problem;
use crate::state::Api;

/// How long a request may wait: as long as its client may send another one.
pub(crate) struct PollLifetime(Option<Lifetime>);

impl FromRequestParts<Arc<Api>> for PollLifetime {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Infallible> {
        // Other listings pay nothing for it.
        Ok(Self(gives(&parts.uri, WAIT).then(|| Lifetime::of_request(parts, &api.gate, &api.clock))))
    }
}

/// Counts what waits, until it is dropped.
struct WaitingPoll;

impl WaitingPoll {
    fn begin() -> Self {
        metrics::gauge!(LIVE_READERS).increment(1);
        Self
    }
}

impl Drop for WaitingPoll {
    fn drop(&mut self) {
        metrics::gauge!(LIVE_READERS).decrement(1);
    }
}

/// Waits until the history has an item that the poll asks for. Ends early when the service stops, or the
/// token of its client ends. What is deleted is for the window to say.
///
/// # Errors
/// The database does not answer in time, or a bucket is corrupt.
pub(crate) async fn ready(
    Poll { after, wait }: Poll,
    listing: &Listing<'_>,
    api: &Api,
    lifetime: PollLifetime,
    reading: &mut Reading,
) -> Result<(), Problem> {
    let watched =
        listing.engine.live().watch(listing.owner.clone(), LiveStart::of(Some(after)), reading.deadline);
    let mut reader = match reading.database(watched).await {
        Ok(reader) => reader,
        Err(error) => return unless_gone(error),
    };
    // What is there need not be read twice.
    if reader.position() < Position::end_of(reader.totals()) {
        return Ok(());
    }
    let _waiting = WaitingPoll::begin();
    let lifetime = lifetime.0.unwrap_or_default();
    let next = tokio::select! {
        biased;
        () = api.stop.cancelled() => None,
        () = lifetime.over() => None,
        next = reader.next() => Some(next),
        () = sleep(wait.time()) => None,
    };
    reading.deadline = deadline::from_now();
    next.and_then(Result::err).map_or(Ok(()), unless_gone)
}

fn unless_gone(error: Error) -> Result<(), Problem> {
    match error {
        Error::Gone(_) | Error::OtherEpoch => Ok(()),
        error => Err(error.into()),
    }
}
