//! What an adoption reports while it runs: refusals, counts, and the lag of a follower.

use std::fmt;

use mongodb::bson::{Bson, Document};
use pagebucket_engine::internal::ItemKey;
use pagebucket_model::domain::{Instant, OwnerId};

use crate::import::RowFaults;
use crate::ingest::StreamWatch;

/// An item of the source that is refused.
#[derive(Debug, Clone, derive_more::Display)]
#[display("{}: {reason}", self.what())]
pub struct RefusedItem {
    /// The `_id` of its document.
    pub id: Bson,
    /// Its index in the array of a bucket.
    pub place: Option<u32>,
    /// All that is wrong with it.
    pub reason: RowFaults,
    /// The item with its owner, as it is in the source.
    pub document: Document,
    /// Its owner and its identity, if the owner is known.
    pub(crate) known: Option<(OwnerId, ItemKey)>,
}

impl RefusedItem {
    /// Which item it is.
    pub(crate) fn what(&self) -> String {
        at(&self.id, self.place)
    }
}

/// Which item of the source is meant.
pub(crate) fn at(id: &Bson, place: Option<u32>) -> String {
    let place = place.map(|place| format!(" at place {place}")).unwrap_or_default();
    format!("{}{place}", shown(id))
}

/// A value in one line.
pub(crate) fn shown(value: &Bson) -> String {
    format!("_id {}", value.clone().into_relaxed_extjson())
}

/// Why an item of the source is not stored.
#[derive(Debug, derive_more::Display)]
pub enum NotStored {
    /// It is stored already.
    #[display("is stored already")]
    Present,
    /// It is refused.
    #[display("{_0}")]
    Refused(Box<RefusedItem>),
    /// No item: a bucket whose `count` is not the length of its array, which counts.
    #[display("{_0}")]
    Miscounted(String),
}

/// How far a follower is behind the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    /// When the source was asked for changes. If there were none, all that was inserted before is stored.
    pub at: Instant,
    /// Seconds between the first change that is not stored and the source's time.
    pub seconds: u32,
    /// Changes that are read and not stored: at most 5,000, though there may be more.
    pub events: usize,
    /// Items that were stored by following so far.
    pub stored: u64,
}

/// What became of the items of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdoptionCounts {
    /// Items that this run has stored.
    pub stored: u64,
    /// Items that were stored before.
    pub present: u64,
    /// Items that were refused.
    pub refused: u64,
    /// Buckets whose `count` is not the length of their array.
    pub miscounted: u64,
    /// Changes of the source that were not applied.
    pub changed: u64,
}

/// Receives the events of an adoption while it runs.
pub trait AdoptionWatch: StreamWatch<NotStored> {
    /// A sentence for the user.
    fn line(&mut self, line: fmt::Arguments<'_>);

    /// A change of the source that is not applied.
    fn changed(&mut self, change: &str);

    /// How far a follower is behind.
    fn lag(&mut self, lag: Lag);
}
