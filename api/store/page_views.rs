//! Views of pages, counted in a document for each page and minute.
//!
//! # Identity
//!
//! `{page, timestamp, totalViews, seconds: {"0": 3, "2": 14}}`: the views of one page in one minute of UTC, by
//! the second. The pair of page and minute is the bucket's name; `_id` is the server's own and means nothing.
//! A moment belongs to the minute and the second that it is in, rounded down, before 1970, too.
//!
//! # Capacity
//!
//! Sixty counters a bucket, so that it has at most some 800 bytes, whatever is counted. It is bounded by time
//! and not by count: nothing is ever full, and any minute may be counted in at any time.
//!
//! # Atomicity
//!
//! Counting is one upsert a page and minute, `{$inc: {totalViews: n, "seconds.14": n}}`: the database adds, so
//! that nobody need know what was there. Two guards inside it hold the shape against every writer:
//!
//! - the unique `{page, timestamp}`: of two upserts that find no bucket one inserts it, and the other is turned
//!   away (E11000) and finds it the next time. Without that index both insert one: two documents for one minute,
//!   each with a part of the views, for ever;
//! - the validator: `totalViews` is the sum of `seconds`, a timestamp is a whole minute.
//!
//! # Counting once
//!
//! `$inc` compares nothing: sent twice, it counts twice, and afterwards nobody can tell. So it is sent by the group
//! commit that trades have ([`super::group_commit`]): what has queued for one page and minute becomes one
//! statement ([`policy`]), and a command whose answer is lost is replayed under its number, which the server
//! applies at most once. What comes of a view ([`count`]) is *counted*, acknowledged at majority and journal;
//! *not counted*, refused or never sent; or *unknown*, when no answer came before the deadline that can be
//! trusted: a command that was given up may yet count once. Unlike a trade a view leaves
//! nothing behind by which a repeat could be recognised: there are no idempotency keys here (`docs/page-views.md`).
//!
//! # Preallocation
//!
//! The sixty minutes of an hour can be made beforehand, all zeros, in one command ([`preallocate`]). It inserts and
//! never updates: a bucket that is there refuses it (E11000) and stays as it is, so that no view is lost, whoever
//! comes first.
//!
//! # Reading
//!
//! A series is one scan of the unique index, from its first minute to its last ([`series`]); what is coarser than
//! a minute is added up in the database, where that is less to send. What all pages had goes by the index on
//! `timestamp` alone ([`top`]). Everything is read at majority; where a secondary is preferred its answer may be
//! some moments older ([`query`]).
//!
//! # Retention
//!
//! For ever, or for some days: then the index on `timestamp` is a TTL index ([`retention`]).

mod bucket;
mod count;
mod document;
mod measure;
mod policy;
mod preallocate;
mod query;
mod retention;
mod series;
mod top;

use std::sync::Arc;

use mongodb::Database;
use mongodb::bson::doc;

use super::ReadPreference;
use super::group_commit::{Committers, Queue, Sessions, durable};
use super::history::Capacity;
use policy::{Connection, Counters};

pub use count::{CountCause, CountError};
pub use document::MinuteBucket;
pub use preallocate::Preallocated;
pub(super) use retention::keep_for;
pub use series::Series;
pub use top::PageTotal;

/// Name of the collection.
pub const COLLECTION: &str = "page_views";

/// The views of all pages. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PageViews {
    database: Database,
    preference: ReadPreference,
    counting: Arc<Counting>,
}

/// What takes views to the database. Its committers end with it.
#[derive(Debug)]
struct Counting {
    connection: Arc<Connection>,
    /// In counters to be added to: those of each request, by page and second.
    queue: Queue,
    committers: Committers<Counters>,
}

impl Counting {
    fn start(connection: Connection, capacity: Capacity) -> Arc<Self> {
        let connection = Arc::new(connection);
        let committers = Committers::start(|_number| Counters(Arc::clone(&connection)));
        let queue = Queue::new(capacity.queued_trades, capacity.commit_time, measure::QUEUED);
        Arc::new(Self { connection, queue, committers })
    }
}

impl PageViews {
    pub(super) fn new(database: Database, sessions: Arc<Sessions>, capacity: Capacity) -> Self {
        let connection = Connection { database: database.clone(), sessions, concern: durable };
        let counting = Counting::start(connection, capacity);
        Self { database, preference: ReadPreference::Primary, counting }
    }

    /// The same views, counted as soon as one server has them in memory: what a failover or a crash takes
    /// away was acknowledged. For benchmarks, beside others that do so.
    pub(super) fn counting_at_w1(self, capacity: Capacity) -> Self {
        let Connection { database, sessions, .. } = &*self.counting.connection;
        let concern = |_| doc! { "w": 1 };
        let connection = Connection { database: database.clone(), sessions: Arc::clone(sessions), concern };
        Self { counting: Counting::start(connection, capacity), ..self }
    }

    /// The same views, read by preference. They are counted at the primary in any case.
    #[must_use]
    pub(super) fn preferring(&self, preference: ReadPreference) -> Self {
        Self { preference, ..self.clone() }
    }
}
