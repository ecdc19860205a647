//! Turning the pages of a history, and windows on it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;

use super::Api;
use super::caching::Caching;
use super::links::{Addresses, Links};
use super::params::{ListParams, Selection};
use super::problem::{Kind, PageProblems, Problem};
use super::reading::Reading;
use super::views::{ListingView, TradeView};
use crate::domain::{Cursor, DateRange, Order, PAGE_SIZE, PageNumber, Window};
use crate::store::trades::History;

/// List trades: a page, a window, or a span of time
///
/// Any page of a history; or, with `after`, `before` or `limit`, the trades nearest a cursor, whatever
/// pages they are on: both with exact totals. With `from` or `to` only those of a span of time, and
/// without totals. Always with links to what is around. An unknown customer has an empty first page.
#[utoipa::path(
    get,
    path = "/v1/customers/{customerId}/trades",
    operation_id = "listTrades",
    tag = "Trades",
    params(ListParams),
    responses(
        (
            status = 200, description = "The page, or the window.", body = ListingView,
            headers(
                ("Link" = String, description = "The links of the body but `newer`, as RFC 8288 has it."),
                ("ETag" = String, description = "Changes when the history grows."),
                ("Server-Timing" = String, description = "`db`: milliseconds at the database. `cache`: whether all full pages were in memory."),
            ),
            example = json!({
                "customerId": 7, "order": "asc", "page": 1, "full": false, "totalTrades": 1, "totalPages": 1,
                "items": [{ "seq": 1, "type": "buy", "ticker": "AMD", "qty": 448, "price": "15.54", "date": "2004-01-09T00:00:00.000Z" }],
                "links": {
                    "self": "/v1/customers/7/trades", "first": "/v1/customers/7/trades?page=1",
                    "last": "/v1/customers/7/trades?page=1"
                }
            })
        ),
        (status = 304, description = "`If-None-Match` names what there is."),
        PageProblems,
    ),
)]
pub async fn list(
    State(api): State<Arc<Api>>,
    uri: Uri,
    ListParams { customer, order: given, selection }: ListParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let order = given.unwrap_or(Order::Ascending);
    let history = api.store.trades().history(customer, reading.deadline);
    let history = reading.database(history).await?;
    let totals = history.totals();
    let last_page = totals.last_page().unwrap_or(PageNumber::FIRST);
    if matches!(selection, Selection::Page(Some(page)) if page > last_page) {
        return Err(Problem::new(Kind::PageNotFound, "The history has fewer pages."));
    }
    let caching = Caching::of_tail(reading.epoch, customer, totals);
    if let Some(unchanged) = reading.unchanged(&caching) {
        return Ok(unchanged);
    }
    let mut addresses = Addresses { own: &uri, customer, order: given, dates: None };
    let mut page = None;
    let (mut items, links) = match selection {
        Selection::Page(number) => {
            let first = if order == Order::Descending { last_page } else { PageNumber::FIRST };
            let number = *page.insert(number.unwrap_or(first));
            let items = api.pages.trades(&history, totals.on_page(number), &mut reading).await?;
            (items, addresses.around_page(number, totals))
        }
        Selection::Window(window) => {
            let span = window.span(totals);
            let items = api.pages.trades(&history, span.seqs(), &mut reading).await?;
            (items, addresses.around_window(span, window.limit, totals))
        }
        Selection::Dates(dates, window) => {
            addresses.dates = Some(dates);
            dated(&history, dates, window, &addresses, &mut reading).await?
        }
    };
    if order == Order::Descending {
        items.reverse();
    }
    let counted = Some(totals).filter(|_| addresses.dates.is_none());
    let view = ListingView {
        customer_id: customer,
        order,
        page,
        full: page.map(|_| items.len() == PAGE_SIZE),
        total_trades: counted.map(|totals| totals.trades()),
        total_pages: counted.map(|totals| totals.pages()),
        items,
        links,
    };
    let mut headers = HeaderMap::new();
    headers.extend(view.links.header().map(|links| (header::LINK, links)));
    Ok(reading.answer(&caching, (headers, Json(view))))
}

/// The trades of a span of time nearest a cursor. One more than asked for tells whether there are more.
async fn dated(
    history: &History,
    dates: DateRange,
    window: Window,
    addresses: &Addresses<'_>,
    reading: &mut Reading,
) -> Result<(Vec<TradeView>, Links), Problem> {
    let limit = window.limit.get();
    let found = history.dated(dates, window.cursor, limit + 1, reading.deadline);
    let mut found = reading.database(found).await?;
    let filled_by = (found.len() > limit).then(|| match window.cursor {
        Cursor::After(_) => {
            found.truncate(limit);
            found.last().map(|(seq, _)| *seq)
        }
        Cursor::Before(_) | Cursor::End => {
            found.remove(0);
            found.first().map(|(seq, _)| *seq)
        }
    });
    let span = window.searched(history.totals(), filled_by.flatten());
    let items = found.into_iter().map(|(seq, trade)| TradeView::new(seq, trade)).collect();
    Ok((items, addresses.around_window(span, window.limit, history.totals())))
}
