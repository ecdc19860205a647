use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};

use super::Error;

/// After how many seconds documents expire by an index, if they do, and if it is there.
///
/// # Errors
/// No database, or no such collection.
pub(super) async fn of_index(
    database: &Database,
    collection: &str,
    name: &str,
) -> Result<Option<i64>, Error> {
    let error = |error: mongodb::error::Error| Error::of(&error);
    let indexes = database.run_cursor_command(doc! { "listIndexes": collection }).await.map_err(error)?;
    let indexes: Vec<Document> = indexes.try_collect().await.map_err(error)?;
    let index = indexes.iter().find(|index| index.get_str("name").ok() == Some(name));
    let seconds = index.and_then(|index| index.get("expireAfterSeconds"));
    // Servers give it as int32, int64 or double.
    let number = |value: &Bson| {
        value.as_i32().map(i64::from).or(value.as_i64()).or(value.as_f64().map(|number| number as i64))
    };
    Ok(seconds.and_then(number))
}
