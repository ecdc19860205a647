//! The keys of erased owners: their records are found by a scan.
//!
//! No index has the owners of records. It would cost every append with a key, and the scan costs only erasures. It examines a
//! bounded number of records in each command, in the order of their ids.

use std::collections::HashMap;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, DateTime, doc};
use parking_lot::Mutex;

use super::dedup::RECORDS;
use super::marker::Marker;
use super::source::Source;
use crate::domain::OwnerId;
use crate::store::majority::at_most;
use crate::store::{Deadline, Error};

/// How many records are examined in one command.
const RECORDS_EXAMINED: i64 = 20_000;

/// The most commands of one step that examine records.
const MOST_SCANS: usize = 50;

/// The most scans that are remembered. One that is forgotten begins again.
const MOST_REMEMBERED: usize = 1_000;

/// One scan: the owner, since when it is erased, and whether the scan is that of the sweep. A later erasure has scans of its own.
type Of = (OwnerId, Option<DateTime>, bool);

/// How far the scans have come.
#[derive(Debug, Default)]
pub(super) struct KeyScans(Mutex<HashMap<Of, KeyScan>>);

/// How far one scan has come.
#[derive(Debug, Clone)]
enum KeyScan {
    /// The record from which it goes on.
    From(Binary),
    Done,
}

impl KeyScans {
    /// Deletes records of the owner's keys that were touched until `began`, in milliseconds since 1970 by the server's clock. Returns
    /// whether none is left of those that there were when the scan began.
    ///
    /// # Errors
    /// The database did not answer in time. The scan goes on where it was.
    pub(super) async fn go_on(
        &self,
        source: &Source,
        owner: &OwnerId,
        (tombstone, began): (&Marker, i64),
        deadline: Deadline,
    ) -> Result<bool, Error> {
        let of = (owner.clone(), tombstone.since, tombstone.aged);
        for _ in 0..MOST_SCANS {
            let known = self.0.lock().get(&of).cloned();
            let from = match known {
                Some(KeyScan::Done) => return Ok(true),
                Some(KeyScan::From(id)) => Some(id),
                None => None,
            };
            let next = delete_records(source, owner, (from, began), deadline).await?;
            let mut scans = self.0.lock();
            if scans.len() >= MOST_REMEMBERED {
                scans.clear();
            }
            scans.insert(of.clone(), next.map_or(KeyScan::Done, KeyScan::From));
        }
        Ok(false)
    }

    /// Forgets the scans of an owner.
    pub(super) fn forget(&self, owner: &OwnerId) {
        self.0.lock().retain(|(of, ..), _| of != owner);
    }
}

/// Examines the next records, and deletes those of the owner that were touched until `began`. Returns the record from which to go on.
async fn delete_records(
    source: &Source,
    owner: &OwnerId,
    (from, began): (Option<Binary>, i64),
    deadline: Deadline,
) -> Result<Option<Binary>, Error> {
    let from = from.unwrap_or_else(|| id_of(0));
    let mut command = at_most(RECORDS, doc! { "_id": { "$gte": &from } }, 1, doc! { "_id": 1 });
    command.extend(doc! { "projection": { "_id": 1 }, "skip": RECORDS_EXAMINED });
    let id = |record: &RawDocument| Ok(record.get_binary("_id").ok().map(|id| id.to_binary()));
    let next = source.reads.find(None, command, None, deadline, id).await?.pop().flatten();
    let to = next.clone().unwrap_or_else(|| id_of(u8::MAX));
    let condition =
        doc! { "_id": { "$gte": from, "$lte": to }, "touched": { "$lte": DateTime::from_millis(began) } };
    let delete = doc! { "q": source.owned(owner, condition), "limit": 0, "hint": { "_id": 1 } };
    source.write(doc! { "delete": RECORDS, "deletes": [delete] }, deadline).await?;
    Ok(next)
}

/// The first id of a record, or the last, by its bytes. A clustered collection is scanned within bounds of the type of its ids.
fn id_of(byte: u8) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes: vec![byte; 32] }
}
