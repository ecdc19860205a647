//! The histories that are read, written directly, and the databases that hold them.

use std::ops::RangeInclusive;

use mongodb::bson::{Document, doc};
use mongodb::{Database, IndexModel};
use pagebucket::store::Store;

use crate::harness::Result;
use crate::harness::check::COLLECTION;
use crate::harness::history;
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
                history::flat
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
