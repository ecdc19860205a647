//! A page, or a trade, by its address.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::Api;
use super::caching::Caching;
use super::pages::Found;
use super::params::{PageParams, TradeParams};
use super::problem::{Kind, PageProblems, Problem, TradeProblems};
use super::reading::Reading;
use super::views::{PageView, PlacedTradeView};

/// Read a page as it is stored
///
/// The bucket itself: no totals, no links. `full` says that it is final: then it may be kept for ever, as
/// `Cache-Control` says, too.
#[utoipa::path(
    get,
    path = "/v1/customers/{customerId}/trades/pages/{page}",
    operation_id = "getPage",
    tag = "Trades",
    params(PageParams),
    responses(
        (
            status = 200, description = "The page.", body = PageView,
            headers(
                ("ETag" = String, description = "Of a full page, the same for ever."),
                ("Cache-Control" = String, description = "Of a full page, `immutable`."),
                ("Server-Timing" = String, description = "`db`: milliseconds at the database. `cache`: whether it was in memory."),
            ),
            example = json!({
                "customerId": 7, "page": 1, "full": false, "firstSeq": 1, "count": 1,
                "items": [{ "seq": 1, "type": "buy", "ticker": "AMD", "qty": 448, "price": "15.54", "date": "2004-01-09T00:00:00.000Z" }]
            })
        ),
        (status = 304, description = "`If-None-Match` names what there is."),
        PageProblems,
    ),
)]
pub async fn page(
    State(api): State<Arc<Api>>,
    PageParams { customer, page }: PageParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    // Whoever names the tag of a full page has seen it full: nothing need be looked for.
    if let Some(unchanged) = reading.named(|epoch| Caching::of_full(epoch, customer, page)) {
        return Ok(unchanged);
    }
    match api.pages.page(customer, page, &mut reading).await? {
        Found::Full(page) => Ok(reading.answer(&page.caching, json(page.json.clone()))),
        Found::Tail(tail) => {
            let caching = Caching::of_tail(reading.epoch, customer, tail.totals());
            Ok(reading.answer(&caching, json(PageView::new(customer, &tail).json())))
        }
        Found::Nothing => Err(Problem::new(Kind::PageNotFound, "The history has no such page.")),
    }
}

fn json(bytes: Bytes) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], bytes)
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
            headers(
                ("ETag" = String, description = "On a full page, the same for ever."),
                ("Cache-Control" = String, description = "On a full page, `immutable`."),
                ("Server-Timing" = String, description = "`db`: milliseconds at the database. `cache`: whether its page was in memory."),
            ),
            example = json!({
                "page": 1, "seq": 1, "type": "buy", "ticker": "AMD", "qty": 448, "price": "15.54",
                "date": "2004-01-09T00:00:00.000Z"
            })
        ),
        (status = 304, description = "`If-None-Match` names what there is."),
        TradeProblems,
    ),
)]
pub async fn one(
    State(api): State<Arc<Api>>,
    TradeParams { customer, seq }: TradeParams,
    mut reading: Reading,
) -> Result<Response, Problem> {
    if let Some(unchanged) = reading.named(|epoch| Caching::of_full(epoch, customer, seq.page())) {
        return Ok(unchanged);
    }
    let found = match api.pages.page(customer, seq.page(), &mut reading).await? {
        Found::Full(page) => page.bucket.trade(seq).cloned().map(|trade| (page.caching.clone(), trade)),
        Found::Tail(tail) => {
            let caching = Caching::of_tail(reading.epoch, customer, tail.totals());
            tail.trade(seq).cloned().map(|trade| (caching, trade))
        }
        Found::Nothing => None,
    };
    let missing = || Problem::new(Kind::TradeNotFound, "The history has no such trade.");
    let (caching, trade) = found.ok_or_else(missing)?;
    Ok(reading.answer(&caching, Json(PlacedTradeView::new(seq, trade))))
}
