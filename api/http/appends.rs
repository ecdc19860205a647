//! Appending trades.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::Api;
use super::body::TradesBody;
use super::idempotency::{self, Key};
use super::new_trades::NewTrades;
use super::params::CustomerParams;
use super::problem::{AppendProblems, Problem, Repeat};
use super::views::AppendedView;
use crate::store::Deadline;
use crate::store::trades::AppendedOnce;

/// Append trades
///
/// Stores one trade, or an array of up to 1,000, at the end of the customer's history, in order. 201
/// is sent once they are durable on a majority of the database's nodes. An array with one bad trade
/// stores nothing.
///
/// With an `Idempotency-Key` the request may be sent again, whatever came of it: the trades are stored
/// once, and every answer says where the first request has stored them. A key belongs to one customer,
/// and is remembered for a day after its last use, unless the server is told otherwise.
#[utoipa::path(
    post,
    path = "/v1/customers/{customerId}/trades",
    operation_id = "appendTrades",
    tag = "Trades",
    params(
        CustomerParams,
        ("Idempotency-Key" = Option<String>, Header, description = "A new name for each new request, 1 to 255 visible ASCII characters, such as a UUID; the same name for the same request sent again.", min_length = 1, max_length = 255, pattern = "^[!-~]{1,255}$"),
    ),
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
            headers(
                ("Location" = String, description = "Address of the first of the trades."),
                ("Idempotency-Replayed" = Option<bool>, description = "`true` when an earlier request with the same key has stored all of the trades.")
            ),
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
    Key(key): Key,
    TradesBody(drafts): TradesBody,
) -> Result<Response, Problem> {
    let (count, now) = (drafts.len(), api.clock.now());
    let repeat = if key.is_some() { Repeat::WithItsKey } else { Repeat::WithCare };
    let stored = match key {
        Some(key) => api.store.trades().append_once(customer, key, drafts, now, deadline).await,
        None => {
            let trades = drafts.into_iter().map(|draft| draft.dated(now)).collect();
            let appended = api.store.trades().append(customer, trades, deadline).await;
            appended.map(|appended| AppendedOnce { appended, date: now, replayed: false })
        }
    };
    let AppendedOnce { appended, date, replayed } =
        stored.map_err(|error| Problem::of_append(customer, error, count, repeat))?;
    let mut headers = HeaderMap::new();
    if let Some(range) = appended.ranges.first() {
        let location = format!("/v1/customers/{customer}/trades/{}", range.first);
        headers.extend(HeaderValue::try_from(location).map(|location| (header::LOCATION, location)));
    }
    if replayed {
        headers.insert(idempotency::REPLAYED, HeaderValue::from_static("true"));
    }
    Ok((StatusCode::CREATED, headers, Json(AppendedView::new(customer, &appended, date))).into_response())
}
