//! Runs one command of a migration.

use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};

use super::error::MigrationError;
use crate::mongo::error::{NAMESPACE_EXISTS, UNSUPPORTED, code, tells_of_full_disk};
use crate::mongo::{Error, Result, indexes};

/// `createIndexes` of an index that exists with other options.
const INDEX_OPTIONS_CONFLICT: i32 = 85;

/// Runs a command of a migration. What an earlier attempt has created may exist.
pub(crate) async fn run(
    database: &Database,
    migration: &str,
    mut command: Document,
) -> Result<(), MigrationError> {
    let name = command.keys().next().cloned().unwrap_or_default();
    if !command.contains_key("writeConcern") {
        command.insert("writeConcern", doc! { "w": "majority" });
    }
    let failed =
        |source: Error| MigrationError::Failed { name: migration.to_owned(), command: name.clone(), source };
    match database.run_command(command.clone()).await {
        Ok(reply) => {
            let errors = reply.get("writeErrors").or(reply.get("writeConcernError"));
            errors.map_or(Ok(()), |error| {
                let is_full = tells_of_full_disk(error);
                Err(failed(if is_full { Error::DiskFull } else { Error::internal(error.to_string()) }))
            })
        }
        // An earlier attempt has created it.
        Err(error) if name == "create" && code(&error) == Some(NAMESPACE_EXISTS) => Ok(()),
        Err(error)
            if name == "createIndexes"
                && code(&error) == Some(INDEX_OPTIONS_CONFLICT)
                && has_indexes(database, &command).await.map_err(failed)? =>
        {
            Ok(())
        }
        Err(error) if code(&error).is_some_and(|code| UNSUPPORTED.contains(&code)) => {
            let what = if command.contains_key("clusteredIndex") {
                "clustered collections"
            } else if command.contains_key("validator") {
                "validators ($jsonSchema)"
            } else {
                return Err(failed(error.into()));
            };
            Err(MigrationError::Lacks { what, detail: error.kind.to_string() })
        }
        Err(error) => Err(failed(error.into())),
    }
}

/// Whether all indexes of this `createIndexes` command exist with the options that it names. They may have
/// more options: the operator chooses after which time documents expire.
async fn has_indexes(database: &Database, command: &Document) -> Result<bool> {
    let collection = command.get_str("createIndexes").unwrap_or_default();
    let existing = indexes::list(database, collection).await?;
    let mut wanted = command.get_array("indexes").into_iter().flatten().filter_map(Bson::as_document);
    Ok(wanted.all(|wanted| {
        existing.iter().any(|index| wanted.iter().all(|(option, value)| index.get(option) == Some(value)))
    }))
}
