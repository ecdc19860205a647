//! How long views are kept: for some days after their minute, or without a limit. The index on the minute
//! always exists.

use std::time::Duration;

use mongodb::Database;

use super::document::COLLECTION;
use crate::store::{Error, ttl_index};

/// Makes buckets expire `retention` after their minute; `None` keeps them without a limit.
///
/// # Errors
/// The database does not answer, or the user lacks the privilege.
pub(in crate::store) async fn keep_for(
    database: &Database,
    retention: Option<Duration>,
) -> Result<(), Error> {
    let seconds = retention.map(|retention| retention.as_secs() as i64);
    if ttl_index::expire_after(database, COLLECTION, "timestamp", seconds).await? {
        match seconds {
            Some(seconds) => tracing::info!(seconds, "page views expire this long after their minute"),
            None => tracing::info!("page views never expire"),
        }
    }
    Ok(())
}
