//! Appending items.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use pagebucket_engine::Engine;
use pagebucket_engine::appends::{Append, AppendTerms, Once};
use pagebucket_model::domain::{
    DraftError, IdempotencyKey, Instant, MAX_SAFE_INTEGER, OwnerId, OwnerMember, Position, Seq, SeqRange,
    Totals,
};
use pagebucket_model::item::{Draft, Schema, canonical};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::path::Parameter;

use crate::admission::accept::JSON;
use crate::admission::context::Granted;
use crate::answer::notes::ItemCount;
use crate::pages::item_schemas::{ItemInput, MOST_ITEMS};
use crate::problem::ProblemKind::{
    self, BodyTooLarge, Erased, HistoryExhausted, IdempotencyKeyReused, InvalidItem, PartlyStored, Retired,
    UnexpectedSeq,
};
use crate::problem::{BODY, COMMON, Problem, problems};
use crate::request::body::{expect, read, upload_below, upload_beside};
use crate::request::params::{Address, IDEMPOTENCY_REPLAYED, KeyHeader, ParameterReader, Params, in_query};
use crate::schemas::document::{Documented, RouteDocument, titled};
use crate::schemas::headers;
use crate::schemas::names::Names;
use crate::schemas::{instant, many, owner_member, whole};
use crate::state::Api;

/// Consecutive sequence numbers, both ends included.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SeqRange)]
pub(crate) struct RangeView {
    /// The first one.
    #[schema(value_type = u64, minimum = 1)]
    first_seq: Seq,
    /// The last one.
    #[schema(value_type = u64, minimum = 1)]
    last_seq: Seq,
}

impl RangeView {
    /// The view of `range`.
    pub(crate) fn new(range: &SeqRange) -> Self {
        Self { first_seq: range.first, last_seq: range.last }
    }
}

/// Where the {manyItems} of a request are stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AppendedItems)]
struct AppendedView {
    #[serde(flatten)]
    #[schema(schema_with = owner_member)]
    owner: OwnerMember,
    /// Sequence numbers of the {manyItems}, in the order of the request: one range, unless another writer
    /// appended between two of its pages.
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

/// The total that the client has seen: the items are stored only if the history still has it.
pub(crate) struct ExpectedSeq(Option<Position>);

impl ExpectedSeq {
    /// The name of the parameter.
    pub(crate) const NAME: &str = "expectedSeq";
}

impl Params for ExpectedSeq {
    fn read(reader: &mut ParameterReader<'_>, _: &Engine) -> Option<Self> {
        Some(Self(reader.query(Self::NAME, Position::parse)))
    }

    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        let Names { item, many_items, .. } = names;
        let description = format!(
            "The `totalItems` that the client has seen. The first {item} is stored only if it gets the next sequence \
            number; otherwise the answer is 412 `unexpected-seq`, and nothing is stored. The other {many_items} of an array follow the \
            first one, and {many_items} of other writers may come between them."
        );
        vec![in_query(Self::NAME, description, whole(0, MAX_SAFE_INTEGER))]
    }
}

/// How a body becomes items.
type Parse = fn(&Schema, &[u8], usize) -> Result<Vec<Draft>, DraftError>;

/// An append whose body is not read yet.
pub(crate) struct AppendRequest {
    api: Arc<Api>,
    address: Address<(OwnerId, ExpectedSeq)>,
    key: Option<IdempotencyKey>,
    request: Request,
}

impl FromRequest<Arc<Api>> for AppendRequest {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let address = Address::from_request_parts(&mut parts, api).await?;
        let KeyHeader(key) = KeyHeader::from_request_parts(&mut parts, api).await?;
        Ok(Self { api: Arc::clone(api), address, key, request: Request::from_parts(parts, body) })
    }
}

/// The problems of an append.
const PROBLEMS: &[&[ProblemKind]] = &[
    COMMON,
    &[PartlyStored],
    BODY,
    &[HistoryExhausted, Retired, Erased, UnexpectedSeq, BodyTooLarge, InvalidItem, IdempotencyKeyReused],
];

pub(crate) fn document(names: &Names<'_>) -> Documented {
    let Names { definition, item_type, items_type, owner, item, an_item, many_items, examples, .. } = names;
    let title = format!("One {item}{}", if definition.date.required { "" } else { ", now" });
    RouteDocument::of(
        names,
        format!("append{items_type}"),
        format!("Append {an_item}"),
        format!("Stores the {item} at the end of the {owner}'s history. The answer is 201 when it is durable on a \
        majority of the database's nodes.\n\n\
        An array of 1 to 1,000 {many_items} is taken here, too, as `append{item_type}Batch` takes it. This \
        document does not show it: few generators make a client of a body that is either one {item} or an \
        array.\n\n\
        With an `Idempotency-Key` the request may be repeated, whatever its outcome: the {many_items} \
        are stored once, and every answer says where they are stored. A key belongs to one {owner}. The \
        server remembers it for a day after its last use, or as its operator has configured.\n\n\
        With `expectedSeq` the {item} is stored only if the history has as many {many_items} as its \
        client has seen. With a key, what an earlier attempt has stored is looked for first: then the \
        answer is that of the first attempt, whatever the total is now."),
    )
    .parameters([OwnerId::documented(names), KeyHeader::documented(), ExpectedSeq::documented(names)].concat())
    .takes::<ItemInput>(JSON, format!("The {item}."), |one| titled(one, ("one", &title), examples.new_item.clone()))
    .answers(201, format!("The {item} is stored durably."))
    .header(headers::location(format!("Address of the {item}.")))
    .header(headers::idempotency_replayed(format!("`true` if an earlier request with the same key stored the {item}.")))
    .shows::<AppendedView>(JSON, stored(names, 1))
    .problems(problems(names, PROBLEMS))
}

pub(crate) async fn append(asked: AppendRequest) -> Result<Response, Problem> {
    append_body(asked, Schema::parse_drafts, upload_below).await
}

pub(crate) fn document_of_batch(names: &Names<'_>) -> Documented {
    let Names { item_type, items_type, owner, item, many_items, examples, .. } = names;
    RouteDocument::of(
        names,
        format!("append{item_type}Batch"),
        format!("Append an array of {many_items}"),
        format!(
            "Stores 1 to 1,000 {many_items} at the end of the {owner}'s history, in order. The answer is 201 \
        when they are durable on a majority of the database's nodes. If one {item} is invalid, nothing is \
        stored.\n\n\
        An `Idempotency-Key` means the same as for `append{items_type}`: an array of one {item} and the \
        {item} itself are the same request. `expectedSeq` is about the first {item} of the array."
        ),
    )
    .parameters(
        [OwnerId::documented(names), KeyHeader::documented(), ExpectedSeq::documented(names)].concat(),
    )
    .takes::<ItemInput>(JSON, format!("An array of 1 to 1,000 {many_items}."), |one| {
        let title = format!("An array of {many_items}");
        titled(many(one, MOST_ITEMS), ("many", &title), examples.new_items.clone())
    })
    .answers(201, format!("The {many_items} are stored durably."))
    .header(headers::location(format!("Address of the first {item}.")))
    .header(headers::idempotency_replayed(format!(
        "`true` if an earlier request with the same key stored all of the {many_items}."
    )))
    .shows::<AppendedView>(JSON, stored(names, 2))
    .problems(problems(names, PROBLEMS))
}

pub(crate) async fn append_batch(asked: AppendRequest) -> Result<Response, Problem> {
    append_body(asked, Schema::parse_batch, upload_beside).await
}

/// The answer of the first append to a history, of this number of items.
fn stored(names: &Names<'_>, count: usize) -> Value {
    json!({
        (&names.owner_field): names.examples.owner, "ranges": [{ "firstSeq": 1, "lastSeq": count }], "totalItems": count,
        "totalPages": 1, "date": "2026-11-20T12:00:00.000Z"
    })
}

/// Appends what a body has. `advice` says where to send lines.
async fn append_body(
    AppendRequest { api, address, key, request }: AppendRequest,
    parse: Parse,
    advice: fn(&Uri) -> String,
) -> Result<Response, Problem> {
    let Address { engine, params: (owner, ExpectedSeq(expected)) } = address;
    let Granted { deadline, quota } = Granted::of(request.extensions());
    expect(request.headers(), JSON, || advice(request.uri()))?;
    let bytes = read(request.into_body(), api.limits).await?;
    let definition = engine.definition();
    let drafts = parse(&definition.item, &bytes, MOST_ITEMS);
    let drafts = drafts.map_err(|error| Problem::of_draft(ProblemKind::InvalidItem, error))?;
    let (count, now) = (drafts.len(), api.clock.now());
    quota.charge(count.div_ceil(definition.page_size.get()))?;
    let keyed = key.is_some();
    let terms = AppendTerms { deadline, expected };
    let canonical = if keyed { canonical(&bytes) } else { Vec::new() };
    let once = key.map(|key| Once::Request { key, canonical: &canonical });
    let append = Append { once, ..Append::new(owner.clone(), drafts, now, terms) };
    let stored = engine.appends().append(append).await;
    let progress = stored.map_err(|error| Problem::of_append(definition, &owner, error, count, keyed))?;
    let date = progress.date().unwrap_or(now);
    let first = progress.ranges().first().expect("a request has at least one item").first;
    let (owners, items) = (&definition.owner.collection, &definition.name);
    let location = [(header::LOCATION, format!("/v1/{owners}/{owner}/{items}/{first}"))];
    let replayed = progress.is_replayed().then_some([(IDEMPOTENCY_REPLAYED, "true")]);
    let totals = Totals::ending_with(definition.page_size, progress.last_seq());
    let view = AppendedView {
        owner: OwnerMember::new(&definition.owner.field, &owner),
        ranges: progress.ranges().iter().map(RangeView::new).collect(),
        total_items: totals.items(),
        total_pages: totals.pages(),
        date,
    };
    let items = ItemCount::of(count);
    Ok((StatusCode::CREATED, location, replayed, items, Json(view)).into_response())
}
