//! What a database really holds, to be compared with what was acknowledged.

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};

use super::Result;
use super::block::{Block, Tally};

/// Name of the collection, whoever the contender is.
pub const COLLECTION: &str = "trades";

/// How a contender keeps trades.
#[derive(Clone, Copy)]
pub enum Shape {
    /// In the array `history` of a bucket.
    Buckets,
    /// A document a trade.
    Flat,
    /// Not at all.
    Nothing,
}

/// What became of the trades of a block.
#[derive(Clone, Copy, Default)]
pub struct Verdict {
    /// Acknowledged, and not stored.
    pub lost: u64,
    /// Stored more than once, or others than those acknowledged.
    pub wrong: u64,
    /// Stored, though the client was told that they were not.
    pub unacknowledged: u64,
}

/// The trades whose quantity is at least `first`: those of the latest block.
async fn stored(database: &Database, shape: Shape, first: u64) -> Result<Tally> {
    let pipeline = match shape {
        Shape::Nothing => return Ok(Tally::default()),
        Shape::Flat => vec![
            doc! { "$match": { "qty": { "$gte": first as i64 } } },
            doc! { "$group": { "_id": null, "count": { "$sum": 1_i64 }, "sum": { "$sum": { "$toLong": "$qty" } } } },
        ],
        Shape::Buckets => vec![
            doc! { "$match": { "history.qty": { "$gte": first as i64 } } },
            doc! { "$unwind": "$history" },
            doc! { "$match": { "history.qty": { "$gte": first as i64 } } },
            doc! { "$group": { "_id": null, "count": { "$sum": 1_i64 }, "sum": { "$sum": "$history.qty" } } },
        ],
    };
    let mut found = database.collection::<Document>(COLLECTION).aggregate(pipeline).await?;
    let Some(found) = found.try_next().await? else { return Ok(Tally::default()) };
    let number = |field| match found.get(field) {
        Some(Bson::Int64(number)) => Ok(*number as u64),
        other => Err(format!("a {field} of {other:?}")),
    };
    Ok(Tally { count: number("count")?, sum: number("sum")? })
}

/// Compares what a block's clients were told with what is stored.
pub async fn judge(database: &Database, shape: Shape, first: u64, block: &Block) -> Result<Verdict> {
    let (stored, told) = (stored(database, shape, first).await?, block.acknowledged);
    if matches!(shape, Shape::Nothing) {
        return Ok(Verdict::default());
    }
    let more = stored.count.saturating_sub(told.count);
    Ok(Verdict {
        lost: told.count.saturating_sub(stored.count),
        // Of equal number but other trades; or more than can be explained by failed requests.
        wrong: u64::from(stored.count == told.count && stored.sum != told.sum)
            + more.saturating_sub(block.failed),
        unacknowledged: more.min(block.failed),
    })
}

/// A number that a server tells of itself, of whichever type the server chose for its greatness.
pub fn number(stats: &Document, field: &str) -> Result<f64> {
    match stats.get(field) {
        Some(Bson::Int32(number)) => Ok(f64::from(*number)),
        Some(Bson::Int64(number)) => Ok(*number as f64),
        Some(Bson::Double(number)) => Ok(*number),
        other => Err(format!("a {field} of {other:?}").into()),
    }
}
