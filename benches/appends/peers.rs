//! The peers: other ways of keeping the same trades in MongoDB.

use mongodb::bson::{Bson, DateTime, Document, Regex, doc};
use mongodb::options::{TimeseriesGranularity, TimeseriesOptions};
use mongodb::{Collection, Database, IndexModel};
use pagebucket::domain::{CustomerId, Trade};

use crate::Result;
use crate::check::COLLECTION;

/// One of them.
#[derive(Clone, Debug)]
pub enum Peer {
    /// The MongoDB manual, "Group data with the bucket pattern": a plain collection, no index but `_id`.
    Manual(Collection<Document>),
    /// One document a trade, and an index by which pages could be read.
    Flat(Collection<Document>),
    /// A native time-series collection, in which the server makes buckets by itself.
    TimeSeries(Collection<Document>),
}

impl Peer {
    pub fn manual(database: &Database) -> Self {
        Self::Manual(database.collection(COLLECTION))
    }

    pub async fn flat(database: &Database) -> Result<Self> {
        let collection = database.collection(COLLECTION);
        let index = IndexModel::builder().keys(doc! { "customerId": 1, "date": 1 }).build();
        collection.create_index(index).await?;
        Ok(Self::Flat(collection))
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

    /// Stores trades, one or more, with the client's write concern.
    pub async fn append(&self, customer: CustomerId, trades: &[Trade]) -> mongodb::error::Result<()> {
        match (self, trades) {
            (Self::Manual(collection), trades) => {
                for trade in trades {
                    manual_append(collection, customer, trade).await?;
                }
            }
            (Self::Flat(collection) | Self::TimeSeries(collection), [trade]) => {
                collection.insert_one(flat_document(customer, trade)).await?;
            }
            (Self::Flat(collection) | Self::TimeSeries(collection), trades) => {
                let documents = trades.iter().map(|trade| flat_document(customer, trade));
                collection.insert_many(documents).await?;
            }
        }
        Ok(())
    }
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

fn flat_document(customer: CustomerId, trade: &Trade) -> Document {
    let mut document = doc! { "customerId": customer.get() as i64 };
    document.extend(trade_document(trade));
    document
}
