//! Appending trades.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::Api;
use super::body::TradesBody;
use super::new_trades::NewTrades;
use super::params::CustomerParams;
use super::problem::{AppendProblems, Problem};
use super::views::AppendedView;
use crate::store::Deadline;

/// Append trades
///
/// Stores one trade, or an array of up to 1,000, at the end of the customer's history, in order. 201
/// is sent once they are durable on a majority of the database's nodes. An array with one bad trade
/// stores nothing.
#[utoipa::path(
    post,
    path = "/v1/customers/{customerId}/trades",
    operation_id = "appendTrades",
    tag = "Trades",
    params(CustomerParams),
    request_body(
        content = NewTrades,
        description = "One trade, or an array of 1 to 1,000.",
        examples(
            ("one" = (summary = "One trade, now", value = json!({ "type": "buy", "ticker": "MDB", "qty": 419 }))),
            ("many" = (summary = "Two trades, dated and priced", value = json!([
                { "type": "buy", "ticker": "AMD", "qty": 448, "price": "15.54", "date": "2004-01-09T00:00:00.000Z" },
                { "type": "sell", "ticker": "AMD", "qty": 48, "price": "16.01", "date": "2004-01-12T00:00:00.000Z" }
            ])))
        )
    ),
    responses(
        (
            status = 201, description = "Stored, durably.", body = AppendedView,
            headers(("Location" = String, description = "Address of the first of the trades.")),
            example = json!({
                "customerId": 7, "ranges": [{ "firstSeq": 1, "lastSeq": 2 }], "totalTrades": 2, "totalPages": 1,
                "date": "2026-11-20T12:00:00.000Z"
            })
        ),
        AppendProblems,
    ),
)]
pub async fn append(
    State(api): State<Api>,
    CustomerParams { customer }: CustomerParams,
    Extension(deadline): Extension<Deadline>,
    TradesBody(drafts): TradesBody,
) -> Result<Response, Problem> {
    let (count, date) = (drafts.len(), api.clock.now());
    let trades = drafts.into_iter().map(|draft| draft.dated(date)).collect();
    let appended = api.store.trades().append(customer, trades, deadline).await;
    let appended = appended.map_err(|error| Problem::of_append(customer, error, count))?;
    let mut headers = HeaderMap::new();
    if let Some(range) = appended.ranges.first() {
        let location = format!("/v1/customers/{customer}/trades/{}", range.first);
        headers.extend(HeaderValue::try_from(location).map(|location| (header::LOCATION, location)));
    }
    Ok((StatusCode::CREATED, headers, Json(AppendedView::new(customer, &appended, date))).into_response())
}
