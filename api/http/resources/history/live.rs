//! Live streams: what is appended to a history, as Server-Sent Events (HTML, "Server-sent events"), in order
//! and without a gap.

mod answer;
mod event;
mod ids;
pub(crate) mod owners;
mod params;
pub(crate) mod several;
mod stream;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use pagebucket_engine::live::LiveStart;
use pagebucket_model::domain::OwnerId;
use serde_json::json;

use self::answer::answer;
use self::ids::EventIds;
use self::params::LiveParams;
use self::stream::{LiveStream, StreamClient, StreamPart};
use crate::admission::accept::EVENTS;
use crate::admission::context::Granted;
use crate::problem::ProblemKind::{Erased, Retired};
use crate::problem::{COMMON, Problem, problems};
use crate::request::params::{Address, Params};
use crate::schemas::document::{Documented, RouteDocument};
use crate::schemas::names::Names;
use crate::state::Api;

pub(crate) fn document(names: &Names<'_>) -> Documented {
    let Names { items_type, many_items, .. } = names;
    RouteDocument::of(
        names,
        format!("watch{items_type}"),
        format!("Read {many_items} live"),
        format!("Answers with Server-Sent Events: first the {many_items} that are stored after `after`, then those \
        that are appended, in order of `seq` and without a gap, whichever instance stores them. Without \
        `after` the stream begins at the end of the history, with an event `position` that says where \
        that is. An event with {many_items} has no name: its `data` has them in `items`, as listings show \
        them, and its `id` is the `seq` of the last one. A comment is sent every 15 seconds.\n\n\
        To resume a stream, send the `id` of the last event as `Last-Event-ID`, as browsers do, or as \
        `lastEventId` in the query. A stream ends with an event `end`, whose `reason` is `max-age`, \
        `expired`, `stopping`, `epoch` or `failed`: resume it. If the next {many_items} are deleted, it \
        ends with an event `gone`, whose data is a problem."),
    )
    .parameters(<(OwnerId, LiveParams)>::documented(names))
    .answers(200, "The events.")
    .text(EVENTS, json!("retry: 2000\nevent: position\nid: 34\ndata: {\"totalItems\":34}\n\n"))
    .problems(problems(names, &[COMMON, &[Retired, Erased]]))
}

pub(crate) async fn live(
    State(api): State<Arc<Api>>,
    Address { engine, params: (owner, LiveParams { start, resumed }) }: Address<(OwnerId, LiveParams)>,
    Granted { deadline, .. }: Granted,
    client: StreamClient,
) -> Result<Response, Problem> {
    let reader = engine.live().watch(owner, start, deadline).await?;
    let part = StreamPart { reader: Ok(reader), at_end: start == LiveStart::End };
    Ok(answer(LiveStream::of_histories(vec![part], EventIds::One, &api, client), resumed))
}
