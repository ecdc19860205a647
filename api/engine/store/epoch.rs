//! The database's epoch: a random number assigned by a migration. Caches keep pages for up to a year; the
//! epoch distinguishes the pages of one database from those of another database with the same name.

use mongodb::Database;
use mongodb::bson::{Document, doc};
use mongodb::options::{ReadConcern, WriteConcern};

use crate::mongo::{COMMAND, Deadline, Error, Result};

/// The collection of the epoch, of what was applied, and of locks.
pub(crate) const COLLECTION: &str = "migrations";

/// The `_id` of its document.
pub(crate) const ID: &str = "epoch";

/// The epoch of a database, the same for all instances that use the database.
/// `Display` writes hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
#[display("{_0:x}")]
pub struct Epoch(i64);

/// Reads the epoch of `database`.
pub(crate) async fn read(database: &Database, deadline: Deadline) -> Result<Epoch> {
    let found = find(database, deadline).await?;
    found.ok_or_else(|| Error::internal("the database has no epoch: migrate it"))
}

/// The epoch of `database`. `None` if it is missing or has another type.
pub(crate) async fn find(database: &Database, deadline: Deadline) -> Result<Option<Epoch>> {
    let records = database.collection::<Document>(COLLECTION);
    let find = async move {
        let found = records.find_one(doc! { "_id": ID }).read_concern(ReadConcern::majority()).await?;
        Ok(found.and_then(|epoch| epoch.get_i64("value").ok()).map(Epoch))
    };
    deadline.or_within(COMMAND).read(find).await
}

/// Gives `database` another epoch. Instances that run keep the one that they have read.
pub(crate) async fn renew(database: &Database, deadline: Deadline) -> Result<()> {
    let records = database.collection::<Document>(COLLECTION);
    // As migration 0003 chose the first one.
    let number = doc! { "$floor": { "$multiply": [{ "$rand": {} }, 9_007_199_254_740_992_i64] } };
    let renewal = vec![doc! { "$set": { "value": { "$toLong": number } } }];
    let renew = async move {
        let renewed = records.update_one(doc! { "_id": ID }, renewal).upsert(true);
        Ok(renewed.write_concern(WriteConcern::majority()).await.map(drop)?)
    };
    deadline.or_within(COMMAND).read(renew).await
}
