//! How long a key is remembered after its last use.

use std::time::Duration;

use mongodb::Database;

use super::record::COLLECTION;
use crate::store::Error;
use crate::store::ttl_index::TtlIndex;

const INDEX: TtlIndex = TtlIndex { collection: COLLECTION, field: "touched" };

/// Records are kept so much longer than promised. A repeat that comes right before the end of the
/// promise reads `from` before it touches the record, and must not find it gone in between; that takes
/// seconds, and a server's clock may be set.
const MARGIN: Duration = Duration::from_secs(600);

/// Lets records expire `retention` after their last use, and a little later.
///
/// # Errors
/// The database does not answer, or the user lacks the privilege.
pub(in crate::store) async fn keep_for(database: &Database, retention: Duration) -> Result<(), Error> {
    let seconds = (retention + MARGIN).as_secs() as i64;
    if INDEX.expire_after(database, Some(seconds)).await? {
        tracing::info!(seconds, "idempotency keys expire this long after their last use");
    }
    Ok(())
}
