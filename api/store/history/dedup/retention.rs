//! How long the record of a key is kept after its last use.

use std::time::Duration;

use mongodb::Database;

use super::record::COLLECTION;
use crate::store::{Error, ttl_index};

/// How much longer than promised records are kept. A repeat right before the end of the promised time reads
/// `from` before it touches the record, and the record must not expire in between. That takes seconds, but a
/// server's clock may be changed.
const MARGIN: Duration = Duration::from_secs(600);

/// Makes records expire `retention` plus [`MARGIN`] after their last use.
///
/// # Errors
/// The database does not answer, or the user lacks the privilege.
pub(in crate::store) async fn keep_for(database: &Database, retention: Duration) -> Result<(), Error> {
    let seconds = (retention + MARGIN).as_secs() as i64;
    ttl_index::expire_after(database, COLLECTION, "touched", Some(seconds)).await
}
