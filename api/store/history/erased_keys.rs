//! The keys of erased owners: their records are found by a scan.
//!
//! No index has the owners of records. It would cost every append with a key, and the scan costs only erasures. It examines a
//! bounded number of records in each command, in the order of their ids.

use std::collections::HashMap;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Binary, DateTime, doc};
use parking_lot::Mutex;

use super::dedup::RECORDS;
use super::marker::Marker;
use super::source::OfOwner;
use crate::domain::OwnerId;
use crate::store::Result;
use crate::store::majority::at_most;
use crate::store::values::binary;

/// How many records are examined in one command.
const RECORDS_EXAMINED: i64 = 20_000;

/// The most commands of one step that examine records.
const MOST_SCANS: usize = 50;

/// The most scans that are remembered. One that is forgotten begins again.
const MOST_REMEMBERED: usize = 1_000;

/// One scan: the owner, since when it is erased, and whether the scan is that of the sweep. A later erasure has scans of its own.
type KeyScan = (OwnerId, Option<DateTime>, bool);

/// How far the scans have come: the record from which each goes on; `None` if it is done.
#[derive(Debug, Default)]
pub(super) struct KeyScans(Mutex<HashMap<KeyScan, Option<Binary>>>);

impl KeyScans {
    /// Deletes records of the owner's keys that were touched until `began`, in milliseconds since 1970 by the server's clock. Returns
    /// whether none is left of those that there were when the scan began.
    ///
    /// # Errors
    /// The database did not answer in time. The scan goes on where it was.
    pub(super) async fn go_on(&self, of: OfOwner<'_>, tombstone: &Marker, began: i64) -> Result<bool> {
        let scan = (of.owner.clone(), tombstone.since, tombstone.aged);
        for _ in 0..MOST_SCANS {
            let known = self.0.lock().get(&scan).cloned();
            let Some(from) = known.unwrap_or_else(|| Some(id_of(0))) else { return Ok(true) };
            let next = delete_records(of, from, began).await?;
            let mut scans = self.0.lock();
            if scans.len() >= MOST_REMEMBERED {
                scans.clear();
            }
            scans.insert(scan.clone(), next);
        }
        Ok(false)
    }

    /// Forgets the scans of an owner.
    pub(super) fn forget(&self, owner: &OwnerId) {
        self.0.lock().retain(|(erased, ..), _| erased != owner);
    }
}

/// Examines the next records, and deletes those of the owner that were touched until `began`. Returns the record from which to go on.
async fn delete_records(of: OfOwner<'_>, from: Binary, began: i64) -> Result<Option<Binary>> {
    let mut command = at_most(RECORDS, doc! { "_id": { "$gte": &from } }, 1, doc! { "_id": 1 });
    command.extend(doc! { "projection": { "_id": 1 }, "skip": RECORDS_EXAMINED });
    let id = |record: &RawDocument| Ok(record.get_binary("_id").ok().map(|id| id.to_binary()));
    let next = of.find(command, id).await?.pop().flatten();
    let to = next.clone().unwrap_or_else(|| id_of(u8::MAX));
    let condition =
        doc! { "_id": { "$gte": from, "$lte": to }, "touched": { "$lte": DateTime::from_millis(began) } };
    let delete = doc! { "q": of.filter(condition), "limit": 0, "hint": { "_id": 1 } };
    of.source.write(doc! { "delete": RECORDS, "deletes": [delete] }, of.deadline).await?;
    Ok(next)
}

/// The first id of a record, or the last, by its bytes. A clustered collection is scanned within bounds of the type of its ids.
fn id_of(byte: u8) -> Binary {
    binary([byte; 32])
}
