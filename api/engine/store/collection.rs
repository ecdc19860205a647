//! The collection of the histories of one definition: how it is read and written, and what this process has
//! learned of it.

pub(crate) mod fence;
pub(crate) mod marker_count;
pub(crate) mod moment;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use mongodb::bson::{Bson, DateTime, Document, Timestamp, doc};
use pagebucket_model::definition::{Definition, Owner};
use pagebucket_model::domain::{Clock, OwnerId, OwnerType, PageNumber, PageSize, Seq, Totals};

use self::fence::{Fence, ReadTime, ServerClock};
use self::marker_count::Markers;
use self::moment::Moment;
use crate::capacity::Ages;
use crate::mongo::majority::{MonotonicReads, at_most};
use crate::mongo::session::Sessions;
use crate::mongo::values::{in_millis, int64, whole_number};
use crate::mongo::{Deadline, Error, NO_PRIMARY, Result, Topology};
use crate::store::histories;

/// The most bytes of buckets in one reply. The server ends a batch at 16 MB.
const MOST_BYTES: usize = 12_000_000;

/// How all histories of a store reach the database. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseAccess {
    pub(crate) reads: MonotonicReads,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) clock: Clock,
    /// The server's clock, for the fence.
    pub(crate) server_clock: Arc<ServerClock>,
    pub(crate) ages: Ages,
}

/// Where the histories of one definition are, and how they are read and written.
#[derive(Debug)]
pub(crate) struct HistoryCollection {
    pub(crate) definition: Arc<Definition>,
    pub(crate) reads: MonotonicReads,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) clock: Clock,
    /// The server's clock, for the fence.
    pub(crate) server_clock: Arc<ServerClock>,
    /// What is known of the markers of deleted pages.
    pub(crate) markers: Markers,
    /// What the database says that an item may take: another instance may have raised it.
    pub(crate) known_item_bytes: AtomicUsize,
}

impl HistoryCollection {
    pub(crate) fn new(definition: Arc<Definition>, access: DatabaseAccess) -> Self {
        let DatabaseAccess { reads, sessions, clock, server_clock, ages } = access;
        Self {
            definition,
            reads,
            sessions,
            clock,
            server_clock,
            markers: Markers::new(ages),
            known_item_bytes: AtomicUsize::default(),
        }
    }

    /// What kind of deployment this is.
    pub(crate) fn topology(&self) -> Topology {
        self.sessions.topology()
    }

    /// The time of a read that is asked now, if the database's clock was seen a short time ago.
    pub(crate) fn read_time_if_known(&self) -> Option<ReadTime> {
        // Half, so that the other half is left to use what is read.
        self.server_clock.before_now(self.markers.ages.tail / 2, &self.clock)
    }

    /// The time of a read that is asked now.
    pub(crate) async fn read_time(&self, deadline: Deadline) -> Result<ReadTime> {
        if let Some(known) = self.read_time_if_known() {
            return Ok(known);
        }
        let server = self.look_at_clock(deadline).await?;
        Ok(ReadTime { moment: Moment::now(&self.clock), server })
    }

    /// Asks for the database's time, in milliseconds since 1970: in a replica set, one that a majority has.
    pub(crate) async fn look_at_clock(&self, deadline: Deadline) -> Result<i64> {
        let time = match self.topology() {
            Topology::Standalone => self.server_time(deadline).await?,
            Topology::Replicated => {
                // Not by a read: a server that checks users tells no operationTime until it has made keys to
                // sign times.
                let hello = self.hello(deadline).await?;
                let last =
                    hello.get_document("lastWrite").and_then(|last| last.get_document("majorityOpTime"));
                self.learnt(last.and_then(|last| last.get_timestamp("ts")).ok())?
            }
            Topology::Sharded => {
                self.reads.by_id(histories::COLLECTION, self.collection(), deadline, |_| Ok(())).await?;
                self.learnt(self.reads.time.newest())?
            }
        };
        self.learn_clock(time);
        Ok(time)
    }

    /// What the primary says of itself. It is asked again while none answers, as every read is.
    async fn hello(&self, deadline: Deadline) -> Result<Document> {
        deadline.or_within(NO_PRIMARY).retry(|| self.reads.run(doc! { "hello": 1 }, deadline)).await
    }

    /// Learns a time that a majority has. Later reads show at least its state.
    fn learnt(&self, time: Option<Timestamp>) -> Result<i64> {
        let time = time.ok_or_else(|| Error::unavailable("the database tells no time yet"))?;
        self.reads.time.learn(Some(time));
        Ok(millis(time))
    }

    /// Learns a time of the database's clock from an answer that has just arrived.
    pub(crate) fn learn_clock(&self, time: i64) {
        self.server_clock.learn(time, Moment::now(&self.clock), self.markers.ages.command);
    }

    /// The server's own clock, in milliseconds since 1970.
    pub(crate) async fn server_time(&self, deadline: Deadline) -> Result<i64> {
        let hello = self.hello(deadline).await?;
        let time = hello.get_datetime("localTime").map(|time| time.timestamp_millis());
        time.map_err(Error::internal)
    }

    /// Whether nothing can come any more that relies on what was before a marker.
    pub(crate) fn is_aged(&self, since: Option<DateTime>) -> bool {
        let settled = self.server_clock.settled(self.markers.ages.command);
        since.is_some_and(|since| self.markers.is_aged(since.timestamp_millis(), settled))
    }

    /// Runs updates, each with `q` and `u`, that may be repeated without harm. Returns whether exactly one
    /// document was found by them.
    pub(crate) async fn update(
        &self,
        collection: &str,
        updates: impl IntoIterator<Item = Document>,
        deadline: Deadline,
    ) -> Result<bool> {
        let updates: Vec<_> = updates.into_iter().collect();
        let reply = self.reads.write(doc! { "update": collection, "updates": updates }, deadline).await?;
        Ok(reply.get("n").and_then(whole_number) == Some(1))
    }

    /// The fence of a command that stores something because of what was read at `read`.
    pub(crate) fn fence_after(&self, read: ReadTime) -> Fence {
        let until = read.server.saturating_add(in_millis(self.markers.ages.tail));
        Fence::until(self.topology(), until)
    }

    /// Runs an update that has a fence. It may be repeated without harm.
    pub(crate) async fn update_in_time(
        &self,
        collection: &str,
        update: Document,
        deadline: Deadline,
    ) -> Result<()> {
        // The clock of a command stands still while it runs.
        let limit = deadline.or_within(self.markers.ages.command).remaining_millis();
        let command = doc! { "update": collection, "updates": [update], "maxTimeMS": limit };
        let written = self.reads.write(command, deadline).await;
        written.inspect_err(|_| self.server_clock.doubt()).map(drop)
    }

    /// Deletes the documents for which one of the filters holds, found by their `_id`.
    pub(crate) async fn delete(
        &self,
        collection: &str,
        filters: impl IntoIterator<Item = Document>,
        deadline: Deadline,
    ) -> Result<()> {
        let delete = |filter| doc! { "q": filter, "limit": 0, "hint": { "_id": 1 } };
        let deletes: Vec<_> = filters.into_iter().map(delete).collect();
        self.reads.write(doc! { "delete": collection, "deletes": deletes }, deadline).await.map(drop)
    }

    /// Raises the number of markers of this history, before or after one is written. After an error the
    /// number may be raised.
    pub(crate) async fn raise_markers(&self, deadline: Deadline) -> Result<()> {
        let update = doc! { "q": { "_id": self.collection() }, "u": { "$inc": { "markers": 1_i64 } } };
        // This instance waits for no answer to its own question.
        self.markers.raised();
        if self.update(histories::COLLECTION, [update], deadline).await? {
            return Ok(());
        }
        let why = format!("the database does not remember {}: migrate it", self.collection());
        Err(Error::internal(why))
    }

    pub(crate) fn collection(&self) -> &str {
        &self.definition.name
    }

    /// The name of the field that holds a bucket's owner.
    pub(crate) fn owner_field(&self) -> &str {
        &self.definition.owner.field
    }

    pub(crate) fn page_size(&self) -> PageSize {
        self.definition.page_size
    }

    /// The totals of a history that ends with `last`.
    pub(crate) fn totals(&self, last: Option<Seq>) -> Totals {
        Totals::ending_with(self.page_size(), last)
    }

    /// A filter for the buckets of `owner`. It targets one shard.
    pub(crate) fn owned_by(&self, owner: &OwnerId) -> Document {
        doc! { self.owner_field(): owner_bson(owner) }
    }

    /// What `owner` has here, for commands that are answered until `deadline`.
    pub(crate) fn of<'a>(&'a self, owner: &'a OwnerId, deadline: Deadline) -> OfOwner<'a> {
        OfOwner { source: self, owner, deadline }
    }

    /// The keys of the unique index, as a hint.
    pub(crate) fn by_page(&self) -> Document {
        doc! { self.owner_field(): 1, "page": 1 }
    }

    /// The most buckets that a command may ask for, at least 1: all of them fit into one reply.
    pub(crate) fn most_buckets(&self) -> usize {
        let item = self.definition.max_item_bytes.max(self.known_item_bytes.load(Ordering::Relaxed));
        (MOST_BYTES / self.page_size().get().saturating_mul(item)).max(1)
    }
}

/// What one owner has in a [`HistoryCollection`], for commands that are answered until a deadline.
#[derive(Clone, Copy)]
pub(crate) struct OfOwner<'a> {
    pub(crate) source: &'a HistoryCollection,
    pub(crate) owner: &'a OwnerId,
    pub(crate) deadline: Deadline,
}

impl OfOwner<'_> {
    /// A filter for those buckets, or records, for which `condition` holds.
    pub(crate) fn filter(self, condition: Document) -> Document {
        let mut filter = self.source.owned_by(self.owner);
        filter.extend(condition);
        filter
    }

    /// A command that finds at most `most` of the buckets for which `condition` holds, in the order of their
    /// pages.
    pub(crate) fn at_most(self, condition: Document, most: usize) -> Document {
        at_most(self.source.collection(), self.filter(condition), most, self.source.by_page())
    }

    /// Reads at majority from the primary ([`MonotonicReads::find`]).
    pub(crate) async fn find<T: Send + 'static>(
        self,
        command: Document,
        read: impl Fn(&RawDocument) -> Result<T> + Send + Sync + 'static,
    ) -> Result<Vec<T>> {
        self.source.reads.find(command, self.deadline, read).await
    }

    /// Changes the bucket for which `condition` holds, found by the index `hint`. Returns whether there is
    /// one. The change must be one that may be repeated without harm.
    pub(crate) async fn update(
        self,
        condition: Document,
        change: impl Into<Bson>,
        hint: Document,
    ) -> Result<bool> {
        let update = doc! { "q": self.filter(condition), "u": change, "hint": hint };
        self.source.update(self.source.collection(), [update], self.deadline).await
    }

    /// Deletes the buckets for which one of the conditions holds. They name pages.
    pub(crate) async fn delete(self, conditions: impl IntoIterator<Item = Document>) -> Result<()> {
        let delete = |condition| {
            doc! { "q": self.filter(condition), "limit": 0, "hint": self.source.by_page() }
        };
        let deletes: Vec<_> = conditions.into_iter().map(delete).collect();
        let command = doc! { "delete": self.source.collection(), "deletes": deletes };
        self.source.reads.write(command, self.deadline).await.map(drop)
    }
}

/// A cluster time in milliseconds since 1970. It has whole seconds.
pub(crate) fn millis(time: Timestamp) -> i64 {
    i64::from(time.time) * 1000
}

/// The id of an owner as it is stored: int64 or string.
pub(crate) fn owner_bson(owner: &OwnerId) -> Bson {
    match owner {
        OwnerId::Integer(id) => Bson::Int64(int64(*id)),
        OwnerId::Text(id) => Bson::String(id.to_string()),
    }
}

/// The owner that this stored value is the id of. `None` if it has another type or is no id.
pub(crate) fn owner_of(value: RawBsonRef<'_>, kind: OwnerType) -> Option<OwnerId> {
    match (value, kind) {
        (RawBsonRef::Int64(id), OwnerType::Integer) => kind.parse(&id.to_string()).ok(),
        (RawBsonRef::String(id), kind) if kind.is_text() => kind.parse_stored(id),
        _ => None,
    }
}

/// The owner that the owner's field of a document names. `None` if it is no id.
pub(crate) fn owner_in(document: &RawDocument, owner: &Owner) -> Option<OwnerId> {
    document.get(&*owner.field).ok().flatten().and_then(|id| owner_of(id, owner.kind))
}

/// What is wrong with a bucket without a [page number](page_of).
pub(crate) const NO_PAGE: &str = "is not a positive int64";

/// The page number of a bucket, or of a projection of one. `None` if it has none.
pub(crate) fn page_of(bucket: &RawDocument) -> Option<PageNumber> {
    page_in(bucket, "page")
}

/// The number of a page in this field.
pub(crate) fn page_in(bucket: &RawDocument, field: &str) -> Option<PageNumber> {
    number_in(bucket, field).and_then(|page| PageNumber::new(page).ok())
}

/// The number in this field. `None` if it is no int64 from 0 on.
pub(crate) fn number_in(bucket: &RawDocument, field: &str) -> Option<u64> {
    bucket.get_i64(field).ok().and_then(|number| number.try_into().ok())
}
