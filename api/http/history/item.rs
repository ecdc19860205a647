//! An item by its sequence number.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use utoipa::openapi::path::Parameter;

use super::item_schemas::PlacedItem;
use super::item_view::placed;
use super::page::json;
use crate::domain::Seq;
use crate::http::api::Api;
use crate::http::cache::control::Caching;
use crate::http::cache::pages::Found;
use crate::http::cache::reading::Reading;
use crate::http::params::{InHistory, Params, Reader, in_path};
use crate::http::problem::{ItemProblems, Kind, Problem};
use crate::store::history::Engine;

impl Params for Seq {
    fn read(reader: &mut Reader<'_>, _: &Engine) -> Option<Self> {
        reader.path("seq")
    }

    fn documented() -> Vec<Parameter> {
        vec![in_path("seq", "Sequence number of the {item}, from 1.", 1)]
    }
}

/// Read one {item}
///
/// Returns the {item} with this sequence number, which is its permanent address.
#[utoipa::path(
    get,
    path = "/v1/{owners}/{ownerId}/{items}/{seq}",
    operation_id = "get{Item}",
    tag = "{Items}",
    params(InHistory<Seq>),
    responses(
        (
            status = 200, description = "The {item}.", body = PlacedItem,
            headers(
                ("ETag" = String, description = "Never changes if the {item} is on a full page."),
                ("Cache-Control" = String, description = "`immutable` if the {item} is on a full page, otherwise `no-cache`."),
                ("Server-Timing" = String, description = "`db`: milliseconds spent waiting for the database. `cache`: whether the page was in memory."),
            ),
            example = json!("{placedItem}")
        ),
        (status = 304, description = "`If-None-Match` names the current state: the client's copy is still valid."),
        ItemProblems,
    ),
)]
pub async fn one(
    State(api): State<Arc<Api>>,
    InHistory { engine, owner, params: seq }: InHistory<Seq>,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let definition = engine.definition();
    let page = definition.page_size.page_of(seq);
    if let Some(unchanged) = reading.named(|epoch| Caching::of_full(epoch, definition, &owner, page)) {
        return Ok(unchanged);
    }
    let found = api.pages.page(&engine, &owner, page, reading.epoch, reading.deadline).await?;
    let found = match reading.looked_up(found) {
        Found::Full(full) => full.json.members(seq).map(|members| {
            let item = [format!("{{\"page\":{page},").as_bytes(), members, b"}"].concat();
            (full.caching.clone(), item)
        }),
        Found::Tail(tail) => {
            let caching = Caching::of_tail(reading.epoch, definition, &owner, tail.totals());
            tail.item(seq).map(|item| (caching, placed(page, &item)))
        }
        Found::Nothing => None,
    };
    let missing = || {
        Problem::new(Kind::ItemNotFound, format!("The history has no such {}.", definition.item.noun().one()))
    };
    let (caching, item) = found.ok_or_else(missing)?;
    Ok(reading.answer(&caching, json(item.into())))
}
