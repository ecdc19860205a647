//! What came behind a swept tombstone all the same.
//!
//! The fence refuses what is late ([`super::fence`]). It fails where the clock of a standalone server is set back, and earlier
//! versions have none. So housekeeping looks behind the tombstones of the last day.

use std::sync::Arc;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{DateTime, doc};
use pagebucket_model::domain::OwnerId;
use tokio::time::Instant;

use super::engine::Engine;
use super::erased_keys::unerased;
use super::marker::TOMBSTONE;
use super::owners::before_all;
use super::source::{owner_bson, owner_in};
use crate::mongo::majority::at_most;
use crate::mongo::{COMMAND, Deadline, Result};

/// Up to which age a tombstone is looked behind, in milliseconds.
const DAY: i64 = 86_400_000;

/// The most tombstones of a step.
const MOST: usize = 100;

impl Engine {
    /// One step of a walk over the owners that were erased less than a day ago: deletes pages and records of keys that came late.
    /// Returns whether the walk goes on. A walk begins [`Ages::late`](crate::capacity::Ages::late) after the one before.
    ///
    /// # Errors
    /// The database does not answer in time. The walk goes on where it was.
    pub(crate) async fn erase_late(&self, deadline: Deadline) -> Result<bool> {
        let (source, deadline) = (&self.0.source, deadline.or_within(COMMAND));
        let mut walk = self.0.late_walk.lock().clone();
        if walk.after.is_none() && walk.records.is_none() {
            if walk.began.is_some_and(|began| began.elapsed() < source.markers.ages.late) {
                return Ok(false);
            }
            walk.began = Some(Instant::now());
        }
        let (field, definition) = (source.owner_field(), Arc::clone(&source.definition));
        // Before the tombstones are read: a record that is touched later may be of a history that was reopened meanwhile.
        let began = source.server_time(deadline).await?;
        let since = DateTime::from_millis(began - DAY);
        let after = walk.after.clone().unwrap_or_else(|| before_all(definition.owner.kind));
        let tombstones = doc! {
            field: { "$gt": owner_bson(&after) }, "page": TOMBSTONE, "swept": true, "since": { "$gte": since },
        };
        let mut command = at_most(source.collection(), tombstones, MOST, source.by_page());
        command.insert("projection", doc! { "_id": 0, field: 1 });
        let owner = move |tombstone: &RawDocument| Ok(owner_in(tombstone, &definition.owner));
        let found = source.reads.find(None, command, None, deadline, owner).await?;
        let more = found.len() == MOST;
        let owners: Vec<OwnerId> = found.into_iter().flatten().collect();
        let mut without_keys = Vec::new();
        for owner in &owners {
            if walk.records.is_none() {
                self.go_on_erasing(owner, deadline).await?;
            }
            if unerased(source.of(owner, deadline)).await?.is_none() {
                without_keys.push(owner_bson(owner));
            }
        }
        let from = walk.records.take();
        if !without_keys.is_empty() {
            let these = doc! { field: { "$in": without_keys } };
            walk.records = self.0.key_scans.delete(source, &these, from, began, deadline).await?;
        }
        if walk.records.is_none() {
            walk.after = owners.last().filter(|_| more).cloned();
        }
        let goes_on = walk.after.is_some() || walk.records.is_some();
        *self.0.late_walk.lock() = walk;
        Ok(goes_on)
    }
}
