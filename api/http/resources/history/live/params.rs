//! Where a live stream begins.

use axum::http::{HeaderMap, HeaderName};
use pagebucket_engine::Engine;
use pagebucket_model::domain::{Invalid, MAX_SAFE_INTEGER, Position};
use serde_json::json;
use utoipa::openapi::path::Parameter;

use crate::request::params::{ParameterReader, Params, in_header, in_query};
use crate::schemas::{schema, whole};

/// The `id` of the last event that a client has.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Where a live stream begins.
#[derive(Debug)]
pub struct LiveParams {
    /// `None` for the end of the history.
    pub after: Option<Position>,
    /// Whether the client resumes a stream.
    pub resumed: bool,
}

impl Params for LiveParams {
    fn read(reader: &mut ParameterReader<'_>, _: &Engine) -> Option<Self> {
        let after = reader.query("after", Position::parse);
        let Some(last) = last_event(&reader.parts.headers) else {
            return Some(Self { after, resumed: false });
        };
        let last = reader.keep("Last-Event-ID", last.and_then(Position::parse))?;
        Some(Self { after: Some(last), resumed: true })
    }

    fn documented() -> Vec<Parameter> {
        vec![
            in_query(
                "after",
                "Begins with the {item} after this sequence number; 0 is the beginning: the first {item} that is there. Beyond the end the \
                 stream waits. Default: the end of the history.",
                whole(0, MAX_SAFE_INTEGER),
            ),
            in_header(
                "Last-Event-ID",
                "The `id` of the last event that the client has, to resume a stream. It counts instead of `after`.",
                // Not a number: generated clients put it into a header as it is.
                schema(
                    json!({ "type": "string", "pattern": "^(0|[1-9][0-9]{0,14}|[1-8][0-9]{15})$", "maxLength": 16, "examples": ["34"] }),
                ),
            ),
        ]
    }
}

/// What `Last-Event-ID` says; `None` without the header.
pub fn last_event(headers: &HeaderMap) -> Option<Result<&str, Invalid>> {
    let mut given = headers.get_all(LAST_EVENT_ID).iter();
    let (first, more) = (given.next()?, given.next().is_some());
    if more {
        return Some(Err(Invalid::new("must not be given more than once")));
    }
    Some(Ok(first.to_str().unwrap_or_default()))
}
