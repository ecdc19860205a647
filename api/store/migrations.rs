//! Numbered JSON files of MongoDB commands, embedded in the binary and applied in order, each once.
//!
//! A file is `{why, compatible, commands: [{why, run}]}`. The collection `migrations` has one document for each
//! applied file, with the checksum of the file's text. Every command may be run again, so an interrupted
//! migration is applied from its beginning. A lock with a lease ([`lock`]) lets one instance apply at a time.

mod error;
mod files;
pub(super) mod histories;
mod lock;

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{ReadConcern, WriteConcern};

use super::error::code;
use super::{Error, indexes};
use crate::definition::Definitions;
pub use error::MigrationError;
pub use files::Migration;
pub(super) use files::embedded;
pub(super) use lock::COLLECTION;

/// The migrations that made the collection of trades and its indexes before a database remembered definitions. They are
/// recorded and not run: [`histories`] makes the same for every history.
const OF_TRADES: [&str; 2] = ["0001_trades", "0004_dates"];

/// `create` of a collection that an earlier attempt has created.
const NAMESPACE_EXISTS: i32 = 48;

/// `createIndexes` of an index that exists with other options.
const INDEX_OPTIONS_CONFLICT: i32 = 85;

/// Applies the pending ones of these migrations, creates the histories that are new, and returns the names of both.
///
/// # Errors
/// The files do not fit the migrations of the database, or a command was refused.
pub(super) async fn apply(
    database: &Database,
    files: Vec<Migration>,
    definitions: &Definitions,
) -> Result<Vec<String>, MigrationError> {
    if pending(database, files.clone()).await?.is_empty()
        && histories::pending(database, definitions).await?.is_empty()
    {
        histories::note(database, definitions).await?;
        return Ok(Vec::new());
    }
    let lock = lock::Lock::take(database).await?;
    let applied = apply_all(database, files, definitions).await;
    lock.release().await;
    histories::note(database, definitions).await?;
    applied
}

async fn apply_all(
    database: &Database,
    files: Vec<Migration>,
    definitions: &Definitions,
) -> Result<Vec<String>, MigrationError> {
    let mut applied = Vec::new();
    // Planned again: the previous holder of the lock may have applied some.
    for migration in pending(database, files).await? {
        let commands = if OF_TRADES.contains(&migration.name) { &[][..] } else { &migration.commands };
        for command in commands {
            run(database, &migration, command).await?;
        }
        record(database, &migration).await?;
        tracing::info!(migration = migration.name, why = migration.why, "applied a migration");
        applied.push(migration.name.to_owned());
    }
    let histories = histories::create(database, definitions, !applied.is_empty()).await?;
    applied.extend(histories.iter().map(|name| histories::pending_name(name)));
    Ok(applied)
}

/// Those of these migrations that the database still needs, in order.
///
/// # Errors
/// The files do not fit the migrations of the database.
pub(super) async fn pending(
    database: &Database,
    files: Vec<Migration>,
) -> Result<Vec<Migration>, MigrationError> {
    let records = records(database).await?;
    let latest = files.iter().map(|file| file.number).max().unwrap_or(0);
    for (number, record) in &records {
        match files.iter().find(|file| file.number == *number) {
            Some(file) if file.checksum != record.checksum => {
                return Err(MigrationError::Changed(record.name.clone()));
            }
            Some(_) => {}
            None if *number < latest => return Err(MigrationError::Missing(record.name.clone())),
            None if !record.compatible => return Err(MigrationError::Ahead(record.name.clone())),
            None => tracing::info!(migration = record.name, "the database has a later, compatible migration"),
        }
    }
    Ok(files.into_iter().filter(|file| !records.contains_key(&file.number)).collect())
}

struct Record {
    name: String,
    checksum: String,
    compatible: bool,
}

async fn records(database: &Database) -> Result<BTreeMap<i32, Record>, MigrationError> {
    let collection = database.collection::<Document>(COLLECTION);
    let found = collection.find(doc! { "_id": { "$type": "int" } }).read_concern(ReadConcern::majority());
    let found: Vec<Document> = found.await.map_err(Error::from)?.try_collect().await.map_err(Error::from)?;
    let record = |document: Document| {
        let name = document.get_str("name").unwrap_or("without a name").to_owned();
        let checksum = document.get_str("checksum").unwrap_or_default().to_owned();
        let compatible = document.get_bool("compatible").unwrap_or(false);
        Some((document.get_i32("_id").ok()?, Record { name, checksum, compatible }))
    };
    Ok(found.into_iter().filter_map(record).collect())
}

async fn run(database: &Database, migration: &Migration, command: &Document) -> Result<(), MigrationError> {
    let mut command = command.clone();
    let name = command.keys().next().cloned().unwrap_or_default();
    if !command.contains_key("writeConcern") {
        command.insert("writeConcern", doc! { "w": "majority" });
    }
    let failed = |source: Error| MigrationError::Failed {
        name: migration.name.to_owned(),
        command: name.clone(),
        source,
    };
    let wanted = command.clone();
    match database.run_command(command).await {
        Ok(reply) => {
            let errors = reply.get("writeErrors").or(reply.get("writeConcernError"));
            errors.map_or(Ok(()), |error| Err(failed(Error::Internal(error.to_string()))))
        }
        Err(error) if name == "create" && code(&error) == Some(NAMESPACE_EXISTS) => Ok(()),
        Err(error)
            if name == "createIndexes"
                && code(&error) == Some(INDEX_OPTIONS_CONFLICT)
                && has_indexes(database, &wanted).await.map_err(failed)? =>
        {
            Ok(())
        }
        Err(error) => Err(failed(error.into())),
    }
}

/// Whether all indexes of this `createIndexes` command exist with the options that it names. They may have more
/// options: the operator chooses after which time documents expire.
async fn has_indexes(database: &Database, command: &Document) -> Result<bool, Error> {
    let collection = command.get_str("createIndexes").unwrap_or_default();
    let existing = indexes::list(database, collection).await?;
    let mut wanted = command.get_array("indexes").into_iter().flatten().filter_map(Bson::as_document);
    Ok(wanted.all(|wanted| {
        existing.iter().any(|index| wanted.iter().all(|(option, value)| index.get(option) == Some(value)))
    }))
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
