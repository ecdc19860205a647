//! Pages and records of keys that were stored after their owner's tombstone was swept.
//!
//! The fence refuses what is late ([`crate::store::collection::fence`]). It fails where the clock of a
//! standalone server is set back, and earlier versions have none. So once an hour housekeeping looks for
//! pages of the owners that were erased during the last day; a repeated DELETE and a reopening look at once.
//! Late pages are deleted after the tombstone's `firstPage` was raised above them. A reopening then waits for
//! the sweep, because it would show a late page to readers for good.
//!
//! A marker of the beginning stays if an interrupted reopening has written it: the next reopening finds it by
//! its page number and goes on.

use mongodb::bson::{DateTime, doc};
use pagebucket_model::domain::OwnerId;

use super::erase::Erasures;
use super::erased_keys::unerased;
use crate::mongo::{COMMAND, Deadline, Result};
use crate::store::buckets::marker::TOMBSTONE;
use crate::store::collection::owner_bson;
use crate::store::reads::owners::owners_with;

/// The greatest age of a tombstone whose owner is checked, in milliseconds.
const DAY: i64 = 86_400_000;

/// The most tombstones of a step.
const MOST: usize = 100;

impl Erasures {
    /// One step of a walk over the owners that were erased less than a day ago: deletes buckets and records
    /// of keys that came late. Returns whether the walk goes on. A walk begins
    /// [`Ages::late`](crate::capacity::Ages::late) after the one before. After an error the walk goes on
    /// where it was.
    pub(crate) async fn delete_late(&self, deadline: Deadline) -> Result<bool> {
        let (source, deadline) = (&self.source, deadline.or_within(COMMAND));
        let (walk, from) = self.late.lock().clone();
        let Some(mut walk) = walk.next(source.markers.ages.late) else { return Ok(false) };
        // Before the tombstones are read: a record that is touched later may be of a history that was
        // reopened meanwhile.
        let began = source.server_time(deadline).await?;
        let since = DateTime::from_millis(began - DAY);
        let tombstones = doc! { "page": TOMBSTONE, "swept": true, "since": { "$gte": since } };
        let (found, more) = owners_with(source, walk.after.as_ref(), tombstones, MOST, deadline).await?;
        let owners: Vec<OwnerId> = found.into_iter().flatten().collect();
        let mut without_keys = Vec::new();
        for owner in &owners {
            match self.clean(owner, from.is_none(), deadline).await {
                Ok(true) => without_keys.push(owner_bson(owner)),
                Ok(false) => {}
                Err(error) if deadline.passed() => return Err(error),
                // An owner that cannot be cleaned must not keep the others.
                Err(error) => {
                    let history = source.collection();
                    tracing::warn!(history, %owner, %error, "what came late behind a tombstone was not deleted");
                }
            }
        }
        let from = match without_keys.is_empty() {
            true => None,
            false => {
                let these = doc! { source.owner_field(): { "$in": without_keys } };
                self.key_scans.delete(source, &these, from, began, deadline).await?
            }
        };
        if from.is_none() {
            walk.after = owners.last().filter(|_| more).cloned();
        }
        walk.goes_on = walk.after.is_some() || from.is_some();
        let goes_on = walk.goes_on;
        *self.late.lock() = (walk, from);
        Ok(goes_on)
    }

    /// Deletes the buckets of an owner that came late, if `buckets` says so. Returns whether the records of
    /// its keys may be deleted.
    async fn clean(&self, owner: &OwnerId, buckets: bool, deadline: Deadline) -> Result<bool> {
        if buckets {
            self.go_on(owner, deadline).await?;
        }
        Ok(unerased(self.source.of(owner, deadline)).await?.is_none())
    }
}
