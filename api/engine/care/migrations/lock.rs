//! A lock with a lease: an instance that dies while it holds the lock loses it when the lease ends.
//!
//! A holder that stalls for longer than its lease loses the lock too, but continues when it wakes. Then two
//! instances apply at once. That is harmless, because every command may be run again, even at the same time,
//! and a record is written once. The lock only saves work and log noise.

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{DateTime, doc};
use tokio::time::{Instant, sleep};

use super::error::MigrationError;
use crate::mongo::lease::Lease;
use crate::mongo::majority::MonotonicReads;
use crate::mongo::{COMMAND, Deadline, NO_PRIMARY, Result};
use crate::store::epoch::COLLECTION;

/// The lease. It is renewed three times within this time, so an index build may take any time.
const LEASE: Duration = Duration::from_secs(15);
/// How long an instance waits for another one that applies migrations.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(200);

/// The name of the lock under which migrations are applied.
const ID: &str = "lock";

/// Waits for the lock of migrations and takes it.
pub(crate) async fn take(database: &Database) -> Result<Lease, MigrationError> {
    let deadline = Instant::now() + LONGEST_WAIT;
    loop {
        if let Some(lock) = try_take(database, ID).await? {
            return Ok(lock);
        }
        if Instant::now() > deadline {
            return Err(MigrationError::Locked(LONGEST_WAIT.as_secs()));
        }
        sleep(POLL).await;
    }
}

/// Takes the lock of this name; `None` if another instance holds it.
pub(crate) async fn try_take(database: &Database, id: &'static str) -> Result<Option<Lease>> {
    let (reads, owner) = (MonotonicReads::of(database.clone()), ObjectId::new());
    let mine = doc! { "_id": id, "owner": owner };
    let lease = Lease { reads, collection: COLLECTION, mine, length: LEASE };
    let free = doc! { "$setOnInsert": { "owner": owner, "until": DateTime::from_millis(0) } };
    let make = doc! { "q": { "_id": id }, "u": free, "upsert": true };
    let make = doc! { "update": COLLECTION, "updates": [make] };
    let take = async || {
        lease.reads.write(make.clone(), Deadline::within(COMMAND)).await?;
        lease.take(doc! { "owner": owner }, Deadline::within(COMMAND)).await
    };
    Ok(Deadline::within(NO_PRIMARY).retry(take).await?.map(|_| lease))
}

/// Does this while the lock is held, and releases it. If that fails, it becomes free when the lease ends.
pub(crate) async fn hold<T>(lease: Lease, work: impl Future<Output = T>) -> T {
    let failed = |error| {
        tracing::warn!(%error, lock = %lease.mine, "the lease of a lock was not renewed");
        None
    };
    let done = lease.keeping(work, failed).await;
    let release = doc! { "delete": COLLECTION, "deletes": [{ "q": lease.mine.clone(), "limit": 1 }] };
    if let Err(error) = lease.reads.write(release, Deadline::within(COMMAND)).await {
        tracing::warn!(%error, lock = %lease.mine, "a lock was not released; it becomes free when its lease ends");
    }
    done
}
