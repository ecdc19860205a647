//! Lists the indexes of a collection.

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Document, doc};

use super::{Error, whole_number};

/// All indexes of a collection, as documents: the driver's type drops options that later servers add.
///
/// # Errors
/// The driver's error: the database does not answer, or the collection does not exist.
pub(super) async fn list(
    database: &Database,
    collection: &str,
) -> Result<Vec<Document>, mongodb::error::Error> {
    database.run_cursor_command(doc! { "listIndexes": collection }).await?.try_collect().await
}

/// An index that exists.
pub(super) struct Found {
    /// After how many seconds documents expire, if the index is a TTL index.
    pub(super) seconds: Option<i64>,
}

/// The index with this name, if it exists.
///
/// # Errors
/// The database does not answer, or the collection does not exist.
pub(super) async fn named(database: &Database, collection: &str, name: &str) -> Result<Option<Found>, Error> {
    let indexes = list(database, collection).await?;
    let index = indexes.iter().find(|index| index.get_str("name").ok() == Some(name));
    Ok(index.map(|index| Found { seconds: index.get("expireAfterSeconds").and_then(whole_number::read) }))
}
