//! Appending items.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use pagebucket_model::domain::{Instant, OwnerId};
use pagebucket_model::item::canonical;
use serde::Serialize;
use utoipa::ToSchema;

use super::upload::RangeView;
use crate::middleware::access_log::ItemCount;
use crate::pages::item_schemas::{MOST_ITEMS, NewItems};
use crate::pages::item_view::{OwnerMember, owner_member};
use crate::problem::{AppendProblems, Problem, ProblemKind};
use crate::request::body::{JSON, expect, read, upload_below};
use crate::request::context::Granted;
use crate::request::idempotency::{self, KeyHeader};
use crate::request::params::Address;
use crate::schemas::instant;
use crate::state::Api;

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
    #[schema(min_items = 1, max_items = 1000)]
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
/// With an `Idempotency-Key` the request may be repeated, whatever its outcome: the {manyItems} are stored once, and every
/// answer says where they are stored. A key belongs to one {owner}. The server remembers it for a day after its last
/// use, or as its operator has configured.
#[utoipa::path(
    post,
    path = "/v1/{owners}/{ownerId}/{items}",
    operation_id = "append{Items}",
    params(Address<OwnerId>, KeyHeader),
    request_body(
        content = NewItems, content_type = "application/json",
        description = "One {item}, or an array of 1 to 1,000.",
        examples(
            ("one" = (summary = "One {item}{unlessDated}", value = json!("{newItem}"))),
            ("many" = (summary = "An array of {manyItems}", value = json!("{newItems}")))
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
        AppendProblems,
    ),
)]
pub async fn append(
    State(api): State<Arc<Api>>,
    Address { engine, params: owner }: Address<OwnerId>,
    Granted { deadline, quota }: Granted,
    KeyHeader(key): KeyHeader,
    request: Request,
) -> Result<Response, Problem> {
    expect(request.headers(), JSON, || upload_below(request.uri()))?;
    let bytes = read(request.into_body(), api.limits).await?;
    let definition = engine.definition();
    let drafts = definition.item.parse_drafts(&bytes, MOST_ITEMS);
    let drafts = drafts.map_err(|error| Problem::of_draft(ProblemKind::InvalidItem, error))?;
    let (count, now) = (drafts.len(), api.clock.now());
    quota.charge(count.div_ceil(definition.page_size.get()))?;
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
    let items = Extension(ItemCount::of(count));
    Ok((StatusCode::CREATED, location, replayed, items, Json(view)).into_response())
}
