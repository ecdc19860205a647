//! Exports of histories of any length, in bounded memory.
//!
//! The body is made as the client reads it: the next batch is read from the database when the last one has been sent.
//! If the client stops reading, the database reads stop too. A client that reads too slowly is disconnected
//! ([`crate::server`]), so that its place becomes free. The request's deadline applies to the head of the answer, not
//! to the body. If the body cannot be completed, the connection ends without the last chunk. Every client can tell that
//! such a body is incomplete, because clients of HTTP/1.0 are refused ([`accept`]).

mod params;

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use utoipa::ToSchema;

use super::trade::TradeView;
use crate::domain::CustomerId;
use crate::export::Format;
use crate::http::api::Api;
use crate::http::body::NDJSON;
use crate::http::deadline::RequestDeadline;
use crate::http::middleware::accept;
use crate::http::places::Place;
use crate::http::problem::{ExportProblems, Kind, Problem};
use crate::http::schemas;
use crate::metric::{EXPORTED_TRADES, EXPORTS};
use crate::store::history::Export;
use params::ExportParams;

const CSV: &str = "text/csv";

/// A row of NDJSON: a trade and its customer.
#[derive(ToSchema)]
#[schema(as = ExportedTrade)]
#[expect(dead_code, reason = "documents what `export::Format` writes; a test compares the two")]
pub struct ExportedTradeView {
    #[schema(rename = "customerId", schema_with = schemas::ordinal)]
    customer_id: CustomerId,
    #[schema(inline = false)]
    #[serde(flatten)]
    trade: TradeView,
}

/// Export a history
///
/// Returns the trades of a history in order of `seq`: all of them, those after a sequence number, or those of a span of
/// time. The format is one JSON object a line, or CSV; `pagebucket import` reads both. Trades that are appended after
/// the export began are not in it. An unknown customer has no rows. If the export fails, the connection is closed
/// before the end of the body: continue with `after`, the `seq` of the last complete row. Needs HTTP/1.1 or later.
#[utoipa::path(
    get,
    path = "/v1/customers/{customerId}/trades/export",
    operation_id = "exportTrades",
    tag = "Trades",
    params(ExportParams),
    responses(
        (
            status = 200, description = "The rows.",
            content(
                (ExportedTradeView = "application/x-ndjson", example = json!({
                    "customerId": 7, "seq": 1, "type": "buy", "ticker": "AMD", "qty": 448, "price": "15.54",
                    "date": "2004-01-09T00:00:00.000Z"
                })),
                (String = "text/csv", example = json!(
                    "customerId,seq,type,ticker,qty,price,date\r\n7,1,buy,AMD,448,15.54,2004-01-09T00:00:00.000Z\r\n"
                )),
            ),
        ),
        ExportProblems,
    ),
)]
pub async fn export(
    State(api): State<Arc<Api>>,
    ExportParams { customer, format, after, dates }: ExportParams,
    RequestDeadline(deadline): RequestDeadline,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let format = format.or_else(|| preferred(&headers)).ok_or_else(|| {
        Problem::new(
            Kind::NotAcceptable,
            "The answer is `application/x-ndjson` or `text/csv`. `Accept` excludes both, and there is no `format`.",
        )
    })?;
    let place = api.exports.take()?;
    let export = api.store.trades().export(customer, after, dates, deadline).await?;
    let head = [
        (
            header::CONTENT_TYPE,
            if format == Format::Csv { "text/csv; charset=utf-8; header=present" } else { NDJSON },
        ),
        (header::CACHE_CONTROL, "no-store"),
        (header::VARY, "accept"),
    ];
    let rows = Rows { customer, format, export, begun: false, outcome: Outcome("abandoned"), _place: place };
    Ok((head, Body::from_stream(stream::try_unfold(rows, Rows::next))).into_response())
}

fn preferred(headers: &HeaderMap) -> Option<Format> {
    accept::preferred(headers, &[NDJSON, CSV])
        .map(|media| if media == CSV { Format::Csv } else { Format::Ndjson })
}

/// The rows that are not sent yet.
struct Rows {
    customer: CustomerId,
    format: Format,
    export: Export,
    /// Whether the header has been sent.
    begun: bool,
    outcome: Outcome,
    _place: Place,
}

/// Ends a body early. Only the connection sees it.
#[derive(Debug, thiserror::Error)]
#[error("the export failed")]
struct BrokenOff;

impl Rows {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, BrokenOff> {
        let trades = match self.export.next().await {
            Ok(trades) => trades,
            Err(error) => {
                let (customer, after) = (self.customer.get(), self.export.position().get());
                tracing::error!(customer, after, %error, "an export failed");
                self.outcome.0 = "failed";
                return Err(BrokenOff);
            }
        };
        let mut rows = Vec::with_capacity(trades.len() * 128);
        if !self.begun {
            self.begun = true;
            rows.extend_from_slice(self.format.header().as_bytes());
        }
        for (seq, trade) in &trades {
            self.format.write(self.customer, *seq, trade, &mut rows);
        }
        metrics::counter!(EXPORTED_TRADES).increment(trades.len() as u64);
        if rows.is_empty() {
            self.outcome.0 = "finished";
            return Ok(None);
        }
        Ok(Some((rows.into(), self)))
    }
}

/// Counts an export when it is dropped, because a client may disconnect at any time.
struct Outcome(&'static str);

impl Drop for Outcome {
    fn drop(&mut self) {
        metrics::counter!(EXPORTS, "result" => self.0).increment(1);
    }
}
