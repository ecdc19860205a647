//! The peers: one document a trade, inserted as `mongoimport` does, and exported by a cursor that is
//! streamed.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{StreamExt, TryStreamExt};
use mongodb::bson::{Document, doc};
use mongodb::{Collection, Database};
use pagebucket_model::domain::{Clock, OwnerId};
use pagebucket_streams::import;
use tokio::task::JoinSet;

use super::files::Trades;
use crate::harness::peers::{Trade, flat_document};
use crate::harness::{COLLECTION, Result};

/// Documents in one `insertMany`, and at most in a piece of an answer: as many as the cursor has at hand.
const BATCH: usize = 1_000;

/// Inserts all of a file, by so many workers; how many documents, and how long it took.
///
/// `mongoimport` gathers documents until there are 1,000, and inserts them with an unordered bulk write, with
/// write concern majority; by default (`numInsertionWorkers`) one after the other, while the next are being
/// read.
pub async fn insert(database: &Database, trades: &Trades, workers: usize) -> Result<(u64, Duration)> {
    let began = Instant::now();
    let insert = |batch: Vec<Document>| {
        let collection = database.collection::<Document>(COLLECTION);
        async move { Ok(collection.insert_many(batch).ordered(false).await?.inserted_ids.len() as u64) }
    };
    let (mut inserting, mut inserted) = (JoinSet::<Result<u64>>::new(), 0);
    let now = Clock::system().now();
    let mut rows = import::read_ahead(trades.rows()?, true);
    let mut batch = Vec::with_capacity(BATCH);
    while let Some(chunk) = rows.recv().await {
        for row in chunk? {
            let row = row?;
            let OwnerId::Integer(customer) = row.owner else { continue };
            batch.push(flat_document(customer, &row.draft.dated(now))?);
            if batch.len() == BATCH {
                if inserting.len() == workers {
                    inserted += inserting.join_next().await.ok_or("no worker")???;
                }
                inserting.spawn(insert(std::mem::replace(&mut batch, Vec::with_capacity(BATCH))));
            }
        }
    }
    if !batch.is_empty() {
        inserting.spawn(insert(batch));
    }
    for stored in inserting.join_all().await {
        inserted += stored?;
    }
    Ok((inserted, began.elapsed()))
}

/// The handler that exports.
pub fn routes(database: &Database) -> Router {
    let path = "/v1/customers/{customerId}/trades/export.ndjson";
    Router::new().route(path, get(export)).with_state(database.collection(COLLECTION))
}

async fn export(State(trades): State<Collection<Trade>>, Path(customer): Path<i64>) -> Response {
    let found = trades.find(doc! { "customerId": customer }).sort(doc! { "_id": 1 }).await;
    let Ok(found) = found else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let pieces = found.ready_chunks(BATCH).map(|trades| {
        let mut rows = Vec::with_capacity(trades.len() * 128);
        for trade in trades {
            let mut trade = trade?;
            trade.id = None;
            serde_json::to_writer(&mut rows, &trade)?;
            rows.push(b'\n');
        }
        Result::<_>::Ok(Bytes::from(rows))
    });
    let body = Body::from_stream(pieces.into_stream());
    ([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}
