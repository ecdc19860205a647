//! Erasure of one owner: a tombstone first, then all pages and keys, then a sweep.
//!
//! From the tombstone on every read of the tail says that the owner is erased. An instance that read the tail before may still
//! open pages, until that is older than [`Ages::tail`](crate::store::Ages::tail) and its last command has ended. So pages and
//! keys are deleted at once, and again when the tombstone is older than [`Ages::marker`](crate::store::Ages::marker): the
//! *sweep*. Before a page is deleted, the tombstone says that later pages follow it: a page that was opened after the tombstone
//! was written has used its number.
//!
//! Every step may be repeated, and any instance may go on where another has stopped. An erasure that is late, because its
//! instance stood still, must not delete what was appended after a reopening: it deletes only pages up to one that a tombstone,
//! not yet swept, has just covered.

use std::sync::Arc;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{DateTime, Document, doc};

use super::bucket_id::BucketId;
use super::engine::Engine;
use super::marker::{self, Marker, TOMBSTONE, server_time, tombstone_id};
use super::source::{OfOwner, owner_in, page_of};
use crate::domain::{Instant, OwnerId, PageNumber};
use crate::store::majority::at_most;
use crate::store::{COMMAND, Corruption, Deadline, Error, Result};

/// The most pages that a step deletes.
pub(super) const MOST_DELETED: usize = 1_000;

/// The type of a page's number. A damaged bucket has another, or none, and must not keep its owner from being erased.
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

/// What became of the wish to lift a tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reopening {
    /// The history takes appends again. Its numbers go on after those of the erased pages.
    Reopened,
    /// The owner has no tombstone.
    NotErased,
    /// The tombstone is not swept yet.
    NotSwept,
}

impl Engine {
    /// One bounded step of the erasure of an owner: writes the tombstone, or deletes at most 1,000 pages, or keys, or sweeps.
    /// May be repeated at any time, by any instance.
    ///
    /// A record of a key does not say of which history it is. Those of all histories of the owner's collection are deleted:
    /// no other collection's owners have the same field ([`Definitions`](crate::definition::Definitions)).
    ///
    /// # Errors
    /// The database does not answer in time. Then the step may be repeated.
    pub async fn erase(&self, owner: &OwnerId, deadline: Deadline) -> Result<Erasure> {
        self.step(owner, true, deadline).await
    }

    /// A step of an erasure that has begun. Without a tombstone there is nothing to do: another instance has swept it, and the
    /// owner was reopened since.
    ///
    /// # Errors
    /// See [`Engine::erase`].
    pub async fn go_on_erasing(&self, owner: &OwnerId, deadline: Deadline) -> Result<Erasure> {
        self.step(owner, false, deadline).await
    }

    async fn step(&self, owner: &OwnerId, begins: bool, deadline: Deadline) -> Result<Erasure> {
        let of = self.0.source.of(owner, deadline.or_within(COMMAND));
        // Before the tombstone is read: a record that is touched later may be of a history that was reopened meanwhile.
        let began = server_time(of.source, of.deadline).await?;
        let Some(tombstone) = tombstone(of).await? else {
            return if begins { bury(of).await } else { Ok(Erasure::Swept) };
        };
        if tombstone.swept {
            self.0.key_scans.forget(owner);
            return Ok(Erasure::Swept);
        }
        let done = delete_pages(of).await? && self.0.key_scans.go_on(of, &tombstone, began).await?;
        match (done, tombstone.aged) {
            (false, _) => Ok(Erasure::Erasing),
            (true, false) => Ok(Erasure::Erased),
            (true, true) => {
                let swept = doc! { "$set": { "swept": true } };
                // If the tombstone is not found, another instance has come to this end.
                change(of, swept).await?;
                self.0.key_scans.forget(owner);
                Ok(Erasure::Swept)
            }
        }
    }

    /// Whether the tombstone of an owner is swept; `None` without one.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub async fn is_swept(&self, owner: &OwnerId, deadline: Deadline) -> Result<Option<bool>> {
        Ok(tombstone(self.0.source.of(owner, deadline)).await?.map(|tombstone| tombstone.swept))
    }

    /// The moment, by the server's clock, after which the last sweep of an erased owner may be done. `None` without a
    /// tombstone.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub async fn sweep_after(&self, owner: &OwnerId, deadline: Deadline) -> Result<Option<Instant>> {
        let source = &self.0.source;
        let since = tombstone(source.of(owner, deadline)).await?.and_then(|tombstone| tombstone.since);
        let age = source.markers.ages.marker.as_millis() as i64;
        Ok(since.and_then(|since| Instant::from_millis(since.timestamp_millis() + age).ok()))
    }

    /// Lifts the tombstone of an owner. Page and sequence numbers go on, so no address ever means two things.
    ///
    /// # Errors
    /// The database does not answer in time. Then it may be repeated.
    pub async fn reopen(&self, owner: &OwnerId, deadline: Deadline) -> Result<Reopening> {
        let (source, deadline) = (&self.0.source, deadline.or_within(COMMAND));
        let of = source.of(owner, deadline);
        let Some(tombstone) = tombstone(of).await? else { return Ok(Reopening::NotErased) };
        if !tombstone.swept {
            return Ok(Reopening::NotSwept);
        }
        source.raise_markers(deadline).await?;
        let since = tombstone.since;
        // Without a page before it the history is as if it had never been.
        if tombstone.first_page > PageNumber::FIRST {
            let id = BucketId { owner: owner.clone(), second: tombstone.second };
            write(of, &id.to_string(), 1, tombstone, doc! { "swept": true }).await?;
        }
        let mut this = the_tombstone(owner, true);
        // Not one of an erasure that came after another reopening.
        this.extend(since.map(|since| ("since".to_owned(), since.into())));
        let tombstone = doc! { "q": of.filter(this), "limit": 1 };
        source.write(doc! { "delete": source.collection(), "deletes": [tombstone] }, deadline).await?;
        source.raise_markers(deadline).await?;
        Ok(Reopening::Reopened)
    }

    /// Owners whose tombstones are not swept yet, a bounded number of them, without those whose ids are damaged.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub(in crate::store) async fn unswept(&self, deadline: Deadline) -> Result<Vec<OwnerId>> {
        const MOST: usize = 100;
        let source = &self.0.source;
        let definition = Arc::clone(&source.definition);
        let command = at_most(source.collection(), doc! { "swept": false }, MOST, doc! { "swept": 1 });
        let owner = move |tombstone: &RawDocument| {
            let owner = owner_in(tombstone, &definition.owner);
            if owner.is_none() {
                let error =
                    Corruption::of(tombstone, &definition.owner.field, "is not an id of the right type");
                tracing::warn!(%error, "an erasure cannot go on");
            }
            Ok(owner)
        };
        let owners = source.reads.find(None, command, None, deadline.or_within(COMMAND), owner).await?;
        Ok(owners.into_iter().flatten().collect())
    }
}

/// The tombstone, if the owner is erased.
async fn tombstone(of: OfOwner<'_>) -> Result<Option<Marker>> {
    Ok(marker::find(of).await?.filter(|marker| marker.erased))
}

/// Writes the tombstone.
async fn bury(of: OfOwner<'_>) -> Result<Erasure> {
    of.source.raise_markers(of.deadline).await?;
    let last = last_opened(of).await?;
    let (first_page, second) = last.unwrap_or((PageNumber::FIRST, 0));
    let tombstone = Marker { erased: true, first_page, second, swept: false, since: None, aged: false };
    let more =
        doc! { "erased": { "$ifNull": ["$erased", "$$NOW"] }, "swept": { "$ifNull": ["$swept", false] } };
    write(of, &tombstone_id(of.owner), TOMBSTONE, tombstone, more).await?;
    // Again: an instance may have asked, and read a tail, before the tombstone was there.
    of.source.raise_markers(of.deadline).await?;
    Ok(if last.is_some() { Erasure::Erasing } else { Erasure::Nothing })
}

/// The page after all that an owner has, and the second of the last one; `None` if there is nothing. Damage inside of a bucket
/// does not keep an owner from being erased.
async fn last_opened(of: OfOwner<'_>) -> Result<Option<(PageNumber, u64)>> {
    let mut command = of.at_most(doc! { "page": { "$type": NUMBER } }, 1);
    let order = doc! { of.source.owner_field(): -1, "page": -1 };
    command.extend(doc! { "sort": order, "projection": marker::fields(of.source) });
    let owner = of.owner.clone();
    let read = move |bucket: &RawDocument| match Marker::read(bucket)? {
        Some(marker) => Ok((marker.first_page, marker.second)),
        None => numbers(bucket, &owner).map(|(page, second)| (page.next(), second)),
    };
    Ok(of.find(command, read).await?.pop())
}

/// The page number of a bucket, and its second if its `_id` is readable.
fn numbers(bucket: &RawDocument, owner: &OwnerId) -> Result<(PageNumber, u64)> {
    let page = page_of(bucket).map_err(|why| Corruption::of(bucket, "page", why))?;
    let id = BucketId::parse(bucket.get_str("_id").unwrap_or_default(), owner);
    Ok((page, id.map_or(0, |id| id.second)))
}

/// Writes a marker where there is no bucket, or raises its numbers.
async fn write(of: OfOwner<'_>, id: &str, page: i64, marker: Marker, more: Document) -> Result<()> {
    let query = of.filter(doc! { "_id": id, "page": page });
    let mut set = doc! {
        "count": 0,
        // Dates of nothing.
        "first": DateTime::from_millis(0),
        "last": DateTime::from_millis(0),
        "history": [],
        "firstPage": { "$max": ["$firstPage", marker.first_page.get() as i64] },
        "second": { "$max": ["$second", marker.second as i64] },
        "since": { "$ifNull": ["$since", "$$NOW"] },
    };
    set.extend(more);
    let update = doc! { "q": query, "u": [{ "$set": set }], "upsert": true, "hint": { "_id": 1 } };
    let command = doc! { "update": of.source.collection(), "updates": [update] };
    of.source.write(command, of.deadline).await.map(drop)
}

fn the_tombstone(owner: &OwnerId, swept: bool) -> Document {
    doc! { "_id": tombstone_id(owner), "swept": swept }
}

/// Changes the tombstone. Returns whether it was there, and not swept.
async fn change(of: OfOwner<'_>, change: Document) -> Result<bool> {
    of.update(the_tombstone(of.owner, false), change, doc! { "_id": 1 }).await
}

/// Deletes pages, and a marker of the beginning. Returns whether none is left.
async fn delete_pages(of: OfOwner<'_>) -> Result<bool> {
    let mut command = of.at_most(doc! { "page": { "$lt": TOMBSTONE, "$type": NUMBER } }, MOST_DELETED);
    command.insert("projection", doc! { "page": 1, "count": 1, "since": 1 });
    let owner = of.owner.clone();
    let read = move |bucket: &RawDocument| {
        let (page, second) = numbers(bucket, &owner)?;
        Ok((page, second, bucket.get_datetime("since").ok()))
    };
    let found = of.find(command, read).await?;
    let (Some((first, _, since)), Some((last, second, _))) = (found.first(), found.last()) else {
        // Damaged buckets.
        of.delete([doc! { "page": { "$not": { "$type": NUMBER } } }]).await?;
        return Ok(true);
    };
    let used = doc! { "$max": { "firstPage": last.next().get() as i64, "second": *second as i64 } };
    if !change(of, used).await? {
        let ended = format!("another instance has come to the end of the erasure of {}", of.owner);
        return Err(Error::Unavailable(ended));
    }
    let range = doc! { "$gte": first.get() as i64, "$lte": last.get() as i64 };
    // This marker alone: a later one begins the history that was reopened.
    let marker = since.map(|since| doc! { "page": 1_i64, "since": since });
    of.delete([doc! { "page": range, "since": { "$exists": false } }].into_iter().chain(marker)).await?;
    Ok(found.len() < MOST_DELETED)
}
