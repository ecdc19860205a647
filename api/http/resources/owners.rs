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
use pagebucket_model::definition::capitalised;
use pagebucket_model::domain::{Limit, OwnerId, OwnerMember, PageNumber, Seq, SeqRange, Totals};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{Object, ObjectBuilder};

use super::links::Links;
use crate::admission::accept::JSON;
use crate::admission::context::Histories;
use crate::caching::control::Caching;
use crate::caching::reading::Reading;
use crate::pages::item_schemas::Item;
use crate::pages::item_view::ItemView;
use crate::problem::ProblemKind::Erased;
use crate::problem::{COMMON, Problem, problems};
use crate::request::params::{Address, ParameterReader, Params, in_query};
use crate::schemas::document::{Documented, RouteDocument};
use crate::schemas::headers::{self, LINKS};
use crate::schemas::items::stored_example;
use crate::schemas::names::Names;
use crate::schemas::views::{self, Schemas};
use crate::schemas::whole;
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

    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        let Names { many_owners, .. } = names;
        let limit = whole(1, u64::from(Limit::MAX)).default(Some(Limit::OWNERS.get().into()));
        vec![
            in_query(
                "after",
                format!(
                    "Only {many_owners} with greater ids than this one. The id itself need not exist. Default: from the lowest id."
                ),
                names.owner_id(),
            ),
            in_query("limit", format!("Maximum number of {many_owners} in the answer."), limit),
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

/// An owner with the summary of each history: [`Owner::schemas`].
#[derive(ToSchema)]
struct Owner;

impl Owner {
    /// Its schema, which depends on the histories that there are, and those of their summaries.
    fn schemas(names: &Names<'_>) -> Schemas {
        let about = format!("{}: the summary of each history.", capitalised(&names.an_owner));
        let (mut schema, mut all) = (owned(names, about), Schemas::new());
        for history in names.histories().map(|history| Names::of(names.definitions, history)) {
            schema.properties.insert(history.items.clone(), history.schema::<SummaryView>());
            schema.required.push(history.items.clone());
            all.extend(views::schemas::<SummaryView>(&history));
        }
        all.insert(names.schema_name(&Self::name()), json!(schema));
        all
    }
}

/// An owner with the length of each history that it has: [`OwnerTotals::schemas`].
#[derive(ToSchema)]
struct OwnerTotals;

impl OwnerTotals {
    /// Its schema, which depends on the histories that there are, and that of their lengths.
    fn schemas(names: &Names<'_>) -> Schemas {
        let Names { owner, an_owner, .. } = names;
        let about = format!("{} and the length of each history that the {owner} has.", capitalised(an_owner));
        let mut schema = owned(names, about);
        let totals =
            names.histories().map(|history| (history.name.to_string(), names.schema::<TotalsView>()));
        schema.properties.extend(totals);
        let mut all = views::schemas::<TotalsView>(names);
        all.insert(names.schema_name(&Self::name()), json!(schema));
        all
    }
}

/// An object with an owner's id.
fn owned(names: &Names<'_>, about: String) -> Object {
    let object = ObjectBuilder::new().description(Some(about)).required(&names.owner_field);
    object.property(&names.owner_field, names.owner_id()).build()
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
struct SummaryView {
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
struct OwnersView {
    /// At most `limit` {manyOwners}.
    #[schema(value_type = Vec<OwnerTotals>, max_items = 100)]
    pub items: Vec<OwnerView<TotalsView>>,
    pub links: Links,
}

pub(crate) fn document(names: &Names<'_>) -> Documented {
    let Names { owners, owner_field, owners_type, many_owners, owner_example, examples, .. } = names;
    let mut first = Map::from_iter([(owner_field.clone(), examples.owner.clone())]);
    let totals = json!({ "totalItems": 25, "totalPages": 3 });
    first.extend(names.histories().map(|history| (history.name.to_string(), totals.clone())));
    let example = json!({
        "items": [first],
        "links": { "self": format!("/v1/{owners}?limit=1"), "next": format!("/v1/{owners}?after={owner_example}&limit=1") }
    });
    RouteDocument::of(
        names,
        format!("list{owners_type}"),
        format!("List {many_owners}"),
        format!(
            "Lists {many_owners} with a history, in ascending order of their ids, each with its totals. The \
        cost depends on the number of {many_owners} listed, not on the number of {many_owners} or the \
        length of their histories."
        ),
    )
    .parameters(OwnersParams::documented(names))
    .reads(format!("The {many_owners}."))
    .header(headers::link(LINKS))
    .shows::<OwnersView>(JSON, example)
    .defines(OwnerTotals::schemas(names))
    .problems(problems(names, &[COMMON]))
}

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

pub(crate) fn document_of_one(names: &Names<'_>) -> Documented {
    let Names { owner_field, owner_type, owner, an_owner, examples, .. } = names;
    let mut example = Map::from_iter([(owner_field.clone(), examples.owner.clone())]);
    example.extend(names.histories().filter_map(|history| {
        let item = stored_example(history)?;
        let summary = json!({
            "totalItems": 1, "totalPages": 1, "firstPage": 1, "firstSeq": 1, "first": item, "last": item
        });
        Some((history.name.to_string(), summary))
    }));
    RouteDocument::of(
        names,
        format!("get{owner_type}"),
        "Summarise histories",
        format!("Returns the totals of each history of {an_owner}, where it begins, and its first and last item. An \
        unknown {owner} has totals of 0. The totals count all items since the history began, also those \
        that are retired."),
    )
    .parameters(OwnerId::documented(names))
    .reads_tagged("The summary of the histories.")
    .header(headers::etag("Changes when a history grows."))
    .shows::<Owner>(JSON, Value::from(example))
    .defines(Owner::schemas(names))
    .problems(problems(names, &[COMMON, &[Erased]]))
}

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
