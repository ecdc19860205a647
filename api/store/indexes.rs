//! Lists the indexes of a collection.

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Document, doc};

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
