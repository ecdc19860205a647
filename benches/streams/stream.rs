//! The peer of exports: one document a trade, and a cursor that is streamed.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{StreamExt, TryStreamExt};
use mongodb::bson::{DateTime, doc};
use mongodb::{Collection, Database};
use pagebucket::domain::Instant;
use serde::{Deserialize, Serialize};

use crate::harness::check::COLLECTION;

/// As ours names it.
pub const PATH: &str = "/v1/customers/{customerId}/trades/export";

/// Rows in a piece of the answer, at most: as many as the cursor has at hand.
const PIECE: usize = 1_000;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trade {
    customer_id: i64,
    #[serde(rename = "type")]
    side: String,
    ticker: String,
    qty: i64,
    date: DateTime,
}

/// What a row of ours says, but for the trade's number.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    customer_id: i64,
    #[serde(rename = "type")]
    side: &'a str,
    ticker: &'a str,
    qty: i64,
    date: Instant,
}

pub fn routes(database: &Database) -> Router {
    Router::new().route(PATH, get(export)).with_state(database.collection(COLLECTION))
}

async fn export(State(trades): State<Collection<Trade>>, Path(customer): Path<i64>) -> Response {
    let found = trades.find(doc! { "customerId": customer }).sort(doc! { "_id": 1 }).await;
    let Ok(found) = found else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let pieces = found.ready_chunks(PIECE).map(|trades| {
        let mut rows = Vec::with_capacity(trades.len() * 128);
        for trade in trades {
            write(&trade?, &mut rows)?;
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(Bytes::from(rows))
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(pieces.into_stream()))
        .into_response()
}

fn write(trade: &Trade, rows: &mut Vec<u8>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let Trade { customer_id, side, ticker, qty, date } = trade;
    let date = Instant::from_millis(date.timestamp_millis())?;
    serde_json::to_writer(&mut *rows, &Row { customer_id: *customer_id, side, ticker, qty: *qty, date })?;
    rows.push(b'\n');
    Ok(())
}
