//! Owners: a list of all of them, and a summary of the histories of each.

mod views;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Uri, header};
use axum::response::Response;
use futures_util::future::try_join_all;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use super::api::Api;
use super::cache::control::Caching;
use super::cache::reading::Reading;
use super::history::item_view::OwnerMember;
use super::links::Links;
use super::params::{Reader, given, in_query, owner_parameter};
use super::problem::{Problem, ReadProblems};
use super::schemas::{owner_id, whole};
use crate::definition::Owner;
use crate::domain::{Limit, OwnerId, Seq, SeqRange};
use crate::store::history::Engine;
use views::{OwnerView, OwnersView, SummaryView, TotalsView};

/// The engines of the histories that belong to the owners of a route.
#[derive(Clone)]
pub struct HistoriesOf(pub Arc<[Engine]>);

impl HistoriesOf {
    fn given(extensions: &Extensions) -> Arc<[Engine]> {
        let Self(engines) =
            extensions.get().cloned().expect("each route of owners is mounted with its engines");
        engines
    }
}

/// What their definitions agree on.
fn owner_of(engines: &[Engine]) -> &Owner {
    &engines[0].definition().owner
}

/// `/{owners}?…`
pub struct OwnersParams {
    engines: Arc<[Engine]>,
    after: Option<OwnerId>,
    limit: Limit,
}

impl<S: Send + Sync> FromRequestParts<S> for OwnersParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let engines = HistoriesOf::given(&parts.extensions);
        let kind = owner_of(&engines).kind;
        let mut reader = Reader::of(parts);
        let after = reader.query("after", |text| kind.parse(text));
        let limit = reader.query("limit", str::parse);
        reader.finish()?;
        Ok(Self { engines, after, limit: limit.unwrap_or(Limit::OWNERS) })
    }
}

impl IntoParams for OwnersParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let limit = whole(1, u64::from(Limit::MAX)).default(Some(Limit::OWNERS.get().into()));
        vec![
            in_query(
                "after",
                "Only {manyOwners} with greater ids than this one, which need not exist. Default: from the lowest id.",
                owner_id(),
            ),
            in_query("limit", "Most {manyOwners} in the answer.", limit),
        ]
    }
}

/// `/{owners}/{ownerId}`
pub struct OwnerParams {
    engines: Arc<[Engine]>,
    owner: OwnerId,
}

impl<S: Send + Sync> FromRequestParts<S> for OwnerParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let engines = HistoriesOf::given(&parts.extensions);
        let mut reader = Reader::of(parts);
        let owner = reader.owner(owner_of(&engines));
        reader.finish()?;
        Ok(Self { engines, owner: given(owner) })
    }
}

impl IntoParams for OwnerParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![owner_parameter()]
    }
}

/// List {manyOwners}
///
/// Lists {manyOwners} with a history, in ascending order of their ids, each with its totals. The cost depends on the number
/// of {manyOwners} listed, not on the number of {manyOwners} or the length of their histories.
#[utoipa::path(
    get,
    path = "/v1/{owners}",
    operation_id = "list{Owners}",
    tag = "{Owners}",
    params(OwnersParams),
    responses(
        (
            status = 200, description = "The {manyOwners}.", body = OwnersView,
            headers(
                ("Link" = String, description = "The links of the body (RFC 8288)."),
                ("Server-Timing" = String, description = "`db`: milliseconds spent waiting for the database."),
            ),
            example = json!({
                "items": [{ "{ownerField}": "{ownerExample}", "{items}": { "totalItems": 25, "totalPages": 3 } }],
                "links": { "self": "/v1/{owners}?limit=1", "next": "/v1/{owners}?after={ownerExample}&limit=1" }
            })
        ),
        ReadProblems,
    ),
)]
pub async fn list(
    uri: Uri,
    OwnersParams { engines, after, limit }: OwnersParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let deadline = reading.deadline;
    let lists = engines.iter().map(|engine| engine.owners(after.clone(), limit, deadline));
    let lists = reading.database(try_join_all(lists)).await?;
    // Each list has the first owners of one history: together they have the first owners of all, with all their totals.
    let mut more = lists.iter().any(|list| list.more);
    let mut owners: BTreeMap<OwnerId, BTreeMap<_, _>> = BTreeMap::new();
    for (engine, list) in engines.iter().zip(lists) {
        let name = &engine.definition().name;
        for (id, totals) in list.found {
            owners.entry(id).or_default().insert(Arc::clone(name), TotalsView::new(totals));
        }
    }
    more |= owners.len() > limit.get();
    let definition = engines[0].definition();
    let mut last = None;
    let view = |(id, histories)| {
        let owner = OwnerMember::new(definition, &id);
        last = Some(id);
        OwnerView { owner, histories }
    };
    let items: Vec<_> = owners.into_iter().take(limit.get()).map(view).collect();
    let links = Links::to_owners(&uri, last.as_ref().filter(|_| more), limit);
    let mut headers = HeaderMap::new();
    headers.extend(links.header().map(|links| (header::LINK, links)));
    Ok(reading.untagged((headers, Json(OwnersView { items, links }))))
}

/// Summarise histories
///
/// Returns the totals of each history of {anOwner}, and its first and last item. An unknown {owner} has totals of 0.
#[utoipa::path(
    get,
    path = "/v1/{owners}/{ownerId}",
    operation_id = "get{Owner}",
    tag = "{Owners}",
    params(OwnerParams),
    responses(
        (
            status = 200, description = "The summary of the histories.", body = views::Owner,
            headers(("ETag" = String, description = "Changes when a history grows.")),
            example = json!({
                "{ownerField}": "{ownerExample}",
                "{items}": { "totalItems": 1, "totalPages": 1, "first": "{storedItem}", "last": "{storedItem}" }
            })
        ),
        (status = 304, description = "`If-None-Match` names the current state: the client's copy is still valid."),
        ReadProblems,
    ),
)]
pub async fn summary(
    State(api): State<Arc<Api>>,
    OwnerParams { engines, owner }: OwnerParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let deadline = reading.deadline;
    let histories = engines.iter().map(|engine| engine.history(owner.clone(), deadline));
    let histories = reading.database(try_join_all(histories)).await?;
    let states = histories.iter().map(|history| (&**history.definition(), history.totals()));
    let caching = Caching::of_tails(reading.epoch, &owner, states);
    if let Some(unchanged) = reading.unchanged(&caching) {
        return Ok(unchanged);
    }
    let mut summaries = BTreeMap::new();
    for history in &histories {
        let totals = history.totals();
        let mut ends = [None, None];
        for (end, seq) in ends.iter_mut().zip([totals.last_seq().map(|_| Seq::FIRST), totals.last_seq()]) {
            let range = seq.map(|seq| SeqRange { first: seq, last: seq });
            let found = api.pages.items(history, range, reading.epoch, deadline).await?;
            *end = reading.looked_up(found).pop();
        }
        let [first, last] = ends;
        let summary = SummaryView { totals: TotalsView::new(totals), first, last };
        summaries.insert(Arc::clone(&history.definition().name), summary);
    }
    let view = OwnerView { owner: OwnerMember::new(engines[0].definition(), &owner), histories: summaries };
    Ok(reading.answer(&caching, Json(view)))
}
