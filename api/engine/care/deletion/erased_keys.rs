//! The keys of erased owners: their records are found by a scan.
//!
//! No index has the owners of records. It would cost every append with a key, and the scan costs only
//! erasures. It examines a bounded number of records in each command, in the order of their ids. A process
//! examines records for one scan at a time, so that many erasures at once cost appends no more than one. The
//! other erasures wait for their turn, or are answered with 202 until housekeeping finishes them.
//!
//! A record does not say of which history it is. As long as a history with the same owner's field has buckets
//! of the owner and no tombstone, the owner's records stay: a repeat would store its items again. They are
//! deleted when the last of these histories is erased.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Binary, DateTime, Document, doc};
use pagebucket_model::domain::OwnerId;
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::append::keys::RECORDS;
use crate::mongo::majority::at_most;
use crate::mongo::values::binary;
use crate::mongo::{Deadline, Result};
use crate::store::buckets::marker::tombstone_id;
use crate::store::collection::{HistoryCollection, OfOwner};
use crate::store::histories;

/// How many records are examined in one command.
const RECORDS_EXAMINED: i64 = 20_000;

/// How long one step waits for its turns and examines records.
const STEP: Duration = Duration::from_secs(5);

/// The most scans that are remembered. One that is forgotten begins again.
const MOST_REMEMBERED: usize = 1_000;

/// One scan: the owner, since when it is erased, and whether the scan is that of the sweep. A later erasure
/// has scans of its own.
pub(crate) type KeyScan = (OwnerId, Option<DateTime>, bool);

/// How far the scans have come.
#[derive(Debug)]
pub(crate) struct KeyScans {
    /// The record from which each goes on; `None` if it is done.
    reached: Mutex<HashMap<KeyScan, Option<Binary>>>,
    /// The turns of the scans of this process.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl KeyScans {
    pub(crate) fn new(turn: Arc<tokio::sync::Mutex<()>>) -> Self {
        Self { reached: Mutex::default(), turn }
    }

    /// A bounded step: deletes records of the owner's keys that were touched until `began`, in milliseconds
    /// since 1970 by the server's clock. Returns whether none is left of those that there were when the scan
    /// began, or none may be deleted. After an error the scan goes on where it was.
    pub(crate) async fn go_on(&self, of: OfOwner<'_>, scan: KeyScan, began: i64) -> Result<bool> {
        if let Some(history) = unerased(of).await? {
            let erased = of.source.collection();
            tracing::warn!(history, erased, owner = %of.owner, "records of keys stay, because a history of the owner is not erased");
            return Ok(true);
        }
        let known = self.reached.lock().get(&scan).cloned();
        let from = match known {
            Some(None) => return Ok(true),
            known => known.flatten(),
        };
        let next = self.delete(of.source, &of.filter(Document::new()), from, began, of.deadline).await?;
        let done = next.is_none();
        let mut scans = self.reached.lock();
        if scans.len() >= MOST_REMEMBERED {
            scans.clear();
        }
        scans.insert(scan, next);
        Ok(done)
    }

    /// A bounded step over all records: deletes those of the owners of this filter that were touched until
    /// `began`. Begins at the record `from`, or at the first one. Returns the record from which to go on;
    /// `None` at the end.
    pub(crate) async fn delete(
        &self,
        source: &HistoryCollection,
        owners: &Document,
        from: Option<Binary>,
        began: i64,
        deadline: Deadline,
    ) -> Result<Option<Binary>> {
        let end = deadline.or_within(STEP);
        let mut from = from.unwrap_or_else(|| id_of(0));
        while !end.passed() {
            let Ok(_turn) = timeout(end.remaining(), self.turn.lock()).await else { break };
            match delete_records(source, owners, from, began, deadline).await? {
                Some(next) => from = next,
                None => return Ok(None),
            }
        }
        Ok(Some(from))
    }

    /// Forgets the scans of an owner.
    pub(crate) fn forget(&self, owner: &OwnerId) {
        self.reached.lock().retain(|(erased, ..), _| erased != owner);
    }
}

/// A history that has buckets of the owner and no tombstone, by what the database remembers of histories.
pub(crate) async fn unerased(of: OfOwner<'_>) -> Result<Option<String>> {
    let owner = &of.source.definition.owner;
    let others = doc! {
        "find": histories::COLLECTION,
        "filter": {
            "_id": { "$ne": of.source.collection() }, "owner.field": &owner.field, "owner.type": owner.kind.to_string(),
        },
        "projection": { "_id": 1 },
    };
    let id = |document: &RawDocument| Ok(document.get_str("_id").unwrap_or_default().to_owned());
    for history in of.find(others, id).await? {
        // The tombstone has the greatest page number.
        let last = doc! {
            "find": &history, "filter": of.filter(doc! {}), "sort": { &*owner.field: -1, "page": -1 }, "limit": 1,
            "projection": { "_id": 1 },
        };
        if of.find(last, id).await?.pop().is_some_and(|last| last != tombstone_id(of.owner)) {
            return Ok(Some(history));
        }
    }
    Ok(None)
}

/// Examines the next records, and deletes those of these owners that were touched until `began`. Returns the
/// record from which to go on.
async fn delete_records(
    source: &HistoryCollection,
    owners: &Document,
    from: Binary,
    began: i64,
    deadline: Deadline,
) -> Result<Option<Binary>> {
    let mut command = at_most(RECORDS, doc! { "_id": { "$gte": &from } }, 1, doc! { "_id": 1 });
    command.extend(doc! { "projection": { "_id": 1 }, "skip": RECORDS_EXAMINED });
    let id = |record: &RawDocument| Ok(record.get_binary("_id").ok().map(|id| id.to_binary()));
    let next = source.reads.find(command, deadline, id).await?.pop().flatten();
    let to = next.clone().unwrap_or_else(|| id_of(u8::MAX));
    let condition =
        doc! { "_id": { "$gte": from, "$lte": to }, "touched": { "$lte": DateTime::from_millis(began) } };
    let these: Document = owners.clone().into_iter().chain(condition).collect();
    source.delete(RECORDS, [these], deadline).await?;
    Ok(next)
}

/// The first id of a record, or the last, by its bytes. A clustered collection is scanned within bounds of
/// the type of its ids.
fn id_of(byte: u8) -> Binary {
    binary([byte; 32])
}
