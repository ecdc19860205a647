//! Listing a history: pages, windows, and spans of time.

mod params;
mod snapshot;
mod view;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;

use super::item_view::{ItemView, OwnerMember};
use crate::domain::{Cursor, DateRange, Order, PageNumber, Seq, Window};
use crate::http::api::Api;
use crate::http::cache::control::Caching;
use crate::http::cache::reading::Reading;
use crate::http::links::{Addresses, Links};
use crate::http::params::InHistory;
use crate::http::problem::{Kind, PageProblems, Problem};
use crate::store::history::{Bucket, History};
use params::{ListParams, Selection};
use snapshot::{Moment, Snapshot};
use view::ListingView;

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
    params(InHistory<ListParams>),
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
    InHistory { engine, owner, params: ListParams { order: given, selection } }: InHistory<ListParams>,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let order = given.unwrap_or(Order::Ascending);
    let definition = engine.definition();
    let mut addresses = Addresses { own: &uri, definition, owner: &owner, order: given, dates: None };
    let view = |items, links| ListingView::new(OwnerMember::new(definition, &owner), order, items, links);
    let snapshot = Snapshot::of(&selection, definition.page_size);
    // A client with the tag of a snapshot has seen it: no look-up is needed.
    if let Some(snapshot) = snapshot
        && let Some(unchanged) = reading.named(|epoch| snapshot.caching(epoch, definition, &owner))
    {
        return Ok(unchanged);
    }
    let history = match Moment::find(&engine, &owner, snapshot, &mut reading).await? {
        Moment::Now(history) => history,
        Moment::Then(then, full) => {
            let caching = then.caching(reading.epoch, definition, &owner);
            let found = api.pages.settled(&full, then.span().seqs(), reading.epoch, reading.deadline).await?;
            let items = reading.looked_up(found);
            let links = addresses.around_window(then.span(), then.limit(), then.totals());
            return Ok(answer(reading, &caching, view(items, links).counting(then.totals())));
        }
    };
    let totals = history.totals();
    let last_page = totals.last_page().unwrap_or(PageNumber::FIRST);
    if matches!(selection, Selection::Page(Some(page)) if page > last_page) {
        return Err(Problem::new(Kind::PageNotFound, "The history has fewer pages."));
    }
    let caching = Caching::of_tail(reading.epoch, definition, &owner, totals);
    if let Some(unchanged) = reading.unchanged(&caching) {
        return Ok(unchanged);
    }
    let view = match selection {
        Selection::Page(number) => {
            let first = if order == Order::Descending { last_page } else { PageNumber::FIRST };
            let number = number.unwrap_or(first);
            let seqs = totals.on_page(number);
            let found = api.pages.items(&history, seqs, reading.epoch, reading.deadline).await?;
            let items = reading.looked_up(found);
            view(items, addresses.around_page(number, totals))
                .counting(totals)
                .of_page(number, definition.page_size)
        }
        Selection::Window(window, _) => {
            let span = window.span(totals);
            let found = api.pages.items(&history, span.seqs(), reading.epoch, reading.deadline).await?;
            let items = reading.looked_up(found);
            view(items, addresses.around_window(span, window.limit, totals)).counting(totals)
        }
        Selection::Dates(dates, window) => {
            addresses.dates = Some(dates);
            let (items, links) = dated(&history, dates, window, &addresses, &mut reading).await?;
            view(items, links)
        }
    };
    Ok(answer(reading, &caching, view))
}

fn answer(reading: Reading, caching: &Caching, view: ListingView) -> Response {
    let mut headers = HeaderMap::new();
    headers.extend(view.links.header().map(|links| (header::LINK, links)));
    reading.answer(caching, (headers, Json(view)))
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
    let filled_by = (found.len() > limit).then(|| match window.cursor {
        Cursor::After(_) => {
            found.truncate(limit);
            found.last().map(|(_, seq)| *seq)
        }
        Cursor::Before(_) | Cursor::End => {
            found.remove(0);
            found.first().map(|(_, seq)| *seq)
        }
    });
    let span = window.searched(history.totals(), filled_by.flatten());
    let item = |(bucket, seq): &(Bucket, Seq)| bucket.item(*seq).map(|item| ItemView::new(&item));
    let items = found.iter().filter_map(item).collect();
    Ok((items, addresses.around_window(span, window.limit, history.totals())))
}
