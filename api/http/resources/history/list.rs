//! Listing a history: pages, windows, and spans of time.
//!
//! # Snapshots
//!
//! A walk along the links begins with a read of the history's last page. Its links name the last item of that moment
//! (`asOf`). Stored items neither move nor change, so a window of that moment depends on its address alone, including
//! the totals of that moment, and may be cached forever. If its items are on pages that were full then, it needs no
//! read of the tail.
//!
//! A client may name any item. If the history has it, the totals are those of the history up to this item, even if
//! the history never ended there: 25 items of one command become visible at once, and `asOf=24` still gives 24. An
//! item beyond the end is ignored. This process remembers how long it has seen histories, and reads the tail only if
//! that does not suffice.
//!
//! # A history that has lost its beginning
//!
//! Pages and sequence numbers stay as they were, and so does the total. What begins at the beginning, such as `after=0`,
//! begins with the first item that is there. What begins before it is 410: a client that reads on from an earlier item
//! would otherwise miss items without noticing. What is read towards the beginning ends there.

mod filters;
mod offset_range;
mod params;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use pagebucket_engine::{Bucket, FullPages, History};
use pagebucket_model::domain::{Order, OwnerId, PageNumber, Position, Seq, Totals};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::caching::control::Caching;
use crate::caching::reading::Reading;
use crate::limits::rate::of_search;
use crate::middleware::access_log::ItemCount;
use crate::pages::item_schemas::Item;
use crate::pages::item_view::{ItemView, OwnerMember, owner_member};
use crate::problem::{ListProblems, Problem, ProblemKind};
use crate::request::params::Address;
use crate::resources::links::{LinkBase, Links};
use crate::schemas::order;
use crate::state::Api;
use filters::Filter;
use offset_range::{OffsetRange, with_headers};
use params::{ListParams, Selection, StartsRetired};

/// A page of a history, or a window, with the totals of the same moment and links to other pages or windows.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ItemListing)]
pub struct ListingView {
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
    /// Number of {manyItems} in the history; with `asOf`, at that moment. Absent for a span of time and for filters.
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

/// Where the items of an answer are read.
enum ItemSource {
    /// On pages of the moment that were full then. The tail was not read.
    Full(FullPages),
    /// In the history as it is now, which has all items of the moment.
    Present(History),
}

/// List {manyItems}: a page, a window, or a span of time
///
/// Returns a page of a history; or, with `after`, `before`, `offset` or `limit`, a window: the {manyItems} nearest a cursor,
/// or those at an offset in `order`, whatever pages they are on. Both have exact totals, and links to their neighbours. The
/// `next` and `prev` links of a window name the moment of its totals (`asOf`). A client that follows them sees the history
/// as it was when the walk began; such windows never change. A request that starts before the first remaining {item} gets 410, which names the first page; 0 and no cursor begin at that {item}. With `from` or `to`, the answer has only {manyItems} of that
/// span of time, and no totals; with a filter, only those with its values. An unknown {owner} has an empty first page.
#[utoipa::path(
    get,
    path = "/v1/{owners}/{ownerId}/{items}",
    operation_id = "list{Items}",
    params(Address<(OwnerId, ListParams)>),
    responses(
        (
            status = 200, description = "The page or window.", body = ListingView,
            headers(
                ("Link" = String, description = "The links of the body except `newer` (RFC 8288)."),
                ("ETag" = String, description = "Changes when the history grows. Never changes for a window with `asOf`."),
                ("Cache-Control" = String, description = "`immutable` for a window with `asOf`, otherwise `no-cache`."),
                ("X-Total-Count" = u64, description = "`totalItems`. Absent for a span of time and for filters."),
                ("Content-Range" = String, description = "The offsets in `order` of the first and the last {item} shown, and `totalItems`: `items 0-9/34`, or `items */34` if none is shown. Absent for a span of time and for filters."),
                ("Accept-Ranges" = String, description = "`items`. Absent for a span of time and for filters."),
                ("Server-Timing" = String, description = "`db`: milliseconds spent waiting for the database. `cache`: whether all full pages were in memory."),
            ),
            example = json!({
                "{ownerField}": "{ownerExample}", "order": "asc", "page": 1, "full": false, "totalItems": 1, "totalPages": 1,
                "items": ["{storedItem}"],
                "links": {
                    "self": "/v1/{owners}/{ownerExample}/{items}", "first": "/v1/{owners}/{ownerExample}/{items}?page=1",
                    "last": "/v1/{owners}/{ownerExample}/{items}?page=1"
                }
            })
        ),
        (
            status = 206, description = "The window that the header `Range` asks for, with the same headers.", body = ListingView,
            headers(
                ("X-Total-Count" = u64, description = "`totalItems`."),
                ("Content-Range" = String, description = "Offsets of the first and the last {item} shown, and the number of all: `items 0-9/34`."),
            ),
            example = json!({
                "{ownerField}": "{ownerExample}", "order": "asc", "totalItems": 1, "totalPages": 1, "items": ["{storedItem}"],
                "links": {
                    "self": "/v1/{owners}/{ownerExample}/{items}",
                    "first": "/v1/{owners}/{ownerExample}/{items}?offset=0&limit=10&asOf=1",
                    "last": "/v1/{owners}/{ownerExample}/{items}?offset=0&limit=10&asOf=1"
                }
            })
        ),
        (status = 304, description = "`If-None-Match` names the current state: the client's copy is still valid."),
        ListProblems,
    ),
)]
pub async fn list(
    State(api): State<Arc<Api>>,
    uri: Uri,
    Address { engine, params: (owner, params) }: Address<(OwnerId, ListParams)>,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let ListParams { order: given, selection, filters } = params;
    let order = given.unwrap_or(Order::Ascending);
    let (definition, epoch) = (engine.definition(), reading.epoch);
    let seqs = |totals| selection.seqs(order, totals);
    let part = selection.part();
    let of_part = |caching: Caching| match part {
        Some(OffsetRange { offset, limit, .. }) => caching.of_part(format_args!("r{offset}-{}", limit.get())),
        None => caching,
    };
    let at = |last| engine.totals(Some(last));
    let of_snapshot = |last| of_part(Caching::of_snapshot(epoch, definition, &owner, last));
    let as_of = selection.as_of();
    // A client with the tag of a snapshot has seen it: no look-up is needed.
    if let Some(last) = as_of
        && let Some(unchanged) = reading.named(&engine, |_| of_snapshot(last))
    {
        return Ok(with_headers(unchanged, seqs(at(last)), order, at(last)));
    }
    let whole = as_of.filter(|_| !engine.may_have_lost_pages());
    let known = whole.and_then(|last| Some((last, engine.full_as_of(&owner, last)?)));
    let known = known.filter(|(last, full)| seqs(at(*last)).is_none_or(|seqs| full.hold(seqs)));
    let (source, totals, first, caching) = match known {
        Some((last, full)) => (ItemSource::Full(full), at(last), Seq::FIRST, of_snapshot(last)),
        None => {
            let history = reading.database(engine.history(owner.clone(), reading.deadline)).await?;
            let now = history.totals();
            let (totals, caching) = match as_of.filter(|last| Some(*last) <= now.last_seq()) {
                Some(last) => (at(last), of_snapshot(last)),
                None => (now, of_part(Caching::of_tail(epoch, definition, &owner, now))),
            };
            let first = history.first_seq();
            (ItemSource::Present(history), totals, first, caching.since(first))
        }
    };
    let first_page = definition.page_size.page_of(first);
    let selection = selection.beginning_at(first, order, totals);
    let range = selection.kept(order, totals, first);
    let range = range.map_err(|StartsRetired| Problem::retired(first_page, first))?;
    let page = selection.page(order, totals);
    if page > totals.last_page().max(page.map(|_| first_page)) {
        return Err(Problem::new(ProblemKind::PageNotFound, "The history has fewer pages."));
    }
    let headed = |response| match selection {
        Selection::Search(..) => response,
        _ => with_headers(response, range, order, totals),
    };
    if part.is_some() && range.is_none() {
        let problem = Problem::new(ProblemKind::RangeNotSatisfiable, "The history has fewer items.");
        return Ok(headed(problem.into_response()));
    }
    if let Some(unchanged) = reading.unchanged(&caching) {
        return Ok(headed(unchanged));
    }
    let repeated = repeated(selection, &filters);
    let beginning = Position::before(first);
    let addresses = LinkBase { own: &uri, definition, owner: &owner, beginning, order: given, repeated };
    let listing = |totals: Option<Totals>, mut items: Vec<_>, links: Links| {
        if order == Order::Descending {
            items.reverse();
        }
        let status = if part.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
        let header = links.header();
        let owner = OwnerMember::new(definition, &owner);
        let full = page.map(|_| items.len() == definition.page_size.get());
        let (total_items, total_pages) = (totals.map(Totals::items), totals.map(Totals::pages));
        let first_seq = Some(first).filter(|first| *first > Seq::FIRST);
        (
            status,
            header,
            Extension(ItemCount::of(items.len())),
            Json(ListingView { owner, order, page, full, total_items, total_pages, first_seq, items, links }),
        )
    };
    if !matches!(selection, Selection::Search(..)) {
        reading.quota.charge(range.map_or(1, |range| definition.page_size.pages_of(range)))?;
    }
    let items = match (&source, selection) {
        (ItemSource::Present(history), Selection::Search(dates, window)) => {
            let (cursor, limit, deadline) = (window.cursor, window.limit.get(), reading.deadline);
            let found = match dates {
                Some(dates) if filters.is_empty() => {
                    reading.database(history.dated(dates, cursor, limit, deadline)).await
                }
                _ => reading.database(history.matching(&filters, dates, cursor, limit, deadline)).await,
            }?;
            reading.quota.owe(of_search(found.read, found.examined));
            let item = |(bucket, seq): &(Bucket, Seq)| bucket.item(*seq).map(|item| ItemView::new(&item));
            let items = found.items.iter().filter_map(item).collect();
            let span = window.searched(totals, found.reached);
            let links = addresses.around_window(span, window.limit, totals);
            return Ok(reading.answer(&caching, listing(None, items, links)));
        }
        (ItemSource::Present(history), _) => api.pages.items(history, range, &mut reading).await?,
        (ItemSource::Full(full), _) => api.pages.settled(full, range, &mut reading).await?,
    };
    let links = match selection {
        Selection::Page(_) => addresses.around_page(page.unwrap_or(first_page), totals),
        Selection::Rows(rows, _) => addresses.around_offset(rows.offset, rows.limit, totals),
        Selection::Window(window, _) | Selection::Search(_, window) => {
            addresses.around_window(window.span(totals), window.limit, totals)
        }
    };
    Ok(headed(reading.answer(&caching, listing(Some(totals), items, links))))
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
