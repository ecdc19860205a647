//! Finds one bucket or a few, each by one seek, whatever the length of the history.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};
use mongodb::options::SelectionCriteria;

use super::bucket_id::BucketId;
use super::document::{Bucket, COLLECTION};
use super::tail::Tail;
use crate::domain::{CustomerId, PageNumber};
use crate::store::majority::MonotonicReads;
use crate::store::{Corruption, Deadline, Error};

/// The most buckets that are skipped to reach a page from either end of a history. A skipped bucket is one more
/// document examined and takes half a microsecond. A seek by page number is an index key and a look-up, and
/// takes 20 microseconds more than reading the first bucket in order. Measured (`docs/reading.md`): the costs
/// are equal at about 32.
pub const MOST_SKIPPED: u64 = 16;

/// Which buckets to find, and by which index.
pub(super) struct Find {
    customer: CustomerId,
    filter: Document,
    sort: Option<Document>,
    skip: u64,
    limit: u64,
    hint: Document,
}

impl Find {
    /// The last bucket.
    pub(super) fn last(customer: CustomerId) -> Self {
        Self::in_order(customer, BucketId::all_of(customer), -1, 0)
    }

    /// Whether a page is near enough to the first page to be reached by skipping.
    pub(super) fn skips_to(page: PageNumber) -> bool {
        page.get() - 1 <= MOST_SKIPPED
    }

    /// A page by its number. `tail` is the tail of the history, if it is known.
    pub(super) fn page(customer: CustomerId, page: PageNumber, tail: Option<Tail>) -> Self {
        if Self::skips_to(page) {
            return Self::in_order(customer, BucketId::all_of(customer), 1, page.get() - 1);
        }
        if let Some(tail) = tail.filter(|tail| tail.page.get() - page.get() <= MOST_SKIPPED) {
            // Counted from the known tail, so that buckets opened since then are not counted.
            return Self::in_order(customer, tail.id.up_to(), -1, tail.page.get() - page.get());
        }
        Self {
            customer,
            filter: doc! { "customerId": customer.get() as i64, "page": page.get() as i64 },
            sort: None,
            skip: 0,
            limit: 1,
            hint: doc! { "customerId": 1, "page": 1 },
        }
    }

    /// These pages, found in ascending order whatever their order here.
    pub(super) fn pages(customer: CustomerId, pages: &[PageNumber]) -> Self {
        let numbers: Vec<_> = pages.iter().map(|page| page.get() as i64).collect();
        Self {
            customer,
            filter: doc! { "customerId": customer.get() as i64, "page": { "$in": numbers } },
            sort: Some(doc! { "page": 1 }),
            skip: 0,
            limit: pages.len() as u64,
            hint: doc! { "customerId": 1, "page": 1 },
        }
    }

    /// The bucket after `skip` others in the order of `_id`.
    fn in_order(customer: CustomerId, filter: Document, direction: i32, skip: u64) -> Self {
        Self {
            customer,
            filter,
            sort: Some(doc! { "_id": direction }),
            skip,
            limit: 1,
            hint: doc! { "_id": 1 },
        }
    }

    /// Finds one bucket, in the same way as [`Find::find_all`].
    ///
    /// # Errors
    /// Same as [`Find::find_all`].
    pub(super) async fn find(
        &self,
        reads: &MonotonicReads,
        deadline: Deadline,
    ) -> Result<Option<Bucket>, Error> {
        Ok(self.find_all(reads, deadline).await?.pop())
    }

    /// Finds the buckets, read at majority from the primary. Retries while the database is temporarily
    /// unavailable.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub(super) async fn find_all(
        &self,
        reads: &MonotonicReads,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>, Error> {
        self.find_all_at(None, reads, deadline).await
    }

    /// Same as [`Find::find_all`], but reads from `server` if one is given.
    ///
    /// # Errors
    /// Same as [`Find::find_all`].
    pub(super) async fn find_all_at(
        &self,
        server: Option<&SelectionCriteria>,
        reads: &MonotonicReads,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>, Error> {
        let bucket = |bucket: &RawDocument| Ok(Bucket::read(bucket, self.customer)?);
        reads.find(server, &self.command(), None, deadline, bucket).await
    }

    fn command(&self) -> Document {
        let mut command = doc! {
            "find": COLLECTION,
            "filter": self.filter.clone(),
            "limit": self.limit as i64,
            "batchSize": self.limit as i64,
            "singleBatch": true,
            "hint": self.hint.clone(),
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

/// Checks a bucket that was found by its place in the order of `_id`: its number must be `page` (invariant 3).
pub(super) fn numbered(bucket: Bucket, page: PageNumber) -> Result<Bucket, Error> {
    if bucket.page == page {
        return Ok(bucket);
    }
    Err(Error::from(Corruption {
        id: bucket.id.to_string(),
        field: "page".to_owned(),
        detail: format!("is {}, though it is number {page} in the order of _id", bucket.page),
    }))
}
