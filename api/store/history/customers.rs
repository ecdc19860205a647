//! All customers, in order of their ids.
//!
//! Each history has a page 1 (invariant 1), so each customer has one key with `page: 1` in the unique index on
//! customer and page. With `customerId` bounded below and `page` equal to 1, the server skips from one such key
//! to the next and stops when it has enough. It examines two keys a customer and no document, however many
//! pages there are. One more query reads the tails ([`super::tails`]).
//!
//! `$group` over the same index is a DISTINCT_SCAN too, but it visits all customers: the server does not stop
//! it at a later `$limit`. This is the only read that does not name a customer by equality.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};

use super::document::COLLECTION;
use super::engine::Trades;
use super::tail::Tail;
use super::tails;
use crate::domain::{CustomerId, Limit, Totals};
use crate::store::{COMMAND, Corruption, Deadline, Error};

/// A page of the list of customers, ascending by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Customers {
    /// Each customer with its totals. The totals are not a snapshot: each comes from its own history's last
    /// page.
    pub found: Vec<(CustomerId, Totals)>,
    /// Whether there are customers after the last one here.
    pub more: bool,
}

impl Trades {
    /// Up to `limit` customers with ids greater than `after`, or the first ones without `after`.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn customers(
        &self,
        after: Option<CustomerId>,
        limit: Limit,
        deadline: Deadline,
    ) -> Result<Customers, Error> {
        let (reads, deadline) = (self.0.reads.clone(), deadline.or_within(COMMAND));
        let most = limit.get() + 1;
        let read = async move { reads.find(None, &command(after, most), None, deadline, id).await };
        let mut ids: Vec<CustomerId> = Vec::new();
        for id in deadline.read(read).await? {
            ids.push(id.ok_or_else(|| corrupt(ids.last().copied()))?);
        }
        let more = ids.len() > limit.get();
        ids.truncate(limit.get());
        if ids.is_empty() {
            return Ok(Customers::default());
        }
        let mut tails = tails::find(&self.0.reads, ids.clone(), None, deadline).await?;
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let tail = tails.remove(&id).ok_or_else(|| vanished(id))??;
            found.push((id, Tail::totals(Some(tail))));
        }
        Ok(Customers { found, more })
    }
}

fn vanished(id: CustomerId) -> Error {
    Error::Unavailable(format!("the history of customer {id} was found, but cannot be read now"))
}

fn command(after: Option<CustomerId>, most: usize) -> Document {
    doc! {
        "find": COLLECTION,
        "filter": { "customerId": { "$gt": after.map_or(0, |id| id.get() as i64) }, "page": 1_i64 },
        // A covered query: the index holds every field.
        "projection": { "_id": 0, "customerId": 1 },
        "sort": { "customerId": 1, "page": 1 },
        "limit": most as i64,
        "batchSize": most as i64,
        "singleBatch": true,
        "hint": { "customerId": 1, "page": 1 },
    }
}

/// The customer of an index key; `None` if its id is invalid.
fn id(key: &RawDocument) -> Result<Option<CustomerId>, Error> {
    let id = key.get_i64("customerId").ok();
    Ok(id.and_then(|id| CustomerId::new(u64::try_from(id).ok()?).ok()))
}

fn corrupt(after: Option<CustomerId>) -> Corruption {
    let after = after.map_or_else(|| "the first".to_owned(), |last| format!("that after {last}"));
    Corruption {
        id: format!("of page 1 of a customer, {after}"),
        field: "customerId".to_owned(),
        detail: "is not an int64 from 1 to 2^53 - 1".to_owned(),
    }
}
