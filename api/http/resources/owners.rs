//! Owners: a list of all of them, and a summary of the histories of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use futures_util::future::try_join_all;
use pagebucket_engine::{Engine, Error, Gone};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Limit, OwnerId, OwnerMember, PageNumber, Seq, SeqRange, Totals};
use serde::Serialize;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{ObjectBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::links::Links;
use crate::admission::context::Histories;
use crate::caching::control::Caching;
use crate::caching::reading::Reading;
use crate::pages::item_schemas::Item;
use crate::pages::item_view::ItemView;
use crate::problem::{Problem, ReadProblems, SummaryProblems};
use crate::request::params::{Address, ParameterReader, Params, in_query};
use crate::schemas::{owner_id, whole};
use crate::state::Api;

/// `/{owners}?…`
pub(crate) struct OwnersParams {
    after: Option<OwnerId>,
    limit: Limit,
}

impl Params for OwnersParams {
    fn read(reader: &mut ParameterReader<'_>, engine: &Engine) -> Option<Self> {
        let after = reader.query("after", |text| engine.definition().owner.kind.parse(text));
        let limit = reader.query("limit", Limit::parse).unwrap_or(Limit::OWNERS);
        Some(Self { after, limit })
    }

    fn documented() -> Vec<Parameter> {
        let limit = whole(1, u64::from(Limit::MAX)).default(Some(Limit::OWNERS.get().into()));
        vec![
            in_query(
                "after",
                "Only {manyOwners} with greater ids than this one. The id itself need not exist. Default: from the lowest id.",
                owner_id(),
            ),
            in_query("limit", "Maximum number of {manyOwners} in the answer.", limit),
        ]
    }
}

/// An owner and the summaries of its histories, by their names.
#[derive(Debug, Serialize)]
pub(crate) struct OwnerView<T> {
    #[serde(flatten)]
    pub owner: OwnerMember,
    #[serde(flatten)]
    pub histories: BTreeMap<Arc<str>, T>,
}

/// The documentation of an owner with the summary of each history.
pub(crate) struct Owner;

impl ToSchema for Owner {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((SummaryView::name().into(), SummaryView::schema()));
        SummaryView::schemas(schemas);
    }
}

impl PartialSchema for Owner {
    fn schema() -> RefOr<Schema> {
        let description = "{AnOwner}: the summary of each history.";
        with_history(description, &SummaryView::name()).required("{items}").into()
    }
}

/// The documentation of an owner with the length of each history that it has.
pub(crate) struct OwnerTotals;

impl ToSchema for OwnerTotals {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((TotalsView::name().into(), TotalsView::schema()));
    }
}

impl PartialSchema for OwnerTotals {
    fn schema() -> RefOr<Schema> {
        let description = "{AnOwner} and the length of each history that the {owner} has.";
        with_history(description, &TotalsView::name()).into()
    }
}

/// An owner and the member for one history. The document unites those of all histories.
fn with_history(description: &str, schema: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .description(Some(description))
        .property("{ownerField}", owner_id())
        .required("{ownerField}")
        .property("{items}", Ref::from_schema_name(schema))
}

/// The length of a history.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HistoryTotals)]
pub(crate) struct TotalsView {
    /// Number of items in the history.
    #[schema(minimum = 0)]
    total_items: u64,
    /// Number of pages of the history.
    #[schema(minimum = 0)]
    total_pages: u64,
}

impl TotalsView {
    /// Of a history of this length.
    pub(crate) fn new(totals: Totals) -> Self {
        Self { total_items: totals.items(), total_pages: totals.pages() }
    }
}

/// Summary of a history.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ItemSummary)]
pub(crate) struct SummaryView {
    #[serde(flatten)]
    #[schema(inline)]
    pub totals: TotalsView,
    /// The first page that is there, or that the next append opens. Earlier ones are retired.
    #[schema(value_type = u64, minimum = 1)]
    pub first_page: PageNumber,
    /// Sequence number of the first {item} of that page.
    #[schema(value_type = u64, minimum = 1)]
    pub first_seq: Seq,
    /// The first {item} that is there. Absent if the history is empty.
    #[schema(value_type = Option<Item>)]
    pub first: Option<ItemView>,
    /// The {item} with the highest sequence number. Absent if the history is empty.
    #[schema(value_type = Option<Item>)]
    pub last: Option<ItemView>,
}

/// {ManyOwners} in ascending order of their ids.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OwnerListing)]
pub(crate) struct OwnersView {
    /// At most `limit` {manyOwners}.
    #[schema(value_type = Vec<OwnerTotals>, max_items = 100)]
    pub items: Vec<OwnerView<TotalsView>>,
    pub links: Links,
}

/// List {manyOwners}
///
/// Lists {manyOwners} with a history, in ascending order of their ids, each with its totals. The cost depends
/// on the number of {manyOwners} listed, not on the number of {manyOwners} or the length of their histories.
#[utoipa::path(
    get,
    path = "/v1/{owners}",
    operation_id = "list{Owners}",
    params(Address<OwnersParams>),
    responses(
        (
            status = 200, description = "The {manyOwners}.", body = OwnersView,
            headers(("Link" = String, description = "The links of the body (RFC 8288), if they have at most 2 KiB.")),
            example = json!({
                "items": [{ "{ownerField}": "{ownerExample}", "{items}": { "totalItems": 25, "totalPages": 3 } }],
                "links": { "self": "/v1/{owners}?limit=1", "next": "/v1/{owners}?after={ownerExample}&limit=1" }
            })
        ),
        ReadProblems,
    ),
)]
pub(crate) async fn list(
    uri: Uri,
    Histories(engines): Histories,
    Address { engine: first, params: OwnersParams { after, limit } }: Address<OwnersParams>,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let deadline = reading.deadline;
    let lists = engines.iter().map(|engine| engine.reads().owners(after.clone(), limit, deadline));
    let lists = reading.database(try_join_all(lists)).await?;
    // The last page of each.
    reading.quota.owe(lists.iter().map(|list| list.found.len()).sum());
    // Each list has the first owners of one history: together they have the first owners of all, with all
    // their totals. What is after the least of these may be missing in one of the lists.
    let end = lists.iter().filter_map(|list| list.more.clone()).min();
    let mut owners: BTreeMap<OwnerId, BTreeMap<_, _>> = BTreeMap::new();
    for (engine, list) in engines.iter().zip(lists) {
        let name = &engine.definition().name;
        for (id, totals) in list.found {
            owners.entry(id).or_default().insert(Arc::clone(name), TotalsView::new(totals));
        }
    }
    owners.retain(|id, _| end.as_ref().is_none_or(|end| id <= end));
    let last = match owners.len() > limit.get() {
        true => owners.keys().nth(limit.get() - 1).cloned(),
        false => end,
    };
    let links = Links::to_owners(&uri, last.as_ref(), limit);
    let view = |(id, histories)| OwnerView {
        owner: OwnerMember::new(&first.definition().owner.field, &id),
        histories,
    };
    let items = owners.into_iter().take(limit.get()).map(view).collect();
    Ok(reading.untagged((links.header(), Json(OwnersView { items, links }))))
}

/// Summarise histories
///
/// Returns the totals of each history of {anOwner}, where it begins, and its first and last item. An unknown
/// {owner} has totals of 0. The totals count all items since the history began, also those that are retired.
#[utoipa::path(
    get,
    path = "/v1/{owners}/{ownerId}",
    operation_id = "get{Owner}",
    params(Address<OwnerId>),
    responses(
        (
            status = 200, description = "The summary of the histories.", body = Owner,
            headers(("ETag" = String, description = "Changes when a history grows.")),
            example = json!({
                "{ownerField}": "{ownerExample}",
                "{items}": {
                    "totalItems": 1, "totalPages": 1, "firstPage": 1, "firstSeq": 1, "first": "{storedItem}",
                    "last": "{storedItem}"
                }
            })
        ),
        SummaryProblems,
    ),
)]
pub(crate) async fn summary(
    State(api): State<Arc<Api>>,
    Histories(engines): Histories,
    Address { engine: first, params: owner }: Address<OwnerId>,
    mut reading: Reading,
) -> Result<Response, Problem> {
    reading.quota.charge(engines.len())?;
    let mut attempts = 0;
    loop {
        match summarise(&api, &engines, first.definition(), &owner, &mut reading).await {
            // The first page was retired between the two reads, or this instance did not know of a marker
            // yet.
            Err(Error::Gone(Gone::Retired { .. })) if attempts < MOST_ATTEMPTS => attempts += 1,
            answer => return Ok(answer?),
        }
    }
}

/// How often a summary is read again whose first page was retired meanwhile.
const MOST_ATTEMPTS: usize = 3;

async fn summarise(
    api: &Api,
    engines: &[Engine],
    definition: &Definition,
    owner: &OwnerId,
    reading: &mut Reading,
) -> Result<Response, Error> {
    let deadline = reading.deadline;
    let histories = engines.iter().map(|engine| engine.reads().history(owner.clone(), deadline));
    let histories = reading.database(try_join_all(histories)).await?;
    let states = histories.iter().map(|history| (&**history.definition(), history.totals()));
    let begin = histories.iter().map(|history| history.first_seq().to_string());
    let begin = begin.collect::<Vec<_>>().join("-");
    let caching = Caching::of_tails(reading.epoch, owner, states).of_part(format_args!("f{begin}"));
    if let Some(unchanged) = reading.unchanged(&caching) {
        return Ok(unchanged);
    }
    let mut summaries = BTreeMap::new();
    for history in &histories {
        let (totals, first_page, first_seq) = (history.totals(), history.first_page(), history.first_seq());
        let mut ends = Vec::new();
        let last = totals.last_seq().filter(|last| first_seq <= *last);
        for seq in last.into_iter().flat_map(|last| [first_seq, last]) {
            let range = SeqRange { first: seq, last: seq };
            ends.extend(api.pages.items(history, Some(range), reading).await?);
        }
        let (last, first) = (ends.pop(), ends.pop());
        let summary = SummaryView { totals: TotalsView::new(totals), first_page, first_seq, first, last };
        summaries.insert(Arc::clone(&history.definition().name), summary);
    }
    let view = OwnerView { owner: OwnerMember::new(&definition.owner.field, owner), histories: summaries };
    Ok(reading.answer(&caching, Json(view)))
}
