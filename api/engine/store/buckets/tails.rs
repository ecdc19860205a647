//! Reads the tails of many owners in one query.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::{Bson, Document, Timestamp, doc};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{OwnerId, OwnerType};

use super::bucket_id::Tail;
use super::marker::Marker;
use crate::mongo::majority::{Level, Query};
use crate::mongo::{Corruption, Deadline, Error, Result, Topology};
use crate::store::collection::{HistoryCollection, owner_bson, owner_of};

/// The most owners whose tails are read by one command, where there may be many.
pub(crate) const AT_ONCE: usize = 1_000;

/// The last buckets of some owners, or why they could not be read.
pub(crate) struct Tails(Result<HashMap<OwnerId, Result<Option<Tail>>>>);

impl Tails {
    /// They could not be read.
    pub(crate) fn failed(error: Error) -> Self {
        Self(Err(error))
    }

    /// Reads the last buckets of these owners at majority, if there are any owners, at the time `after` or
    /// later. A corrupt bucket is an error for its own owner only.
    pub(crate) async fn read(
        source: &HistoryCollection,
        owners: impl IntoIterator<Item = &OwnerId>,
        after: Option<Timestamp>,
        deadline: Deadline,
    ) -> Self {
        Self::find(source, owners, |query| Query { after, ..Query::new(query, deadline) }).await
    }

    /// Reads the last buckets of many owners at majority, [`AT_ONCE`] with one command, and hands each one to
    /// `take`.
    pub(crate) async fn read_each(
        source: &HistoryCollection,
        owners: &[OwnerId],
        limit: Duration,
        mut take: impl FnMut(&OwnerId, Result<Option<Tail>>) -> Result<()>,
    ) -> Result<()> {
        for owners in owners.chunks(AT_ONCE) {
            let tails = Self::read(source, owners, None, Deadline::within(limit)).await;
            owners.iter().try_for_each(|owner| take(owner, tails.of(owner)))?;
        }
        Ok(())
    }

    /// The same of this moment: not older than anything that any client was answered before
    /// ([`Level::Linearizable`]). It costs a write.
    pub(crate) async fn read_latest(
        source: &HistoryCollection,
        owners: impl IntoIterator<Item = &OwnerId>,
        deadline: Deadline,
    ) -> Self {
        let level = match source.topology() {
            // It has one member, and refuses that level.
            Topology::Standalone => Level::Majority,
            Topology::Replicated | Topology::Sharded => Level::Linearizable,
        };
        Self::find(source, owners, |query| Query { level, ..Query::new(query, deadline) }).await
    }

    async fn find(
        source: &HistoryCollection,
        owners: impl IntoIterator<Item = &OwnerId>,
        terms: impl FnOnce(Document) -> Query,
    ) -> Self {
        let owners: BTreeSet<&OwnerId> = owners.into_iter().collect();
        if owners.is_empty() {
            return Self(Ok(HashMap::new()));
        }
        let ids: Vec<Bson> = owners.into_iter().map(owner_bson).collect();
        let definition = Arc::clone(&source.definition);
        let tail = move |group: &RawDocument| {
            let owner = owner(group, definition.owner.kind);
            if owner.is_none() {
                tracing::error!(?group, "corrupt bucket: invalid owner field");
            }
            Ok(owner.map(|owner| (owner.clone(), tail(group, &owner, &definition))))
        };
        let first = |field: &str| doc! { "$first": field };
        let fields = doc! {
            "id": first("$_id"), "page": first("$page"), "count": first("$count"),
            "firstPage": first("$firstPage"), "second": first("$second"), "erased": first("$erased"),
        };
        let query = last_of_each(source, ids, fields);
        let found = source.reads.query(terms(query), tail).await;
        Self(found.map(|found| found.into_iter().flatten().collect()))
    }

    /// The tail of one of the owners; `None` if its history is empty. If its last bucket is a marker of the
    /// beginning, the tail is that which the next append follows.
    pub(crate) fn of(&self, owner: &OwnerId) -> Result<Option<Tail>> {
        let found = self.0.as_ref().map_err(Error::clone)?;
        found.get(owner).cloned().unwrap_or(Ok(None))
    }
}

/// The command that finds `fields` of the last bucket of each of these owners, given as accumulators of
/// `$group`, whose `_id` is the owner.
///
/// Sorted in descending order with `$first`, it is a DISTINCT_SCAN: one key and one document an owner. Sorted
/// in ascending order with `$last`, it would read every page. (Server manual, "$group Optimizations".)
pub(crate) fn last_of_each(source: &HistoryCollection, owners: Vec<Bson>, fields: Document) -> Document {
    let (owner, most) = (source.owner_field(), owners.len() as i32 + 1);
    let mut group = doc! { "_id": format!("${owner}") };
    group.extend(fields);
    doc! {
        "aggregate": source.collection(),
        "pipeline": [
            { "$match": { owner: { "$in": owners } } },
            { "$sort": { owner: -1, "page": -1 } },
            { "$group": group },
        ],
        "hint": source.by_page(),
        // With a batch of more than all, the server closes the cursor at once.
        "cursor": { "batchSize": most },
    }
}

/// The owner of a group. `$in` matches numbers of every type, and also values inside arrays.
fn owner(group: &RawDocument, kind: OwnerType) -> Option<OwnerId> {
    let number = match group.get("_id").ok()?? {
        RawBsonRef::String(text) if kind.is_text() => return kind.parse_stored(text),
        RawBsonRef::Int64(number) => number as f64,
        RawBsonRef::Int32(number) => f64::from(number),
        RawBsonRef::Double(number) => number,
        RawBsonRef::Decimal128(number) => number.to_string().parse().ok()?,
        _ => return None,
    };
    kind.parse(&number.to_string()).ok()
}

fn tail(group: &RawDocument, owner: &OwnerId, definition: &Definition) -> Result<Option<Tail>> {
    let id = group.get_str("id").unwrap_or("without a readable _id");
    let stored = group.get("_id").ok().flatten();
    if stored.and_then(|id| owner_of(id, definition.owner.kind)).is_none() {
        return Err(Corruption::new(id, &*definition.owner.field, "is not an id of the right type").into());
    }
    let page_size = definition.page_size;
    if let Some(marker) = Marker::read(group)? {
        return if marker.erased { Err(marker.gone(page_size).into()) } else { Ok(marker.tail(page_size)) };
    }
    Ok(Some(Tail::read(id, group, owner, page_size)?))
}
