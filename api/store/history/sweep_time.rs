//! When the last sweep of an erased owner may be done.

use mongodb::bson::doc;
use mongodb::bson::raw::RawDocument;

use super::engine::Engine;
use super::marker::tombstone_id;
use crate::domain::{Instant, OwnerId};
use crate::store::{COMMAND, Deadline, Error};

impl Engine {
    /// The moment, by the server's clock, after which the last sweep of an erased owner may be done. `None` without a
    /// tombstone.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub async fn sweep_after(&self, owner: &OwnerId, deadline: Deadline) -> Result<Option<Instant>, Error> {
        let source = &self.0.source;
        let mut filter = source.owned_by(owner);
        filter.insert("_id", tombstone_id(owner));
        let command = doc! {
            "find": source.collection(),
            "filter": filter,
            "projection": { "since": 1 },
            "limit": 1_i64,
            "singleBatch": true,
            "hint": { "_id": 1 },
        };
        let age = source.markers.ages.marker.as_millis() as i64;
        let sweep = move |tombstone: &RawDocument| {
            let since = tombstone.get_datetime("since").ok();
            Ok(since.and_then(|since| Instant::from_millis(since.timestamp_millis() + age).ok()))
        };
        let found = source.reads.find(None, command, None, deadline.or_within(COMMAND), sweep).await?;
        Ok(found.into_iter().flatten().next())
    }
}
