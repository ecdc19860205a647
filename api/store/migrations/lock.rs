//! A lock with a lease: an instance that dies while it holds the lock loses it when the lease ends.
//!
//! A holder that stalls for longer than its lease loses the lock too, but continues when it wakes. Then two
//! instances apply at once. That is harmless, because every command may be run again, even at the same time,
//! and a record is written once. The lock only saves work and log noise.

use std::time::Duration;

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{ErrorKind, WriteFailure};
use mongodb::options::WriteConcern;
use mongodb::{Collection, Database};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::error::MigrationError;
use crate::store::Error;

/// The collection of the applied migrations' records and of the lock.
pub const COLLECTION: &str = "migrations";

/// The lease. It is renewed three times within this time, so an index build may take any time.
const LEASE: Duration = Duration::from_secs(15);
/// How long an instance waits for another one that applies migrations.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(200);

const ID: &str = "lock";
const DUPLICATE_KEY: i32 = 11000;

/// A lock that is held as long as this value exists.
pub(super) struct Lock {
    collection: Collection<Document>,
    owner: ObjectId,
    renewal: JoinHandle<()>,
}

impl Lock {
    /// Waits for the lock and takes it.
    pub(super) async fn take(database: &Database) -> Result<Self, MigrationError> {
        let collection = database.collection::<Document>(COLLECTION);
        let owner = ObjectId::new();
        let deadline = Instant::now() + PATIENCE;
        while !try_take(&collection, owner).await? {
            if Instant::now() > deadline {
                return Err(MigrationError::Locked(PATIENCE.as_secs()));
            }
            sleep(POLL).await;
        }
        let renewal = tokio::spawn(renew(collection.clone(), owner));
        Ok(Self { collection, owner, renewal })
    }

    /// Releases the lock at once. If this fails, the lock becomes free when the lease ends.
    pub(super) async fn release(self) {
        self.renewal.abort();
        let mine = doc! { "_id": ID, "owner": self.owner };
        if let Err(error) = self.collection.delete_one(mine).write_concern(WriteConcern::majority()).await {
            tracing::warn!(%error, "the migration lock was not released; it becomes free when its lease ends");
        }
    }
}

/// Takes the lock if it is free or its lease has ended by the server's clock.
async fn try_take(collection: &Collection<Document>, owner: ObjectId) -> Result<bool, MigrationError> {
    let fresh = collection
        .update_one(doc! { "_id": ID, "owner": owner }, vec![claim(owner)])
        .upsert(true)
        .write_concern(WriteConcern::majority());
    match fresh.await {
        Ok(_) => return Ok(true),
        Err(error) => match error.kind.as_ref() {
            // Another instance holds the lock: the `_id` exists.
            ErrorKind::Write(WriteFailure::WriteError(error)) if error.code == DUPLICATE_KEY => {}
            _ => return Err(Error::from(error).into()),
        },
    }
    let ended = doc! { "_id": ID, "$expr": { "$lt": ["$until", "$$NOW"] } };
    let stolen =
        collection.update_one(ended, vec![claim(owner)]).write_concern(WriteConcern::majority()).await;
    Ok(stolen.map_err(Error::from)?.matched_count == 1)
}

fn claim(owner: ObjectId) -> Document {
    let until = doc! { "$add": [Bson::String("$$NOW".to_owned()), LEASE.as_millis() as i64] };
    doc! { "$set": { "owner": owner, "until": until } }
}

async fn renew(collection: Collection<Document>, owner: ObjectId) {
    loop {
        sleep(LEASE / 3).await;
        let renewed = collection.update_one(doc! { "_id": ID, "owner": owner }, vec![claim(owner)]).await;
        if let Err(error) = renewed {
            tracing::warn!(%error, "the lease of the migration lock was not renewed");
        }
    }
}
