//! [`Engine`]: every operation on the histories of one definition. Each is delegated to the module that
//! implements it.
//!
//! Each protocol stands in the documentation of its module:
//!
//! | Protocol | Module |
//! |---|---|
//! | compare and append, guards, what a reply means, group commit | [`append`](mod@crate::append) |
//! | an append that expects a total | [`expectation`](mod@crate::append::expectation) |
//! | an append with a key, stored once however often it is sent | [`keys`](mod@crate::append::keys) |
//! | reading pages, windows, spans of time and values | [`reads`](mod@crate::store::reads) |
//! | retiring pages and erasing owners, markers, the age of a tail | [`deletion`](mod@crate::care::deletion) |
//! | the fence: a page is not opened too late | [`fence`](mod@crate::store::collection::fence) |
//! | what items add up to by spans of time, tiles | [`summaries`](mod@crate::projections::summaries) |
//! | a native time series of all owners | [`series`](mod@crate::projections::series) |
//! | waiting for what is appended | [`live`](mod@crate::live) |
//! | comparing what is stored with the invariants, and repairing it | [`verify`](mod@crate::care::verify) |

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mongodb::bson::Timestamp;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Instant, OwnerId, ReadPreference, Seq, Totals};
use pagebucket_model::item::{Draft, Item};
use tokio_util::task::AbortOnDropHandle;

use crate::append::appender::{AppendArrival, Appender};
use crate::append::group_commit::QueueClient;
use crate::append::identified::{IdentifiedSoFar, SourceKey};
use crate::append::lines::UploadedSoFar;
use crate::append::queue::{AppendQueue, Waiting};
use crate::append::request::{AppendError, AppendProgress, AppendTerms, Appended, KeyedRequest};
use crate::care::deletion::erase::Erasures;
use crate::care::deletion::erased_keys::ScanTurn;
use crate::care::deletion::erased_late::LateErasures;
use crate::care::deletion::retire::Retirement;
use crate::care::verify::verifier::Verifier;
use crate::care::verify::{Finding, Records, lost};
use crate::live::{FollowError, Followers, LiveHistory, LiveReader, LiveStart, OwnersReader, Rooms};
use crate::mongo::log_place::LogPlace;
use crate::mongo::{Deadline, Result};
use crate::projections::series::build::Rebuild;
use crate::projections::series::query::{self, SeriesError, SeriesPage, SeriesQuery};
use crate::projections::series::{build, check, feeder};
use crate::projections::summaries::kept::forget_unretired;
use crate::projections::summaries::known::KnownTiles;
use crate::projections::summaries::makers::{TileMakers, TileWalk};
use crate::projections::summaries::scan::{SummaryQuery, SummaryScan};
use crate::store::buckets::identity::ItemKey;
use crate::store::collection::fence::ReadTime;
use crate::store::collection::{DatabaseAccess, HistoryCollection, millis};
use crate::store::reads::reader::{History, HistoryReader};
use crate::tasks::KeptTasks;

/// The histories of all owners that have one definition. Cheap to clone. The committers end when the last
/// clone is dropped.
#[derive(Clone, Debug)]
pub struct Engine {
    reader: HistoryReader,
    shared: Arc<Shared>,
    /// Whose appends these are, if clients share the queue.
    client: Option<QueueClient>,
}

/// What all histories of a store share. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct StoreContext {
    pub(crate) access: DatabaseAccess,
    pub(crate) appends: AppendQueue,
    pub(crate) scan_turn: ScanTurn,
    /// Owners whose last page is remembered, for each history.
    pub(crate) catalog_owners: usize,
}

#[derive(Debug)]
struct Shared {
    appender: Arc<Appender>,
    erasures: Erasures,
    late_erasures: LateErasures,
    retirement: Retirement,
    tile_makers: TileMakers,
    tile_walk: TileWalk,
    known_tiles: Arc<KnownTiles>,
    live: Rooms,
    followers: Followers,
}

impl Engine {
    pub(crate) fn new(definition: Arc<Definition>, context: &StoreContext) -> Self {
        let source = Arc::new(HistoryCollection::new(definition, context.access.clone()));
        let queue = context.appends.clone();
        let live = LiveHistory { source: Arc::clone(&source), watched: Arc::default() };
        let appender = Arc::new(Appender::new(live.clone(), queue, context.catalog_owners));
        let erasures = Erasures::new(Arc::clone(&source), context.scan_turn.clone());
        let reader = HistoryReader::new(source);
        let (late_erasures, retirement) = (LateErasures::default(), Retirement::new(reader.clone()));
        let shared = Shared {
            appender,
            erasures,
            late_erasures,
            retirement,
            tile_makers: TileMakers::default(),
            tile_walk: TileWalk::default(),
            known_tiles: Arc::default(),
            live: Rooms::new(live.clone()),
            followers: Followers::new(live),
        };
        Self { reader, shared: Arc::new(shared), client: None }
    }

    /// The definition of these histories.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.reader.source.definition
    }

    /// The totals of a history that ends with `last`, or of an empty one.
    pub fn totals(&self, last: Option<Seq>) -> Totals {
        self.reader.source.totals(last)
    }

    /// What live readers read.
    pub(crate) fn live_history(&self) -> &LiveHistory {
        &self.shared.live.history
    }

    /// What reads pages, windows, owners and exports.
    pub fn reads(&self) -> &HistoryReader {
        &self.reader
    }

    /// What erases owners, and lets them begin again.
    pub fn erasures(&self) -> &Erasures {
        &self.shared.erasures
    }

    /// What compares what is stored with what must hold, and mends it.
    pub fn verifier(&self) -> Verifier {
        Verifier { reader: self.reader.clone() }
    }

    /// What deletes old pages, for our own crates.
    #[doc(hidden)]
    pub fn retirement(&self) -> &Retirement {
        &self.shared.retirement
    }
}

/// Appends.
impl Engine {
    /// Stores at least one item at the end of a history, in the given order.
    ///
    /// The append goes on to its end even if the caller stops waiting. `terms` are a [`Deadline`], which is
    /// shortened to one command's, or have also the total that the history must have before
    /// ([`AppendTerms`]).
    ///
    /// # Errors
    /// See [`AppendError`]. Each item that the error does not count as unknown is stored exactly once or not
    /// at all.
    pub async fn append(&self, owner: OwnerId, items: Vec<Item>, terms: impl Into<AppendTerms>) -> Appended {
        self.shared.appender.append(owner, self.client, items, terms.into()).await
    }

    /// Stores at least one item at the end of a history, unless a request with the same key has already
    /// stored the items.
    ///
    /// If the terms expect a total, the items are looked for first: where they are stored, the total does not
    /// matter. Where some of them are stored, the rest is stored whatever the total is.
    ///
    /// The append goes on to its end even if the caller stops waiting. Also returns when the first request
    /// with the key arrived: items without a date get this one.
    ///
    /// # Errors
    /// See [`AppendError`]. After any error except
    /// [`AppendCause::KeyReused`](crate::append::request::AppendCause::KeyReused) the same request may be
    /// sent again with the same key, and is still stored once.
    pub async fn append_once(
        &self,
        owner: OwnerId,
        request: KeyedRequest<'_>,
        terms: impl Into<AppendTerms>,
    ) -> Result<(AppendProgress, Instant), AppendError> {
        let KeyedRequest { key, drafts, canonical, arrived } = request;
        let arrival = AppendArrival { at: arrived, terms: terms.into(), client: self.client };
        self.shared.appender.append_once(owner, key, drafts, canonical, arrival).await
    }
}

/// Reads.
impl Engine {
    /// Chooses the tiles and pages of a summary of a history.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn summary(
        &self,
        history: History,
        query: SummaryQuery,
        deadline: Deadline,
    ) -> Result<SummaryScan> {
        history.summary(query, &self.shared.known_tiles, deadline).await
    }

    /// Begins to read a history live: the items from `start` on that are stored, and those that are appended,
    /// by whatever process.
    ///
    /// # Errors
    /// The database does not answer in time, the owner is erased, the item after `start` is deleted, or a
    /// bucket is corrupt.
    pub async fn watch(&self, owner: OwnerId, start: LiveStart, deadline: Deadline) -> Result<LiveReader> {
        self.shared.live.watch(&self.reader, owner, start, deadline).await
    }

    /// Begins to read live which owners have new items, after a place in the database's log, or from now on.
    /// The last place of such a reader, also of one of another process, resumes it.
    ///
    /// # Errors
    /// See [`FollowError`].
    pub async fn follow_owners(
        &self,
        after: Option<LogPlace>,
        deadline: Deadline,
    ) -> Result<OwnersReader, FollowError> {
        self.shared.followers.follow(after, deadline).await
    }

    /// The same histories, with full pages read from the preferred members.
    #[must_use]
    pub(crate) fn preferring(&self, preference: ReadPreference) -> Self {
        Self {
            reader: self.reader.preferring(preference),
            shared: Arc::clone(&self.shared),
            client: self.client,
        }
    }
}

/// The native time series.
impl Engine {
    /// Summarises the items of all owners, from the native time series of the history.
    ///
    /// # Errors
    /// See [`SeriesError`].
    pub async fn summarise_all(
        &self,
        query: &SeriesQuery,
        deadline: Deadline,
    ) -> Result<SeriesPage, SeriesError> {
        query::summarise(&self.reader.source, query, deadline).await
    }

    /// Feeds the native time series as long as the handle is kept, if the definition has one. One instance at
    /// a time does it; the others wait for their turn.
    pub(crate) fn feed_series(&self, tasks: &KeptTasks) -> Option<AbortOnDropHandle<()>> {
        self.definition().time_series.as_ref()?;
        Some(feeder::start(tasks, Arc::clone(&self.reader.source)))
    }

    /// A line for each difference between the native time series and the pages, by days and groups. `read` is
    /// told how many pages each command has read, and may wait; each command may take `within`.
    ///
    /// # Errors
    /// The database does not answer in time, no instance feeds the time series, or owners were erased
    /// meanwhile.
    pub async fn verify_series(
        &self,
        within: Duration,
        read: &mut impl AsyncFnMut(u64),
    ) -> Result<Vec<String>> {
        check::check(&self.reader.source, within, read).await
    }

    /// Begins to rebuild the native time series beside the one that is read. `None` if the definition has
    /// none.
    ///
    /// # Errors
    /// The database does not answer, or refuses a command.
    pub async fn rebuild_series(&self) -> Result<Option<Rebuild>> {
        Rebuild::begin(Arc::clone(&self.reader.source)).await
    }

    /// Drops the native time series. Returns whether there was one.
    ///
    /// # Errors
    /// The database does not answer. Then it may be repeated.
    pub async fn drop_series(&self) -> Result<bool> {
        build::remove(&self.reader.source).await
    }

    /// Whether the definition has a native time series that the database does not have.
    pub(crate) async fn lacks_series(&self) -> Result<bool> {
        build::is_missing(&self.reader.source).await
    }

    /// Creates what is missing of the native time series, if the definition has one.
    pub(crate) async fn ensure_series(&self) -> Result<()> {
        build::ensure(&self.reader.source).await
    }

    /// How the native time series differs from the definition, where only a rebuild helps.
    pub(crate) async fn series_difference(&self) -> Result<Option<(&'static str, String, String)>> {
        build::difference(&self.reader.source).await
    }
}

/// Deletion.
impl Engine {
    /// One step of a walk over the owners that were erased less than a day ago: deletes pages and records of
    /// keys that came late. Returns whether the walk goes on. A walk begins
    /// [`Ages::late`](crate::capacity::Ages::late) after the one before.
    ///
    /// # Errors
    /// The database does not answer in time. The walk goes on where it was.
    pub(crate) async fn erase_late(&self, deadline: Deadline) -> Result<bool> {
        self.shared.late_erasures.go_on(&self.shared.erasures, deadline).await
    }
}

/// Appends of uploads and of items with identities of their own, for our own crates.
#[doc(hidden)]
impl Engine {
    /// The same histories for a client, whose appends may hold a quarter of the queue. Without a client, as
    /// in a program that has none, they may hold all of it.
    #[must_use]
    pub fn on_behalf_of(self, client: Option<QueueClient>) -> Self {
        Self { client, ..self }
    }

    /// The most bytes of items that an upload may append at once, unless a single item has more:
    /// [`Item::size`] and 64 for each.
    pub fn most_of_an_upload(&self) -> usize {
        self.shared.appender.most_of_an_upload()
    }

    /// Same as [`Engine::append`] for at most [`Engine::most_of_an_upload`] bytes, but waits for room in the
    /// queue. The time for one command starts when there is room.
    ///
    /// # Errors
    /// See [`AppendError`].
    pub fn append_part(
        &self,
        owner: OwnerId,
        items: Vec<Item>,
        waiting: &mut Waiting,
    ) -> impl Future<Output = Appended> + Send {
        self.shared.appender.append_part(owner, self.client, items, waiting)
    }

    /// Stores lines of a keyed upload at the end of a history, except those that an earlier attempt has
    /// stored or skipped. `lines` has at least one and at most [`Engine::most_of_an_upload`] bytes. Their
    /// numbers ascend, also from call to call. `now` is the time at which the upload arrived.
    ///
    /// After a failure, the lines without an end may be given again, even if their outcome is unknown. The
    /// call waits for room in the queue. When it is stopped, it sends nothing more and only waits for what it
    /// has sent.
    pub async fn append_lines(
        &self,
        so_far: &mut UploadedSoFar,
        lines: impl IntoIterator<Item = (u64, Draft)>,
        now: Instant,
        waiting: &mut Waiting,
    ) -> Appended {
        self.shared.appender.append_lines(so_far, self.client, lines, now, waiting).await
    }

    /// Stores items with source keys at the end of a history, in their order, except those that are stored:
    /// at most [`Engine::most_of_an_upload`] bytes. Waits for room in the queue.
    ///
    /// # Errors
    /// See [`AppendError`]. The items without an end may be given again, even if their outcome is unknown.
    pub async fn append_identified(
        &self,
        so_far: &mut IdentifiedSoFar,
        owner: &OwnerId,
        items: Vec<(Item, SourceKey)>,
        waiting: &mut Waiting,
    ) -> Appended {
        self.shared.appender.append_identified(so_far, owner, self.client, items, waiting).await
    }

    /// The items with these keys that the owner has, at majority, and the last `seq` of the history that was
    /// examined. No more than the keys and a thousand pages are in memory.
    ///
    /// # Errors
    /// The database does not answer in time, the owner is erased, items after `after` are deleted, or a
    /// bucket is corrupt.
    pub async fn find_marked(
        &self,
        owner: &OwnerId,
        keys: Arc<[ItemKey]>,
        after: u64,
    ) -> Result<(HashMap<ItemKey, Seq>, u64)> {
        self.shared.appender.find_marked(owner, keys, after).await
    }

    /// Those of these owners that have items, or had some.
    ///
    /// # Errors
    /// The database does not answer in time, or the last bucket of an owner is corrupt.
    pub async fn with_items(&self, owners: Vec<OwnerId>) -> Result<HashSet<OwnerId>> {
        self.shared.appender.with_items(owners).await
    }
}

/// Reads, for our own crates.
#[doc(hidden)]
impl Engine {
    /// Queues an owner whose summary lacks tiles
    /// ([`SummaryScan::lacks_tiles`](crate::projections::summaries::scan::SummaryScan::lacks_tiles)), in the
    /// background.
    pub fn begin_tiles(&self, owner: &OwnerId) {
        self.shared.tile_makers.begin(&self.reader, owner.clone());
    }

    /// Goes on with a walk over all owners: deletes tiles of other definitions, and makes those that are
    /// missing. The next call goes on where the deadline has ended this one.
    ///
    /// # Errors
    /// The database does not answer in time, or a bucket is corrupt.
    pub async fn make_tiles(&self, until: Deadline) -> Result<()> {
        while self.shared.tile_walk.go_on(&self.reader, until).await? && !until.passed() {}
        Ok(())
    }
}

/// Verification of a whole collection, for our own crates.
#[doc(hidden)]
impl Engine {
    /// Reads the next records, at most 1,000, and finds those that name items which no history has: an answer
    /// named them, and they are lost (invariant 6). A record does not say of which history it is, only whose:
    /// it is enough if one of `engines` has the items.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub async fn lost(engines: &[Self], records: &mut Records, deadline: Deadline) -> Result<Vec<Finding>> {
        let histories: Vec<_> = engines.iter().map(|engine| &*engine.reader.source).collect();
        lost(&histories, records, deadline).await
    }
}

/// What is learned of the database.
impl Engine {
    /// The time of a question that is asked now, if the database's clock was seen a short time ago.
    pub(crate) fn read_time_if_known(&self) -> Option<ReadTime> {
        self.reader.source.read_time_if_known()
    }

    /// Looks at the database's clock.
    ///
    /// # Errors
    /// The database did not answer in time.
    pub(crate) async fn look_at_clock(&self, deadline: Deadline) -> Result<()> {
        self.reader.source.look_at_clock(deadline).await.map(drop)
    }

    /// Learns how many markers were written, read at `read`. The answer came at the cluster time `at`.
    pub(crate) fn learn_markers(&self, count: Option<i64>, read: Option<ReadTime>, at: Option<Timestamp>) {
        let source = &self.reader.source;
        source.reads.time.learn(at);
        if let Some(at) = at {
            source.learn_clock(millis(at));
        }
        if source.markers.learn(count, read) && count != Some(0) {
            self.shared.appender.forget();
            self.reader.forget();
        }
    }

    /// Deletes kept tiles that may be of other pages, because the database was restored.
    ///
    /// # Errors
    /// The database does not answer, or a marker is damaged.
    pub(crate) async fn forget_unretired_tiles(&self) -> Result<()> {
        forget_unretired(&self.reader.source).await
    }

    /// Learns how many bytes an item may take, by what the database remembers.
    pub(crate) fn learn_item_bytes(&self, most: i64) {
        let known = &self.reader.source.known_item_bytes;
        known.store(usize::try_from(most).unwrap_or(0), Ordering::Relaxed);
    }
}
