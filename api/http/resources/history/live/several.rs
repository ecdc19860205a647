//! Several histories in one live stream: a browser has few connections to a host over HTTP/1.1.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use pagebucket_engine::live::LiveStart;
use pagebucket_engine::{Deadline, Engine, Error};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::Invalid;
use serde_json::json;
use utoipa::openapi::path::Parameter;

use super::answer::answer;
use super::ids::{EventIds, positions};
use super::params::{last_event, last_event_documented};
use super::stream::{LiveStream, StreamClient, StreamPart};
use crate::admission::accept::EVENTS;
use crate::admission::context::{Granted, Histories};
use crate::admission::rate::Class;
use crate::admission::watch::{WATCH, WatchedHistory};
use crate::problem::{COMMON, Problem, problems};
use crate::request::params::{ParameterReader, given, required_in_query};
use crate::schemas::document::{Documented, RouteDocument};
use crate::schemas::items::owner_pattern;
use crate::schemas::names::Names;
use crate::schemas::schema;
use crate::state::Api;

/// The most histories in one stream.
const MOST: usize = 32;

/// Histories that are opened at the same time, so that one request does not take all connections to the
/// database.
const AT_ONCE: usize = 4;

/// What a stream of several histories is to show.
pub(crate) struct WatchList {
    histories: Vec<WatchedHistory>,
    /// Whether the client resumes a stream.
    resumed: bool,
}

impl WatchList {
    fn read(reader: &mut ParameterReader<'_>, histories: &[Engine]) -> Option<Self> {
        if !reader.gives(WATCH) {
            return reader.keep(WATCH, Err(Invalid::new("is required")));
        }
        let mut histories = reader.repeated(WATCH, MOST, |value| WatchedHistory::parse(value, histories))?;
        let names: Vec<_> = histories.iter().map(WatchedHistory::name).collect();
        if names.iter().collect::<HashSet<_>>().len() < names.len() {
            return reader.keep(WATCH, Err(Invalid::new("must not name a history twice")));
        }
        let last = last_event(reader, |id| positions(id, &names));
        let resumed = last.is_some();
        if let Some(last) = last {
            for (history, position) in histories.iter_mut().zip(last?) {
                history.start = position.map_or(LiveStart::End, LiveStart::After);
            }
        }
        Some(Self { histories, resumed })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for WatchList {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Ok(Histories(histories)) = Histories::from_request_parts(parts, state).await;
        let mut reader = ParameterReader::of(parts);
        let list = Self::read(&mut reader, &histories);
        reader.finish()?;
        Ok(given(list))
    }
}

impl WatchList {
    /// Documents the parameters.
    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        let Names { owners, items, owner_example, .. } = names;
        let history = |Definition { owner, name, .. }: &Definition| {
            format!("{}/{}/{name}", owner.collection, owner_pattern(owner.kind))
        };
        let watchable: Vec<_> = names.definitions.iter().map(|definition| history(definition)).collect();
        let watchable = watchable.join("|");
        let watch = json!({
            "type": "array", "minItems": 1, "maxItems": MOST, "uniqueItems": true,
            "items": { "type": "string", "pattern": format!("^({watchable})(:(0|[1-9][0-9]{{0,14}}|[1-8][0-9]{{15}}))?$"), "maxLength": 180 },
        });
        let watch = required_in_query(
            WATCH,
            "A history, as its address names it, and the sequence number after which the stream begins; 0 is the beginning. Without \
             `:` and a number it begins at its end. Once for each history.",
            schema(watch),
            json!([format!("{owners}/{owner_example}/{items}:0")]),
        );
        let last = last_event_documented(
            "The `id` of the last event that the client has, to resume a stream with the same list of `watch`, in the same order. Its \
             positions count instead of those of `watch`.",
            json!({
                "type": "string", "pattern": "^[0-9a-f]{12}(\\.(-|0|[1-9][0-9]{0,14}|[1-8][0-9]{15})){1,32}$", "maxLength": 556,
                "examples": ["3f9c2b7a51d8.34"],
            }),
        );
        [vec![watch], last].concat()
    }
}

pub(crate) fn document(names: &Names<'_>) -> Documented {
    let Names { owners, items, owner_example, .. } = names;
    let events = format!(
        "retry: 2000\nevent: position\nid: 3f9c2b7a51d8.34\n\
         data: {{\"watch\":\"{owners}/{owner_example}/{items}\",\"totalItems\":34}}\n\n"
    );
    RouteDocument::of(
        names,
        "watchHistories",
        "Read several histories live",
        "Answers with Server-Sent Events of up to 32 histories, as the stream of one history does for one. \
        The data of each event says in `watch` which history it is of. The `id` has the positions of all \
        of them: send it as `Last-Event-ID`, or as `lastEventId` in the query, with the same list of \
        `watch`, to resume the stream. A history whose next items are deleted has an event `gone`, and \
        the others go on.",
    )
    .parameters(WatchList::documented(names))
    .answers(200, "The events.")
    .text(EVENTS, json!(events))
    .problems(problems(names, &[COMMON]))
}

pub(crate) async fn several(
    State(api): State<Arc<Api>>,
    WatchList { histories, resumed }: WatchList,
    Granted { deadline, .. }: Granted,
    client: StreamClient,
) -> Result<Response, Problem> {
    let ids = EventIds::of(histories.iter().map(|history| (history.name(), history.start.position())));
    let opened = stream::iter(histories).map(|history| open(history, deadline)).buffered(AT_ONCE);
    let parts: Vec<_> = opened.try_collect().await?;
    // The stream itself is one unit of its class.
    client.quota.owe_of(Class::Reads, parts.len() - 1);
    Ok(answer(LiveStream::of_histories(parts, ids, &api, client), resumed))
}

/// Opens a history. One whose next items are deleted ends, and no other one with it.
async fn open(history: WatchedHistory, deadline: Deadline) -> Result<StreamPart, Error> {
    let WatchedHistory { engine, owner, start } = history;
    let reader = match engine.live().watch(owner, start, deadline).await {
        Ok(reader) => Ok(reader),
        Err(Error::Gone(gone)) => Err(gone),
        Err(error) => return Err(error),
    };
    Ok(StreamPart { reader, at_end: start == LiveStart::End })
}
