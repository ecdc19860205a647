//! Deleted pages: retirement and erasure by the store itself, on two instances of one database.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use pagebucket_engine::appends::{AppendCause, AppendError, AppendProgress};
use pagebucket_engine::erasures::Erasure;
use pagebucket_engine::internal::{Ages, Retention};
use pagebucket_engine::{Bucket, Deadline, Engine, Error, Gone, Store};
use pagebucket_model::domain::{Clock, Instant, OwnerId, PageNumber, Seq, SeqRange};

use crate::{History, PATIENCE, Setup, engine, eventually, shared};

/// Short enough to wait for, and long enough for what must happen within them. A marker ages sooner than is
/// safe: tests with these ages send no late command.
pub const SHORT: Ages = Ages {
    poll: Duration::from_millis(50),
    tail: Duration::from_millis(300),
    command: Duration::from_secs(1),
    marker: Duration::from_secs(2),
    late: Duration::from_millis(200),
};

/// The date of every item, in milliseconds.
pub const DATE: i64 = 1_698_349_623_000;

/// Some instances on one database, by the store alone.
pub struct Place {
    pub history: &'static History,
    pub database: Database,
}

impl Place {
    pub async fn new(history: &'static History) -> Self {
        let mongod = shared().await;
        let setup = Setup::on(mongod).of(history);
        let database = mongod.client().await.database(&setup.connection.database);
        setup.store().await;
        Self { history, database }
    }

    pub async fn setup(&self) -> Setup {
        Setup::on(shared().await).of(self.history).in_database(&self.database)
    }

    pub async fn store(&self) -> Store {
        self.store_with(SHORT).await
    }

    pub async fn store_with(&self, ages: Ages) -> Store {
        self.setup().await.aging(ages).store().await
    }

    pub fn owner(&self, owner: u64) -> OwnerId {
        engine::owner(self.history, owner)
    }

    /// All documents of the database with the owner's id in the owner's field, each with its collection.
    pub async fn left(&self, owner: u64) -> Vec<(String, Document)> {
        let mut left = Vec::new();
        for name in self.database.list_collection_names().await.expect("collections") {
            let of = doc! { self.history.owner_field: self.history.owner_bson(owner) };
            let collection = self.database.collection::<Document>(&name);
            let mut found = collection.find(of).await.expect("an answer");
            while found.advance().await.expect("an answer") {
                left.push((name.clone(), found.deserialize_current().expect("a document")));
            }
        }
        left
    }

    /// Checks that nothing is left of an owner but the swept tombstone, which holds no item and no date of
    /// one.
    pub async fn is_erased(&self, owner: u64) {
        let left = self.left(owner).await;
        let [(collection, tombstone)] = &left[..] else { panic!("{left:?}") };
        assert_eq!(collection, self.history.name);
        assert_eq!(tombstone.get_str("_id").ok(), Some(&*format!("{}_:", self.history.id(owner))));
        assert_eq!(tombstone.get_bool("swept").ok(), Some(true), "{tombstone}");
        assert_eq!(tombstone.get_array("history").map(Vec::len).ok(), Some(0));
        for date in ["first", "last"] {
            assert_eq!(tombstone.get_datetime(date).map(|date| date.timestamp_millis()).ok(), Some(0));
        }
    }
}

/// The engine of the history that the test is about.
pub fn engine_of<'a>(store: &'a Store, place: &Place) -> &'a Engine {
    engine::histories(store, place.history)
}

pub fn soon() -> Deadline {
    Deadline::within(Duration::from_secs(25))
}

pub fn page(number: u64) -> PageNumber {
    PageNumber::new(number).expect("a page")
}

/// Appends items with the numbers from `first` on.
pub async fn append(
    place: &Place,
    store: &Store,
    owner: u64,
    first: u64,
    count: u64,
) -> Result<AppendProgress, AppendError> {
    append_within(place, store, owner, first, count, soon()).await
}

/// As [`append`], with as much time as what happens meanwhile takes.
pub async fn append_within(
    place: &Place,
    store: &Store,
    owner: u64,
    first: u64,
    count: u64,
    deadline: Deadline,
) -> Result<AppendProgress, AppendError> {
    let items = (first..first + count).map(|number| engine::dated(place.history, number, DATE)).collect();
    engine_of(store, place).appends().append(engine::append(place.owner(owner), items, deadline)).await
}

/// The sequence numbers that an append was told.
pub fn seqs(progress: &AppendProgress) -> Vec<u64> {
    progress.ranges().iter().flat_map(SeqRange::seqs).map(Seq::get).collect()
}

/// A clock that can be put forward, by milliseconds.
pub fn clock() -> (Clock, impl Fn(i64)) {
    let ahead = Arc::new(AtomicI64::new(0));
    let read = Arc::clone(&ahead);
    let now = move || {
        let millis = Clock::system().now().millis() + read.load(Ordering::Relaxed);
        Instant::from_millis(millis).expect("this century")
    };
    (Clock::from_fn(now), move |millis| {
        ahead.fetch_add(millis, Ordering::Relaxed);
    })
}

/// The numbers of the items of a page.
pub fn numbers(place: &Place, bucket: &Bucket) -> Vec<i64> {
    let number = |document: Document| place.history.stored_number(&document);
    bucket.items().map(|item| number(Document::try_from(item.document()).expect("BSON"))).collect()
}

pub fn keep(pages: u64) -> Retention {
    Retention { pages: NonZero::new(pages), ..Default::default() }
}

/// Retires until the whole walk has found nothing to delete or to mark any more.
pub async fn retire_to(place: &Place, store: &Store, owner: u64, retention: Retention, first: u64) {
    eventually("the pages are deleted", PATIENCE, async || {
        engine_of(store, place).retirement().retire(retention, soon()).await.expect("it may be repeated");
        let pages = pages_left(place, owner).await;
        pages.iter().all(|&left| left == 1 || left >= first as i64)
    })
    .await;
}

pub async fn pages_left(place: &Place, owner: u64) -> Vec<i64> {
    let left = place.left(owner).await.into_iter();
    let mut pages: Vec<i64> = left
        .filter(|(name, _)| name == place.history.name)
        .filter_map(|(_, left)| left.get_i64("page").ok())
        .collect();
    pages.sort_unstable();
    pages
}

/// Erases until the tombstone is swept.
pub async fn erase(place: &Place, store: &Store, owner: u64) {
    eventually("the sweep", PATIENCE, async || {
        matches!(
            engine_of(store, place).erasures().erase(&place.owner(owner), soon()).await,
            Ok(Erasure::Swept)
        )
    })
    .await;
}

#[track_caller]
pub fn is_retired<T: std::fmt::Debug>(result: Result<T, Error>, first: u64) {
    let first_page = page(first);
    assert!(
        matches!(result, Err(Error::Gone(Gone::Retired { first_page: told, .. })) if told == first_page),
        "{result:?}"
    );
}

#[track_caller]
pub fn is_erased<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert!(matches!(result, Err(Error::Gone(Gone::Erased { .. }))), "{result:?}");
}

#[track_caller]
pub fn refused_as_erased(result: Result<AppendProgress, AppendError>) {
    let Err(AppendError {
        progress,
        unknown,
        cause: AppendCause::Database(Error::Gone(Gone::Erased { .. })),
    }) = &result
    else {
        panic!("{result:?}")
    };
    assert_eq!((progress.ranges().len(), *unknown), (0, 0), "nothing was stored");
}

pub fn int(document: &Document, field: &str) -> i64 {
    document.get(field).and_then(Bson::as_i64).expect("an int64")
}

/// Changes a bucket as no writer of ours would.
pub async fn damage(place: &Place, filter: Document, change: Document) {
    let buckets = place.database.collection::<Document>(place.history.name);
    let damaged = buckets.update_one(filter, change).bypass_document_validation(true).await;
    assert_eq!(damaged.expect("an answer").modified_count, 1);
}

pub async fn documents(place: &Place, collection: &str) -> Vec<Document> {
    let tiles = place.database.collection::<Document>(collection);
    let found = tiles.find(doc! {}).sort(doc! { "_id": 1 }).await.expect("an answer");
    found.try_collect().await.expect("documents")
}

/// The same as [`keep`], with summaries that outlive their pages.
pub fn keep_summaries(pages: u64) -> Retention {
    Retention { keep_summaries: true, ..keep(pages) }
}

/// Nothing is left by the owner's field, nor by the `_id`, but the tombstone.
pub async fn is_erased_by_id(place: &Place, owner: u64) {
    place.is_erased(owner).await;
    let buckets = place.database.collection::<Document>(place.history.name);
    let ids = doc! { "_id": { "$regex": format!("^{}_", place.history.id(owner)) } };
    assert_eq!(buckets.count_documents(ids).await.expect("a number"), 1, "owner {owner}");
}
