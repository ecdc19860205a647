use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};

use super::Error;

/// An index that is there.
pub(super) struct Found {
    /// After how many seconds documents expire by it, if they do.
    pub(super) seconds: Option<i64>,
}

/// An index, if it is there.
///
/// # Errors
/// No database, or no such collection.
pub(super) async fn of_index(
    database: &Database,
    collection: &str,
    name: &str,
) -> Result<Option<Found>, Error> {
    let error = |error: mongodb::error::Error| Error::of(&error);
    let indexes = database.run_cursor_command(doc! { "listIndexes": collection }).await.map_err(error)?;
    let indexes: Vec<Document> = indexes.try_collect().await.map_err(error)?;
    let index = indexes.iter().find(|index| index.get_str("name").ok() == Some(name));
    // Servers give it as int32, int64 or double.
    let number = |value: &Bson| {
        value.as_i32().map(i64::from).or(value.as_i64()).or(value.as_f64().map(|number| number as i64))
    };
    Ok(index.map(|index| Found { seconds: index.get("expireAfterSeconds").and_then(number) }))
}
