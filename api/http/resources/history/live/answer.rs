//! The answer that is a live stream.

use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use pagebucket_model::metric::LIVE_RESUMES;

use super::stream::LiveStream;
use crate::admission::accept::EVENTS;
use crate::answer::notes::AnswerNotes;

/// nginx passes an answer with this header on as it comes.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The answer that has the events of a stream, which a client may have resumed.
pub(crate) fn answer(stream: LiveStream, resumed: bool) -> Response {
    if resumed {
        metrics::counter!(LIVE_RESUMES).increment(1);
    }
    let items = Some(stream.items.clone());
    let notes = AnswerNotes { items, whole: true, untimed: true, ..AnswerNotes::default() };
    let head = [(header::CONTENT_TYPE, EVENTS), (header::CACHE_CONTROL, "no-store"), (ACCEL_BUFFERING, "no")];
    (head, Extension(notes), Body::from_stream(stream.events())).into_response()
}
