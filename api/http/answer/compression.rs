//! Compresses answers, except those that are noted to stay whole.
//!
//! A compressor takes far more memory than most answers: that of zstd more than a MiB. So an answer that is
//! in memory, or is made without waiting, is compressed at once, and only the result waits for the client.
//! The others keep their compressor until they end, if the memory for answers has room for it
//! ([`AnswerMemory`]); without room they are sent as they are.

use std::sync::Arc;

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Extensions, HeaderMap, HeaderValue, Response, StatusCode, Version, header};
use http_body_util::{BodyExt, Collected};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate};

use super::memory::AnswerMemory;
use super::notes::AnswerNotes;

/// Memory of a compressor, in bytes.
const COMPRESSOR: usize = 3 * 512 * 1024;

/// The longest answer that is compressed at once, because its thread does nothing else meanwhile.
const LONGEST_AT_ONCE: usize = 1024 * 1024;

/// The layer. [`finish`] does the rest.
pub(crate) fn layer() -> CompressionLayer<impl Predicate> {
    let wanted = |_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions| {
        AnswerNotes::of(extensions).is_none_or(|notes| {
            !notes.whole && room_of_compressor(notes).is_none_or(|room| room.hold(COMPRESSOR))
        })
    };
    CompressionLayer::new().compress_when(DefaultPredicate::new().and(wanted))
}

/// The room of an answer that keeps its compressor until it ends.
fn room_of_compressor(notes: &AnswerNotes) -> Option<&Arc<AnswerMemory>> {
    let room = notes.memory.as_ref().filter(|_| !notes.at_once)?;
    room.length().is_none_or(|length| length > LONGEST_AT_ONCE).then_some(room)
}

/// Compresses what is compressed at once, and adds the headers that the layer must not see. For a client that
/// `needs_length`, an answer that is made without waiting is made whole.
pub(crate) async fn finish<B>(response: Response<B>, needs_length: bool) -> Response<Body>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let (mut head, body) = response.into_parts();
    let is_compressed = head.headers.contains_key(header::CONTENT_ENCODING);
    let notes = AnswerNotes::of_mut(&mut head.extensions);
    let is_made_whole = is_compressed || needs_length && notes.at_once;
    let body = match (is_made_whole, room_of_compressor(notes)) {
        (true, None) => {
            // Nothing fails in memory.
            let whole = body.collect().await.map_or_else(|_| Bytes::new(), Collected::to_bytes);
            if let Some(room) = &notes.memory {
                room.keep(whole.len());
            }
            Body::from(whole)
        }
        (false, Some(room)) => {
            // Its client takes no compressed answer.
            room.keep(room.length().unwrap_or(0));
            Body::new(body)
        }
        _ => Body::new(body),
    };
    if let Some(range) = notes.content_range.take() {
        head.headers.insert(header::CONTENT_RANGE, range);
        head.headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("items"));
    }
    Response::from_parts(head, body)
}
