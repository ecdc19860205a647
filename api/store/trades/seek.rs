//! One bucket by one seek, whatever the length of the history.

use mongodb::Database;
use mongodb::bson::{Document, doc};

use super::document::Bucket;
use super::majority::Patient;
use super::tail::Tail;
use super::{BucketId, COLLECTION};
use crate::domain::{CustomerId, PageNumber};
use crate::store::{Deadline, Error};

/// Pages from either end that are reached by skipping over those before them. A skipped bucket is
/// one more document examined; a seek by page number is one index key and one more look-up. The
/// two cost the same within a few buckets, so the bound is small.
const MOST_SKIPPED: u64 = 3;

/// Which bucket, and how to get there.
pub(super) struct Seek {
    customer: CustomerId,
    filter: Document,
    sort: Option<Document>,
    skip: u64,
    hint: Document,
}

impl Seek {
    /// The last bucket.
    pub(super) fn last(customer: CustomerId) -> Self {
        Self {
            customer,
            filter: BucketId::all_of(customer),
            sort: Some(doc! { "_id": -1 }),
            skip: 0,
            hint: doc! { "_id": 1 },
        }
    }

    /// A page of a history that ends with `tail`, if that is known.
    pub(super) fn page(customer: CustomerId, page: PageNumber, tail: Option<Tail>) -> Self {
        let from_start = page.get() - 1;
        if from_start <= MOST_SKIPPED {
            let filter = BucketId::all_of(customer);
            return Self {
                customer,
                filter,
                sort: Some(doc! { "_id": 1 }),
                skip: from_start,
                hint: doc! { "_id": 1 },
            };
        }
        if let Some(tail) = tail.filter(|tail| tail.page.get() - page.get() <= MOST_SKIPPED) {
            // From the tail that was seen: buckets opened since then do not count.
            let (filter, skip) = (tail.id.up_to(), tail.page.get() - page.get());
            return Self { customer, filter, sort: Some(doc! { "_id": -1 }), skip, hint: doc! { "_id": 1 } };
        }
        Self {
            customer,
            filter: doc! { "customerId": customer.get() as i64, "page": page.get() as i64 },
            sort: None,
            skip: 0,
            hint: doc! { "customerId": 1, "page": 1 },
        }
    }

    /// Finds it, read at majority; asks again while the database comes back.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
    pub(super) async fn find(
        &self,
        database: &Database,
        deadline: Deadline,
    ) -> Result<Option<Bucket>, Error> {
        let mut patient = Patient::new(None, deadline);
        loop {
            let (concern, limit) = patient.terms();
            match self.run(database, self.command(concern, limit)).await {
                Err(error) => patient.after(error).await?,
                found => return found,
            }
        }
    }

    async fn run(&self, database: &Database, command: Document) -> Result<Option<Bucket>, Error> {
        let error = |error: mongodb::error::Error| Error::of(&error);
        let mut cursor = database.run_cursor_command(command).await.map_err(error)?;
        if !cursor.advance().await.map_err(error)? {
            return Ok(None);
        }
        Ok(Some(Bucket::read(cursor.current(), self.customer)?))
    }

    fn command(&self, concern: Document, limit: i64) -> Document {
        let mut command = doc! {
            "find": COLLECTION,
            "filter": self.filter.clone(),
            "limit": 1,
            "singleBatch": true,
            "hint": self.hint.clone(),
            "readConcern": concern,
            "maxTimeMS": limit,
        };
        if let Some(sort) = &self.sort {
            command.insert("sort", sort.clone());
        }
        if self.skip > 0 {
            command.insert("skip", self.skip as i64);
        }
        command
    }
}
