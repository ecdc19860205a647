//! Owners whose histories have changed, noted while there are readers of all owners.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use pagebucket_model::domain::OwnerId;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::mongo::Deadline;
use crate::mongo::log_place::LogPlace;

/// The most owners that are noted. When more change before they are taken, all changes are missed, and
/// readers resume.
const MOST: usize = 100_000;

/// The owners of the histories of one definition that have changed.
#[derive(Debug, Default)]
pub(crate) struct ChangedOwners {
    /// Whether there are readers of all owners. A change looks at this, and at nothing else while there are
    /// none.
    wanted: AtomicBool,
    /// What tells of changes.
    source: watch::Sender<ChangeSource>,
    noted: Mutex<NotedChanges>,
}

/// What tells of changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ChangeSource {
    /// Nothing: the database is a standalone server, or the user may not read changes.
    None,
    /// Nothing, at the moment.
    #[default]
    Interrupted,
    /// A change stream. While it is being resumed, its changes are late, and none is missing.
    Stream,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct NotedChanges {
    /// Those that have changed and were not taken yet.
    pub(crate) owners: HashSet<OwnerId>,
    /// The place up to which all changes are noted, once it is known.
    pub(crate) reached: Option<LogPlace>,
    /// How often changes were missed.
    pub(crate) misses: u64,
}

impl NotedChanges {
    fn add(&mut self, owner: OwnerId) {
        self.owners.insert(owner);
        if self.owners.len() > MOST {
            self.miss();
        }
    }

    /// Begins an empty note: changes between the earlier note and this one may be missing.
    fn miss(&mut self) {
        *self = Self { misses: self.misses + 1, ..Self::default() };
    }
}

impl ChangedOwners {
    /// Notes changes from now on, or no more.
    pub(crate) fn set_wanted(&self, wanted: bool) {
        let mut noted = self.noted.lock();
        noted.miss();
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    /// Notes whether changes come from a change stream. Without one all are missed.
    pub(crate) fn set_source(&self, source: ChangeSource) {
        self.source.send_replace(source);
        if source != ChangeSource::Stream {
            self.miss();
        }
    }

    /// Whether a change stream tells of changes.
    pub(crate) fn is_followed(&self) -> bool {
        *self.source.borrow() == ChangeSource::Stream
    }

    /// The source of changes, once it is known or the deadline has passed.
    pub(crate) async fn source(&self, deadline: Deadline) -> ChangeSource {
        let mut source = self.source.subscribe();
        let known = deadline.wait_for(source.wait_for(|source| *source != ChangeSource::Interrupted)).await;
        known.and_then(Result::ok).map_or(ChangeSource::Interrupted, |source| *source)
    }

    /// Notes that an owner's history has changed.
    pub(crate) fn note(&self, owner: &OwnerId) {
        if self.wanted.load(Ordering::Relaxed) {
            self.noted.lock().add(owner.clone());
        }
    }

    /// Notes that all changes up to a place are noted.
    pub(crate) fn reached(&self, place: &LogPlace) {
        if self.wanted.load(Ordering::Relaxed) {
            self.noted.lock().reached = Some(place.clone());
        }
    }

    /// How often changes were missed.
    pub(crate) fn misses(&self) -> u64 {
        self.noted.lock().misses
    }

    pub(crate) fn miss(&self) {
        self.noted.lock().miss();
    }

    pub(crate) fn take(&self) -> NotedChanges {
        let mut noted = self.noted.lock();
        let owners = std::mem::take(&mut noted.owners);
        NotedChanges { owners, ..noted.clone() }
    }

    /// Gives owners back that were taken and whose histories could not be read.
    pub(crate) fn give_back(&self, owners: impl IntoIterator<Item = OwnerId>) {
        let mut noted = self.noted.lock();
        owners.into_iter().for_each(|owner| noted.add(owner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As when the tails of those that have changed cannot be read for long.
    #[test]
    fn not_more_owners_are_noted_than_may_be() {
        let changed = ChangedOwners::default();
        changed.set_wanted(true);
        let before = changed.misses();
        let owner = |owner| OwnerId::Integer(owner);
        (1..=MOST as u64).for_each(|number| changed.note(&owner(number)));
        let noted = changed.take();
        assert_eq!((noted.owners.len(), noted.misses), (MOST, before));
        changed.give_back(noted.owners);
        assert_eq!(changed.misses(), before);
        changed.note(&owner(MOST as u64 + 1));
        let noted = changed.take();
        assert_eq!((noted.owners.len(), noted.misses), (0, before + 1), "all of them are missed");
    }
}
