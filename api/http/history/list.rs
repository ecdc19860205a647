//! Listing a history: pages, windows, and spans of time.
//!
//! # Snapshots
//!
//! A walk along the links begins with a read of the history's last page. Its links name the last item of that moment
//! (`asOf`). As long as windows lie on pages that were full then, nothing in them can change, including the totals of
//! that moment: such a window depends on its address alone. It needs no read of the tail, and may be cached forever.
//!
//! A client may name any item. If the history has it, the totals are those of the history up to this item, even if
//! the history never ended there: 25 items of one command become visible at once, and `asOf=24` still gives 24. A
//! item beyond the end is ignored. This process remembers how long it has seen histories, and reads the tail only if
//! that does not suffice.

mod params;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::item_schemas::Item;
use super::item_view::{ItemView, OwnerMember, owner_member};
use crate::domain::{Cursor, DateRange, Order, OwnerId, PageNumber, Seq, Totals, Window};
use crate::http::api::Api;
use crate::http::cache::control::Caching;
use crate::http::cache::reading::Reading;
use crate::http::links::{Addresses, Links};
use crate::http::params::Address;
use crate::http::problem::{Kind, PageProblems, Problem};
use crate::http::schemas::{order, ordinal};
use crate::store::history::{Bucket, History};
use params::{ListParams, Selection};

/// A page of a history, or a window, with the totals of the same moment and links to other pages or windows.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = ordinal, required = false)]
    page: Option<PageNumber>,
    /// Only for a page: whether it is full. A full page never changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    full: Option<bool>,
    /// Number of {manyItems} in the history; with `asOf`, at that moment. Absent for a span of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    total_items: Option<u64>,
    /// Number of pages of the history. Absent if `totalItems` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    total_pages: Option<u64>,
    /// In `order`: up to {pageSize} {manyItems} of a page, up to `limit` of a window.
    #[schema(value_type = Vec<Item>)]
    items: Vec<ItemView>,
    links: Links,
}

/// List {manyItems}: a page, a window, or a span of time
///
/// Returns a page of a history; or, with `after`, `before` or `limit`, a window: the {manyItems} nearest a cursor, whatever
/// pages they are on. Both have exact totals, and links to their neighbours. The `next` and `prev` links of a window
/// name the moment of its totals (`asOf`). A client that follows them sees the history as it was when the walk began,
/// as far as pages were full then; such windows never change. With `from` or `to`, the answer has only {manyItems} of that
/// span of time, and no totals. An unknown {owner} has an empty first page.
#[utoipa::path(
    get,
    path = "/v1/{owners}/{ownerId}/{items}",
    operation_id = "list{Items}",
    tag = "{Items}",
    params(Address<(OwnerId, ListParams)>),
    responses(
        (
            status = 200, description = "The page or window.", body = ListingView,
            headers(
                ("Link" = String, description = "The links of the body except `newer` (RFC 8288)."),
                ("ETag" = String, description = "Changes when the history grows. Never changes for a window of full pages with `asOf`."),
                ("Cache-Control" = String, description = "`immutable` for a window of full pages with `asOf`, otherwise `no-cache`."),
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
        (status = 304, description = "`If-None-Match` names the current state: the client's copy is still valid."),
        PageProblems,
    ),
)]
pub async fn list(
    State(api): State<Arc<Api>>,
    uri: Uri,
    Address { engine, params: (owner, params) }: Address<(OwnerId, ListParams)>,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let ListParams { order: given, selection } = params;
    let order = given.unwrap_or(Order::Ascending);
    let definition = engine.definition();
    let mut addresses = Addresses { own: &uri, definition, owner: &owner, order: given, dates: None };
    let listing = |page: Option<_>, totals: Option<Totals>, mut items: Vec<_>, links: Links| {
        if order == Order::Descending {
            items.reverse();
        }
        let header = links.header();
        let owner = OwnerMember::new(definition, &owner);
        let full = page.map(|_| items.len() == definition.page_size.get());
        let (total_items, total_pages) = (totals.map(Totals::items), totals.map(Totals::pages));
        (header, Json(ListingView { owner, order, page, full, total_items, total_pages, items, links }))
    };
    let snapshot = match selection {
        Selection::Window(window, Some(last)) => Some((window, last)),
        _ => None,
    };
    let snapshot = snapshot.filter(|(window, last)| window.lies_in_full_pages(engine.totals(Some(*last))));
    // A client with the tag of a snapshot has seen it: no look-up is needed.
    if let Some((_, last)) = snapshot
        && let Some(unchanged) = reading.named(|epoch| Caching::of_snapshot(epoch, definition, &owner, last))
    {
        return Ok(unchanged);
    }
    let mut full = snapshot.and_then(|(_, last)| engine.full_as_of(&owner, last));
    let mut history = None;
    if full.is_none() {
        let now = reading.database(engine.history(owner.clone(), reading.deadline)).await?;
        full = snapshot.and_then(|(_, last)| now.full_as_of(last));
        history = Some(now);
    }
    if let Some(((window, last), full)) = snapshot.zip(full) {
        let totals = engine.totals(Some(last));
        let span = window.span(totals);
        let items = api.pages.settled(&full, span.seqs(), &mut reading).await?;
        let links = addresses.around_window(span, window.limit, totals);
        let caching = Caching::of_snapshot(reading.epoch, definition, &owner, last);
        return Ok(reading.answer(&caching, listing(None, Some(totals), items, links)));
    }
    let history = history.expect("it was read, because no snapshot is shown");
    let totals = history.totals();
    let last_page = totals.last_page().unwrap_or(PageNumber::FIRST);
    if matches!(selection, Selection::Page(Some(page)) if page > last_page) {
        return Err(Problem::new(Kind::PageNotFound, "The history has fewer pages."));
    }
    let caching = Caching::of_tail(reading.epoch, definition, &owner, totals);
    if let Some(unchanged) = reading.unchanged(&caching) {
        return Ok(unchanged);
    }
    let (page, seqs, links) = match selection {
        Selection::Page(number) => {
            let first = if order == Order::Descending { last_page } else { PageNumber::FIRST };
            let number = number.unwrap_or(first);
            (Some(number), totals.on_page(number), addresses.around_page(number, totals))
        }
        Selection::Window(window, _) => {
            let span = window.span(totals);
            (None, span.seqs(), addresses.around_window(span, window.limit, totals))
        }
        Selection::Dates(dates, window) => {
            addresses.dates = Some(dates);
            let (items, links) = dated(&history, dates, window, &addresses, &mut reading).await?;
            return Ok(reading.answer(&caching, listing(None, None, items, links)));
        }
    };
    let items = api.pages.items(&history, seqs, &mut reading).await?;
    Ok(reading.answer(&caching, listing(page, Some(totals), items, links)))
}

/// The items of a span of time nearest a cursor. Reads one more than the limit, to know whether there are more.
async fn dated(
    history: &History,
    dates: DateRange,
    window: Window,
    addresses: &Addresses<'_>,
    reading: &mut Reading,
) -> Result<(Vec<ItemView>, Links), Problem> {
    let limit = window.limit.get();
    let found = history.dated(dates, window.cursor, limit + 1, reading.deadline);
    let mut found = reading.database(found).await?;
    let surplus = found.len().saturating_sub(limit);
    let furthest = if matches!(window.cursor, Cursor::After(_)) {
        found.truncate(limit);
        found.last()
    } else {
        found.drain(..surplus);
        found.first()
    };
    let filled_by = furthest.filter(|_| surplus > 0).map(|(_, seq)| *seq);
    let span = window.searched(history.totals(), filled_by);
    let item = |(bucket, seq): &(Bucket, Seq)| bucket.item(*seq).map(|item| ItemView::new(&item));
    let items = found.iter().filter_map(item).collect();
    Ok((items, addresses.around_window(span, window.limit, history.totals())))
}
