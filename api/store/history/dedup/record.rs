//! The record of a key: `{_id, owner, from, fingerprint, date, touched, found?, outcome?}`.

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc};

use super::identity::{Fingerprint, RecordId};
use crate::domain::{Instant, OwnerId, Seq, SeqRange};
use crate::store::Error;
use crate::store::history::source::{Source, owner_bson};

/// Name of the collection.
pub(in crate::store::history) const COLLECTION: &str = "idempotency_keys";

/// What is stored about the first request with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::history) struct Record {
    /// How many items the history held, at majority, before the record existed. All items of the request are
    /// after these.
    pub(in crate::store::history) from: u64,
    /// A hash of the request's content.
    pub(in crate::store::history) fingerprint: Fingerprint,
    /// The date of the request's items without their own date, and of its answer.
    pub(in crate::store::history) date: Instant,
    /// The addresses of the request's items, set when the first repeat is answered.
    pub(in crate::store::history) outcome: Option<Vec<SeqRange>>,
}

/// The query for one record. Its owner has the name that it has in buckets, and targets one shard.
pub(in crate::store::history) fn query(source: &Source, id: RecordId, owner: &OwnerId) -> Document {
    doc! { "_id": binary(id.0), source.owner_field(): owner_bson(owner) }
}

/// Inserts the record unless it exists, and touches it in both cases: a record is kept for the retention after
/// its last use. From then on the record counts as found by another attempt: see [`confirm`].
pub(in crate::store::history) fn upsert(query: Document, record: &Record) -> Document {
    doc! {
        "q": query,
        "u": {
            "$setOnInsert": {
                "from": record.from as i64,
                "fingerprint": binary(record.fingerprint.0),
                "date": DateTime::from_millis(record.date.millis()),
            },
            "$set": { "found": true },
            "$currentDate": { "touched": true },
        },
        "upsert": true,
        "hint": { "_id": 1 },
    }
}

/// Raises `from` to `last`, the total of a known tail, if no other attempt has found the record since its
/// insert. Then no other attempt has sent an item, so no item of the request is at or before `last`.
/// `inserted` is the value of `touched` that the insert set. Comparing it also detects a touch by an earlier
/// version, which does not set `found`.
pub(in crate::store::history) fn confirm(query: Document, inserted: i64, last: u64) -> Document {
    let untouched = doc! { "touched": DateTime::from_millis(inserted), "found": { "$exists": false } };
    raise(query, untouched, last)
}

/// Raises `from` to `last`, when no item of the request is at or before `last`.
pub(in crate::store::history) fn keep_looked(query: Document, last: u64) -> Document {
    raise(query, Document::new(), last)
}

fn raise(mut query: Document, condition: Document, last: u64) -> Document {
    query.extend(condition);
    doc! { "q": query, "u": { "$max": { "from": last as i64 } }, "hint": { "_id": 1 } }
}

/// A record as a document. `query` finds it, `touched` is in milliseconds since 1970.
pub(in crate::store::history) fn document(query: Document, record: &Record, touched: i64) -> Document {
    let mut document = query;
    document.extend(doc! {
        "from": record.from as i64,
        "fingerprint": binary(record.fingerprint.0),
        "date": DateTime::from_millis(record.date.millis()),
        "touched": DateTime::from_millis(touched),
    });
    document
}

/// Stores the addresses of the items. Every attempt that finds the items stores the same addresses.
pub(in crate::store::history) fn set_outcome(query: Document, ranges: &[SeqRange]) -> Document {
    let range = |range: &SeqRange| {
        Bson::from(doc! { "first": range.first.get() as i64, "last": range.last.get() as i64 })
    };
    let ranges: Vec<Bson> = ranges.iter().map(range).collect();
    doc! {
        "q": query,
        "u": { "$set": { "outcome": ranges }, "$currentDate": { "touched": true } },
        "hint": { "_id": 1 },
    }
}

/// The query for many records of these owners.
pub(in crate::store::history) fn find(source: &Source, ids: &[RecordId], owners: &[OwnerId]) -> Document {
    let owners: Vec<Bson> = owners.iter().map(owner_bson).collect();
    doc! {
        "find": COLLECTION,
        "filter": {
            "_id": { "$in": ids.iter().map(|id| Bson::from(binary(id.0))).collect::<Vec<_>>() },
            source.owner_field(): { "$in": owners },
        },
        "hint": { "_id": 1 },
        // All in one batch, so that no cursor stays open.
        "batchSize": ids.len() as i32 + 1,
    }
}

/// Parses a stored record.
///
/// # Errors
/// A field has a value that the validator forbids.
pub(in crate::store::history) fn read(document: &RawDocument) -> Result<(RecordId, Record), Error> {
    parse(document)
        .ok_or_else(|| Error::Internal(format!("the record of an idempotency key is damaged: {document:?}")))
}

fn parse(document: &RawDocument) -> Option<(RecordId, Record)> {
    let bytes = |name: &str| document.get_binary(name).ok()?.bytes.try_into().ok();
    let outcome = match document.get("outcome").ok()? {
        None => None,
        Some(RawBsonRef::Array(ranges)) => {
            Some(ranges.into_iter().map(|item| range(item.ok()?.as_document()?)).collect::<Option<_>>()?)
        }
        Some(_) => return None,
    };
    let record = Record {
        from: document.get_i64("from").ok()?.try_into().ok()?,
        fingerprint: Fingerprint(bytes("fingerprint")?),
        date: Instant::from_millis(document.get_datetime("date").ok()?.timestamp_millis()).ok()?,
        outcome,
    };
    Some((RecordId(bytes("_id")?), record))
}

fn range(range: &RawDocument) -> Option<SeqRange> {
    let seq = |name: &str| Seq::new(range.get_i64(name).ok()?.try_into().ok()?).ok();
    let (first, last) = (seq("first")?, seq("last")?);
    (first <= last).then_some(SeqRange { first, last })
}

fn binary(bytes: [u8; 32]) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes: bytes.to_vec() }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::RawDocumentBuf;

    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let seq = |seq| Seq::new(seq).unwrap();
        let ranges =
            vec![SeqRange { first: seq(8), last: seq(10) }, SeqRange { first: seq(12), last: seq(12) }];
        let record = Record {
            from: 7,
            fingerprint: Fingerprint([3; 32]),
            date: Instant::from_millis(-5).unwrap(),
            outcome: Some(ranges.clone()),
        };
        let id = RecordId([1; 32]);
        let query = doc! { "_id": binary(id.0), "customerId": 9_i64 };
        let made = upsert(query.clone(), &record);
        let mut stored = made.get_document("q").unwrap().clone();
        let update = made.get_document("u").unwrap();
        stored.extend(update.get_document("$setOnInsert").unwrap().clone());
        let outcome = set_outcome(query.clone(), &ranges);
        stored.extend(outcome.get_document("u").and_then(|u| u.get_document("$set")).unwrap().clone());
        let raw = RawDocumentBuf::try_from(&stored).unwrap();
        assert_eq!(read(&raw).unwrap(), (id, record));
        let plain = document(query, &Record { outcome: None, ..read(&raw).unwrap().1 }, 5);
        let bytes = RawDocumentBuf::try_from(&plain).unwrap().as_bytes().len();
        assert_eq!(bytes, 162, "as docs/exactly-once.md says");
        stored.insert("from", 7_i32);
        assert!(read(&RawDocumentBuf::try_from(&stored).unwrap()).is_err());
    }
}
