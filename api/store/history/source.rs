use std::sync::Arc;

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::{Bson, Document, doc};

use super::dedup::ServerTime;
use super::markers::Markers;
use crate::definition::{Definition, Owner};
use crate::domain::{Clock, OwnerId, OwnerType, PageNumber, PageSize, Seq, Totals};
use crate::store::group_commit::{Answer, Command, Sessions, Unanswered, durable};
use crate::store::majority::{MonotonicReads, at_most};
use crate::store::migrations::histories;
use crate::store::values::whole_number;
use crate::store::{Deadline, Error, Result};

/// The most bytes of buckets in one reply. The server ends a batch at 16 MB without saying that it is not complete.
const MOST_BYTES: usize = 12_000_000;

/// Where the histories of one definition are, and how they are read and written.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) definition: Arc<Definition>,
    pub(super) reads: MonotonicReads,
    pub(super) sessions: Arc<Sessions>,
    pub(super) clock: Clock,
    /// The server's clock, for the records of keys.
    pub(super) server_time: ServerTime,
    /// What is known of the markers of deleted pages.
    pub(super) markers: Markers,
}

impl Source {
    /// Runs a durable command, and learns the time of its answer.
    ///
    /// # Errors
    /// See [`Unanswered`].
    pub(super) async fn commit(&self, command: Command, deadline: Deadline) -> Result<Answer, Unanswered> {
        let answer = self.sessions.commit(&self.reads, command, deadline).await?;
        self.server_time.learn(answer.at);
        Ok(answer)
    }

    /// Runs a command once.
    ///
    /// # Errors
    /// The database did not answer in time, or refused the command.
    pub(super) async fn run(&self, command: Document, deadline: Deadline) -> Result<Document> {
        let database = self.reads.database.clone();
        deadline.read(async move { Ok(database.run_command(command).await?) }).await
    }

    /// Runs a write that may be repeated without harm, durably, and returns its reply.
    ///
    /// # Errors
    /// The database did not answer in time, or refused a part of it. It may have been applied.
    pub(super) async fn write(&self, mut command: Document, deadline: Deadline) -> Result<Document> {
        command.insert("writeConcern", durable(deadline));
        let reply = self.run(command, deadline).await?;
        match reply.get("writeErrors").or(reply.get("writeConcernError")) {
            // Another instance may have been faster, or a majority may be missing.
            Some(error) => Err(Error::Unavailable(error.to_string())),
            None => {
                self.reads.learn(reply.get_timestamp("operationTime").ok());
                Ok(reply)
            }
        }
    }

    /// Raises the number of markers of this history, before or after one is written.
    ///
    /// # Errors
    /// The database did not answer in time. The number may be raised.
    pub(super) async fn raise_markers(&self, deadline: Deadline) -> Result<()> {
        let update = doc! { "q": { "_id": self.collection() }, "u": { "$inc": { "markers": 1_i64 } } };
        // This instance waits for no answer to its own question.
        self.markers.raised();
        let raised =
            self.write(doc! { "update": histories::COLLECTION, "updates": [update] }, deadline).await?;
        match raised.get("n").and_then(whole_number) {
            Some(1) => Ok(()),
            _ => Err(Error::Internal(format!(
                "the database does not remember {}: migrate it",
                self.collection()
            ))),
        }
    }

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

    /// What `owner` has here, for commands that are answered until `deadline`.
    pub(super) fn of<'a>(&'a self, owner: &'a OwnerId, deadline: Deadline) -> OfOwner<'a> {
        OfOwner { source: self, owner, deadline }
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

/// What one owner has in a [`Source`], for commands that are answered until a deadline.
#[derive(Clone, Copy)]
pub(super) struct OfOwner<'a> {
    pub(super) source: &'a Source,
    pub(super) owner: &'a OwnerId,
    pub(super) deadline: Deadline,
}

impl OfOwner<'_> {
    /// A filter for those buckets, or records, for which `condition` holds.
    pub(super) fn filter(self, condition: Document) -> Document {
        let mut filter = self.source.owned_by(self.owner);
        filter.extend(condition);
        filter
    }

    /// A command that finds at most `most` of the buckets for which `condition` holds, in the order of their pages.
    pub(super) fn at_most(self, condition: Document, most: usize) -> Document {
        at_most(self.source.collection(), self.filter(condition), most, self.source.by_page())
    }

    /// Reads at majority from the primary ([`MonotonicReads::find`]).
    pub(super) async fn find<T: Send + 'static>(
        self,
        command: Document,
        read: impl Fn(&RawDocument) -> Result<T> + Send + Sync + 'static,
    ) -> Result<Vec<T>> {
        self.source.reads.find(None, command, None, self.deadline, read).await
    }

    /// Changes the bucket for which `condition` holds, found by the index `hint`. Returns whether there is one. The change must be
    /// one that may be repeated without harm.
    pub(super) async fn update(
        self,
        condition: Document,
        change: impl Into<Bson>,
        hint: Document,
    ) -> Result<bool> {
        let update = doc! { "q": self.filter(condition), "u": change, "hint": hint };
        let command = doc! { "update": self.source.collection(), "updates": [update] };
        let reply = self.source.write(command, self.deadline).await?;
        Ok(reply.get("n").and_then(whole_number) == Some(1))
    }

    /// Deletes the buckets for which one of the conditions holds. They name pages.
    pub(super) async fn delete(self, conditions: impl IntoIterator<Item = Document>) -> Result<()> {
        let delete = |condition| {
            doc! { "q": self.filter(condition), "limit": 0, "hint": self.source.by_page() }
        };
        let deletes: Vec<_> = conditions.into_iter().map(delete).collect();
        let command = doc! { "delete": self.source.collection(), "deletes": deletes };
        self.source.write(command, self.deadline).await.map(drop)
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

/// The owner that the owner's field of a document names. `None` if it is no id.
pub(super) fn owner_in(document: &RawDocument, owner: &Owner) -> Option<OwnerId> {
    document.get(&*owner.field).ok().flatten().and_then(|id| owner_of(id, owner.kind))
}

/// The page number of a bucket, or of a projection of one. Otherwise says what is wrong with it.
pub(super) fn page_of(bucket: &RawDocument) -> Result<PageNumber, &'static str> {
    let page = bucket.get_i64("page").ok().and_then(|page| PageNumber::new(page.try_into().ok()?).ok());
    page.ok_or("is not a positive int64")
}
