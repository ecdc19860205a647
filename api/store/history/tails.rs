//! Reads the tails of many owners in one query.

use std::collections::HashMap;

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::{Bson, Document, Timestamp, doc};

use super::bucket_id::BucketId;
use super::source::{Source, owner_bson, owner_of};
use super::tail::Tail;
use crate::definition::Definition;
use crate::domain::{OwnerId, OwnerType, PageNumber};
use crate::store::{Corruption, Deadline, Error};

/// The last buckets of these owners, read at majority. An owner without buckets is absent from the result.
/// A corrupt bucket is an error for its own owner only.
///
/// Sorted in descending order with `$first`, the query is a DISTINCT_SCAN: one key and one document an owner.
/// Sorted in ascending order with `$last`, it would read every page. (Server manual, "$group Optimizations".)
///
/// # Errors
/// The database does not answer in time.
pub(super) async fn find(
    source: &Source,
    owners: Vec<OwnerId>,
    after: Option<Timestamp>,
    deadline: Deadline,
) -> Result<HashMap<OwnerId, Result<Tail, Corruption>>, Error> {
    let (source, query) = (source.clone(), query(source, &owners));
    let work = async move {
        let tail = |group: &RawDocument| Ok(tail_of(group, &source.definition));
        source.reads.find(None, &query, after, deadline, tail).await
    };
    Ok(deadline.read(work).await?.into_iter().flatten().collect())
}

fn tail_of(group: &RawDocument, definition: &Definition) -> Option<(OwnerId, Result<Tail, Corruption>)> {
    let owner = owner(group, definition.owner.kind);
    if owner.is_none() {
        tracing::error!(?group, "a bucket has no owner: the value of its owner's field is not an id");
    }
    owner.map(|owner| (owner.clone(), tail(group, &owner, definition)))
}

fn query(source: &Source, owners: &[OwnerId]) -> Document {
    let ids: Vec<Bson> = owners.iter().map(owner_bson).collect();
    let field = source.owner_field();
    doc! {
        "aggregate": source.collection(),
        "pipeline": [
            { "$match": { field: { "$in": ids } } },
            { "$sort": { field: -1, "page": -1 } },
            { "$group": {
                "_id": format!("${field}"), "id": { "$first": "$_id" }, "page": { "$first": "$page" }, "count": { "$first": "$count" },
            } },
        ],
        "hint": source.by_page(),
        "cursor": { "batchSize": owners.len() as i32 + 1 },
    }
}

/// The owner of a group. `$in` matches numbers of every type, and also values inside arrays.
fn owner(group: &RawDocument, kind: OwnerType) -> Option<OwnerId> {
    let number = match group.get("_id").ok()?? {
        RawBsonRef::String(text) if kind == OwnerType::String => return kind.parse(text).ok(),
        RawBsonRef::Int64(number) => number as f64,
        RawBsonRef::Int32(number) => f64::from(number),
        RawBsonRef::Double(number) => number,
        RawBsonRef::Decimal128(number) => number.to_string().parse().ok()?,
        _ => return None,
    };
    kind.parse(&number.to_string()).ok()
}

fn tail(group: &RawDocument, owner: &OwnerId, definition: &Definition) -> Result<Tail, Corruption> {
    let id = group.get_str("id").unwrap_or("without a readable _id");
    let corrupt = |field: &str, detail: &str| Corruption {
        id: id.to_owned(),
        field: field.to_owned(),
        detail: detail.to_owned(),
    };
    let stored = group.get("_id").ok().flatten();
    if stored.and_then(|id| owner_of(id, definition.owner.kind)).is_none() {
        return Err(corrupt(&definition.owner.field, "is not an id of the right type"));
    }
    let page_size = definition.page_size;
    let bucket = BucketId::parse(id, owner);
    let page = group.get_i64("page").ok().and_then(|page| PageNumber::new(page.try_into().ok()?).ok());
    let count = group.get_i32("count").ok().and_then(|count| u16::try_from(count).ok());
    let count = count.filter(|&count| (1..=page_size.get()).contains(&count.into()));
    Ok(Tail {
        second: bucket.ok_or_else(|| corrupt("_id", "is not the owner's id, _ and ten digits"))?.second,
        page: page.ok_or_else(|| corrupt("page", "is not a positive int64"))?,
        count: count.ok_or_else(|| corrupt("count", "is not an int32 from 1 to the page size"))?,
        page_size,
    })
}
