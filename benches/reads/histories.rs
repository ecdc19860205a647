//! The histories that are read, written directly, and the databases that hold them.

use std::ops::RangeInclusive;

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};
use mongodb::{Database, IndexModel};
use pagebucket::store::Store;

use crate::harness::Result;
use crate::harness::check::COLLECTION;
use crate::harness::history::{self, date, quantity};
use crate::harness::mongod::Mongod;
use crate::harness::ours::Ours;

/// Whose documents a database holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    Ours,
    /// The same once more, for a second server that appends too.
    OursAgain,
    Manual,
    /// For all that keep one document a trade. The index serves pages in the order of arrival, and their count.
    Flat,
}

/// Customers, and how many full pages each of them has.
pub type Histories = Vec<(RangeInclusive<u64>, u64)>;

impl Data {
    pub fn database(self, stage: &str) -> String {
        format!("bench_{stage}_{self:?}")
    }

    /// Writes histories into a new database.
    pub async fn write(self, mongod: &Mongod, stage: &str, histories: &Histories) -> Result<Database> {
        let name = self.database(stage);
        eprintln!("bench: {stage}: writing {name}");
        let database = mongod.database(&name).await?;
        let page: history::Page = match self {
            Self::Ours | Self::OursAgain => {
                Ours::prepare(mongod, &name).await?;
                history::ours
            }
            Self::Manual => history::manual,
            Self::Flat => {
                let index = IndexModel::builder().keys(doc! { "customerId": 1, "_id": 1 }).build();
                database.collection::<Document>(COLLECTION).create_index(index).await?;
                flat
            }
        };
        for (customers, pages) in histories {
            history::write(&database, page, customers.clone(), *pages).await?;
        }
        Ok(database)
    }

    /// A connection of ours of its own to a database written before.
    pub async fn open(self, mongod: &Mongod, stage: &str) -> Result<Store> {
        Ours::prepare(mongod, &self.database(stage)).await
    }
}

/// A page's trades, each a document.
fn flat(customer: u64, page: u64) -> Vec<Document> {
    let trade = |place| {
        doc! {
            "_id": flat_id(customer, page, place), "customerId": customer as i64, "type": "buy", "ticker": "MDB",
            "qty": quantity(page, place) as i64, "date": date(page),
        }
    };
    (1..=10).map(trade).collect()
}

/// An id that can be told beforehand, and grows as time goes by: seconds, and then what is unique within them.
pub fn flat_id(customer: u64, page: u64, place: u64) -> ObjectId {
    let seconds = (date(page).timestamp_millis() / 1000) as u32;
    let unique = customer << 8 | place;
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&seconds.to_be_bytes());
    bytes[4..].copy_from_slice(&unique.to_be_bytes());
    ObjectId::from_bytes(bytes)
}
