//! Which indexes a collection has.

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Document, doc};

use super::{Error, whole};

/// All of them, as documents: the driver's own type has no words for what later servers add.
///
/// # Errors
/// The driver's: no database, or no such collection.
pub(super) async fn list(
    database: &Database,
    collection: &str,
) -> Result<Vec<Document>, mongodb::error::Error> {
    database.run_cursor_command(doc! { "listIndexes": collection }).await?.try_collect().await
}

/// An index that is there.
pub(super) struct Found {
    /// After how many seconds documents expire by it, if they do.
    pub(super) seconds: Option<i64>,
}

/// An index, if it is there.
///
/// # Errors
/// No database, or no such collection.
pub(super) async fn named(database: &Database, collection: &str, name: &str) -> Result<Option<Found>, Error> {
    let indexes = list(database, collection).await?;
    let index = indexes.iter().find(|index| index.get_str("name").ok() == Some(name));
    Ok(index.map(|index| Found { seconds: index.get("expireAfterSeconds").and_then(whole::read) }))
}
