//! How a database keeps trades: its collections and indexes, and what it really holds after a block; and the
//! database itself, whosever it is.

use futures_util::TryStreamExt;
use mongodb::bson::{Document, deserialize_from_document, doc};
use mongodb::options::{IndexOptions, TimeseriesGranularity, TimeseriesOptions};
use mongodb::{Database, IndexModel};
use serde::Deserialize;

use super::peers::Pool;
use super::{Bench, Block, History, Mongod, Result, write_history};

/// Name of the collection in every layout.
pub const COLLECTION: &str = "trades";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Our buckets.
    Ours,
    /// The buckets of the MongoDB manual, "Group data with the bucket pattern": no index but `_id`.
    Manual,
    /// One document a trade, and an index on the customer and this field by which pages could be read.
    Flat(&'static str),
    /// The same with a trade id, under a unique index.
    FlatWithIds,
    /// A native time-series collection, in which the server makes buckets by itself.
    TimeSeries,
}

/// A database of trades: of mongod in some layout, or of PostgreSQL.
pub enum Storage {
    Mongo(Layout, Database),
    Postgres(Pool),
}

impl Storage {
    /// Without trades. Without a layout it is one of PostgreSQL, with so many connections.
    pub async fn create(
        bench: &Bench,
        layout: Option<Layout>,
        name: &str,
        connections: usize,
    ) -> Result<Self> {
        match (layout, &bench.postgres) {
            (Some(layout), _) => Ok(Self::Mongo(layout, layout.create(&bench.mongod, name).await?)),
            (None, Some(postgres)) => Ok(Self::Postgres(postgres.database(name, connections).await?)),
            (None, None) => Err("there is no PostgreSQL".into()),
        }
    }

    pub async fn write_history(&self, history: History) -> Result<()> {
        match self {
            Self::Mongo(layout, database) => write_history(database, *layout, history).await,
            Self::Postgres(pool) => pool.write_history(history).await,
        }
    }

    /// Compares what the clients of a block were told with what is stored.
    pub async fn judge(&self, first: u64, block: &Block) -> Result<Verdict> {
        let (count, sum) = match self {
            Self::Mongo(layout, database) => layout.stored(database, first).await?,
            Self::Postgres(pool) => pool.stored(first).await?,
        };
        let mut verdict = Verdict::of(count, block.acknowledged, block.failed);
        // As many but other trades.
        verdict.wrong += u64::from(count == block.acknowledged && sum != block.sum);
        Ok(verdict)
    }

    pub async fn drop_database(self) -> Result<()> {
        match self {
            Self::Mongo(_, database) => Ok(database.drop().await?),
            Self::Postgres(pool) => pool.drop_database().await,
        }
    }
}

/// What became of the trades of a block.
#[derive(Clone, Copy, Default)]
pub struct Verdict {
    /// Acknowledged, and not stored.
    pub lost: u64,
    /// Stored more than once, or others than those acknowledged.
    pub wrong: u64,
    /// Stored, although the client was told that they were not.
    pub unacknowledged: u64,
}

impl Verdict {
    pub fn of(stored: u64, acknowledged: u64, failed: u64) -> Self {
        let more = stored.saturating_sub(acknowledged);
        let lost = acknowledged.saturating_sub(stored);
        // Failed requests cannot explain more than there were.
        Self { lost, wrong: more.saturating_sub(failed), unacknowledged: more.min(failed) }
    }

    pub fn add(&mut self, other: Self) {
        self.lost += other.lost;
        self.wrong += other.wrong;
        self.unacknowledged += other.unacknowledged;
    }
}

impl Layout {
    /// A database without trades.
    pub async fn create(self, mongod: &Mongod, name: &str) -> Result<Database> {
        let database = mongod.database(name).await?;
        match self {
            Self::Ours => drop(mongod.store(name).await?),
            Self::Flat(field) => {
                index(&database, COLLECTION, doc! { "customerId": 1, field: 1 }, false).await?;
            }
            Self::FlatWithIds => {
                index(&database, COLLECTION, doc! { "customerId": 1, "date": 1 }, false).await?;
                index(&database, COLLECTION, doc! { "tradeId": 1 }, true).await?;
            }
            Self::TimeSeries => {
                let options = TimeseriesOptions::builder()
                    .time_field("date".to_owned())
                    .meta_field("customerId".to_owned())
                    .granularity(TimeseriesGranularity::Seconds)
                    .build();
                database.create_collection(COLLECTION).timeseries(options).await?;
            }
            Self::Manual => {}
        }
        Ok(database)
    }

    /// The trades whose quantity is at least `first`, those of the latest block: their count and sum.
    async fn stored(self, database: &Database, first: u64) -> Result<(u64, u64)> {
        let least = |field: &str| doc! { "$match": { field: { "$gte": first as i64 } } };
        let sum = |field: &str| {
            let sum = doc! { "$sum": { "$toLong": field } };
            doc! { "$group": { "_id": null, "count": { "$sum": 1_i64 }, "sum": sum } }
        };
        let pipeline = match self {
            Self::Ours | Self::Manual => {
                let unwind = doc! { "$unwind": "$history" };
                vec![least("history.qty"), unwind, least("history.qty"), sum("$history.qty")]
            }
            _ => vec![least("qty"), sum("$qty")],
        };
        let mut found = database.collection::<Document>(COLLECTION).aggregate(pipeline).await?;
        let Some(found) = found.try_next().await? else { return Ok((0, 0)) };
        Ok((found.get_i64("count")? as u64, found.get_i64("sum")? as u64))
    }
}

/// Makes an index.
pub async fn index(database: &Database, collection: &str, keys: Document, unique: bool) -> Result<()> {
    let options = IndexOptions::builder().unique(unique).build();
    let index = IndexModel::builder().keys(keys).options(options).build();
    database.collection::<Document>(collection).create_index(index).await?;
    Ok(())
}

/// Bytes of a collection on disk.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disk {
    /// The documents before compression.
    size: f64,
    /// The file with the documents, free blocks included.
    storage_size: f64,
    free_storage_size: f64,
    total_index_size: f64,
}

/// Columns of [`Disk::cells`] after the documents.
pub const DISK: [&str; 4] = ["Data", "of which free", "Indexes", "Data and indexes"];

impl Disk {
    /// Looks at a collection after a checkpoint.
    pub async fn of(database: &Database, collection: &str) -> Result<Self> {
        database.client().database("admin").run_command(doc! { "fsync": 1 }).await?;
        let stats = database.run_command(doc! { "collStats": collection }).await?;
        Ok(deserialize_from_document(stats)?)
    }

    pub fn total(&self) -> f64 {
        self.storage_size + self.total_index_size
    }

    /// For each of so many trades or documents.
    pub fn cells(&self, count: u64, digits: usize) -> [String; 5] {
        let Self { size, storage_size, free_storage_size, total_index_size } = *self;
        let all = [size, storage_size, free_storage_size, total_index_size, self.total()];
        all.map(|bytes| format!("{:.digits$}", bytes / count as f64))
    }
}
