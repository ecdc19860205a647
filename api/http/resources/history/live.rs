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

use self::answer::answer;
use self::ids::EventIds;
use self::params::LiveParams;
use self::stream::{LiveStream, StreamClient, StreamPart};
use crate::admission::context::Granted;
use crate::problem::{LiveProblems, Problem};
use crate::request::params::Address;
use crate::state::Api;

/// Read {manyItems} live
///
/// Answers with Server-Sent Events: first the {manyItems} that are stored after `after`, then those that are
/// appended, in order of `seq` and without a gap, whichever instance stores them. Without `after` the stream
/// begins at the end of the history, with an event `position` that says where that is. An event with
/// {manyItems} has no name: its `data` has them in `items`, as listings show them, and its `id` is the `seq`
/// of the last one. A comment is sent every 15 seconds.
///
/// To resume a stream, send the `id` of the last event as `Last-Event-ID`, as browsers do, or as
/// `lastEventId` in the query. A stream ends with an event `end`, whose `reason` is `max-age`, `expired`,
/// `stopping`, `epoch` or `failed`: resume it. If the next {manyItems} are deleted, it ends with an event
/// `gone`, whose data is a problem.
#[utoipa::path(
    get,
    path = "/v1/{owners}/{ownerId}/{items}/live",
    operation_id = "watch{Items}",
    params(Address<(OwnerId, LiveParams)>),
    responses(
        (
            status = 200, description = "The events.", body = String, content_type = "text/event-stream",
            example = json!("retry: 2000\nevent: position\nid: 34\ndata: {\"totalItems\":34}\n\n")
        ),
        LiveProblems,
    ),
)]
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
