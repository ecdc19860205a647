//! The customers there are, in order.
//!
//! Each history has a page 1 (invariant 1), and so one key in the unique index on customer and page
//! that says `page: 1`. With `customerId` bounded below and `page` equal to 1 the server walks that index
//! from one such key to the next: two keys a customer, no document, however many pages each has, and it
//! stops when there are enough. Their tails are then one more query ([`super::tails`]).
//!
//! `$group` over the same index is a DISTINCT_SCAN, too, but one of all customers: the server does not
//! stop it at a `$limit` behind it. This is the one read that names no customer by equality.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};

use super::document::COLLECTION;
use super::engine::Trades;
use super::tail::Tail;
use super::tails;
use crate::domain::{CustomerId, Limit, Totals};
use crate::store::{COMMAND, Corruption, Deadline, Error};

/// Some customers, ascending by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Customers {
    /// Each with its totals. They are not of one moment: each is as its own last page showed it.
    pub found: Vec<(CustomerId, Totals)>,
    /// Whether there are others behind the last of them.
    pub more: bool,
}

impl Trades {
    /// Up to `limit` customers whose ids are greater than `after`, or the first ones.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
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
            let tail = tails.remove(&id).ok_or_else(|| behind(id))??;
            found.push((id, Tail::totals(Some(tail))));
        }
        Ok(Customers { found, more })
    }
}

fn behind(id: CustomerId) -> Error {
    Error::Unavailable(format!("the history of customer {id} was there, and is not there now"))
}

fn command(after: Option<CustomerId>, most: usize) -> Document {
    doc! {
        "find": COLLECTION,
        "filter": { "customerId": { "$gt": after.map_or(0, |id| id.get() as i64) }, "page": 1_i64 },
        // All of it is in the index.
        "projection": { "_id": 0, "customerId": 1 },
        "sort": { "customerId": 1, "page": 1 },
        "limit": most as i64,
        "batchSize": most as i64,
        "singleBatch": true,
        "hint": { "customerId": 1, "page": 1 },
    }
}

/// None of a customer whose id is not one.
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
