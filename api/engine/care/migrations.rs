//! Numbered JSON files of MongoDB commands, embedded in the binary and applied in order, each once.
//!
//! A file is `{why, compatible, commands: [{why, run}]}`. The collection `migrations` has one document for
//! each applied file, with the checksum of the file's text. Every command may be run again, so an interrupted
//! migration is applied from its beginning. A lock with a lease ([`lock`]) lets one instance apply at a time.

pub(crate) mod creation;
mod error;
mod files;
pub(crate) mod lock;
mod run;

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Document, doc};
use mongodb::options::{ReadConcern, WriteConcern};
use pagebucket_model::definition::Definitions;

use crate::mongo::{COMMAND, Deadline, Error};
use crate::store::epoch::{self, COLLECTION};
pub use error::MigrationError;
pub use files::Migration;
pub(crate) use files::embedded;
use run::run;

/// The migrations that made the collection of trades and its indexes before a database remembered
/// definitions. They are recorded and not run: [`creation`] makes the same for every history.
const OF_TRADES: [&str; 2] = ["0001_trades", "0004_dates"];

/// The migration that assigns the epoch. If the epoch is missing later, it is not run again but named
/// [`EPOCH`].
const OF_EPOCH: &str = "0003_epoch";

/// The name of a missing epoch in a list of migrations.
const EPOCH: &str = "epoch";

/// Applies the pending ones of these migrations, assigns an epoch if it is missing, creates the histories
/// that are new, and returns the names of all.
pub(crate) async fn apply(
    database: &Database,
    files: Vec<Migration>,
    definitions: &Definitions,
) -> Result<Vec<String>, MigrationError> {
    let mut applied = Ok(Vec::new());
    if !pending_names(database, files.clone(), definitions).await?.is_empty() {
        let held = lock::take(database).await?;
        applied = lock::hold(held, apply_all(database, files, definitions)).await;
    }
    creation::note(database, definitions).await?;
    applied
}

async fn apply_all(
    database: &Database,
    files: Vec<Migration>,
    definitions: &Definitions,
) -> Result<Vec<String>, MigrationError> {
    let mut applied = Vec::new();
    // Planned again: the previous holder of the lock may have applied some.
    let pending = pending(database, files.clone()).await?;
    let lost_epoch = has_lost_epoch(database, &files, &pending).await?;
    for migration in pending {
        let commands = if OF_TRADES.contains(&migration.name) { &[][..] } else { &migration.commands };
        for command in commands {
            run(database, migration.name, command.run.clone()).await?;
        }
        record(database, &migration).await?;
        tracing::info!(migration = migration.name, why = migration.why, "applied a migration");
        applied.push(migration.name.to_owned());
    }
    if lost_epoch {
        // A new one, because the earlier one is unknown: this may be another database of the same name.
        epoch::renew(database, Deadline::within(COMMAND)).await?;
        tracing::info!(migration = EPOCH, why = "the database had no epoch", "applied a migration");
        applied.push(EPOCH.to_owned());
    }
    applied.extend(creation::create(database, definitions, !applied.is_empty()).await?);
    Ok(applied)
}

/// The names of what [`apply`] has to do, in order.
pub(crate) async fn pending_names(
    database: &Database,
    files: Vec<Migration>,
    definitions: &Definitions,
) -> Result<Vec<String>, MigrationError> {
    let pending = pending(database, files.clone()).await?;
    let mut names: Vec<_> = pending.iter().map(|migration| migration.name.to_owned()).collect();
    if has_lost_epoch(database, &files, &pending).await? {
        names.push(EPOCH.to_owned());
    }
    let histories = creation::pending(database, definitions).await?;
    names.extend(histories.iter().map(|history| creation::pending_name(history)));
    Ok(names)
}

/// Whether the database has no epoch, although the migration that assigns it was applied.
async fn has_lost_epoch(
    database: &Database,
    files: &[Migration],
    pending: &[Migration],
) -> Result<bool, MigrationError> {
    let is_of_epoch = |migration: &Migration| migration.name == OF_EPOCH;
    let was_applied = files.iter().any(is_of_epoch) && !pending.iter().any(is_of_epoch);
    Ok(was_applied && epoch::find(database, Deadline::within(COMMAND)).await?.is_none())
}

/// Those of these migrations that the database still needs, in order.
async fn pending(database: &Database, files: Vec<Migration>) -> Result<Vec<Migration>, MigrationError> {
    let collection = database.collection::<Document>(COLLECTION);
    let found = collection.find(doc! { "_id": { "$type": "int" } }).read_concern(ReadConcern::majority());
    let found: Vec<Document> = found.await.map_err(Error::from)?.try_collect().await.map_err(Error::from)?;
    let numbered = |record: Document| Some((record.get_i32("_id").ok()?, record));
    let records: BTreeMap<i32, Document> = found.into_iter().filter_map(numbered).collect();
    let latest = files.iter().map(|file| file.number).max().unwrap_or(0);
    for (number, record) in &records {
        let name = record.get_str("name").unwrap_or("without a name").to_owned();
        match files.iter().find(|file| file.number == *number) {
            Some(file) if file.checksum != record.get_str("checksum").unwrap_or_default() => {
                return Err(MigrationError::Changed(name));
            }
            Some(_) => {}
            None if *number < latest => return Err(MigrationError::Missing(name)),
            None if !record.get_bool("compatible").unwrap_or(false) => {
                return Err(MigrationError::Ahead(name));
            }
            None => tracing::info!(migration = name, "the database has a later, compatible migration"),
        }
    }
    Ok(files.into_iter().filter(|file| !records.contains_key(&file.number)).collect())
}

async fn record(database: &Database, migration: &Migration) -> Result<(), MigrationError> {
    // An upsert, because a plain insert cannot be retried safely on a standalone server.
    let values = doc! {
        "name": migration.name,
        "checksum": &migration.checksum,
        "compatible": migration.compatible,
    };
    database
        .collection::<Document>(COLLECTION)
        .update_one(
            doc! { "_id": migration.number },
            doc! { "$setOnInsert": values, "$currentDate": { "appliedAt": true } },
        )
        .upsert(true)
        .write_concern(WriteConcern::majority())
        .await
        .map_err(Error::from)?;
    Ok(())
}
