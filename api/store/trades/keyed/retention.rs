//! How long a key is remembered: the server removes records by a TTL index on their last use.
//!
//! Not in a migration, because it is the operator's to choose, and may change.

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::doc;

use super::COLLECTION;
use crate::store::{Error, indexes};

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
    let command = match indexes::named(database, COLLECTION, NAME).await?.and_then(|index| index.seconds) {
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
