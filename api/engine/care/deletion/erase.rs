//! Erasure of one owner: a tombstone first, then all pages and keys, then a sweep
//! ([`deletion`](super), "When pages are deleted").
//!
//! What summaries have stored of the pages goes with them ([`tiles`]): a maker that stood still is refused as
//! an append is. So does what a native time series has of the owner
//! ([`series`](mod@crate::projections::series::forget)): what comes late does not count, and is deleted.
//!
//! Every step may be repeated, and any instance may go on where another has stopped. An erasure that is late,
//! because its instance stood still, must not delete what was appended after a reopening: it deletes only
//! pages up to one that a tombstone, not yet swept, has just covered. Damage does not keep an owner from
//! being erased ([`damaged`]).
//!
//! A reopening would show late pages to readers, for good. So it looks for late pages first. If a page
//! arrives while it is under way, the numbers of the tombstone have changed, and the tombstone is not lifted.

use std::sync::Arc;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc};
use pagebucket_model::domain::{Instant, OwnerId, PageNumber};
use parking_lot::Mutex;

use super::damaged::{self, Numbers};
use super::erased_keys::KeyScans;
use super::erasure_log::{self, LoggedErasure};
use crate::mongo::majority::at_most;
use crate::mongo::values::{date, in_millis, int64, whole_number};
use crate::mongo::{COMMAND, Corruption, Deadline, Error, Result};
use crate::projections::series::forget::forget as forget_series;
use crate::projections::summaries::tiles;
use crate::store::buckets::bucket_id::BucketId;
use crate::store::buckets::marker::{self, Marker, TOMBSTONE, tombstone_id};
use crate::store::collection::fence::{self, ReadTime};
use crate::store::collection::{HistoryCollection, OfOwner, owner_in};
use crate::store::reads::owners::OwnerWalk;

/// The most pages that a step deletes.
pub(crate) const MOST_DELETED: usize = 1_000;

/// The type of a page's number. A damaged bucket has another, or none, and must not keep its owner from being
/// erased.
const NUMBER: &str = "long";

/// How far the erasure of an owner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erasure {
    /// Nothing of the owner was stored. The tombstone is written all the same.
    Nothing,
    /// Pages or keys are left: another step is needed.
    Erasing,
    /// Nothing is left but the tombstone. It is not swept yet.
    Erased,
    /// Nothing is left but the tombstone, and nothing can come any more.
    Swept,
}

/// The outcome of a reopening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reopening {
    /// The history takes appends again. Its numbers go on after those of the erased pages.
    Reopened,
    /// The owner has no tombstone.
    NotErased,
    /// The tombstone is not swept yet.
    NotSwept,
}

/// Erases owners from the histories of one definition.
#[derive(Debug)]
pub struct Erasures {
    pub(crate) source: Arc<HistoryCollection>,
    pub(crate) key_scans: KeyScans,
    /// The walk over owners of whom something may have come late. Its next step begins at this record of a
    /// key.
    pub(crate) late: Mutex<(OwnerWalk, Option<Binary>)>,
}

impl Erasures {
    /// One bounded step of the erasure of an owner: writes the tombstone, or deletes at most 1,000 pages, or
    /// keys, or sweeps. May be repeated at any time, by any instance.
    pub async fn erase(&self, owner: &OwnerId, deadline: Deadline) -> Result<Erasure> {
        self.step(owner, true, deadline).await
    }

    /// A step of an erasure that has begun. Without a tombstone there is nothing to do: another instance has
    /// swept it, and the owner was reopened since.
    pub async fn go_on(&self, owner: &OwnerId, deadline: Deadline) -> Result<Erasure> {
        self.step(owner, false, deadline).await
    }

    /// With `begins` an erasure may begin, and begin again.
    async fn step(&self, owner: &OwnerId, begins: bool, deadline: Deadline) -> Result<Erasure> {
        let of = self.source.of(owner, deadline.or_within(COMMAND));
        // Before the tombstone is read: a record that is touched later may be of a history that was reopened
        // meanwhile.
        let began = of.source.server_time(of.deadline).await?;
        let read = of.source.read_time(of.deadline).await?;
        let (tombstone, numbers) = match begins {
            true => damaged::sound_tombstone(of).await?,
            false => (marker::tombstone(of).await?, damaged::UNUSED),
        };
        // Before the answer the log has the numbers that are used now: what it does not have cannot be
        // replayed after a restore.
        let mut tombstone = match tombstone {
            None if !begins => return Ok(Erasure::Swept),
            Some(tombstone) if tombstone.since.is_some() => tombstone,
            // A damaged one has no date: its age begins now.
            _ => {
                let erasure = bury(of, read, numbers, None).await?;
                if begins {
                    erasure_log::log(of).await?;
                }
                return Ok(erasure);
            }
        };
        let tombstone = &mut tombstone;
        if tombstone.swept {
            self.key_scans.forget(owner);
            forget_projections(of, tombstone).await?;
            let is_clean = match begins {
                true => look_behind(of, tombstone, None).await?,
                // Pages that arrived late. A reopening may be under way.
                false => delete_pages(of, Some(reopening(tombstone)), tombstone).await?,
            };
            match (begins, is_clean) {
                (true, true) => LoggedErasure::of(*tombstone).write(of, false),
                (true, false) => erasure_log::log(of).await?,
                (false, _) => {}
            }
            return Ok(if is_clean { Erasure::Swept } else { Erasure::Erasing });
        }
        let aged = of.source.is_aged(tombstone.since);
        let scan = (owner.clone(), tombstone.since, aged);
        let mut done = delete_pages(of, None, tombstone).await?;
        if begins {
            LoggedErasure::of(*tombstone).write(of, false);
        }
        if done {
            // After the pages: what is made later is made by an instance that does not know the tombstone
            // yet. The sweep comes after that.
            forget_projections(of, tombstone).await?;
            done = self.key_scans.go_on(of, scan, began).await?;
        }
        match (done, aged) {
            (false, _) => Ok(Erasure::Erasing),
            (true, false) => Ok(Erasure::Erased),
            (true, true) => {
                LoggedErasure::of(*tombstone).write(of, false);
                let swept = doc! { "$set": { "swept": true } };
                if !change(of, tombstone, swept).await? {
                    // Another instance has come to this end, has found a late page, or has begun again: the
                    // next step looks.
                    return Ok(Erasure::Erasing);
                }
                self.key_scans.forget(owner);
                Ok(Erasure::Swept)
            }
        }
    }

    /// Whether the tombstone of an owner is swept; `None` without one.
    pub async fn is_swept(&self, owner: &OwnerId, deadline: Deadline) -> Result<Option<bool>> {
        Ok(marker::tombstone(self.source.of(owner, deadline)).await?.map(|tombstone| tombstone.swept))
    }

    /// The moment, by the server's clock, after which the last sweep of an erased owner may be done. `None`
    /// without a tombstone.
    pub async fn sweep_after(&self, owner: &OwnerId, deadline: Deadline) -> Result<Option<Instant>> {
        let source = &self.source;
        let tombstone = marker::tombstone(source.of(owner, deadline)).await?;
        let age = in_millis(source.markers.ages.marker);
        let since = tombstone.and_then(|tombstone| tombstone.since);
        Ok(since.and_then(|since| Instant::from_millis(since.timestamp_millis() + age).ok()))
    }

    /// Lifts the tombstone of an owner. Page and sequence numbers go on, so no address ever means two things.
    pub async fn reopen(&self, owner: &OwnerId, deadline: Deadline) -> Result<Reopening> {
        // Perhaps it was late: the next attempt asks for the database's time.
        deadline.retry(|| self.reopen_once(owner, deadline)).await
    }

    async fn reopen_once(&self, owner: &OwnerId, deadline: Deadline) -> Result<Reopening> {
        let (source, deadline) = (&self.source, deadline.or_within(COMMAND));
        let of = source.of(owner, deadline);
        let read = source.read_time(deadline).await?;
        let Some(tombstone) = marker::tombstone(of).await? else { return Ok(Reopening::NotErased) };
        if !tombstone.swept || !look_behind(of, &tombstone, Some(reopening(&tombstone))).await? {
            return Ok(Reopening::NotSwept);
        }
        forget_projections(of, &tombstone).await?;
        source.raise_markers(deadline).await?;
        // If no page was ever opened, no marker is needed.
        if tombstone.first_page > PageNumber::FIRST {
            let id = BucketId { owner: owner.clone(), second: tombstone.second }.to_string();
            // By its page: an interrupted attempt may have left it with another `_id`.
            let place = (doc! { "page": 1_i64, "count": 0 }, source.by_page());
            let more = doc! { "_id": { "$ifNull": ["$_id", id] }, "swept": true };
            write(of, read, place, tombstone, more).await?;
        }
        let as_read = doc! { "q": of.filter(the_tombstone(owner, &tombstone)), "limit": 1 };
        let delete = doc! { "delete": source.collection(), "deletes": [as_read] };
        let lifted = source.reads.write(delete, deadline).await?;
        // If it was not there any more, another instance has lifted it, has begun the erasure again, or has
        // found a late page.
        if lifted.get("n").and_then(whole_number) != Some(1) && marker::tombstone(of).await?.is_some() {
            return Err(Error::Overtaken("the tombstone of the owner has changed"));
        }
        LoggedErasure::of(tombstone).write(of, true);
        source.raise_markers(deadline).await?;
        Ok(Reopening::Reopened)
    }

    /// Owners whose tombstones are not swept yet, a bounded number of them, without those whose ids are
    /// damaged.
    pub(crate) async fn unswept(&self, deadline: Deadline) -> Result<Vec<OwnerId>> {
        const MOST: usize = 100;
        let source = &self.source;
        let definition = Arc::clone(&source.definition);
        let command = at_most(source.collection(), doc! { "swept": false }, MOST, doc! { "swept": 1 });
        let owner = move |tombstone: &RawDocument| {
            let owner = owner_in(tombstone, &definition.owner);
            if owner.is_none() {
                let error =
                    Corruption::of(tombstone, &definition.owner.field, "is not an id of the right type");
                tracing::warn!(%error, "an erasure cannot continue");
            }
            Ok(owner)
        };
        let owners = source.reads.find(command, deadline.or_within(COMMAND), owner).await?;
        Ok(owners.into_iter().flatten().collect())
    }
}

/// Deletes what is computed from the pages, when they are deleted.
async fn forget_projections(of: OfOwner<'_>, tombstone: &Marker) -> Result<()> {
    tiles::forget_erased(of, tombstone.first_page).await?;
    forget_series(of, tombstone.since).await
}

/// The marker of the beginning that a reopening writes before it lifts this tombstone.
fn reopening(tombstone: &Marker) -> Document {
    doc! {
        "page": 1_i64, "count": 0, "swept": true, "since": { "$type": "date" },
        "firstPage": { "$lte": tombstone.first_page },
    }
}

/// Writes the tombstone because of what was read at `read`, with these numbers or greater ones. `erased` is
/// the time of an erasure that is replayed.
pub(crate) async fn bury(
    of: OfOwner<'_>,
    read: ReadTime,
    least: Numbers,
    erased: Option<Instant>,
) -> Result<Erasure> {
    of.source.raise_markers(of.deadline).await?;
    let last = last_opened(of).await?;
    let (first_page, second) = last.map_or(least, |last| damaged::later(last, least));
    let tombstone = Marker { erased: true, first_page, second, swept: false, since: None, erased_at: None };
    let erased = match erased {
        Some(erased) => doc! { "$max": ["$erased", date(erased)] },
        None => doc! { "$ifNull": ["$erased", "$$NOW"] },
    };
    let more = doc! { "erased": erased, "swept": { "$ifNull": ["$swept", false] } };
    let place = (doc! { "_id": tombstone_id(of.owner), "page": TOMBSTONE }, doc! { "_id": 1 });
    write(of, read, place, tombstone, more).await?;
    // It ages from when it is there. The clock of the command that has written it stood still meanwhile: if
    // the database's clock has leapt, reads that did not show it are justified until later.
    let there = doc! { "_id": tombstone_id(of.owner), "swept": false };
    let since = doc! { "$max": ["$since", fence::now(of.source.topology())] };
    of.update(there, vec![doc! { "$set": { "since": since } }], doc! { "_id": 1 }).await?;
    // Again: an instance may have asked, and read a tail, before the tombstone was there.
    of.source.raise_markers(of.deadline).await?;
    Ok(if last.is_some() { Erasure::Erasing } else { Erasure::Nothing })
}

/// The page after all that an owner has, and the second of the last one; `None` if there is nothing.
pub(crate) async fn last_opened(of: OfOwner<'_>) -> Result<Option<Numbers>> {
    let mut command = of.at_most(doc! { "page": plain() }, 1);
    let order = doc! { of.source.owner_field(): -1, "page": -1 };
    command.extend(doc! { "sort": order, "projection": marker::fields() });
    let owner = of.owner.clone();
    Ok(of.find(command, move |bucket| Ok(damaged::used(bucket, &owner))).await?.pop())
}

/// The number of a page, as a condition.
fn plain() -> Document {
    doc! { "$gte": 1_i64, "$lt": TOMBSTONE, "$type": NUMBER }
}

/// Writes a marker where there is no bucket, or raises its numbers, because of what was read at `read`. If it
/// is late, the database refuses it: an erasure, its sweep and a reopening may have come between. The place
/// is a condition and the index that finds it.
async fn write(
    of: OfOwner<'_>,
    read: ReadTime,
    (place, hint): (Document, Document),
    marker: Marker,
    more: Document,
) -> Result<()> {
    let source = of.source;
    let mut set = doc! {
        "count": 0,
        // Dates of nothing.
        "first": DateTime::from_millis(0),
        "last": DateTime::from_millis(0),
        // A marker with an item fails the validator.
        "history": { "$cond": [source.fence_after(read).is_open(), [], [0]] },
        "firstPage": { "$max": ["$firstPage", marker.first_page] },
        "second": { "$max": ["$second", int64(marker.second)] },
        "since": { "$ifNull": ["$since", fence::now(source.topology())] },
    };
    set.extend(more);
    let update = doc! { "q": of.filter(place), "u": [{ "$set": set }], "upsert": true, "hint": hint };
    source.update_in_time(source.collection(), update, of.deadline).await
}

/// This tombstone as it was read, and none of an erasure that came after a reopening.
fn the_tombstone(owner: &OwnerId, tombstone: &Marker) -> Document {
    let mut this = doc! {
        "_id": tombstone_id(owner), "swept": tombstone.swept, "firstPage": tombstone.first_page,
        "second": int64(tombstone.second),
    };
    this.extend(tombstone.since.map(|since| ("since".to_owned(), since.into())));
    this
}

/// Changes the tombstone. Returns whether it was there, and as it was read.
async fn change(of: OfOwner<'_>, tombstone: &Marker, change: impl Into<Bson>) -> Result<bool> {
    of.update(the_tombstone(of.owner, tombstone), change, doc! { "_id": 1 }).await
}

/// Begins the erasure of an owner again whose tombstone is swept, if something is left but what is `spared`.
/// Returns whether nothing is left.
async fn look_behind(of: OfOwner<'_>, tombstone: &Marker, spared: Option<Document>) -> Result<bool> {
    if damaged::find(of, spared).await?.0.is_empty() {
        damaged::name_others(of).await?;
        return Ok(true);
    }
    let again = vec![doc! { "$set": { "swept": false, "since": fence::now(of.source.topology()) } }];
    // If the tombstone is not found, another instance was faster, or the owner was reopened.
    change(of, tombstone, again).await?;
    Ok(false)
}

/// Deletes pages, and then what is left beside them but what is `spared`. Returns whether none is left.
async fn delete_pages(of: OfOwner<'_>, spared: Option<Document>, tombstone: &mut Marker) -> Result<bool> {
    if !delete_numbered(of, tombstone).await? {
        return Ok(false);
    }
    let (left, numbers) = damaged::find(of, spared).await?;
    if !left.is_empty() {
        use_up(of, tombstone, numbers).await?;
        return damaged::delete(of, left).await;
    }
    damaged::name_others(of).await?;
    Ok(true)
}

/// Deletes pages that have a number. Returns whether none is left.
async fn delete_numbered(of: OfOwner<'_>, tombstone: &mut Marker) -> Result<bool> {
    let pages = |page: Document| doc! { "page": page, "since": { "$exists": false } };
    let mut command = of.at_most(pages(plain()), MOST_DELETED);
    command.insert("projection", marker::fields());
    let owner = of.owner.clone();
    let read = move |bucket: &RawDocument| Ok((bucket.get_i64("page").ok(), damaged::used(bucket, &owner)));
    let found = of.find(command, read).await?;
    if let (Some((Some(first), _)), Some((Some(last), _))) = (found.first(), found.last()) {
        let used = found.iter().fold(damaged::UNUSED, |all, (_, used)| damaged::later(all, *used));
        use_up(of, tombstone, used).await?;
        of.delete([pages(doc! { "$gte": *first, "$lte": *last })]).await?;
    }
    Ok(found.len() < MOST_DELETED)
}

/// Writes into the tombstone that these numbers are used. Then pages may be deleted: no later page has their
/// numbers.
async fn use_up(of: OfOwner<'_>, tombstone: &mut Marker, used: Numbers) -> Result<()> {
    let (first_page, second) = damaged::later((tombstone.first_page, tombstone.second), used);
    let used = doc! { "$max": { "firstPage": first_page, "second": int64(second) } };
    let any_erasure = doc! { "_id": tombstone_id(of.owner), "swept": tombstone.swept };
    if of.update(any_erasure, used, doc! { "_id": 1 }).await? {
        (tombstone.first_page, tombstone.second) = (first_page, second);
        return Ok(());
    }
    Err(Error::Overtaken("another instance has come to the end of the erasure"))
}
