//! The peers: one document a trade, inserted as `mongoimport` does, and exported by a cursor that is
//! streamed; and one row a trade, by `COPY`.

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
use pagebucket_model::item::Item;
use pagebucket_streams::import;
use tokio::task::JoinSet;

use super::files::Trades;
use crate::harness::peers::{Pool, Trade, flat_document};
use crate::harness::{COLLECTION, Result};

/// Documents in one `insertMany`, and at most in a piece of an answer: as many as the cursor has at hand.
const BATCH: usize = 1_000;

/// Inserts all of a file, by so many workers; how many documents, and how long it took.
///
/// `mongoimport` gathers documents until there are 1,000, and inserts them with an unordered bulk write, with
/// write concern majority; by default (`numInsertionWorkers`) one after the other, while the next are being
/// read.
pub async fn insert(database: &Database, trades: &Trades, workers: usize) -> Result<(u64, Duration)> {
    let insert = |batch: Vec<Document>| {
        let collection = database.collection::<Document>(COLLECTION);
        async move { Ok(collection.insert_many(batch).ordered(false).await?.inserted_ids.len() as u64) }
    };
    let document = |customer, trade| Ok(flat_document(customer, &trade)?);
    in_batches(trades, document, BATCH, workers, insert).await
}

/// Copies all of a file into PostgreSQL; how many rows, and how long it took.
///
/// One `COPY` after the other, each with the numbers of its trades in a transaction: 10,000 rows are enough
/// that its ends cost nothing, and other appends to the same customers do not wait for the whole file.
pub async fn copy(pool: &Pool, trades: &Trades) -> Result<(u64, Duration)> {
    let copy = |batch| {
        let pool = pool.clone();
        async move { pool.copy(batch).await }
    };
    in_batches(trades, |customer, trade| Ok((customer, trade)), 10 * BATCH, 1, copy).await
}

/// Reads a file, and has so many workers store so many of its rows at once while the next are being read.
async fn in_batches<Row, Stored: Future<Output = Result<u64>> + Send + 'static>(
    trades: &Trades,
    row_of: impl Fn(u64, Item) -> Result<Row>,
    most: usize,
    workers: usize,
    store: impl Fn(Vec<Row>) -> Stored,
) -> Result<(u64, Duration)> {
    let began = Instant::now();
    let (mut storing, mut stored) = (JoinSet::<Result<u64>>::new(), 0);
    let now = Clock::system().now();
    let mut rows = import::read_ahead(trades.rows()?, true);
    let mut send = async |batch: Vec<Row>| -> Result<u64> {
        let done =
            if storing.len() == workers { storing.join_next().await.ok_or("no worker")??? } else { 0 };
        storing.spawn(store(batch));
        Ok(done)
    };
    let mut batch = Vec::with_capacity(most);
    while let Some(chunk) = rows.recv().await {
        for row in chunk? {
            let row = row?;
            let OwnerId::Integer(customer) = row.owner else { continue };
            batch.push(row_of(customer, row.draft.dated(now))?);
            if batch.len() == most {
                stored += send(std::mem::replace(&mut batch, Vec::with_capacity(most))).await?;
            }
        }
    }
    if !batch.is_empty() {
        stored += send(batch).await?;
    }
    for count in storing.join_all().await {
        stored += count?;
    }
    Ok((stored, began.elapsed()))
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
