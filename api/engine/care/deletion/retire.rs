//! Retirement: the oldest full pages of each history go, a bounded number at a time
//! ([`deletion`](super), "When pages are deleted").
//!
//! The marker of the beginning takes the place of page 1. Its `firstPage` is the first page that stays. Until
//! the marker is aged, an instance may still know a page before as the full tail: it would open its
//! successor, which exists and refuses. `firstPage` is raised again only when all pages before it are
//! deleted. The last page always stays.
//!
//! Where tiles of summaries outlive their pages ([`kept`](crate::projections::summaries::kept)), these are
//! stored before the marker is.
//!
//! Pages go by their dates only if the time is not in doubt ([`super::retention_clock`]).

use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_model::domain::{Limit, OwnerId, PageNumber};
use parking_lot::Mutex;

use super::retention_clock::{Doubt, RetentionClock};
use crate::mongo::values::int64;
use crate::mongo::{COMMAND, Corruption, Deadline, Error, Result};
use crate::projections::summaries::kept::has_kept_tiles;
use crate::projections::summaries::make::TileMaker;
use crate::projections::summaries::tiles;
use crate::store::buckets::bucket_id::Tail;
use crate::store::buckets::marker::{self, Marker};
use crate::store::buckets::tails::Tails;
use crate::store::collection::fence;
use crate::store::collection::{HistoryCollection, NO_PAGE, OfOwner, owner_bson, owner_in, page_of};
use crate::store::reads::owners::owner_ids;
use crate::store::reads::reader::HistoryReader;

/// The most pages of one owner that a batch deletes, or examines for their dates.
const MOST_PAGES: u64 = 1_000;

/// The most commands that look for the first page that is kept, each at [`MOST_PAGES`] pages.
const MOST_COMMANDS: usize = 20;

/// How long kept tiles are made in a step.
const KEEPING: Duration = Duration::from_secs(5);

/// How much of each history is kept. With both, a page is kept if either keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// The number of full pages that are kept before the last page.
    pub pages: Option<NonZeroU64>,
    /// The age in days up to which the last date of a page keeps it, and all pages after it.
    pub days: Option<NonZeroU32>,
    /// Whether tiles of summaries outlive their pages. Then pages are retired only as far as whole tiles of
    /// them are, 64 at a time.
    pub keep_summaries: bool,
}

/// What a batch of retirement has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retired {
    /// Number of pages that were marked: they are no longer answered, and are deleted later.
    pub marked: u64,
    /// Number of pages that were deleted.
    pub pages: u64,
    /// Whether owners are left in this walk over all of them.
    pub more: bool,
    /// Why no page was retired by its date, if the time is in doubt. Pages that were retired before are
    /// deleted all the same.
    pub doubt: Option<Doubt>,
}

/// Retires pages of the histories of one definition.
#[derive(Debug)]
pub struct Retirement {
    reader: HistoryReader,
    /// The last owner of the step before.
    walk: Mutex<Option<OwnerId>>,
    clock: RetentionClock,
}

impl Retirement {
    pub(crate) fn new(reader: HistoryReader) -> Self {
        Self { reader, walk: Mutex::default(), clock: RetentionClock::default() }
    }

    /// Retires pages of the next owners, a bounded number of them, and deletes pages that were retired
    /// before, also if nothing is to be retired now. The next call goes on with the next owners; after the
    /// last owner the walk begins again.
    pub async fn retire(&self, retention: Retention, deadline: Deadline) -> Result<Retired> {
        let (source, deadline) = (&self.reader.source, deadline.or_within(COMMAND));
        let after = self.walk.lock().clone();
        let (ids, next) = owner_ids(source, after, Limit::MOST, deadline).await?;
        let mut retired = Retired { more: next.is_some(), ..Retired::default() };
        // An owner that cannot be retired must not keep the others.
        *self.walk.lock() = next;
        let tails = Tails::read(source, &ids, None, deadline).await;
        let mut markers = beginnings(source, &ids, deadline).await?;
        let mut limits = (retention, None);
        if let Some(days) = retention.days {
            match self.clock.time(source, deadline).await? {
                Ok(now) => limits.1 = Some(now - i64::from(days.get()) * 86_400_000),
                // Also where a number of pages is given: a page is kept if either keeps it.
                Err(doubt) => (limits.0, retired.doubt) = (Retention::default(), Some(doubt)),
            }
        }
        let maker = TileMaker::of(&self.reader).filter(|_| retention.keep_summaries);
        let keeping = maker.map(|maker| (maker, Deadline::within(KEEPING)));
        for (index, owner) in ids.iter().enumerate() {
            if index > 0 && keeping.as_ref().is_some_and(|(_, until)| until.passed()) {
                // The next step begins with this owner.
                *self.walk.lock() = Some(ids[index - 1].clone());
                retired.more = true;
                break;
            }
            let (of, marker) = (source.of(owner, deadline), markers.remove(owner));
            match retire_one(of, &tails, marker, limits, keeping.as_ref(), &mut retired.marked).await {
                // A damaged bucket, or an owner that is being erased.
                Err(error @ (Error::Corrupt(_) | Error::Gone(_))) => {
                    tracing::debug!(%owner, %error, "no page of an owner is retired");
                }
                deleted => retired.pages += deleted?,
            }
        }
        if retired.marked > 0 {
            // Again: an instance may have asked before the last marker was written.
            source.raise_markers(deadline).await?;
            if keeping.is_none() && has_kept_tiles(source, deadline).await? {
                let history = source.collection();
                tracing::warn!(
                    history,
                    "pages are retired without their summaries; those of earlier pages are kept"
                );
            }
        }
        Ok(retired)
    }
}

/// Deletes pages of one owner, and returns how many; or marks those that are deleted later, and adds their
/// number to `marked`: before the first ones the number of markers is raised. `limits` are how much is kept,
/// and the oldest date that is kept. `keeping` makes kept tiles, until a time; what is left is for the next
/// step.
async fn retire_one(
    of: OfOwner<'_>,
    tails: &Tails,
    marker: Option<Beginning>,
    limits: (Retention, Option<i64>),
    keeping: Option<&(TileMaker, Deadline)>,
    marked: &mut u64,
) -> Result<u64> {
    let Some(tail) = tails.of(of.owner)? else { return Ok(0) };
    let marker = marker.transpose()?.flatten();
    if let Some(deleted) = delete(of, marker).await? {
        return Ok(deleted);
    }
    let first = marker.map_or(PageNumber::FIRST, |marker| marker.first_page);
    let mut keep = first_kept(of, first, tail, limits).await?;
    if let Some((end, (maker, until))) = keep.zip(keeping) {
        keep = maker.keep_before(of, first, end, *until).await?;
    }
    let Some(keep) = keep else { return Ok(0) };
    if *marked == 0 {
        of.source.raise_markers(of.deadline).await?;
    }
    *marked += keep.get().saturating_sub(first.get()).max(1);
    mark(of, keep, tail).await?;
    Ok(0)
}

/// The marker of the beginning of an owner, or how it is damaged.
type Beginning = Result<Option<Marker>, Corruption>;

/// The markers of the beginning of these owners, those that have one.
async fn beginnings(
    source: &HistoryCollection,
    owners: &[OwnerId],
    deadline: Deadline,
) -> Result<HashMap<OwnerId, Beginning>> {
    if owners.is_empty() || !source.markers.any(&source.clock) {
        return Ok(HashMap::new());
    }
    let (field, definition) = (source.owner_field(), Arc::clone(&source.definition));
    let ids: Vec<Bson> = owners.iter().map(owner_bson).collect();
    let mut projection = marker::fields();
    projection.insert(field, 1);
    let command = doc! {
        "find": source.collection(),
        "filter": { field: { "$in": ids }, "page": 1_i64, "count": 0 },
        "projection": projection,
        "batchSize": owners.len() as i64 + 1,
        "hint": source.by_page(),
    };
    let marker = move |bucket: &RawDocument| {
        Ok(owner_in(bucket, &definition.owner).map(|owner| (owner, Marker::read(bucket))))
    };
    let found = source.reads.find(command, deadline, marker).await?;
    Ok(found.into_iter().flatten().collect())
}

/// Deletes the next pages before the first that stays. `None` if there are none; 0 if it is too early.
async fn delete(of: OfOwner<'_>, marker: Option<Marker>) -> Result<Option<u64>> {
    let Some(marker) = marker.filter(|marker| !marker.swept) else { return Ok(None) };
    let before = doc! { "$gt": 1_i64, "$lt": marker.first_page };
    let found = pages(of, doc! { "page": before }, MOST_PAGES).await?;
    let (Some(first), Some(last)) = (found.first(), found.last()) else {
        // Page 1 is deleted with its marker, and an earlier attempt may have ended after the pages. Until
        // then a tile may come late.
        if marker.since.is_some() && !of.source.is_aged(marker.since) {
            return Ok(Some(0));
        }
        tiles::forget(of, marker.first_page).await?;
        // So that later walks need not look.
        let this = doc! { "page": 1_i64, "firstPage": marker.first_page };
        of.update(this, doc! { "$set": { "swept": true } }, of.source.by_page()).await?;
        return Ok(None);
    };
    if !of.source.is_aged(marker.since) {
        return Ok(Some(0));
    }
    of.delete([doc! { "page": { "$gte": first, "$lte": last } }]).await?;
    // Also of page 1, whose place the marker has.
    tiles::forget(of, last.next()).await?;
    Ok(Some(found.len() as u64))
}

/// The first page that is kept, if it is later than `first`, the first that is there.
async fn first_kept(
    of: OfOwner<'_>,
    first: PageNumber,
    tail: Tail,
    (retention, oldest): (Retention, Option<i64>),
) -> Result<Option<PageNumber>> {
    let by_pages = match retention {
        Retention { pages: None, days: None, .. } => return Ok(None),
        Retention { pages: Some(pages), .. } => tail.page.get().saturating_sub(pages.get()),
        Retention { pages: None, .. } => tail.page.get(),
    };
    let Some(by_pages) = PageNumber::new(by_pages).ok().filter(|page| *page > first) else { return Ok(None) };
    let Some(oldest) = oldest else { return Ok(Some(by_pages)) };
    let mut end = first;
    for _ in 0..MOST_COMMANDS {
        let next = by_pages.min(PageNumber::new(end.get() + MOST_PAGES).unwrap_or(by_pages));
        let young = doc! {
            "page": { "$gte": end, "$lt": next },
            "last": { "$gte": DateTime::from_millis(oldest) },
            "count": { "$gt": 0 },
        };
        let young = pages(of, young, 1).await?.pop();
        end = young.unwrap_or(next);
        if young.is_some() || end == by_pages {
            break;
        }
    }
    Ok(Some(end).filter(|page| *page > first))
}

/// Puts the marker of the beginning in the place of page 1, or raises its numbers.
async fn mark(of: OfOwner<'_>, first: PageNumber, tail: Tail) -> Result<()> {
    let set = doc! {
        "count": 0,
        "history": [],
        "firstPage": { "$max": ["$firstPage", first] },
        "second": { "$max": ["$second", int64(tail.second)] },
        "since": fence::now(of.source.topology()),
    };
    let change = vec![doc! { "$set": set }, doc! { "$unset": "swept" }];
    of.update(doc! { "page": 1_i64 }, change, of.source.by_page()).await.map(drop)
}

/// The numbers of the first pages of an owner for which `condition` holds.
async fn pages(of: OfOwner<'_>, condition: Document, most: u64) -> Result<Vec<PageNumber>> {
    let mut command = of.at_most(condition, most as usize);
    command.insert("projection", doc! { "_id": 0, "page": 1 });
    let id = format!("{}_", of.owner);
    let page = move |bucket: &RawDocument| {
        Ok(page_of(bucket).ok_or_else(|| Corruption::new(&*id, "page", NO_PAGE))?)
    };
    of.find(command, page).await
}
