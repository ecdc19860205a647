//! Markers: buckets without items, which say that pages of an owner are deleted.
//!
//! `{_id, owner, page, count: 0, first, last, history: [], firstPage, second, since, erased?, swept?}`.
//! `since` is the time by the server's clock at which the marker was written.
//!
//! - A *marker of the beginning* has the place of page 1, after a retirement with the `_id` of that bucket.
//!   The pages before `firstPage` are retired, or were erased; with `swept` all of them are deleted. If it is
//!   the only bucket, the next append opens `firstPage`, with a second after `second`.
//! - A *tombstone* has the greatest `_id` of its owner, `123_:`, and the greatest page number, 2^53 - 1, so
//!   every read of the tail meets it first: the owner is `erased`. When `swept` is true, nothing can arrive
//!   any more, and `firstPage` and `second` are after all pages that were ever opened.

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{DateTime, Document, doc};
use pagebucket_model::domain::{MAX_SAFE_INTEGER, OwnerId, PageNumber, PageSize};

use super::bucket_id::Tail;
use crate::mongo::values::instant;
use crate::mongo::{COMMAND, Corruption, Gone, Result};
use crate::store::collection::{NO_PAGE, OfOwner, number_in, page_in, page_of};

/// The page number of a tombstone. No page has it: its items would have no sequence numbers.
pub(crate) const TOMBSTONE: i64 = MAX_SAFE_INTEGER as i64;

/// The `_id` of an owner's tombstone: after all of its buckets, inside
/// [`BucketId::range`](super::bucket_id::BucketId::range).
pub(crate) fn tombstone_id(owner: &OwnerId) -> String {
    format!("{owner}_:")
}

/// What a marker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker {
    /// Whether the owner is erased.
    pub(crate) erased: bool,
    /// The first page that is there, or that is opened next.
    pub(crate) first_page: PageNumber,
    /// The page that is opened next has a later second.
    pub(crate) second: u64,
    /// Whether nothing is left of what it is about: of a tombstone, that nothing can come any more.
    pub(crate) swept: bool,
    /// When it was written, by the database's clock ([`fence`](crate::store::collection::fence)).
    pub(crate) since: Option<DateTime>,
    pub(crate) erased_at: Option<DateTime>,
}

impl Marker {
    /// Reads a bucket, or a part of one. `None` if it is not a marker.
    pub(crate) fn read(bucket: &RawDocument) -> Result<Option<Self>, Corruption> {
        if !matches!(bucket.get_i32("count"), Ok(0)) {
            return Ok(None);
        }
        let corrupt = |field, why| Corruption::of(bucket, field, why);
        let page = page_of(bucket).ok_or_else(|| corrupt("page", NO_PAGE))?;
        let is_known = page == PageNumber::FIRST || page.get() == MAX_SAFE_INTEGER;
        if !is_known {
            return Err(corrupt("count", "is 0, though the bucket has not the place of a marker"));
        }
        Ok(Some(Self {
            erased: page != PageNumber::FIRST,
            first_page: page_in(bucket, "firstPage").ok_or_else(|| corrupt("firstPage", NO_PAGE))?,
            second: number_in(bucket, "second").ok_or_else(|| corrupt("second", "is not an int64 from 0"))?,
            swept: bucket.get_bool("swept").unwrap_or(false),
            since: bucket.get_datetime("since").ok(),
            erased_at: bucket.get_datetime("erased").ok(),
        }))
    }

    /// Whether this page is deleted.
    pub(crate) fn lacks(self, page: PageNumber) -> bool {
        self.erased || page < self.first_page
    }

    /// Why a page before [`Marker::first_page`] is not there.
    pub(crate) fn gone(self, page_size: PageSize) -> Gone {
        match self.erased {
            true => Gone::Erased { at: self.erased_at.and_then(instant) },
            false => {
                Gone::Retired { first_page: self.first_page, first_seq: page_size.first_seq(self.first_page) }
            }
        }
    }

    /// The tail that the next append follows, if the marker is the last bucket: the page before the one that
    /// it opens, which is full as far as an append is concerned. `None` before the first page.
    pub(crate) fn tail(self, page_size: PageSize) -> Option<Tail> {
        let page = self.first_page.previous()?;
        Some(Tail { second: self.second, page, count: page_size.get() as u16, page_size })
    }
}

/// The projection of what [`Marker::read`] reads.
pub(crate) fn fields() -> Document {
    doc! { "page": 1, "count": 1, "firstPage": 1, "second": 1, "swept": 1, "since": 1, "erased": 1 }
}

/// Reads the markers of an owner: a tombstone before a marker of the beginning.
pub(crate) async fn find(of: OfOwner<'_>) -> Result<Option<Marker>> {
    let mut command = of.at_most(doc! { "page": { "$in": [1_i64, TOMBSTONE] } }, 2);
    command.extend(doc! { "sort": { "page": -1 }, "projection": fields() });
    let of = OfOwner { deadline: of.deadline.or_within(COMMAND), ..of };
    let found = of.find(command, |bucket| Ok(Marker::read(bucket))).await?;
    // What is damaged before a tombstone is being deleted.
    Ok(found.into_iter().find_map(Result::transpose).transpose()?)
}

/// Reads the tombstone, if the owner is erased. No other bucket is read: it may be damaged.
pub(crate) async fn tombstone(of: OfOwner<'_>) -> Result<Option<Marker>> {
    let mut command = of.at_most(doc! { "page": TOMBSTONE }, 1);
    command.insert("projection", fields());
    let read = |bucket: &RawDocument| {
        let damage =
            || Corruption::of(bucket, "count", "is not 0, though the bucket has the place of a tombstone");
        Ok(Marker::read(bucket)?.ok_or_else(damage)?)
    };
    Ok(of.find(command, read).await?.pop())
}

/// Why a page that was not found is not there: `Ok` if it never was.
pub(crate) async fn check(of: OfOwner<'_>, page: PageNumber) -> Result<()> {
    match find(of).await? {
        Some(marker) if marker.lacks(page) => {
            of.source.markers.met();
            Err(marker.gone(of.source.page_size()).into())
        }
        _ => Ok(()),
    }
}

/// The same as [`check`], if there may be markers.
pub(crate) async fn check_if_any(of: OfOwner<'_>, page: PageNumber) -> Result<()> {
    if of.source.markers.any(&of.source.clock) { check(of, page).await } else { Ok(()) }
}
