//! An erased owner: refused, gone from every collection, and reopened with numbers that go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc};
use pagebucket_engine::appends::{Append, AppendCause, AppendTerms, Once};
use pagebucket_engine::erasures::{Erasure, Reopening};
use pagebucket_engine::internal::Ages;
use pagebucket_engine::{Deadline, Store};
use pagebucket_model::domain::{Instant, Limit, Position, Seq};
use pagebucket_model::item::Draft;

use super::{
    DATE, Place, SHORT, append, engine_of, erase, is_erased, is_retired, page, refused_as_erased, seqs, soon,
};
use crate::harness::{
    Harm, History, NOTES, Nth, PATIENCE, Proxy, READINGS, SERIES, Setup, Way, engine, eventually, fill,
    shared, stored, test_over,
};

test_over!(nothing_is_left_but_the_tombstone, SMALL);
async fn nothing_is_left_but_the_tombstone(history: &'static History) {
    let place = Place::new(history).await;
    let (store, other) = (place.store().await, place.store().await);
    // More than a step deletes.
    fill(&place.database, history, 1, 2_100, 1).await;
    fill(&place.database, history, 2, 2, 1).await;
    append(&place, &other, 1, 1_000_000, 1).await.expect("stored");
    let (items, owner) = (engine_of(&store, &place), place.owner(1));
    assert_eq!(items.erasures().erase(&owner, soon()).await.expect("an answer"), Erasure::Erasing);
    // From the tombstone on, while all pages are there.
    for store in [&store, &other] {
        let items = engine_of(store, &place);
        is_erased(items.reads().history(owner.clone(), soon()).await);
        eventually("the other instance knows", PATIENCE, async || items.reads().may_have_lost_pages()).await;
        for stored in [1, 17, 2_100] {
            is_erased(items.reads().page(&owner, page(stored), soon()).await);
        }
        assert_eq!(items.reads().owners(None, Limit::MOST, soon()).await.expect("owners").found.len(), 1);
    }
    refused_as_erased(append(&place, &store, 1, 2_000_000, 1).await);
    assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::NotSwept);
    let mut steps = 0;
    while items.erasures().erase(&owner, soon()).await.expect("an answer") == Erasure::Erasing {
        steps += 1;
    }
    assert_eq!(steps, 2);
    erase(&place, &store, 1).await;
    place.is_erased(1).await;
    for store in [&store, &other] {
        eventually("the other instance refuses", PATIENCE, async || {
            append(&place, store, 1, 3_000_000, 1).await.is_err()
        })
        .await;
        refused_as_erased(append(&place, store, 1, 4_000_000, 2 * history.page_size).await);
        let items = engine_of(store, &place);
        eventually("the other instance knows", PATIENCE, async || items.reads().may_have_lost_pages()).await;
        for gone in [1, 2, 17, 1_000, 2_100, 9_000, (1 << 53) - 1] {
            is_erased(items.reads().page(&owner, page(gone), soon()).await);
        }
        is_erased(
            items
                .reads()
                .export(owner.clone(), pagebucket_model::domain::Position::BEGINNING, None, soon())
                .await,
        );
    }
    place.is_erased(1).await;
    assert_eq!(items.erasures().erase(&owner, soon()).await.expect("an answer"), Erasure::Swept, "again");
    assert_eq!(stored(&place.database, history, 2).await.ids.len(), 2);
}

test_over!(what_is_late_begins_no_other_erasure, NOTES);
async fn what_is_late_begins_no_other_erasure(history: &'static History) {
    let place = Place::new(history).await;
    let (store, late) = (place.store().await, place.store().await);
    fill(&place.database, history, 1, 3, 1).await;
    erase(&place, &store, 1).await;
    let (items, owner) = (engine_of(&store, &place), place.owner(1));
    assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::Reopened);
    append(&place, &store, 1, 1_000_000, history.page_size).await.expect("stored");
    let before = place.left(1).await;
    let step = engine_of(&late, &place).erasures().go_on(&owner, soon()).await;
    assert_eq!(step.expect("an answer"), Erasure::Swept);
    assert_eq!(place.left(1).await, before);
}

test_over!(damaged_buckets_are_erased_too, NOTES);
async fn damaged_buckets_are_erased_too(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    fill(&place.database, history, 1, 3, 1).await;
    fill(&place.database, history, 2, 1, 1).await;
    let buckets = place.database.collection::<Document>(history.name);
    for (owner, change) in [(1, doc! { "$unset": { "page": 1 } }), (2, doc! { "$set": { "page": "one" } })] {
        let first = doc! { history.owner_field: history.owner_bson(owner), "page": 1_i64 };
        let damaged = buckets.update_one(first, change).bypass_document_validation(true).await;
        assert_eq!(damaged.expect("an answer").modified_count, 1);
        erase(&place, &store, owner).await;
        place.is_erased(owner).await;
    }
}

test_over!(an_owner_that_never_was_is_erased_too, SMALL);
async fn an_owner_that_never_was_is_erased_too(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    let (items, owner) = (engine_of(&store, &place), place.owner(1));
    assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::NotErased);
    assert_eq!(items.erasures().erase(&owner, soon()).await.expect("an answer"), Erasure::Nothing);
    refused_as_erased(append(&place, &store, 1, 1, 1).await);
    erase(&place, &store, 1).await;
    place.is_erased(1).await;
    assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::Reopened);
    assert_eq!(place.left(1).await, []);
    assert_eq!(seqs(&append(&place, &store, 1, 1, 2).await.expect("stored")), [1, 2]);
}

test_over!(numbers_go_on_after_a_reopening, SMALL);
async fn numbers_go_on_after_a_reopening(history: &'static History) {
    let place = Place::new(history).await;
    let (store, other) = (place.store().await, place.store().await);
    let (owner, size) = (place.owner(1), history.page_size);
    append(&place, &store, 1, 1, 3 * size + 1).await.expect("stored");
    for (round, first) in [(1, 5), (2, 5), (3, 7)] {
        erase(&place, &store, 1).await;
        place.is_erased(1).await;
        let items = engine_of(&store, &place);
        assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::Reopened);
        assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::NotErased);
        for store in [&store, &other] {
            let items = engine_of(store, &place);
            let empty = items.reads().history(owner.clone(), soon()).await.expect("a history");
            assert_eq!((empty.first_page(), empty.last().is_none()), (page(first), true));
            assert_eq!(empty.totals().items(), (first - 1) * size, "round {round}");
            for gone in [1, first - 1] {
                eventually("the other instance knows", PATIENCE, async || {
                    items.reads().page(&owner, page(gone), soon()).await.is_err()
                })
                .await;
                is_retired(items.reads().page(&owner, page(gone), soon()).await, first);
            }
            assert!(items.reads().page(&owner, page(first), soon()).await.expect("an answer").is_none());
        }
        let after = async |total: u64| {
            let items = (100..=100 + size).map(|number| engine::dated(history, number, DATE));
            let expected = Position::parse(&total.to_string()).ok();
            let terms = AppendTerms { deadline: soon(), expected };
            let append = engine::append(owner.clone(), items.collect(), terms);
            engine_of(&other, &place).appends().append(append).await
        };
        let refused = after(0).await.expect_err("the total goes on");
        let total = (first - 1) * size;
        assert!(
            matches!(refused.cause, AppendCause::UnexpectedTotal(found) if found == total),
            "{refused:?}"
        );
        if round > 1 {
            let told = after(total).await.expect("stored");
            assert_eq!(told.ranges()[0].first.get(), total + 1);
            assert_eq!(stored(&place.database, history, 1).await.first_page, first);
            let last = items.reads().history(owner.clone(), soon()).await.expect("a history");
            assert_eq!(last.totals().last_seq(), Seq::new(first * size + 1).ok());
        }
    }
}

async fn append_once(place: &Place, store: &Store, owner: u64, key: &str) -> Result<Vec<u64>, String> {
    let drafts: Vec<Draft> = vec![engine::draft(place.history, 1)];
    let key = pagebucket_model::domain::IdempotencyKey::parse(key.as_bytes()).expect("a key");
    let now = Instant::from_millis(DATE).unwrap();
    let owner = place.owner(owner);
    let once = Some(Once::Request { key, canonical: &[vec![1]] });
    let append = Append { once, ..Append::new(owner, drafts, now, soon()) };
    let stored = engine_of(store, place).appends().append(append).await;
    stored.map(|progress| seqs(&progress)).map_err(|error| error.to_string())
}

test_over!(keys_of_the_owner_are_erased, SMALL);
async fn keys_of_the_owner_are_erased(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    append(&place, &store, 3, 1, 1).await.expect("an answer tells the server's time");
    for key in 0..20 {
        append_once(&place, &store, 1, &format!("k{key}")).await.expect("stored");
        append_once(&place, &store, 2, &format!("k{key}")).await.expect("stored");
    }
    assert_eq!(place.left(1).await.iter().filter(|(name, _)| name == "idempotency_keys").count(), 20);
    erase(&place, &store, 1).await;
    place.is_erased(1).await;
    append_once(&place, &store, 1, "k3").await.expect_err("the owner is erased");
    append_once(&place, &store, 1, "new").await.expect_err("the owner is erased");
    place.is_erased(1).await;
    assert_eq!(append_once(&place, &store, 2, "k3").await, Ok(vec![4]), "the keys of others are there");
    assert_eq!(stored(&place.database, history, 2).await.numbers.len(), 20);
}

/// Whatever histories they are of: all keys are in one collection.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_examined_for_one_erasure_at_a_time() {
    let proxy = Proxy::before(shared().await).await;
    let store = Setup::at(&proxy.uri()).of(NOTES).aging(SHORT).store().await;
    let erasures: Vec<_> = [NOTES, READINGS]
        .into_iter()
        .flat_map(|history| {
            (1..=3).map(|owner| (engine::histories(&store, history), engine::owner(history, owner)))
        })
        .collect();
    for (items, owner) in &erasures {
        assert_eq!(items.erasures().erase(owner, soon()).await.expect("a tombstone"), Erasure::Nothing);
    }
    let ((first, its_owner), others) = erasures.split_first().expect("six");
    let (deleting, finding) = ("delete idempotency_keys", "find idempotency_keys");
    proxy.forget();
    proxy.harm(deleting, Way::There, Harm::Hold, 1);
    let others_meanwhile = async {
        proxy.struck(1).await;
        let steps = others
            .iter()
            .map(|(items, owner)| items.erasures().go_on(owner, Deadline::within(Duration::from_secs(3))));
        for step in join_all(steps).await {
            assert_eq!(step.expect("a step ends while it waits for its turn"), Erasure::Erasing);
        }
        let examined = proxy.commands().into_iter().filter(|Nth(name, _)| name.ends_with("idempotency_keys"));
        assert_eq!(examined.collect::<Vec<_>>(), [Nth(finding.into(), 0), Nth(deleting.into(), 0)]);
        proxy.relent();
    };
    let (step, ()) = tokio::join!(first.erasures().go_on(its_owner, soon()), others_meanwhile);
    assert_ne!(step.expect("an answer"), Erasure::Erasing);
    for (items, owner) in others {
        assert_ne!(items.erasures().go_on(owner, soon()).await.expect("an answer"), Erasure::Erasing);
    }
}

/// A first erasure examines the records of all owners, a bounded number with each command: no index has their
/// owners.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_erasure_examines_all_records_of_keys() {
    const RECORDS: u64 = 45_000;
    const OF_OWNER: u64 = 9;
    let proxy = Proxy::before(shared().await).await;
    // Its tombstone does not age meanwhile: the sweep examines all of them again.
    let setup = Setup::at(&proxy.uri()).of(NOTES).aging(Ages::default());
    let store = setup.store().await;
    let database = shared().await.client().await.database(&setup.connection.database);
    let records = database.collection::<Document>("idempotency_keys");
    let record = |number: u64| {
        // Among those of others, from the first to the last.
        let owner = if number.is_multiple_of(RECORDS / OF_OWNER) { 1 } else { 2 };
        let mut id = vec![0; 32];
        id[..8].copy_from_slice(&(number * (u64::MAX / RECORDS)).to_be_bytes());
        let id = Binary { subtype: BinarySubtype::Generic, bytes: id };
        doc! {
            "_id": id, NOTES.owner_field: NOTES.owner_bson(owner), "from": 0_i64, "touched": DateTime::from_millis(DATE)
        }
    };
    records.insert_many((0..RECORDS).map(record)).bypass_document_validation(true).await.expect("records");
    let (items, owner) = (engine::histories(&store, NOTES), engine::owner(NOTES, 1));
    assert_eq!(items.erasures().erase(&owner, soon()).await.expect("a tombstone"), Erasure::Nothing);
    proxy.forget();
    eventually("all records are examined", PATIENCE, async || {
        items.erasures().go_on(&owner, soon()).await.expect("an answer") == Erasure::Erased
    })
    .await;
    // Once it is done, further steps examine nothing.
    assert_eq!(items.erasures().go_on(&owner, soon()).await.expect("an answer"), Erasure::Erased);
    let examined = proxy.commands().into_iter().filter(|Nth(name, _)| name.ends_with("idempotency_keys"));
    let each = |nth| [Nth("find idempotency_keys".into(), nth), Nth("delete idempotency_keys".into(), nth)];
    assert_eq!(
        examined.collect::<Vec<_>>(),
        (0..3).flat_map(each).collect::<Vec<_>>(),
        "20,000 with each command"
    );
    let left = async |owner| {
        let of = doc! { NOTES.owner_field: NOTES.owner_bson(owner) };
        records.count_documents(of).await.expect("an answer")
    };
    assert_eq!((left(1).await, left(2).await), (0, RECORDS - OF_OWNER));
}

test_over!(housekeeping_comes_to_the_end_of_an_erasure, NOTES);
async fn housekeeping_comes_to_the_end_of_an_erasure(history: &'static History) {
    let place = Place::new(history).await;
    fill(&place.database, history, 1, 50, 1).await;
    fill(&place.database, history, 2, 50, 1).await;
    let store = place.store().await;
    for owner in [1, 2] {
        engine_of(&store, &place).erasures().erase(&place.owner(owner), soon()).await.expect("an answer");
    }
    drop(store);
    let other = place.store().await;
    let swept = AtomicU64::new(0);
    eventually("both are swept", PATIENCE, async || {
        let done = other.run_housekeeping(&Default::default()).await.expect("an answer").unwrap_or_default();
        swept.fetch_add(done.swept, Ordering::Relaxed) + done.swept == 2
    })
    .await;
    place.is_erased(1).await;
    place.is_erased(2).await;
}

/// A step hands on what it has read of its tombstone, also to what forgets a native time series.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_an_erasure_reads_its_tombstone_once() {
    let place = Place::new(SERIES).await;
    fill(&place.database, SERIES, 1, 2_100, 1).await;
    let (tombstone, id) = (Bson::Int64((1 << 53) - 1), Bson::from(format!("{}_:", SERIES.id(1))));
    let reads = Arc::new(AtomicU64::new(0));
    let read = Arc::clone(&reads);
    let setup = place.setup().await.aging(SHORT).observed(move |name, command| {
        let filter = command.get_document("filter").cloned().unwrap_or_default();
        let pages = filter.get_document("page").and_then(|page| page.get_array("$in"));
        let is_one_of = pages.is_ok_and(|pages| pages.contains(&tombstone));
        if name == "find" && (filter.values().any(|value| [&tombstone, &id].contains(&value)) || is_one_of) {
            read.fetch_add(1, Ordering::Relaxed);
        }
    });
    let (store, owner) = (setup.store().await, place.owner(1));
    let erasures = engine_of(&store, &place).erasures();
    let taken = || reads.swap(0, Ordering::Relaxed);
    assert_eq!((erasures.erase(&owner, soon()).await.expect("an answer"), taken()), (Erasure::Erasing, 3));
    assert_eq!((erasures.go_on(&owner, soon()).await.expect("an answer"), taken()), (Erasure::Erasing, 1));
    eventually("the sweep", PATIENCE, async || {
        let erasure = erasures.erase(&owner, soon()).await.expect("an answer");
        assert_eq!(taken(), 1, "{erasure:?}");
        erasure == Erasure::Swept
    })
    .await;
    assert_eq!((erasures.go_on(&owner, soon()).await.expect("an answer"), taken()), (Erasure::Swept, 1));
    assert_eq!(
        (erasures.reopen(&owner, soon()).await.expect("an answer"), taken()),
        (Reopening::Reopened, 1)
    );
}
