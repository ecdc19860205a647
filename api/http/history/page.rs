//! A page by its number.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::path::Parameter;

use super::item_view::{PageJson, PageView};
use crate::domain::PageNumber;
use crate::http::api::Api;
use crate::http::cache::control::Caching;
use crate::http::cache::pages::Found;
use crate::http::cache::reading::Reading;
use crate::http::params::{InHistory, Params, Reader, in_path};
use crate::http::problem::{Kind, PageProblems, Problem};
use crate::store::history::Engine;

impl Params for PageNumber {
    fn read(reader: &mut Reader<'_>, _: &Engine) -> Option<Self> {
        reader.path("page")
    }

    fn documented() -> Vec<Parameter> {
        vec![in_path("page", "Permanent number of the page, from 1.", 1)]
    }
}

/// Read a page as it is stored
///
/// Returns the bucket itself, without totals or links. A page that is `full` never changes and may be kept forever, as
/// `Cache-Control` says.
#[utoipa::path(
    get,
    path = "/v1/{owners}/{ownerId}/{items}/pages/{page}",
    operation_id = "get{Item}Page",
    tag = "{Items}",
    params(InHistory<PageNumber>),
    responses(
        (
            status = 200, description = "The page.", body = PageView,
            headers(
                ("ETag" = String, description = "Never changes if the page is full."),
                ("Cache-Control" = String, description = "`immutable` if the page is full, otherwise `no-cache`."),
                ("Server-Timing" = String, description = "`db`: milliseconds spent waiting for the database. `cache`: whether the page was in memory."),
            ),
            example = json!({
                "{ownerField}": "{ownerExample}", "page": 1, "full": false, "firstSeq": 1, "count": 1, "items": ["{storedItem}"]
            })
        ),
        (status = 304, description = "`If-None-Match` names the current state: the client's copy is still valid."),
        PageProblems,
    ),
)]
pub async fn page(
    State(api): State<Arc<Api>>,
    InHistory { engine, owner, params: page }: InHistory<PageNumber>,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let definition = engine.definition();
    // A client with the tag of a full page has seen it full: no look-up is needed.
    if let Some(unchanged) = reading.named(|epoch| Caching::of_full(epoch, definition, &owner, page)) {
        return Ok(unchanged);
    }
    let found = api.pages.page(&engine, &owner, page, reading.epoch, reading.deadline).await?;
    match reading.looked_up(found) {
        Found::Full(page) => Ok(reading.answer(&page.caching, json(page.json.json.clone()))),
        Found::Tail(tail) => {
            let caching = Caching::of_tail(reading.epoch, definition, &owner, tail.totals());
            Ok(reading.answer(&caching, json(PageJson::new(definition, &owner, &tail).json)))
        }
        Found::Nothing => Err(Problem::new(Kind::PageNotFound, "The history has no such page.")),
    }
}

/// An answer of JSON.
pub fn json(bytes: Bytes) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], bytes)
}
