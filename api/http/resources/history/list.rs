//! Listing a history: pages, windows, and spans of time.
//!
//! # Snapshots
//!
//! A walk along the links begins with a read of the history's last page. Its links name the last item of that
//! moment (`asOf`). Stored items neither move nor change, so a window of that moment depends on its address
//! alone, including the totals of that moment, and may be cached forever. If its items are on pages that were
//! full then, it needs no read of the tail.
//!
//! A client may name any item. If the history has it, the totals are those of the history up to this item,
//! even if the history never ended there: 25 items of one command become visible at once, and `asOf=24` still
//! gives 24. An item beyond the end is ignored. This process remembers how long it has seen histories, and
//! reads the tail only if that does not suffice.
//!
//! # A history that has lost its beginning
//!
//! Pages and sequence numbers stay as they were, and so does the total. What begins at the beginning, such as
//! `after=0`, begins with the first item that is there. What begins before it is 410: a client that reads on
//! from an earlier item would otherwise miss items without noticing. What is read towards the beginning ends
//! there.

pub(crate) mod filters;
mod offset_range;
pub(crate) mod params;
mod plan;
mod poll;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use pagebucket_engine::Bucket;
use pagebucket_model::domain::{Limit, Order, OwnerId, OwnerMember, PageNumber, Position, Seq, Totals};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::admission::accept::JSON;
use crate::admission::rate::of_search;
use crate::answer::notes::ItemCount;
use crate::caching::reading::Reading;
use crate::pages::item_schemas::Item;
use crate::pages::item_view::ItemView;
use crate::problem::ProblemKind::{self, Erased, PageNotFound, RangeNotSatisfiable, Retired};
use crate::problem::{COMMON, Problem, problems};
use crate::request::params::{Address, Params};
use crate::resources::links::{LinkBase, Links};
use crate::schemas::document::{Documented, RouteDocument};
use crate::schemas::headers;
use crate::schemas::names::Names;
use crate::schemas::{order, owner_member};
use crate::state::Api;
use filters::Filter;
use params::{ListParams, Selection};
use plan::{ItemSource, ListPlan, Listing};
use poll::PollLifetime;

/// A page of a history, or a window, with the totals of the same moment and links to other pages or windows.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ItemListing)]
struct ListingView {
    #[serde(flatten)]
    #[schema(schema_with = owner_member)]
    owner: OwnerMember,
    #[schema(schema_with = order)]
    order: Order,
    /// Only for a page: its permanent number, the same in either order.
    #[schema(value_type = Option<u64>, minimum = 1)]
    page: Option<PageNumber>,
    /// Only for a page: whether it is full. A full page never changes.
    full: Option<bool>,
    /// Number of {manyItems} in the history; with `asOf`, at that moment. Absent for a span of time and for
    /// filters.
    #[schema(minimum = 0)]
    total_items: Option<u64>,
    /// Number of pages of the history. Absent if `totalItems` is absent.
    #[schema(minimum = 0)]
    total_pages: Option<u64>,
    /// Only if earlier {manyItems} are retired: the first sequence number that is there.
    #[schema(value_type = Option<u64>, minimum = 2)]
    first_seq: Option<Seq>,
    /// In `order`: up to {pageSize} {manyItems} of a page, up to `limit` of a window.
    #[schema(value_type = Vec<Item>)]
    items: Vec<ItemView>,
    links: Links,
}

pub(crate) fn document(names: &Names<'_>) -> Documented {
    let Names {
        definition,
        owners,
        items,
        owner_field,
        items_type,
        owner,
        item,
        many_items,
        owner_example,
        examples,
        ..
    } = names;
    let address = format!("/v1/{owners}/{owner_example}/{items}");
    let page = examples.stored_item.as_ref().map(|item| {
        json!({
            (owner_field): examples.owner, "order": "asc", "page": 1, "full": false, "totalItems": 1, "totalPages": 1,
            "items": [item],
            "links": { "self": address, "first": format!("{address}?page=1"), "last": format!("{address}?page=1") }
        })
    });
    let only = format!("{address}?offset=0&limit=10&asOf=1");
    let window = examples.stored_item.as_ref().map(|item| {
        json!({
            (owner_field): examples.owner, "order": "asc", "totalItems": 1, "totalPages": 1, "items": [item],
            "links": { "self": address, "first": only, "last": only }
        })
    });
    RouteDocument::of(
        names,
        format!("list{items_type}"),
        format!("List {many_items}: a page, a window, or a span of time"),
        format!(
            "Returns a page of a history; or, with `after`, `before`, `offset` or `limit`, a window: the \
        {many_items} nearest a cursor, or those at an offset in `order`, whatever pages they are on. Both \
        have exact totals, and links to their neighbours. The `next` and `prev` links of a window name \
        the moment of its totals (`asOf`). A client that follows them sees the history as it was when the \
        walk began; such windows never change. A request that starts before the first remaining {item} \
        gets 410, which names the first page; 0 and no cursor begin at that {item}. With `from` or `to`, \
        the answer has only {many_items} of that span of time, and no totals; with a filter, only those \
        with its values. With `wait`, a window waits for its first {item}. An unknown {owner} has an \
        empty first page."
        ),
    )
    .parameters(<(OwnerId, ListParams)>::documented(names))
    .reads_tagged("The page or window.")
    .header(headers::link("The links of the body except `newer` (RFC 8288), if they have at most 2 KiB."))
    .header(headers::etag("Changes when the history grows. Never changes for a window with `asOf`."))
    .header(headers::cache_control("`immutable` for a window with `asOf`, otherwise `no-cache`."))
    .header(headers::x_total_count("`totalItems`. Absent for a span of time and for filters."))
    .header(headers::content_range(format!(
        "The offsets in `order` of the first and the last {item} shown, and `totalItems`: `items 0-9/34`, or \
         `items */34` if none is shown. Absent for a span of time and for filters."
    )))
    .header(headers::accept_ranges("`items`. Absent for a span of time and for filters."))
    .shows::<ListingView>(JSON, page)
    .answers(206, "The window that the header `Range` asks for, with the same headers.")
    .header(headers::x_total_count("`totalItems`."))
    .header(headers::content_range(format!(
        "Offsets of the first and the last {item} shown, and the number of all: `items 0-9/34`."
    )))
    .shows::<ListingView>(JSON, window)
    .bounds::<ListingView>("items", "maxItems", definition.page_size.get().max(Limit::MAX.into()))
    .problems(problems(names, &[COMMON, &[PageNotFound, Retired, Erased, RangeNotSatisfiable]]))
}

pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    uri: Uri,
    Address { engine, params: (owner, params) }: Address<(OwnerId, ListParams)>,
    lifetime: PollLifetime,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let listing = Listing { engine: &engine, owner: &owner, params: &params };
    if let Some(unchanged) = listing.unchanged(&reading) {
        return Ok(unchanged);
    }
    if let Some(poll) = params.poll {
        poll::ready(poll, &listing, &api, lifetime, &mut reading).await?;
    }
    let mut plan = listing.plan(&mut reading).await?;
    let answer = if plan.is_empty_part() {
        Problem::new(ProblemKind::RangeNotSatisfiable, "The history has fewer items.").into_response()
    } else if let Some(unchanged) = reading.unchanged(&plan.caching) {
        unchanged
    } else {
        let found = match find(&listing, &plan, &api, &mut reading).await {
            // Another instance may have retired pages, of which this one has heard now.
            Err(problem) if problem.kind() == ProblemKind::Retired => {
                plan = listing.plan(&mut reading).await?;
                find(&listing, &plan, &api, &mut reading).await
            }
            found => found,
        }?;
        reading.answer(&plan.caching, render(&listing, &plan, found, &uri))
    };
    Ok(plan.headed(answer))
}

/// The items of a listing, in order of `seq`; and of a search how far it came.
struct ListedItems {
    items: Vec<ItemView>,
    reached: Option<Seq>,
}

/// Finds the items, from the database or the page cache.
async fn find(
    Listing { engine, params, .. }: &Listing<'_>,
    plan: &ListPlan,
    api: &Api,
    reading: &mut Reading,
) -> Result<ListedItems, Problem> {
    let (selection, filters) = (plan.selection, &params.filters);
    if let (ItemSource::Present(history), Selection::Search(dates, window)) = (&plan.source, selection) {
        let (cursor, limit, deadline) = (window.cursor, window.limit.get(), reading.deadline);
        let found = match dates {
            Some(dates) if filters.is_empty() => {
                reading.database(history.dated(dates, cursor, limit, deadline)).await
            }
            _ => reading.database(history.matching(filters, dates, cursor, limit, deadline)).await,
        }?;
        reading.quota.owe(of_search(found.read, found.examined));
        let item = |(bucket, seq): &(Bucket, Seq)| bucket.item(*seq).map(|item| ItemView::new(&item));
        let items = found.items.iter().filter_map(item).collect();
        return Ok(ListedItems { items, reached: found.reached });
    }
    let pages = plan.range.map_or(1, |range| engine.definition().page_size.pages_of(range));
    reading.quota.charge(pages)?;
    let items = match &plan.source {
        ItemSource::Present(history) => api.pages.items(history, plan.range, reading).await?,
        ItemSource::Full(full) => api.pages.settled(full, plan.range, reading).await?,
    };
    Ok(ListedItems { items, reached: None })
}

/// The answer with these items.
fn render(
    listing: &Listing<'_>,
    plan: &ListPlan,
    found: ListedItems,
    uri: &Uri,
) -> impl IntoResponse + use<> {
    let (definition, order, totals) = (listing.engine.definition(), plan.order, plan.totals);
    let addresses = LinkBase {
        own: uri,
        definition,
        owner: listing.owner,
        beginning: Position::before(plan.first),
        order: listing.params.order,
        repeated: repeated(plan.selection, &listing.params.filters),
    };
    let (links, totals) = match plan.selection {
        Selection::Page(_) => {
            let first_page = definition.page_size.page_of(plan.first);
            (addresses.around_page(plan.page.unwrap_or(first_page), totals), Some(totals))
        }
        Selection::Rows(rows, _) => (addresses.around_offset(rows.offset, rows.limit, totals), Some(totals)),
        Selection::Window(window, _) => {
            (addresses.around_window(window.span(totals), window.limit, totals), Some(totals))
        }
        Selection::Search(_, window) => {
            let span = window.searched(totals, found.reached);
            (addresses.around_window(span, window.limit, totals), None)
        }
    };
    let mut items = found.items;
    if order == Order::Descending {
        items.reverse();
    }
    let is_part = plan.selection.part().is_some();
    let status = if is_part { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let (header, count) = (links.header(), ItemCount::of(items.len()));
    let view = ListingView {
        owner: OwnerMember::new(&definition.owner.field, listing.owner),
        order,
        page: plan.page,
        full: plan.page.map(|_| items.len() == definition.page_size.get()),
        total_items: totals.map(Totals::items),
        total_pages: totals.map(Totals::pages),
        first_seq: Some(plan.first).filter(|first| *first > Seq::FIRST),
        items,
        links,
    };
    (status, header, count, Json(view))
}

/// The parameters of a search that its links repeat, each after `&`, in an order of their own.
fn repeated(selection: Selection, filters: &[Filter]) -> String {
    let Selection::Search(dates, _) = selection else { return String::new() };
    let bounds = dates.into_iter().flat_map(|dates| [("from", dates.from()), ("to", dates.to())]);
    let bounds = bounds.filter_map(|(name, date)| Some(format!("&{name}={}", date?)));
    let values = filters.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    let encoded = |(name, value): (&String, &String)| {
        format!("&{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC))
    };
    bounds.chain(values.map(encoded)).collect()
}
