//! Finds one bucket or a few, each by one seek, whatever the length of the history.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};
use mongodb::options::SelectionCriteria;

use super::bucket_id::BucketId;
use super::document::Bucket;
use super::source::Source;
use super::tail::Tail;
use crate::domain::{OwnerId, PageNumber};
use crate::store::{Corruption, Deadline, Error};

/// The most buckets that are skipped to reach a page from either end of a history. A skipped bucket is one more
/// document examined and takes half a microsecond. A seek by page number is an index key and a look-up, and
/// takes 20 microseconds more than reading the first bucket in order. Measured (`docs/reading.md`): the costs
/// are equal at about 32.
pub const MOST_SKIPPED: u64 = 16;

/// Which buckets of an owner to find, and by which index.
pub(super) struct Find<'a> {
    source: &'a Source,
    owner: &'a OwnerId,
    filter: Document,
    sort: Option<Document>,
    skip: u64,
    limit: usize,
    hint: Document,
}

impl<'a> Find<'a> {
    /// The last bucket.
    pub(super) fn last(source: &'a Source, owner: &'a OwnerId) -> Self {
        Self::in_order(source, owner, None, -1, 0)
    }

    /// Whether a page is near enough to the first page to be reached by skipping.
    pub(super) fn skips_to(page: PageNumber) -> bool {
        page.get() - 1 <= MOST_SKIPPED
    }

    /// A page by its number. `tail` is the tail of the history, if it is known.
    pub(super) fn page(source: &'a Source, owner: &'a OwnerId, page: PageNumber, tail: Option<Tail>) -> Self {
        if Self::skips_to(page) {
            return Self::in_order(source, owner, None, 1, page.get() - 1);
        }
        if let Some(tail) = tail.filter(|tail| tail.page.get() - page.get() <= MOST_SKIPPED) {
            // Counted from the known tail, so that buckets opened since then are not counted.
            return Self::in_order(source, owner, Some(tail), -1, tail.page.get() - page.get());
        }
        let mut filter = source.owned_by(owner);
        filter.insert("page", page.get() as i64);
        Self { source, owner, filter, sort: None, skip: 0, limit: 1, hint: source.by_page() }
    }

    /// These pages, found in ascending order whatever their order here: at most [`Source::most_buckets`].
    pub(super) fn pages(source: &'a Source, owner: &'a OwnerId, pages: &[PageNumber]) -> Self {
        let numbers: Vec<_> = pages.iter().map(|page| page.get() as i64).collect();
        let mut filter = source.owned_by(owner);
        filter.insert("page", doc! { "$in": numbers });
        let sort = Some(doc! { "page": 1 });
        Self { source, owner, filter, sort, skip: 0, limit: pages.len(), hint: source.by_page() }
    }

    /// The bucket after `skip` others in the order of `_id`, of all or of those up to `last`.
    fn in_order(
        source: &'a Source,
        owner: &'a OwnerId,
        last: Option<Tail>,
        direction: i32,
        skip: u64,
    ) -> Self {
        let last = last.map(|tail| tail.id(owner));
        let mut filter = source.owned_by(owner);
        filter.insert("_id", BucketId::range(owner, last.as_ref()));
        let (sort, hint) = (Some(doc! { "_id": direction }), doc! { "_id": 1 });
        Self { source, owner, filter, sort, skip, limit: 1, hint }
    }

    /// Finds one bucket, in the same way as [`Find::find_all`].
    ///
    /// # Errors
    /// Same as [`Find::find_all`].
    pub(super) async fn find(&self, deadline: Deadline) -> Result<Option<Bucket>, Error> {
        Ok(self.find_all(deadline).await?.pop())
    }

    /// Finds the buckets, read at majority from the primary. Retries while the database is temporarily
    /// unavailable.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub(super) async fn find_all(&self, deadline: Deadline) -> Result<Vec<Bucket>, Error> {
        self.find_all_at(None, deadline).await
    }

    /// Same as [`Find::find_all`], but reads from `server` if one is given.
    ///
    /// # Errors
    /// Same as [`Find::find_all`].
    pub(super) async fn find_all_at(
        &self,
        server: Option<&SelectionCriteria>,
        deadline: Deadline,
    ) -> Result<Vec<Bucket>, Error> {
        let definition = &self.source.definition;
        let bucket = |bucket: &RawDocument| Ok(Bucket::read(bucket, self.owner, definition)?);
        self.source.reads.find(server, &self.command(), None, deadline, bucket).await
    }

    fn command(&self) -> Document {
        let mut command = doc! {
            "find": self.source.collection(),
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
    if bucket.page() == page {
        return Ok(bucket);
    }
    Err(Error::from(Corruption {
        id: bucket.id().to_string(),
        field: "page".to_owned(),
        detail: format!("is {}, though it is number {page} in the order of _id", bucket.page()),
    }))
}
