//! Appending trades.

pub mod view;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::new_trade::{MOST_TRADES, NewTrade, NewTrades};
use super::upload::{OutcomeView, Upload, UploadedView};
use crate::domain::{TradeDraft, parse_drafts};
use crate::http::api::Api;
use crate::http::body::{JSON, NDJSON, expect, read};
use crate::http::deadline::RequestDeadline;
use crate::http::idempotency::{self, Key};
use crate::http::params::CustomerParams;
use crate::http::places::LongPlace;
use crate::http::problem::{AppendProblems, Kind, Problem, Repeat};
use view::AppendedView;

/// What is appended.
pub enum TradesBody {
    /// One trade, or an array of 1 to 1,000.
    Whole(Vec<TradeDraft>),
    /// A trade a line, still to be read.
    Lines(Body),
}

impl FromRequest<Arc<Api>> for TradesBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        if expect(request.headers(), &[JSON, NDJSON])? == NDJSON {
            return Ok(Self::Lines(request.into_body()));
        }
        let bytes = read(request.into_body(), api.limits).await?;
        let drafts = parse_drafts(&bytes, MOST_TRADES);
        drafts.map(Self::Whole).map_err(|error| Problem::of_draft(Kind::InvalidTrade, error))
    }
}

/// Append trades
///
/// Stores one trade, or an array of up to 1,000, at the end of the customer's history, in order. 201
/// is sent once they are durable on a majority of the database's nodes. An array with one bad trade
/// stores nothing.
///
/// More are sent as `application/x-ndjson`, a trade a line: any number of lines, stored in their order as
/// they come, whatever their neighbours are. 200 with a summary is sent when the body has ended; or, with
/// `Accept: application/x-ndjson`, at once, with a line of outcome for each line as it is stored, which must
/// be read while the lines are sent.
///
/// With an `Idempotency-Key` the request may be sent again, whatever came of it: the trades are stored
/// once, and every answer says where the first request has stored them. A key belongs to one customer,
/// and is remembered for a day after its last use, unless the server is told otherwise. Lines with a key
/// that are sent again, from the first one on, continue where they ended: each is known by its number.
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
        description = "One trade, or an array of 1 to 1,000; or one JSON object a line, of at most 64 KiB, where blank lines are passed over.",
        content(
            (NewTrades = "application/json", examples(
            ("one" = (summary = "One trade, now", value = json!({ "type": "buy", "ticker": "MDB", "qty": 419 }))),
            ("many" = (summary = "Two trades, dated and priced", value = json!([
                { "type": "buy", "ticker": "AMD", "qty": 448, "price": "15.54", "date": "2004-01-09T00:00:00.000Z" },
                { "type": "sell", "ticker": "AMD", "qty": 48, "price": "16.01", "date": "2004-01-12T00:00:00.000Z" }
            ])))
            )),
            (NewTrade = "application/x-ndjson", example = json!({ "type": "buy", "ticker": "MDB", "qty": 419 }))
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
        (
            status = 200,
            description = "Of an upload. As JSON: all lines have come to an end; those that are not in `problems` are stored, durably. As NDJSON: a line of outcome for each line, in order, as it is stored; where the last has no `line`, it ended early, and that line says why.",
            content(
                (UploadedView = "application/json", example = json!({ "customerId": 7, "ranges": [{ "firstSeq": 1, "lastSeq": 2 }], "stored": 2, "refused": 0, "problems": [] })),
                (OutcomeView = "application/x-ndjson", example = json!({ "line": 1, "seq": 1 }))
            )
        ),
        AppendProblems,
    ),
)]
pub async fn append(
    State(api): State<Arc<Api>>,
    CustomerParams { customer }: CustomerParams,
    RequestDeadline(deadline): RequestDeadline,
    place: Option<Extension<LongPlace>>,
    Key(key): Key,
    headers: HeaderMap,
    body: TradesBody,
) -> Result<Response, Problem> {
    let drafts = match body {
        TradesBody::Whole(drafts) => drafts,
        TradesBody::Lines(body) => {
            return Ok(Upload { api, customer: Some(customer), key, headers, place, body }.answer().await);
        }
    };
    let (count, now) = (drafts.len(), api.clock.now());
    let repeat = if key.is_some() { Repeat::WithItsKey } else { Repeat::WithCare };
    let stored = match key {
        Some(key) => api.store.trades().append_once(customer, key, drafts, now, deadline).await,
        None => {
            let trades = drafts.into_iter().map(|draft| draft.dated(now)).collect();
            let appended = api.store.trades().append(customer, trades, deadline).await;
            appended.map(|progress| (progress, now))
        }
    };
    let (progress, date) = stored.map_err(|error| Problem::of_append(customer, error, count, repeat))?;
    let mut headers = HeaderMap::new();
    if let Some(range) = progress.ranges().first() {
        let location = format!("/v1/customers/{customer}/trades/{}", range.first);
        let location = HeaderValue::try_from(location).expect("a path of ASCII");
        headers.insert(header::LOCATION, location);
    }
    if progress.is_replayed() {
        headers.insert(idempotency::REPLAYED, HeaderValue::from_static("true"));
    }
    Ok((StatusCode::CREATED, headers, Json(AppendedView::new(customer, &progress, date))).into_response())
}
