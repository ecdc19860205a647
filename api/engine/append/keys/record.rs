//! The record of a key: `{_id, owner, from, fingerprint, date, touched, found?, outcome?}`.
//!
//! `from` may be raised, so that later attempts search less. Each such update is sent once and may fail: a
//! `from` that stays low is correct too, but the search is longer.

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::{Bson, DateTime, Document, Timestamp, doc};
use pagebucket_model::domain::{Instant, OwnerId, Seq, SeqRange};

use super::key_search::KeySearch;
use crate::mongo::reply::{Verdict, judge};
use crate::mongo::values::{binary, date, in_millis, instant, int64};
use crate::mongo::{Error, Result, durable, indexes};
use crate::store::buckets::identity::{Fingerprint, RecordId};
use crate::store::collection::{HistoryCollection, OfOwner, owner_bson};

pub(crate) const COLLECTION: &str = "idempotency_keys";

/// How long to wait for an insert before it is sent again: a repeat either inserts the record or finds it.
/// Also how long a record may take to be raised, which is sent once.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(2);

pub(crate) const MOST_READ: usize = 100;

/// How far the `touched` time of a new record may be behind the server's clock. This is more than an insert
/// usually takes, and little compared with the time for which a record is kept.
const TOLERANCE: Duration = Duration::from_secs(5);

/// What is stored about the first request with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// How many items the history held, at majority, before the record existed. All items of the request are
    /// after these.
    pub from: u64,
    /// A hash of the request's content.
    pub fingerprint: Fingerprint,
    /// The date of the request's items without their own date, and of its answer.
    pub date: Instant,
    /// The addresses of the request's items, set when the first repeat is answered.
    pub outcome: Option<Vec<SeqRange>>,
}

/// How much longer than promised records are kept. A repeat right before the end of the promised time reads
/// `from` before it touches the record, and the record must not expire in between. That takes seconds, but a
/// server's clock may be changed.
const MARGIN: Duration = Duration::from_secs(600);

/// Makes records expire `retention` plus [`MARGIN`] after their last use.
pub(crate) async fn keep_for(database: &Database, retention: Duration) -> Result<()> {
    let seconds = (retention + MARGIN).as_secs() as i64;
    indexes::expire_after(database, COLLECTION, "touched", Some(seconds)).await
}

/// Whether a record was inserted with an outdated time: `touched`, in milliseconds since 1970, is too far
/// before `answered`, the cluster time of the answer to the insert.
///
/// A record says when it was touched, in the server's time, because the server removes it by its own clock.
/// This machine's clock may be wrong by more than the lifetime of a record. So the time is an estimate of the
/// server's clock, which may be early.
pub(crate) fn was_outdated(answered: Option<Timestamp>, touched: i64) -> bool {
    answered.is_none_or(|at| i64::from(at.time) * 1000 - touched > in_millis(TOLERANCE))
}

/// The query for one record. Its owner has the name that it has in buckets, and targets one shard.
pub(crate) fn query(source: &HistoryCollection, id: RecordId, owner: &OwnerId) -> Document {
    doc! { "_id": binary(id.0), source.owner_field(): owner_bson(owner) }
}

/// Inserts the record unless it exists, and touches it in both cases: a record is kept for the retention
/// after its last use. From then on the record counts as found by another attempt: see [`confirm`].
pub(crate) fn upsert(query: Document, record: &Record) -> Document {
    doc! {
        "q": query,
        "u": {
            "$setOnInsert": fixed(record),
            "$set": { "found": true },
            "$currentDate": { "touched": true },
        },
        "upsert": true,
        "hint": { "_id": 1 },
    }
}

/// A record as a document. `query` finds it, `touched` is in milliseconds since 1970.
pub(crate) fn document(query: Document, record: &Record, touched: i64) -> Document {
    let mut document = query;
    document.extend(fixed(record));
    document.insert("touched", DateTime::from_millis(touched));
    document
}

/// What an insert sets.
fn fixed(record: &Record) -> Document {
    doc! {
        "from": int64(record.from),
        "fingerprint": binary(record.fingerprint.0),
        "date": date(record.date),
    }
}

/// Stores the addresses of the items. Every attempt that finds the items stores the same addresses.
pub(crate) fn set_outcome(query: Document, ranges: &[SeqRange]) -> Document {
    let range = |range: &SeqRange| Bson::from(doc! { "first": range.first, "last": range.last });
    let ranges: Vec<Bson> = ranges.iter().map(range).collect();
    doc! {
        "q": query,
        "u": { "$set": { "outcome": ranges }, "$currentDate": { "touched": true } },
        "hint": { "_id": 1 },
    }
}

/// The query for these records, each of its owner: at most [`MOST_READ`].
///
/// Of a clustered collection `$in` examines all that is between the least and the greatest `_id`, and hashes
/// lie anywhere. So each is asked for.
pub(crate) fn find<'a>(
    source: &HistoryCollection,
    records: impl Iterator<Item = (RecordId, &'a OwnerId)>,
) -> Document {
    let mut queries: Vec<_> = records.map(|(id, owner)| query(source, id, owner)).collect();
    let most = queries.len() as i32 + 1;
    if let [one] = &mut *queries {
        return doc! { "find": COLLECTION, "filter": std::mem::take(one), "hint": { "_id": 1 }, "batchSize": most };
    }
    let mut pipeline: Vec<_> = queries.into_iter().map(|query| doc! { "$match": query }).collect();
    for this in pipeline.iter_mut().skip(1) {
        *this = doc! { "$unionWith": { "coll": COLLECTION, "pipeline": [std::mem::take(this)] } };
    }
    // All in one batch, so that no cursor stays open.
    doc! { "aggregate": COLLECTION, "pipeline": pipeline, "cursor": { "batchSize": most } }
}

pub(crate) fn read(document: &RawDocument) -> Result<(RecordId, Record)> {
    parse(document)
        .ok_or_else(|| Error::internal(format!("the record of an idempotency key is damaged: {document:?}")))
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
        date: instant(document.get_datetime("date").ok()?)?,
        outcome,
    };
    Some((RecordId(bytes("_id")?), record))
}

fn range(range: &RawDocument) -> Option<SeqRange> {
    let seq = |name: &str| Seq::new(range.get_i64(name).ok()?.try_into().ok()?).ok();
    let (first, last) = (seq("first")?, seq("last")?);
    (first <= last).then_some(SeqRange { first, last })
}

/// Raises `from` to `last`, the total of a known tail, in records that no other attempt has found since their
/// insert. Then no other attempt has sent an item. Each record comes with the time of its insert. Returns
/// whether all records are raised. Then no item of the requests is at or before `last`, unless a request has
/// itself sent some.
pub(crate) async fn confirm(
    of: OfOwner<'_>,
    records: impl Iterator<Item = (RecordId, i64)>,
    last: u64,
) -> bool {
    let update = |(id, inserted)| {
        let mut query = query(of.source, id, of.owner);
        // The time of the insert shows that it is the same record: an erasure may have removed it, and
        // another attempt inserted its own.
        query.insert("touched", DateTime::from_millis(inserted));
        query.insert("found", doc! { "$exists": false });
        raise(query, last)
    };
    update_all(of, records.map(update)).await
}

/// Raises `from` of records to the position that these searches have reached without finding an item of their
/// requests.
pub(crate) async fn keep_looked<'a>(
    of: OfOwner<'_>,
    searches: impl Iterator<Item = (RecordId, &'a KeySearch)>,
) {
    let update = |(id, search): (RecordId, &KeySearch)| {
        Some(raise(query(of.source, id, of.owner), search.none_through()?))
    };
    if !update_all(of, searches.filter_map(update)).await {
        tracing::debug!(owner = %of.owner, "the progress of a search was not stored in every record");
    }
}

fn raise(query: Document, last: u64) -> Document {
    doc! { "q": query, "u": { "$max": { "from": int64(last) } }, "hint": { "_id": 1 } }
}

/// Sends the updates. Returns whether every update has found its record and is durable.
async fn update_all(of: OfOwner<'_>, updates: impl Iterator<Item = Document>) -> bool {
    let updates: Vec<Bson> = updates.map(Bson::from).collect();
    let (count, deadline) = (updates.len(), of.deadline.or_within(ATTEMPT));
    if count == 0 {
        return true;
    }
    let command = doc! {
        "update": COLLECTION, "updates": updates, "ordered": false, "writeConcern": durable(deadline),
    };
    let answer =
        of.source.reads.run(command, deadline).await.ok().and_then(|reply| judge(&reply, count, false).ok());
    answer.is_some_and(|answer| answer.verdicts.iter().all(|verdict| *verdict == Verdict::Stored))
}

#[cfg(test)]
mod tests {
    use mongodb::bson::RawDocumentBuf;

    use super::*;

    #[test]
    fn an_answer_shows_that_the_time_was_too_early() {
        let at = |seconds| Some(Timestamp { time: seconds, increment: 7 });
        assert!(!was_outdated(at(1_000), 1_000_400), "the server reports whole seconds");
        assert!(!was_outdated(at(1_005), 1_000_000));
        assert!(was_outdated(at(1_006), 1_000_999));
        assert!(!was_outdated(at(1_000), 9_000_000), "a clock that was set back: the record is kept longer");
        assert!(was_outdated(None, 1_000_000), "the time of the insert is unknown");
    }

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
        assert_eq!(bytes, 162, "as docs/explanation/exactly-once.md says");
        stored.insert("from", 7_i32);
        assert!(read(&RawDocumentBuf::try_from(&stored).unwrap()).is_err());
    }
}
