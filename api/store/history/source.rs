use std::sync::Arc;

use mongodb::bson::raw::RawBsonRef;
use mongodb::bson::{Bson, Document, doc};

use crate::definition::Definition;
use crate::domain::{OwnerId, OwnerType, PageSize, Seq, Totals};
use crate::store::majority::MonotonicReads;

/// The most bytes of buckets in one reply. The server ends a batch at 16 MB without saying that it is not complete.
const MOST_BYTES: usize = 12_000_000;

/// Where the buckets of all histories of one definition are, and how they are read. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) reads: MonotonicReads,
    pub(super) definition: Arc<Definition>,
}

impl Source {
    /// The name of the collection.
    pub(super) fn collection(&self) -> &str {
        &self.definition.name
    }

    /// The name of the field that holds a bucket's owner.
    pub(super) fn owner_field(&self) -> &str {
        &self.definition.owner.field
    }

    /// The number of items in a full bucket.
    pub(super) fn page_size(&self) -> PageSize {
        self.definition.page_size
    }

    /// The totals of a history that ends with `last`.
    pub(super) fn totals(&self, last: Option<Seq>) -> Totals {
        Totals::ending_with(self.page_size(), last)
    }

    /// A filter for the buckets of `owner`. It targets one shard.
    pub(super) fn owned_by(&self, owner: &OwnerId) -> Document {
        doc! { self.owner_field(): owner_bson(owner) }
    }

    /// The keys of the unique index, as a hint.
    pub(super) fn by_page(&self) -> Document {
        doc! { self.owner_field(): 1, "page": 1 }
    }

    /// The most buckets that a command may ask for, at least 1: all of them fit into one reply.
    pub(super) fn most_buckets(&self) -> usize {
        (MOST_BYTES / (self.page_size().get() * self.definition.max_item_bytes)).max(1)
    }
}

/// The id of an owner as it is stored: int64 or string.
pub(super) fn owner_bson(owner: &OwnerId) -> Bson {
    match owner {
        OwnerId::Integer(id) => Bson::Int64(*id as i64),
        OwnerId::Text(id) => Bson::String(id.to_string()),
    }
}

/// The owner that this stored value is the id of. `None` if it has another type or is no id.
pub(super) fn owner_of(value: RawBsonRef<'_>, kind: OwnerType) -> Option<OwnerId> {
    match (value, kind) {
        (RawBsonRef::Int64(id), OwnerType::Integer) => kind.parse(&id.to_string()).ok(),
        (RawBsonRef::String(id), OwnerType::String) => kind.parse(id).ok(),
        _ => None,
    }
}
