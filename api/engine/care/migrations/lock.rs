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
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::error::MigrationError;
use crate::mongo::Result;
use crate::store::epoch::COLLECTION;
use crate::tasks;

/// The lease. It is renewed three times within this time, so an index build may take any time.
const LEASE: Duration = Duration::from_secs(15);
/// How long an instance waits for another one that applies migrations.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(200);

/// The name of the lock under which migrations are applied.
const ID: &str = "lock";
const DUPLICATE_KEY: i32 = 11000;

/// A lock that is held as long as this value exists.
#[derive(Debug)]
pub(crate) struct Lock {
    collection: Collection<Document>,
    id: &'static str,
    owner: ObjectId,
    /// Ends the renewals when it is dropped.
    renewals: DropGuard,
}

impl Lock {
    /// Waits for the lock of migrations and takes it.
    pub(crate) async fn take(database: &Database) -> Result<Self, MigrationError> {
        let deadline = Instant::now() + LONGEST_WAIT;
        loop {
            if let Some(lock) = Self::try_take(database, ID).await? {
                return Ok(lock);
            }
            if Instant::now() > deadline {
                return Err(MigrationError::Locked(LONGEST_WAIT.as_secs()));
            }
            sleep(POLL).await;
        }
    }

    /// Takes the lock of this name; `None` if another instance holds it.
    ///
    /// # Errors
    /// The database does not answer.
    pub(crate) async fn try_take(database: &Database, id: &'static str) -> Result<Option<Self>> {
        let (collection, owner) = (database.collection::<Document>(COLLECTION), ObjectId::new());
        if !try_take(&collection, id, owner).await? {
            return Ok(None);
        }
        let released = CancellationToken::new();
        tasks::start("lock-renewal", renew(collection.clone(), id, owner, released.clone()));
        Ok(Some(Self { collection, id, owner, renewals: released.drop_guard() }))
    }

    /// Releases the lock at once. If this fails, the lock becomes free when the lease ends.
    pub(crate) async fn release(self) {
        drop(self.renewals);
        let mine = doc! { "_id": self.id, "owner": self.owner };
        if let Err(error) = self.collection.delete_one(mine).write_concern(WriteConcern::majority()).await {
            tracing::warn!(%error, id = self.id, "a lock was not released; it becomes free when its lease ends");
        }
    }
}

/// Takes the lock if it is free or its lease has ended by the server's clock.
async fn try_take(collection: &Collection<Document>, id: &str, owner: ObjectId) -> Result<bool> {
    let fresh = collection
        .update_one(doc! { "_id": id, "owner": owner }, vec![claim(owner)])
        .upsert(true)
        .write_concern(WriteConcern::majority());
    match fresh.await {
        Ok(_) => return Ok(true),
        Err(error) => match error.kind.as_ref() {
            // Another instance holds the lock: the `_id` exists.
            ErrorKind::Write(WriteFailure::WriteError(error)) if error.code == DUPLICATE_KEY => {}
            _ => return Err(error.into()),
        },
    }
    let ended = doc! { "_id": id, "$expr": { "$lt": ["$until", "$$NOW"] } };
    let stolen =
        collection.update_one(ended, vec![claim(owner)]).write_concern(WriteConcern::majority()).await;
    Ok(stolen?.matched_count == 1)
}

fn claim(owner: ObjectId) -> Document {
    let until = doc! { "$add": [Bson::String("$$NOW".to_owned()), LEASE.as_millis() as i64] };
    doc! { "$set": { "owner": owner, "until": until } }
}

async fn renew(collection: Collection<Document>, id: &str, owner: ObjectId, released: CancellationToken) {
    while released.run_until_cancelled(sleep(LEASE / 3)).await.is_some() {
        let renewed = collection.update_one(doc! { "_id": id, "owner": owner }, vec![claim(owner)]).await;
        if let Err(error) = renewed {
            tracing::warn!(%error, id, "the lease of a lock was not renewed");
        }
    }
}
