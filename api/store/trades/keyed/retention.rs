//! How long a key is remembered: the server removes records by a TTL index on their last use.
//!
//! Not in a migration, because it is the operator's to choose, and may change.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};

use super::COLLECTION;
use crate::store::Error;

const NAME: &str = "touched_1";

/// Records are kept so much longer than promised. A repeat that comes right before the end of the
/// promise reads `from` before it touches the record, and must not find it gone in between; that takes
/// seconds, and a server's clock may be set.
const MARGIN: Duration = Duration::from_secs(600);

/// Lets records expire so long after their last use, and a little later.
///
/// # Errors
/// No database, or the user may not.
pub(in crate::store) async fn keep_for(database: &Database, retention: Duration) -> Result<(), Error> {
    let seconds = (retention + MARGIN).as_secs() as i64;
    let command = match expiry(database).await? {
        Some(current) if current == seconds => return Ok(()),
        Some(_) => doc! { "collMod": COLLECTION, "index": { "name": NAME, "expireAfterSeconds": seconds } },
        None => {
            let index = doc! { "key": { "touched": 1 }, "name": NAME, "expireAfterSeconds": seconds };
            doc! { "createIndexes": COLLECTION, "indexes": [index] }
        }
    };
    database.run_command(command).await.map_err(|error| Error::of(&error))?;
    tracing::info!(seconds, "idempotency keys are forgotten so long after their last use");
    Ok(())
}

/// After how many seconds records expire, if they do.
async fn expiry(database: &Database) -> Result<Option<i64>, Error> {
    let error = |error: mongodb::error::Error| Error::of(&error);
    let list = doc! { "listIndexes": COLLECTION };
    let indexes = database.run_cursor_command(list).await.map_err(error)?;
    let indexes: Vec<Document> = indexes.try_collect().await.map_err(error)?;
    let index = indexes.iter().find(|index| index.get_str("name").ok() == Some(NAME));
    let seconds = index.and_then(|index| index.get("expireAfterSeconds"));
    // Servers give it as int32, int64 or double.
    let number = |value: &Bson| {
        value.as_i32().map(i64::from).or(value.as_i64()).or(value.as_f64().map(|number| number as i64))
    };
    Ok(seconds.and_then(number))
}
