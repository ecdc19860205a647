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

/// The body of an append.
pub enum TradesBody {
    /// One trade, or an array of 1 to 1,000.
    Whole(Vec<TradeDraft>),
    /// One trade a line, not read yet.
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
/// Stores one trade, or an array of up to 1,000, at the end of the customer's history, in order. The answer is 201 when
/// the trades are durable on a majority of the database's nodes. If one trade of an array is invalid, nothing is
/// stored.
///
/// An upload sends any number of trades as `application/x-ndjson`, one trade a line. Lines are stored in order as they
/// arrive, and a refused line does not affect the others. The answer is 200 with a summary when the body has ended.
/// With `Accept: application/x-ndjson` the answer begins at once, with one outcome for each line as it is stored; the
/// client must read it while it sends.
///
/// With an `Idempotency-Key` the request may be repeated, whatever its outcome: the trades are stored once, and every
/// answer says where they are stored. A key belongs to one customer. The server remembers it for a day after its last
/// use, or as its operator has configured. An upload with a key that is sent again, from the first line on, continues
/// where it ended: each line is identified by its number.
#[utoipa::path(
    post,
    path = "/v1/customers/{customerId}/trades",
    operation_id = "appendTrades",
    tag = "Trades",
    params(
        CustomerParams,
        ("Idempotency-Key" = Option<String>, Header, description = "A unique key for the request, such as a UUID: 1 to 255 visible ASCII characters. A repeat of the request has the same key.", min_length = 1, max_length = 255, pattern = "^[!-~]{1,255}$"),
    ),
    request_body(
        description = "One trade, or an array of 1 to 1,000; or one JSON object a line, each of at most 64 KiB. Blank lines are ignored.",
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
            status = 201, description = "The trades are stored durably.", body = AppendedView,
            headers(
                ("Location" = String, description = "Address of the first trade."),
                ("Idempotency-Replayed" = Option<bool>, description = "`true` if an earlier request with the same key stored all of the trades.")
            ),
            example = json!({
                "customerId": 7, "ranges": [{ "firstSeq": 1, "lastSeq": 2 }], "totalTrades": 2, "totalPages": 1,
                "date": "2026-11-20T12:00:00.000Z"
            })
        ),
        (
            status = 200,
            description = "The answer to an upload. As JSON: a summary, when every line is stored durably or refused. As NDJSON: one outcome for each line, in order, as it is stored. If the last outcome has no `line`, the upload ended early, and that outcome says why.",
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
