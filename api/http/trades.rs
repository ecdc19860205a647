//! Turning the pages of a history.

use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::Api;
use super::links::Links;
use super::params::{ListParams, PageParams, TradeParams};
use super::problem::{Kind, PageProblems, Problem, TradeProblems};
use super::views::{ListingView, PageView, PlacedTradeView, items};
use crate::domain::PageNumber;
use crate::store::Deadline;
use crate::store::trades::Order;

/// List trades, a page at a time
///
/// Any page of a history, with its exact totals and links to the pages around it. An unknown
/// customer has an empty first page.
#[utoipa::path(
    get,
    path = "/v1/customers/{customerId}/trades",
    operation_id = "listTrades",
    tag = "Trades",
    params(ListParams),
    responses(
        (
            status = 200, description = "The page.", body = ListingView,
            headers(("Link" = String, description = "The links of the body, as RFC 8288 has it.")),
            example = json!({
                "customerId": 7, "order": "asc", "page": 1, "full": false, "totalTrades": 1, "totalPages": 1,
                "items": [{ "seq": 1, "type": "buy", "ticker": "AMD", "qty": 448, "price": "15.54", "date": "2004-01-09T00:00:00.000Z" }],
                "links": {
                    "self": "/v1/customers/7/trades", "first": "/v1/customers/7/trades?page=1",
                    "last": "/v1/customers/7/trades?page=1"
                }
            })
        ),
        PageProblems,
    ),
)]
pub async fn list(
    State(api): State<Api>,
    uri: Uri,
    ListParams { customer, page, order: given }: ListParams,
    Extension(deadline): Extension<Deadline>,
) -> Result<Response, Problem> {
    let order = given.unwrap_or(Order::Ascending);
    let listing = api.store.trades().listing(customer, page, order, deadline).await?;
    let listing = listing.ok_or_else(|| Problem::new(Kind::PageNotFound, "The history has fewer pages."))?;
    let page = listing.bucket.as_ref().map_or(PageNumber::FIRST, |bucket| bucket.page);
    let full = listing.bucket.as_ref().is_some_and(|bucket| bucket.full());
    let mut items = listing.bucket.map(items).unwrap_or_default();
    if order == Order::Descending {
        items.reverse();
    }
    let links = Links::new(&uri, customer, page, listing.totals, given);
    let mut headers = HeaderMap::new();
    headers.extend(links.header().map(|links| (header::LINK, links)));
    let view = ListingView {
        customer_id: customer,
        order,
        page,
        full,
        total_trades: listing.totals.trades(),
        total_pages: listing.totals.pages(),
        items,
        links,
    };
    Ok((headers, Json(view)).into_response())
}

/// Read a page as it is stored
///
/// The bucket itself: no totals, no links. `full` says that it is final.
#[utoipa::path(
    get,
    path = "/v1/customers/{customerId}/trades/pages/{page}",
    operation_id = "getPage",
    tag = "Trades",
    params(PageParams),
    responses(
        (
            status = 200, description = "The page.", body = PageView,
            example = json!({
                "customerId": 7, "page": 1, "full": false, "firstSeq": 1, "count": 1,
                "items": [{ "seq": 1, "type": "buy", "ticker": "AMD", "qty": 448, "price": "15.54", "date": "2004-01-09T00:00:00.000Z" }]
            })
        ),
        PageProblems,
    ),
)]
pub async fn page(
    State(api): State<Api>,
    PageParams { customer, page }: PageParams,
    Extension(deadline): Extension<Deadline>,
) -> Result<Json<PageView>, Problem> {
    let bucket = api.store.trades().page(customer, page, deadline).await?;
    let bucket = bucket.ok_or_else(|| Problem::new(Kind::PageNotFound, "The history has no such page."))?;
    Ok(Json(PageView::new(customer, bucket)))
}

/// Read one trade
///
/// By its sequence number, which is its permanent address.
#[utoipa::path(
    get,
    path = "/v1/customers/{customerId}/trades/{seq}",
    operation_id = "getTrade",
    tag = "Trades",
    params(TradeParams),
    responses(
        (
            status = 200, description = "The trade.", body = PlacedTradeView,
            example = json!({
                "page": 1, "seq": 1, "type": "buy", "ticker": "AMD", "qty": 448, "price": "15.54",
                "date": "2004-01-09T00:00:00.000Z"
            })
        ),
        TradeProblems,
    ),
)]
pub async fn one(
    State(api): State<Api>,
    TradeParams { customer, seq }: TradeParams,
    Extension(deadline): Extension<Deadline>,
) -> Result<Json<PlacedTradeView>, Problem> {
    let trade = api.store.trades().trade(customer, seq, deadline).await?;
    let trade = trade.ok_or_else(|| Problem::new(Kind::TradeNotFound, "The history has no such trade."))?;
    Ok(Json(PlacedTradeView::new(seq, trade)))
}
