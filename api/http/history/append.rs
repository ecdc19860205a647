//! Appending items.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

use super::item_schemas::{MOST_ITEMS, NewItem, NewItems};
use super::item_view::{OwnerMember, owner_member};
use super::upload::{OutcomeView, RangeView, Upload, UploadedView};
use crate::domain::{Instant, OwnerId};
use crate::http::api::Api;
use crate::http::body::{JSON, NDJSON, expect, read};
use crate::http::idempotency::{self, Key};
use crate::http::params::Address;
use crate::http::problem::{AppendProblems, Kind, Problem};
use crate::http::schemas::instant;
use crate::item::canonical;
use crate::store::Deadline;

/// Where the {manyItems} of a request are stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AppendedItems)]
pub struct AppendedView {
    #[serde(flatten)]
    #[schema(schema_with = owner_member)]
    owner: OwnerMember,
    /// Sequence numbers of the {manyItems}, in the order of the request: one range, unless another writer appended between
    /// two of its pages.
    #[schema(min_items = 1)]
    ranges: Vec<RangeView>,
    /// Number of {manyItems} in the history right after the append.
    #[schema(minimum = 1)]
    total_items: u64,
    /// Number of pages of the history right after the append.
    #[schema(minimum = 1)]
    total_pages: u64,
    /// The date that was given to {manyItems} without one.
    #[schema(schema_with = instant)]
    date: Instant,
}

/// Append {manyItems}
///
/// Stores one {item}, or an array of up to 1,000, at the end of the {owner}'s history, in order. The answer is 201 when
/// the {manyItems} are durable on a majority of the database's nodes. If one {item} of an array is invalid, nothing is
/// stored.
///
/// An upload sends any number of {manyItems} as `application/x-ndjson`, one {item} a line. Lines are stored in order as they
/// arrive, and a refused line does not affect the others. The answer is 200 with a summary when the body has ended.
/// With `Accept: application/x-ndjson` the answer begins at once, with one outcome for each line as it is stored; the
/// client must read it while it sends.
///
/// With an `Idempotency-Key` the request may be repeated, whatever its outcome: the {manyItems} are stored once, and every
/// answer says where they are stored. A key belongs to one {owner}. The server remembers it for a day after its last
/// use, or as its operator has configured. An upload with a key that is sent again, from the first line on, continues
/// where it ended: each line is identified by its number.
#[utoipa::path(
    post,
    path = "/v1/{owners}/{ownerId}/{items}",
    operation_id = "append{Items}",
    tag = "{Items}",
    params(
        Address<OwnerId>,
        ("Idempotency-Key" = Option<String>, Header, description = "A unique key for the request, such as a UUID: 1 to 255 visible ASCII characters. A repeat of the request has the same key.", min_length = 1, max_length = 255, pattern = "^[!-~]{1,255}$"),
    ),
    request_body(
        description = "One {item}, or an array of 1 to 1,000; or one JSON object a line, each of at most 64 KiB. Blank lines are ignored.",
        content(
            (NewItems = "application/json", examples(
                ("one" = (summary = "One {item}{unlessDated}", value = json!("{newItem}"))),
                ("many" = (summary = "An array of {manyItems}", value = json!("{newItems}")))
            )),
            (NewItem = "application/x-ndjson", example = json!("{newItem}"))
        )
    ),
    responses(
        (
            status = 201, description = "The {manyItems} are stored durably.", body = AppendedView,
            headers(
                ("Location" = String, description = "Address of the first {item}."),
                ("Idempotency-Replayed" = Option<bool>, description = "`true` if an earlier request with the same key stored all of the {manyItems}.")
            ),
            example = json!({
                "{ownerField}": "{ownerExample}", "ranges": [{ "firstSeq": 1, "lastSeq": 2 }], "totalItems": 2, "totalPages": 1,
                "date": "2026-11-20T12:00:00.000Z"
            })
        ),
        (
            status = 200,
            description = "The answer to an upload. As JSON: a summary, when every line is stored durably or refused. As NDJSON: one outcome for each line, in order, as it is stored. If the last outcome has no `line`, the upload ended early, and that outcome says why.",
            content(
                (UploadedView = "application/json", example = json!({
                    "{ownerField}": "{ownerExample}", "ranges": [{ "firstSeq": 1, "lastSeq": 2 }], "stored": 2, "refused": 0,
                    "problems": []
                })),
                (OutcomeView = "application/x-ndjson", example = json!({ "line": 1, "seq": 1 }))
            )
        ),
        AppendProblems,
    ),
)]
pub async fn append(
    State(api): State<Arc<Api>>,
    Address { engine, params: owner }: Address<OwnerId>,
    Extension(deadline): Extension<Deadline>,
    Key(key): Key,
    request: Request,
) -> Result<Response, Problem> {
    if expect(request.headers(), &[JSON, NDJSON])? == NDJSON {
        return Ok(Upload { api, engine, owner: Some(owner), key, request }.answer().await);
    }
    let bytes = read(request.into_body(), api.limits).await?;
    let definition = engine.definition();
    let drafts = definition.item.parse_drafts(&bytes, MOST_ITEMS);
    let drafts = drafts.map_err(|error| Problem::of_draft(Kind::InvalidItem, error))?;
    let (count, now) = (drafts.len(), api.clock.now());
    let keyed = key.is_some();
    let stored = match key {
        Some(key) => engine.append_once(owner.clone(), key, drafts, &canonical(&bytes), now, deadline).await,
        None => {
            let items = drafts.iter().map(|draft| draft.dated(now)).collect();
            let appended = engine.append(owner.clone(), items, deadline).await;
            appended.map(|progress| (progress, now))
        }
    };
    let (progress, date) =
        stored.map_err(|error| Problem::of_append(definition, &owner, error, count, keyed))?;
    let first = progress.ranges().first().expect("a request has at least one item").first;
    let (owners, items) = (&definition.owner.collection, &definition.name);
    let location = [(header::LOCATION, format!("/v1/{owners}/{owner}/{items}/{first}"))];
    let replayed = progress.is_replayed().then_some([(idempotency::REPLAYED, "true")]);
    let totals = engine.totals(progress.last_seq());
    let view = AppendedView {
        owner: OwnerMember::new(definition, &owner),
        ranges: progress.ranges().iter().map(RangeView::new).collect(),
        total_items: totals.items(),
        total_pages: totals.pages(),
        date,
    };
    Ok((StatusCode::CREATED, location, replayed, Json(view)).into_response())
}
