//! How long views are kept: the server removes buckets by a TTL index on their minute, or keeps them for ever.
//!
//! Not in a migration, because it is the operator's to choose, and may change. The index is there in any case.
//! A server makes it expire, later or earlier, by `collMod`; to let it expire no more, it has to be made anew.

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Document, doc};

use super::COLLECTION;
use crate::store::{Error, expiry};

const NAME: &str = "timestamp_1";

/// Lets buckets expire so long after their minute, or never.
///
/// # Errors
/// No database, or the user may not.
pub(in crate::store) async fn keep_for(
    database: &Database,
    retention: Option<Duration>,
) -> Result<(), Error> {
    let run = async |command: Document| {
        database.run_command(command).await.map(|_| ()).map_err(|error| Error::of(&error))
    };
    let current = expiry::of_index(database, COLLECTION, NAME).await?;
    let seconds = retention.map(|retention| retention.as_secs() as i64);
    match (current, seconds) {
        (current, seconds) if current == seconds => return Ok(()),
        (_, Some(seconds)) => {
            let index = doc! { "name": NAME, "expireAfterSeconds": seconds };
            run(doc! { "collMod": COLLECTION, "index": index }).await?;
            tracing::info!(seconds, "page views are forgotten so long after their minute");
        }
        (_, None) => {
            run(doc! { "dropIndexes": COLLECTION, "index": NAME }).await?;
            let index = doc! { "key": { "timestamp": 1 }, "name": NAME };
            run(doc! { "createIndexes": COLLECTION, "indexes": [index] }).await?;
            tracing::info!("page views are kept for ever");
        }
    }
    Ok(())
}
