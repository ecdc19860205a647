//! The indexes of a collection; and how long its documents are kept: a TTL index on a date removes them, or
//! they are kept without a limit.
//!
//! A migration does not set this, because the operator chooses the time and may change it. `collMod` turns an
//! index into a TTL index or changes its time. To stop expiry the index must be dropped and created again.

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Document, doc};

use super::deadline::{COMMAND, Deadline};
use super::error::code;
use super::error::{Error, Result};
use super::values::whole_number;

/// IndexNotFound, IndexOptionsConflict: another instance that starts at the same time has just dropped the
/// index or created it with other options.
const OVERTAKEN: [i32; 2] = [27, 85];

/// How often to try while other instances change the index.
const ATTEMPTS: u32 = 6;

/// Makes documents expire `seconds` after the date in `field`, which has an ascending index with its default
/// name; `None` keeps them without a limit.
pub(crate) async fn expire_after(
    database: &Database,
    collection: &str,
    field: &str,
    seconds: Option<i64>,
) -> Result<()> {
    let deadline = Deadline::within(COMMAND);
    let name = format!("{field}_1");
    let mut index = doc! { "key": { field: 1 }, "name": &name };
    index.extend(seconds.map(|seconds| ("expireAfterSeconds".to_owned(), seconds.into())));
    let create = doc! { "createIndexes": collection, "indexes": [index] };
    let drop = doc! { "dropIndexes": collection, "index": &name };
    let change = doc! { "collMod": collection, "index": { "name": &name, "expireAfterSeconds": seconds } };
    for attempt in 0..ATTEMPTS {
        let indexes = list(database, collection).await?;
        let existing = indexes.iter().find(|index| index.get_str("name").ok() == Some(&name));
        let commands = match existing.map(|index| index.get("expireAfterSeconds").and_then(whole_number)) {
            Some(existing) if existing == seconds => return Ok(()),
            Some(_) if seconds.is_some() => vec![&change],
            Some(_) => vec![&drop, &create],
            None => vec![&create],
        };
        match run(database, commands).await {
            Ok(()) => {
                tracing::info!(
                    collection,
                    field,
                    seconds,
                    "changed how long documents are kept after this date"
                );
                return Ok(());
            }
            Err(error) if code(&error).is_some_and(|code| OVERTAKEN.contains(&code)) => {
                deadline.back_off(attempt).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::internal(format!("other instances keep changing the index {name} of {collection}")))
}

async fn run(database: &Database, commands: Vec<&Document>) -> Result<(), mongodb::error::Error> {
    for command in commands {
        database.run_command(command.clone()).await?;
    }
    Ok(())
}

/// All indexes of a collection, as documents: the driver's type drops options that later servers add.
pub(crate) async fn list(
    database: &Database,
    collection: &str,
) -> Result<Vec<Document>, mongodb::error::Error> {
    database.run_cursor_command(doc! { "listIndexes": collection }).await?.try_collect().await
}
