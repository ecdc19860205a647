//! The peers: other ways of keeping the same trades in MongoDB.

use mongodb::bson::{Bson, DateTime, Document, Regex, doc};
use mongodb::options::{IndexOptions, TimeseriesGranularity, TimeseriesOptions};
use mongodb::{Collection, Database, IndexModel};
use pagebucket::domain::{CustomerId, Trade};

use super::Result;
use super::check::COLLECTION;

/// One of them.
#[derive(Clone, Debug)]
pub enum Peer {
    /// The MongoDB manual, "Group data with the bucket pattern": a plain collection, no index but `_id`.
    Manual(Collection<Document>),
    /// One document a trade, and an index by which pages could be read.
    Flat(Collection<Document>),
    /// The same with an id that the client gives each trade, under a unique index: it refuses a repeat.
    FlatWithIds(Collection<Document>),
    /// A native time-series collection, in which the server makes buckets by itself.
    TimeSeries(Collection<Document>),
}

impl Peer {
    pub fn manual(database: &Database) -> Self {
        Self::Manual(database.collection(COLLECTION))
    }

    pub async fn flat(database: &Database) -> Result<Self> {
        Ok(Self::Flat(flat_collection(database).await?))
    }

    pub async fn flat_with_ids(database: &Database) -> Result<Self> {
        let collection = flat_collection(database).await?;
        let unique = IndexOptions::builder().unique(true).build();
        let index = IndexModel::builder().keys(doc! { "tradeId": 1 }).options(unique).build();
        collection.create_index(index).await?;
        Ok(Self::FlatWithIds(collection))
    }

    pub async fn time_series(database: &Database) -> Result<Self> {
        let options = TimeseriesOptions::builder()
            .time_field("date".to_owned())
            .meta_field("customerId".to_owned())
            .granularity(TimeseriesGranularity::Seconds)
            .build();
        database.create_collection(COLLECTION).timeseries(options).await?;
        Ok(Self::TimeSeries(database.collection(COLLECTION)))
    }

    /// Stores trades, one or more, with the client's write concern. `key` is what the client calls the request.
    pub async fn append(
        &self,
        customer: CustomerId,
        trades: &[Trade],
        key: Option<&str>,
    ) -> mongodb::error::Result<()> {
        let collection = match self {
            Self::Manual(collection) => {
                for trade in trades {
                    manual_append(collection, customer, trade).await?;
                }
                return Ok(());
            }
            Self::Flat(collection) | Self::FlatWithIds(collection) | Self::TimeSeries(collection) => {
                collection
            }
        };
        let documents = trades.iter().enumerate().map(|(index, trade)| {
            let mut document = flat_document(customer, trade);
            if matches!(self, Self::FlatWithIds(_)) {
                // Without one it is null, and the second of these refused.
                document.insert("tradeId", key.map(|key| format!("{key}{index}")));
            }
            document
        });
        if trades.len() == 1 {
            for document in documents {
                collection.insert_one(document).await?;
            }
        } else {
            collection.insert_many(documents).await?;
        }
        Ok(())
    }
}

async fn flat_collection(database: &Database) -> Result<Collection<Document>> {
    let collection = database.collection(COLLECTION);
    let index = IndexModel::builder().keys(doc! { "customerId": 1, "date": 1 }).build();
    collection.create_index(index).await?;
    Ok(collection)
}

/// The manual's statement:
///
/// ```js
/// db.trades.updateOne(
///   { _id: /^123_/, count: { $lt: 10 } },
///   { $push: { history: {...} }, $inc: { count: 1 }, $setOnInsert: { _id: "123_1698349623", customerId: 123 } },
///   { upsert: true })
/// ```
async fn manual_append(
    collection: &Collection<Document>,
    customer: CustomerId,
    trade: &Trade,
) -> mongodb::error::Result<()> {
    let regex = Regex { pattern: format!("^{customer}_").try_into()?, options: String::new().try_into()? };
    let filter = doc! { "_id": Bson::RegularExpression(regex), "count": { "$lt": 10 } };
    let update = doc! {
        "$push": { "history": trade_document(trade) },
        "$inc": { "count": 1 },
        "$setOnInsert": {
            "_id": format!("{customer}_{}", trade.date.seconds()),
            "customerId": customer.get() as i64,
        },
    };
    collection.update_one(filter, update).upsert(true).await.map(drop)
}

/// A trade as all contenders keep it.
fn trade_document(trade: &Trade) -> Document {
    doc! {
        "type": trade.side.name(),
        "ticker": trade.ticker.as_str(),
        "qty": trade.qty.get() as i64,
        "date": DateTime::from_millis(trade.date.millis()),
    }
}

/// A trade as a document of its own.
pub fn flat_document(customer: CustomerId, trade: &Trade) -> Document {
    let mut document = doc! { "customerId": customer.get() as i64 };
    document.extend(trade_document(trade));
    document
}
