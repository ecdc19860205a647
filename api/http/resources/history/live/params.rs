//! Where a live stream begins.

use pagebucket_engine::Engine;
use pagebucket_engine::live::LiveStart;
use pagebucket_model::domain::{Invalid, MAX_SAFE_INTEGER, Position};
use serde_json::{Value, json};
use utoipa::openapi::path::Parameter;

use crate::request::params::{ParameterReader, Params, in_header, in_query};
use crate::schemas::names::Names;
use crate::schemas::{schema, whole};

/// The `id` of the last event that a client has.
const LAST_EVENT_ID: &str = "Last-Event-ID";

/// The same in a query, from clients that cannot send the header.
const LAST_EVENT_ID_QUERY: &str = "lastEventId";

/// Where a live stream begins.
#[derive(Debug)]
pub(crate) struct LiveParams {
    pub start: LiveStart,
    /// Whether the client resumes a stream.
    pub resumed: bool,
}

impl Params for LiveParams {
    fn read(reader: &mut ParameterReader<'_>, _: &Engine) -> Option<Self> {
        let after = reader.query("after", Position::parse);
        match last_event(reader, Position::parse) {
            None => Some(Self { start: LiveStart::of(after), resumed: false }),
            Some(last) => Some(Self { start: LiveStart::After(last?), resumed: true }),
        }
    }

    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        let Names { item, .. } = names;
        let after = in_query(
            "after",
            format!(
                "Begins with the {item} after this sequence number; 0 is the beginning: the first {item} that is there. Beyond the end the \
             stream waits. Default: the end of the history."
            ),
            whole(0, MAX_SAFE_INTEGER),
        );
        // Not a number: generated clients put it into a header as it is.
        let id = json!({ "type": "string", "pattern": "^(0|[1-9][0-9]{0,14}|[1-8][0-9]{15})$", "maxLength": 16, "examples": ["34"] });
        let what = format!(
            "The `id` of the last event that the client has, to resume a stream. It counts instead of `after`; 0 is before the first {item} that the history ever had."
        );
        [vec![after], last_event_documented(what, id)].concat()
    }
}

/// The name of the parameter that counts: the header if there is one.
pub(crate) fn last_event_parameter(reader: &ParameterReader<'_>) -> &'static str {
    if reader.parts.headers.contains_key(LAST_EVENT_ID) { LAST_EVENT_ID } else { LAST_EVENT_ID_QUERY }
}

/// Reads the `id` of the last event that the client has: the header `Last-Event-ID`, otherwise `lastEventId`
/// of the query. `None` without either; `Some(None)` if it has a fault.
pub(crate) fn last_event<T>(
    reader: &mut ParameterReader<'_>,
    parse: impl Fn(&str) -> Result<T, Invalid>,
) -> Option<Option<T>> {
    let (in_query, queried) = (reader.gives(LAST_EVENT_ID_QUERY), reader.query(LAST_EVENT_ID_QUERY, &parse));
    let mut given = reader.parts.headers.get_all(LAST_EVENT_ID).iter();
    let Some(first) = given.next() else { return in_query.then_some(queried) };
    let last = match given.next() {
        Some(_) => Err(Invalid::new("must not be given more than once")),
        None => parse(first.to_str().unwrap_or_default()),
    };
    Some(reader.keep(LAST_EVENT_ID, last))
}

/// Documents it: `what` it is, and its schema.
pub(crate) fn last_event_documented(what: impl Into<String>, id: Value) -> Vec<Parameter> {
    let same = "The same as the header `Last-Event-ID`, for clients that cannot send it. If both are given, the header counts.";
    vec![in_header(LAST_EVENT_ID, what, schema(id.clone())), in_query(LAST_EVENT_ID_QUERY, same, schema(id))]
}
