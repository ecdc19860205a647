//! One answer over HTTP/2, sent as its client has room for it.

use std::future::poll_fn;
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::Extensions;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http_body_util::BodyExt;
use hyper::header::{CONTENT_LENGTH, DATE};
use hyper::{HeaderMap, Response};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use pagebucket_model::domain::Clock;
use tokio::time::{Instant, timeout};

use crate::http1_answer::PIECE;
use crate::service::ConnectionService;
use crate::write_timeout::LEAST;

/// How often a client that takes nothing is looked at: its time may become less.
const LOOK: Duration = Duration::from_secs(1);

/// Sends the answer, unless its client resets the stream before. Ends the stream when its client does not
/// take [`LEAST`] bytes, or all that is ready, within `limit`. What the answer holds, as its permit, is free
/// when its client has room for all of it.
///
/// # Errors
/// The stream has ended before the answer.
pub(crate) async fn send<S: ConnectionService>(
    answer: S::Answer,
    mut respond: SendResponse<Bytes>,
    service: &S,
    limit: Duration,
) -> Result<(), h2::Error> {
    let answer = tokio::select! {
        biased;
        Ok(answer) = answer => answer,
        reset = poll_fn(|context| respond.poll_reset(context)) => return Err(reset?.into()),
    };
    let (mut head, mut body) = answer.into_parts();
    let held = std::mem::take(&mut head.extensions);
    date(&mut head.headers);
    let is_empty = body.is_end_stream();
    if !is_empty && let Some(length) = body.size_hint().exact() {
        head.headers.entry(CONTENT_LENGTH).or_insert(length.into());
    }
    let stream = respond.send_response(Response::from_parts(head, ()), is_empty)?;
    if is_empty {
        return Ok(());
    }
    let mut sending = Sending { stream, service, held, limit, waited: Duration::ZERO, taken: 0 };
    loop {
        let frame = tokio::select! {
            biased;
            reset = poll_fn(|context| sending.stream.poll_reset(context)) => return Err(reset?.into()),
            frame = body.frame() => frame,
        };
        let data = match frame.transpose() {
            Ok(frame) => frame.map(|frame| frame.into_data().unwrap_or_default()),
            Err(_) => {
                sending.stream.send_reset(Reason::INTERNAL_ERROR);
                return Err(Reason::INTERNAL_ERROR.into());
            }
        };
        let is_last = data.is_none() || body.is_end_stream();
        let last = sending.all_but_the_last(data.unwrap_or_default()).await?;
        if is_last {
            // First, because a client that has its answer may count on the permit.
            drop((body, std::mem::take(&mut sending.held)));
            return sending.stream.send_data(last, true);
        }
        if !last.is_empty() {
            sending.stream.send_data(last, false)?;
        }
    }
}

/// Sets the time of an answer, which every answer has (RFC 9110, 6.6.1).
fn date(headers: &mut HeaderMap) {
    let now = Timestamp::from_millisecond(Clock::system().now().millis());
    let date = now.and_then(|now| DateTimePrinter::new().timestamp_to_rfc9110_string(&now));
    if let Some(date) = date.ok().and_then(|date| date.try_into().ok()) {
        headers.entry(DATE).or_insert(date);
    }
}

/// A body on its way.
struct Sending<'a, S> {
    stream: SendStream<Bytes>,
    service: &'a S,
    /// The extensions of the answer.
    held: Extensions,
    limit: Duration,
    /// How long its client has been waited for since it has last taken enough.
    waited: Duration,
    /// Bytes that its client has taken meanwhile.
    taken: usize,
}

impl<S: ConnectionService> Sending<'_, S> {
    /// Sends all of this for which the client has to be waited for; returns the rest, for which it has room.
    /// h2 gets no more than the client has room for, because it would keep the rest.
    async fn all_but_the_last(&mut self, mut data: Bytes) -> Result<Bytes, h2::Error> {
        loop {
            if data.is_empty() {
                return Ok(data);
            }
            self.stream.reserve_capacity(data.len().min(PIECE));
            let room = self.room().await?;
            self.taken += room.min(data.len());
            if self.taken >= LEAST || room >= data.len() {
                (self.waited, self.taken) = (Duration::ZERO, 0);
            }
            if room >= data.len() {
                return Ok(data);
            }
            self.stream.send_data(data.split_to(room), false)?;
        }
    }

    /// Waits until the client has room; for how many bytes.
    async fn room(&mut self) -> Result<usize, h2::Error> {
        loop {
            let room = self.stream.capacity();
            if room > 0 {
                return Ok(room);
            }
            let limit = self.service.patience_for(&self.held, self.limit);
            let Some(left) = limit.checked_sub(self.waited).filter(|left| !left.is_zero()) else {
                self.stream.send_reset(Reason::CANCEL);
                return Err(Reason::CANCEL.into());
            };
            let began = Instant::now();
            let more = timeout(left.min(LOOK), poll_fn(|context| self.stream.poll_capacity(context))).await;
            self.waited += began.elapsed();
            match more {
                Ok(Some(Ok(_))) | Err(_) => {}
                Ok(Some(Err(error))) => return Err(error),
                // The stream has ended.
                Ok(None) => return Err(Reason::STREAM_CLOSED.into()),
            }
        }
    }
}
