//! What a change in the database says of a watched owner.

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, RawDocumentBuf, Timestamp, doc};
use pagebucket_model::domain::{Clock, OwnerId, OwnerType};
use tokio::time::Instant;

use super::watched::Growth;
use crate::mongo::change_log::{LogScope, LogStart};
use crate::mongo::{Deadline, Error, NO_PRIMARY, Result};
use crate::store::buckets::bucket_id::{self, BucketId};
use crate::store::collection::HistoryCollection;
use crate::store::epoch;

/// The most changes in one answer.
const BATCH: u32 = 1_000;

/// The most bytes that a change has of what was written.
const MOST_WRITTEN: i32 = 4 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OwnerChange {
    /// A bucket of this owner was written.
    Grown(OwnerId, Growth),
    /// The bucket of this owner with this second was deleted.
    Deleted(OwnerId, u64),
    /// A marker of this owner was written or deleted, or something of a bucket that is no append.
    Other(OwnerId),
    /// The collection was dropped, or renamed, or something that is not ours was written.
    NoOwner,
}

/// The changes of these collections and of the epoch, with nothing but what [`collection`] and
/// [`owner_change`] read, and the token; and with `more`. The server waits so long for a change.
pub(crate) fn scope(database: &Database, collections: &[&str], more: Document, wait: Duration) -> LogScope {
    let epoch = doc! { "ns.coll": epoch::COLLECTION, "documentKey._id": epoch::ID };
    let mut shown = doc! {
        "ns.coll": 1, "documentKey._id": 1, "operationType": 1, "clusterTime": 1, "wallTime": 1,
        // So that a known change wakes no reader.
        "count": { "$ifNull": ["$updateDescription.updatedFields.count", "$fullDocument.count"] },
    };
    shown.extend(more);
    let ours = doc! { "$match": { "$or": [{ "ns.coll": { "$in": collections } }, epoch] } };
    let pipeline = vec![ours, doc! { "$project": shown }];
    LogScope { database: database.clone(), collection: None, pipeline, batch: BATCH, wait }
}

/// What [`written`] reads, for [`scope`].
pub(crate) fn written_if_small() -> Document {
    let written = doc! { "$ifNull": ["$updateDescription.updatedFields", "$fullDocument", {}] };
    let is_small = doc! { "$lte": [{ "$bsonSize": &written }, MOST_WRITTEN] };
    doc! { "written": { "$cond": [is_small, written, "$$REMOVE"] } }
}

/// Where a log of the changes of these histories begins, by one of them: at a time that a majority has. Later
/// reads of all of them show at least its state, because they share what is known of the database's time.
pub(crate) async fn from_now(history: Option<&HistoryCollection>) -> Result<LogStart> {
    let Some(history) = history else { return Err(Error::internal("a log of no history")) };
    history.look_at_clock(Deadline::within(NO_PRIMARY)).await?;
    history
        .reads
        .time
        .newest()
        .map(LogStart::At)
        .ok_or_else(|| Error::unavailable("the database tells no time yet"))
}

/// What an insert or an update has written to a bucket, if it is small: the bucket, or the fields that were
/// set.
pub(crate) fn written(change: &RawDocument) -> Option<RawDocumentBuf> {
    match change.get_str("operationType") {
        Ok("insert" | "update") => change.get_document("written").ok().map(RawDocument::to_owned),
        _ => None,
    }
}

pub(crate) fn collection(change: &RawDocument) -> Option<&str> {
    change.get_document("ns").ok()?.get_str("coll").ok()
}

/// When it happened. A majority has it.
pub(crate) fn time(change: &RawDocument) -> Option<Timestamp> {
    change.get_timestamp("clusterTime").ok()
}

/// When the primary committed it, by the clocks of both machines; not in the future. `None` where the server
/// does not say: before version 6.0.
pub(crate) fn committed(change: &RawDocument, clock: &Clock) -> Option<Instant> {
    let wall = change.get_datetime("wallTime").ok()?.timestamp_millis();
    let ago = u64::try_from(clock.now().millis().saturating_sub(wall)).unwrap_or(0);
    Instant::now().checked_sub(Duration::from_millis(ago))
}

/// Whether the epoch may have changed.
pub(crate) fn is_of_epoch(change: &RawDocument) -> bool {
    let id = change.get_document("documentKey").ok().and_then(|key| key.get_str("_id").ok());
    collection(change) == Some(epoch::COLLECTION) && id == Some(epoch::ID)
}

/// What a change of a collection says.
pub(crate) fn owner_change(change: &RawDocument, kind: OwnerType) -> OwnerChange {
    let id = change.get_document("documentKey").ok().and_then(|key| key.get_str("_id").ok());
    let Some((id, owner)) = id.and_then(|id| Some((id, bucket_id::owner_of(id, kind)?))) else {
        return OwnerChange::NoOwner;
    };
    let Some(bucket) = BucketId::parse(id, &owner) else { return OwnerChange::Other(owner) };
    let count = match change.get_str("operationType") {
        Ok("delete") => return OwnerChange::Deleted(owner, bucket.second),
        Ok("replace") => None,
        _ => change.get_i32("count").ok().and_then(|count| u16::try_from(count).ok()),
    };
    match count {
        // No append leaves a bucket without items: it has become the marker of a beginning.
        None | Some(0) => OwnerChange::Other(owner),
        Some(count) => OwnerChange::Grown(owner, Growth { second: bucket.second, count }),
    }
}

impl OwnerChange {
    /// The owner to whose history the change has appended.
    pub(crate) fn appended(&self) -> Option<&OwnerId> {
        match self {
            Self::Grown(owner, _) => Some(owner),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::DateTime;

    use super::*;

    #[test]
    fn a_change_says_when_it_was_committed() {
        let clock = Clock::system();
        let now = clock.now().millis();
        let ago = |wall: Option<i64>| {
            let wall = wall.map(|wall| ("wallTime".to_owned(), DateTime::from_millis(wall).into()));
            let change = RawDocumentBuf::try_from(&Document::from_iter(wall)).unwrap();
            committed(&change, &clock).map(|at| at.elapsed())
        };
        assert!(ago(Some(now - 60_000)).is_some_and(|ago| ago >= Duration::from_secs(60)));
        assert!(ago(Some(now + 3_600_000)).is_some_and(|ago| ago < Duration::from_secs(60)), "clocks differ");
        assert_eq!(ago(None), None);
    }

    #[test]
    fn a_change_names_history_and_owner() {
        let change = |id: &str, operation: &str, more: Document| {
            let mut change = doc! {
                "ns": { "db": "d", "coll": "trades" }, "documentKey": { "_id": id }, "operationType": operation,
            };
            change.extend(more);
            RawDocumentBuf::try_from(&change).unwrap()
        };
        let seven = || OwnerId::Integer(7);
        for (change, kind, expected) in [
            (
                change("7_0000001000", "update", doc! { "count": 3 }),
                OwnerType::Integer,
                OwnerChange::Grown(seven(), Growth { second: 1_000, count: 3 }),
            ),
            (
                change("7_0000001000", "insert", doc! { "count": 1 }),
                OwnerType::Integer,
                OwnerChange::Grown(seven(), Growth { second: 1_000, count: 1 }),
            ),
            // A repair of its dates.
            (change("7_0000001000", "update", doc! {}), OwnerType::Integer, OwnerChange::Other(seven())),
            // Page 1, when pages are retired for the first time.
            (
                change("7_0000001000", "update", doc! { "count": 0 }),
                OwnerType::Integer,
                OwnerChange::Other(seven()),
            ),
            (
                change("7_0000001000", "replace", doc! { "count": 3 }),
                OwnerType::Integer,
                OwnerChange::Other(seven()),
            ),
            (
                change("7_0000001000", "delete", doc! {}),
                OwnerType::Integer,
                OwnerChange::Deleted(seven(), 1_000),
            ),
            (change("7_:", "insert", doc! { "count": 0 }), OwnerType::Integer, OwnerChange::Other(seven())),
            (
                change("a-b_0000000001", "insert", doc! { "count": 2 }),
                OwnerType::String,
                OwnerChange::Grown(OwnerId::Text("a-b".into()), Growth { second: 1, count: 2 }),
            ),
            (change("a_0000000001", "insert", doc! {}), OwnerType::Integer, OwnerChange::NoOwner),
            (change("nothing", "insert", doc! {}), OwnerType::Integer, OwnerChange::NoOwner),
        ] {
            assert_eq!(collection(&change), Some("trades"));
            let grows = matches!(expected, OwnerChange::Grown(..));
            assert_eq!(
                (owner_change(&change, kind), owner_change(&change, kind).appended().is_some()),
                (expected, grows),
                "{change:?}"
            );
        }
        let of_epoch = |collection: &str, id: &str| {
            let change = doc! { "ns": { "db": "d", "coll": collection }, "documentKey": { "_id": id } };
            is_of_epoch(&RawDocumentBuf::try_from(&change).unwrap())
        };
        assert!(of_epoch("migrations", "epoch"));
        assert!(!of_epoch("migrations", "lock") && !of_epoch("trades", "epoch"));
        let dropped = doc! { "ns": { "db": "d", "coll": "trades" }, "operationType": "drop" };
        assert_eq!(
            owner_change(&RawDocumentBuf::try_from(&dropped).unwrap(), OwnerType::Integer),
            OwnerChange::NoOwner
        );
    }
}
