//! All owners of one history in a live stream: who has something new, and how much.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use pagebucket_engine::Engine;
use pagebucket_engine::live::{FollowError, LogPlace};
use serde_json::json;
use utoipa::openapi::path::Parameter;

use super::answer::answer;
use super::params::{last_event, last_event_documented, last_event_parameter};
use super::stream::{LiveStream, StreamClient};
use crate::admission::accept::EVENTS;
use crate::admission::context::Granted;
use crate::problem::ProblemKind::{self, NotAvailable, PositionTooOld};
use crate::problem::{COMMON, ParameterFault, Problem, problems};
use crate::request::params::{Address, ParameterReader, Params};
use crate::schemas::document::{Documented, RouteDocument};
use crate::schemas::names::Names;
use crate::state::Api;

/// Where a live stream of all owners begins.
pub(crate) struct OwnersLiveParams {
    /// The parameter that has the place, and the place. `None` for now.
    after: Option<(&'static str, LogPlace)>,
}

impl Params for OwnersLiveParams {
    fn read(reader: &mut ParameterReader<'_>, _: &Engine) -> Option<Self> {
        let parameter = last_event_parameter(reader);
        match last_event(reader, LogPlace::parse) {
            None => Some(Self { after: None }),
            Some(last) => Some(Self { after: Some((parameter, last?)) }),
        }
    }

    fn documented(_: &Names<'_>) -> Vec<Parameter> {
        last_event_documented(
            "The `id` of the last event that the client has, to resume a stream. It has no meaning for clients.",
            json!({
                "type": "string", "pattern": "^82[0-9A-F]{16,}(\\.[0-9A-F]+)?$", "maxLength": 2_000,
                "examples": ["8265A1B2C3000000012B0229296E04"],
            }),
        )
    }
}

pub(crate) fn document(names: &Names<'_>) -> Documented {
    let Names { items_type, owner, many_owners, many_items, .. } = names;
    RouteDocument::of(
        names,
        format!("follow{items_type}"),
        format!("Read live which {many_owners} have new {many_items}"),
        format!(
            "Answers with Server-Sent Events. The `data` of an event lists {many_owners} that have new \
        {many_items}, as the list of {many_owners} shows them, with their totals: each {owner} about once a \
        second at most, and to a slow client only the latest. The first event, `position`, only has an \
        `id`; so has one every 15 seconds in which nothing is appended.\n\n\
        To resume a stream, send the last `id` as `Last-Event-ID`, or as `lastEventId` in the query: \
        what has changed since then comes first. It ages with the log of the database. One that is too \
        old is 410 `position-too-old`: begin a stream without it, and then list the {many_owners}."
        ),
    )
    .parameters(OwnersLiveParams::documented(names))
    .answers(200, "The events.")
    .text(EVENTS, json!("retry: 2000\n\nevent: position\nid: 8265A1B2C3000000012B0229296E04\ndata: {}\n\n"))
    .problems(problems(names, &[COMMON, &[PositionTooOld, NotAvailable]]))
}

pub(crate) async fn owners(
    State(api): State<Arc<Api>>,
    Address { engine, params: OwnersLiveParams { after } }: Address<OwnersLiveParams>,
    Granted { deadline, .. }: Granted,
    client: StreamClient,
) -> Result<Response, Problem> {
    let resumed = after.is_some();
    let (parameter, place) = after.unzip();
    let reader = engine
        .live()
        .follow_owners(place, deadline)
        .await
        .map_err(|error| problem(error, parameter.unwrap_or_default()))?;
    let definition = Arc::clone(engine.definition());
    Ok(answer(LiveStream::of_owners(reader, definition, &api, client), resumed))
}

fn problem(error: FollowError, parameter: &'static str) -> Problem {
    match error {
        FollowError::Database(error) => error.into(),
        FollowError::NotAvailable => Problem::new(
            ProblemKind::NotAvailable,
            "The database tells no changes: it is a standalone server, or its user may not read them. List the owners instead.",
        ),
        FollowError::TooOld => Problem::new(
            ProblemKind::PositionTooOld,
            "The log of the database does not reach back to this `Last-Event-ID`. Begin a stream without it, and then list the owners.",
        ),
        FollowError::Malformed => {
            let detail = "must be the `id` of an event of such a stream".to_owned();
            Problem::invalid_parameters(vec![ParameterFault { parameter: parameter.into(), detail }])
        }
    }
}
