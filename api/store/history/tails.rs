//! Reads the tails of many customers in one query.

use std::collections::HashMap;

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::{Bson, Document, Timestamp, doc};

use super::bucket_id::BucketId;
use super::document::COLLECTION;
use super::tail::Tail;
use crate::domain::{CustomerId, PAGE_SIZE, PageNumber};
use crate::store::majority::MonotonicReads;
use crate::store::{Corruption, Deadline, Error};

/// The last buckets of these customers, read at majority. A customer without buckets is absent from the result.
/// A corrupt bucket is an error for its own customer only.
///
/// Sorted in descending order with `$first`, the query is a DISTINCT_SCAN: one key and one document a customer.
/// Sorted in ascending order with `$last`, it would read every page. (Server manual, "$group Optimizations".)
///
/// # Errors
/// The database does not answer in time.
pub(super) async fn find(
    reads: &MonotonicReads,
    customers: Vec<CustomerId>,
    after: Option<Timestamp>,
    deadline: Deadline,
) -> Result<HashMap<CustomerId, Result<Tail, Corruption>>, Error> {
    let (reads, query) = (reads.clone(), query(&customers));
    let work = async move { reads.find(None, &query, after, deadline, |group| Ok(tail_of(group))).await };
    Ok(deadline.read(work).await?.into_iter().flatten().collect())
}

fn tail_of(group: &RawDocument) -> Option<(CustomerId, Result<Tail, Corruption>)> {
    let customer = customer(group);
    if customer.is_none() {
        tracing::error!(?group, "a bucket has no customer: its customerId is not a number");
    }
    customer.map(|customer| (customer, tail(group, customer)))
}

fn query(customers: &[CustomerId]) -> Document {
    let ids: Vec<Bson> = customers.iter().map(|customer| Bson::Int64(customer.get() as i64)).collect();
    doc! {
        "aggregate": COLLECTION,
        "pipeline": [
            { "$match": { "customerId": { "$in": ids } } },
            { "$sort": { "customerId": -1, "page": -1 } },
            { "$group": {
                "_id": "$customerId", "id": { "$first": "$_id" }, "page": { "$first": "$page" }, "count": { "$first": "$count" },
            } },
        ],
        "hint": { "customerId": 1, "page": 1 },
        "cursor": { "batchSize": customers.len() as i32 + 1 },
    }
}

/// The customer of a group. `$in` matches numbers of every type, and also numbers inside arrays.
fn customer(group: &RawDocument) -> Option<CustomerId> {
    let number = match group.get("_id").ok()?? {
        RawBsonRef::Int64(number) => number as f64,
        RawBsonRef::Int32(number) => f64::from(number),
        RawBsonRef::Double(number) => number,
        RawBsonRef::Decimal128(number) => number.to_string().parse().ok()?,
        _ => return None,
    };
    CustomerId::new(number as u64).ok()
}

fn tail(group: &RawDocument, customer: CustomerId) -> Result<Tail, Corruption> {
    let id = group.get_str("id").unwrap_or("without a readable _id");
    let corrupt = |field: &str, detail: &str| Corruption {
        id: id.to_owned(),
        field: field.to_owned(),
        detail: detail.to_owned(),
    };
    group.get_i64("_id").map_err(|_| corrupt("customerId", "is not an int64"))?;
    let bucket = BucketId::parse(id, customer);
    let page = group.get_i64("page").ok().and_then(|page| PageNumber::new(page.try_into().ok()?).ok());
    let count = group.get_i32("count").ok().and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| (1..=PAGE_SIZE).contains(count));
    Ok(Tail {
        id: bucket.ok_or_else(|| corrupt("_id", "is not the customer's id, _ and ten digits"))?,
        page: page.ok_or_else(|| corrupt("page", "is not a positive int64"))?,
        count: count.ok_or_else(|| corrupt("count", "is not an int32 from 1 to 10"))?,
    })
}
