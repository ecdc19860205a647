//! The peer of imports: `mongoimport`'s way.
//!
//! It gathers documents until there are 1,000, and inserts them with an unordered bulk write, with write concern
//! majority; by default (`numInsertionWorkers`) one after the other, while the next are being read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::Database;
use mongodb::bson::Document;
use pagebucket::domain::Clock;
use pagebucket::import;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use crate::files::Trades;
use crate::harness::Result;
use crate::harness::check::COLLECTION;
use crate::harness::peers::flat_document;

/// Documents in one `insertMany`.
const BATCH: usize = 1_000;

/// Inserts all of a file, by so many workers; how many documents, and how long it took.
pub async fn all(database: &Database, trades: &Trades, workers: usize) -> Result<(u64, Duration)> {
    let began = Instant::now();
    let (batches, incoming) = mpsc::channel::<Vec<Document>>(workers);
    let incoming = Arc::new(Mutex::new(incoming));
    let mut inserting = JoinSet::new();
    for _ in 0..workers {
        let (collection, incoming) = (database.collection::<Document>(COLLECTION), Arc::clone(&incoming));
        inserting.spawn(async move {
            let mut inserted = 0;
            loop {
                let Some(batch) = incoming.lock().await.recv().await else { return Ok(inserted) };
                inserted += collection.insert_many(batch).ordered(false).await?.inserted_ids.len() as u64;
            }
        });
    }
    let now = Clock::system().now();
    let mut rows = import::read_ahead(trades.rows()?, true);
    let mut batch = Vec::with_capacity(BATCH);
    while let Some(chunk) = rows.recv().await {
        for row in chunk? {
            let row = row?;
            batch.push(flat_document(row.customer, &row.draft.dated(now)));
            if batch.len() == BATCH {
                batches.send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH))).await?;
            }
        }
    }
    if !batch.is_empty() {
        batches.send(batch).await?;
    }
    drop(batches);
    let inserted: mongodb::error::Result<Vec<u64>> = inserting.join_all().await.into_iter().collect();
    Ok((inserted?.into_iter().sum(), began.elapsed()))
}
