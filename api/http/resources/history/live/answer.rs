//! The answer that is a live stream, and the permit that it has.

use std::convert::Infallible;

use axum::Extension;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use pagebucket_model::metric::LIVE_RESUMES;

use super::stream::LiveStream;
use crate::admission::accept::EVENTS;
use crate::admission::context::RequestContext;
use crate::admission::permits::LongPermit;
use crate::answer::notes::AnswerNotes;

/// nginx passes an answer with this header on as it comes.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The permit of a live stream, which admission has taken.
pub(crate) struct LivePermit(pub LongPermit);

impl<S: Sync> FromRequestParts<S> for LivePermit {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let permit = RequestContext::of_mut(&mut parts.extensions).permit.take();
        Ok(Self(permit.expect("admission gives each live stream a permit")))
    }
}

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
