//! Finds one bucket or a few, each by one seek, whatever the length of the history.

use std::sync::Arc;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};
use mongodb::options::SelectionCriteria;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{OwnerId, PageNumber};

use crate::mongo::majority::{Query, at_most};
use crate::mongo::{Corruption, Error, Result};
use crate::store::buckets::bucket_id::{BucketId, Tail};
use crate::store::buckets::document::Bucket;
use crate::store::buckets::marker::{self, Marker};
use crate::store::collection::{HistoryCollection, OfOwner};

/// The most buckets that are skipped to reach a page from either end of a history. A skipped bucket is one
/// more document examined and takes half a microsecond. A seek by page number is an index key and a look-up,
/// and takes 20 microseconds more than reading the first bucket in order. Measured
/// (`docs/explanation/reading.md`): the costs are equal at about 32.
pub const MOST_SKIPPED: u64 = 16;

/// Whether a page is near enough to the first page to be reached by skipping. Not if pages may be missing
/// before it.
pub(crate) fn skips_to(source: &HistoryCollection, page: PageNumber) -> bool {
    page.get() - 1 <= MOST_SKIPPED && !source.markers.any(&source.clock)
}

/// The command that finds the last bucket.
pub(crate) fn last(of: OfOwner<'_>) -> Document {
    in_order(of, None, -1, 0)
}

/// The command that finds a page by its number. `tail` is the tail of the history, if it is known.
fn page(of: OfOwner<'_>, page: PageNumber, tail: Option<Tail>) -> Document {
    if skips_to(of.source, page) {
        return in_order(of, None, 1, page.get() - 1);
    }
    if let Some(tail) = tail.filter(|tail| tail.page.get() - page.get() <= MOST_SKIPPED) {
        // Counted from the known tail, so that buckets opened since then are not counted.
        return in_order(of, Some(tail), -1, tail.page.get() - page.get());
    }
    by_number(of, page)
}

/// The command that finds a page by its number, wherever it is.
fn by_number(of: OfOwner<'_>, page: PageNumber) -> Document {
    of.at_most(doc! { "page": page }, 1)
}

/// The command that finds these pages, in ascending order whatever their order here: at most
/// [`HistoryCollection::most_buckets`]. One page is found in the same way as by [`find_page`].
pub(crate) fn pages(of: OfOwner<'_>, pages: &[PageNumber]) -> Document {
    if let [only] = pages {
        return page(of, *only, None);
    }
    let numbers: Vec<_> = pages.to_vec();
    of.at_most(doc! { "page": { "$in": numbers } }, pages.len())
}

/// The command that finds the bucket after `skip` others in the order of `_id`, of all or of those up to
/// `last`.
fn in_order(of: OfOwner<'_>, last: Option<Tail>, direction: i32, skip: u64) -> Document {
    let range = BucketId::range(of.owner, last.map(|tail| tail.id(of.owner)).as_ref());
    let filter = of.filter(doc! { "_id": range });
    let mut command = at_most(of.source.collection(), filter, 1, doc! { "_id": 1 });
    command.insert("sort", doc! { "_id": direction });
    if skip > 0 {
        command.insert("skip", skip as i64);
    }
    command
}

/// Finds the owner's buckets that `command` names, read at majority from the primary, or from `server` if one
/// is given. Retries while the database is temporarily unavailable.
///
/// # Errors
/// The database does not answer in time, a bucket is corrupt, or one of them is a marker.
pub(crate) async fn find(
    OfOwner { source, owner, deadline }: OfOwner<'_>,
    command: Document,
    server: Option<SelectionCriteria>,
) -> Result<Vec<Bucket>> {
    let (owner, definition) = (owner.clone(), Arc::clone(&source.definition));
    let bucket = move |document: &RawDocument| bucket(document, &owner, &definition);
    // What another member shows must not be older than the latest answer about markers.
    let after = server
        .as_ref()
        .filter(|_| source.markers.any(&source.clock))
        .and_then(|_| source.reads.time.newest());
    let found = source.reads.query(Query { server, after, ..Query::new(command, deadline) }, bucket).await;
    if let Err(Error::Gone(_)) = found {
        source.markers.met();
    }
    found
}

/// Reads a bucket of `owner`.
///
/// # Errors
/// It is corrupt, or a marker.
pub(crate) fn bucket(
    document: &RawDocument,
    owner: &OwnerId,
    definition: &Arc<Definition>,
) -> Result<Bucket> {
    // A marker has no items, so it is not read as a bucket.
    Bucket::read(document, owner, definition).or_else(|corruption| match Marker::read(document)? {
        Some(marker) => Err(marker.gone(definition.page_size).into()),
        None => Err(corruption.into()),
    })
}

/// Finds a page by its number. `tail` is the tail of the history, if it is known.
///
/// # Errors
/// The database does not answer in time, a bucket is corrupt, or the page is one that its marker lacks.
pub(crate) async fn find_page(
    of: OfOwner<'_>,
    number: PageNumber,
    tail: Option<Tail>,
) -> Result<Option<Bucket>> {
    let found = find(of, page(of, number, tail), None).await?.pop();
    match found.map(|bucket| numbered(bucket, number)).transpose() {
        Err(misplaced @ Error::Corrupt(_)) => {
            let Some(marker) = marker::find(of).await? else { return Err(misplaced) };
            // Pages before it are missing, so its place is not its number.
            of.source.markers.met();
            if marker.lacks(number) {
                return Err(marker.gone(of.source.page_size()).into());
            }
            Ok(find(of, by_number(of, number), None).await?.pop())
        }
        found => found,
    }
}

/// Checks a bucket that was found by its place in the order of `_id`: its number must be `page` (invariant
/// 3).
pub(crate) fn numbered(bucket: Bucket, page: PageNumber) -> Result<Bucket> {
    if bucket.page() == page {
        return Ok(bucket);
    }
    let detail = format!("is {}, though it is number {page} in the order of _id", bucket.page());
    Err(Corruption::new(bucket.id().to_string(), "page", detail).into())
}
