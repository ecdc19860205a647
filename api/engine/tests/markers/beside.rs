//! Retirement and erasure beside writers and readers, on two instances.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use pagebucket_engine::appends::{AppendCause, AppendError};
use pagebucket_engine::internal::CollectionScan;
use pagebucket_engine::{Error, Gone, Store};

use super::{Place, append, engine_of, erase, keep, numbers, page, seqs, soon};
use crate::harness::{History, PATIENCE, eventually, stored, test_over};

/// What was acknowledged: the number of the item at each sequence number.
type Told = Arc<Mutex<BTreeMap<u64, i64>>>;

/// Verifies until `done`: nothing is a finding.
async fn verify(place: &Place, owners: &[u64], done: &AtomicBool) {
    let store = place.store().await;
    let (engine, mut rounds) = (engine_of(&store, place), 0);
    while !done.load(Ordering::Relaxed) || rounds < 3 {
        let mut scan = CollectionScan::default();
        let mut suspects: Vec<_> = owners.iter().map(|owner| place.owner(*owner)).collect();
        while !scan.ended {
            let scanned = engine.verifier().scan(&mut scan, soon()).await.expect("an answer");
            assert!(scanned.strays.is_empty(), "{:?}", scanned.strays);
            suspects.extend(scanned.suspects);
        }
        for owner in &suspects {
            let found =
                engine.verifier().verify(owner, PATIENCE, &mut async |_| {}).await.expect("an answer");
            assert!(found.is_empty(), "{found:?}");
            let found =
                engine.verifier().elsewhere(owner, PATIENCE, &mut async |_| {}).await.expect("an answer");
            assert!(found.is_empty(), "{found:?}");
        }
        assert_eq!(engine.verifier().verify_counter(scan.markers, soon()).await.expect("an answer"), None);
        rounds += 1;
    }
}

/// Appends until `done`, or until the owner is erased, which must then be so for good.
async fn write(place: &Place, store: &Store, owner: u64, writer: u64, told: &Told, done: &AtomicBool) {
    let mut number = writer * 1_000_000;
    while !done.load(Ordering::Relaxed) {
        let count = 1 + number % (place.history.page_size + 2);
        match append(place, store, owner, number, count).await {
            Ok(progress) => {
                let mut told = told.lock().unwrap();
                for (at, seq) in seqs(&progress).into_iter().enumerate() {
                    let other = told.insert(seq, (number + at as u64) as i64);
                    assert_eq!(other, None, "{seq} was given twice");
                }
            }
            Err(AppendError { cause: AppendCause::Database(Error::Gone(Gone::Erased { .. })), .. }) => return,
            Err(error) => panic!("{error:?}"),
        }
        number += count;
    }
}

/// Reads pages until `done`: each shows what it has always shown, and when it is gone from this instance, it
/// stays gone.
async fn read(place: &Place, store: &Store, owner: u64, told: &Told, done: &AtomicBool) -> u64 {
    let (items, id, size) = (engine_of(store, place), place.owner(owner), place.history.page_size);
    let (mut seen, mut gone) = (BTreeMap::<u64, Vec<i64>>::new(), 0);
    while !done.load(Ordering::Relaxed) {
        let last = told.lock().unwrap().last_key_value().map_or(1, |(seq, _)| seq.div_ceil(size));
        for number in 1..=last {
            match items.reads().page(&id, page(number), soon()).await {
                Ok(Some(bucket)) => {
                    assert_eq!(bucket.page(), page(number));
                    assert!(number > gone, "page {number} was gone, as was {gone}");
                    let numbers = numbers(place, &bucket);
                    let before = seen.entry(number).or_default();
                    assert!(numbers.starts_with(before), "page {number}: {before:?}, then {numbers:?}");
                    *before = numbers;
                }
                Ok(None) => assert!(number >= last, "page {number} of {last} was there"),
                Err(Error::Gone(Gone::Retired { first_page, .. })) => {
                    assert!(first_page.get() > number);
                    gone = gone.max(number);
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        let whole = items.reads().history(id.clone(), soon()).await.expect("a history");
        assert!(whole.first_page().get() <= whole.totals().pages().max(1));
    }
    gone
}

test_over!(pages_are_retired_beside_writers_and_readers, SMALL);
async fn pages_are_retired_beside_writers_and_readers(history: &'static History) {
    let place = Place::new(history).await;
    let stores = [place.store().await, place.store().await];
    let (told, done) = (Told::default(), AtomicBool::new(false));
    append(&place, &stores[0], 1, 9_000_000, history.page_size).await.expect("stored");
    let writers = (0..4).map(|writer| write(&place, &stores[writer % 2], 1, writer as u64 + 1, &told, &done));
    let readers = stores.iter().map(|store| read(&place, store, 1, &told, &done));
    let retention = [(history.name.into(), keep(3))].into();
    let retiring = async {
        let retired = AtomicU64::new(0);
        eventually("pages go", PATIENCE, async || {
            for store in &stores {
                let done = store.run_housekeeping(&retention).await.expect("an answer").unwrap_or_default();
                retired.fetch_add(done.retired_pages, Ordering::Relaxed);
            }
            retired.load(Ordering::Relaxed) > 100
        })
        .await;
        done.store(true, Ordering::Relaxed);
    };
    let verifying = verify(&place, &[1], &done);
    let (_, gone, (), ()) = tokio::join!(join_all(writers), join_all(readers), retiring, verifying);
    assert!(gone.iter().all(|gone| *gone > 0), "both instances have met pages that are gone: {gone:?}");
    let left = stored(&place.database, history, 1).await;
    assert!(left.first_page > 1);
    let first = (left.first_page - 1) * history.page_size + 1;
    let told = told.lock().unwrap();
    let kept: Vec<i64> = told.range(first..).map(|(_, number)| *number).collect();
    assert_eq!(left.numbers, kept, "every acknowledged item that is not retired, once, at its address");
}

test_over!(an_owner_is_erased_while_eight_write, NOTES);
async fn an_owner_is_erased_while_eight_write(history: &'static History) {
    let place = Place::new(history).await;
    let stores = [place.store().await, place.store().await];
    let (told, others, done) = (Told::default(), Told::default(), AtomicBool::new(false));
    let reopened = AtomicBool::new(false);
    let writers = (0..8).map(|writer| write(&place, &stores[writer % 2], 1, writer as u64 + 1, &told, &done));
    let neighbours =
        (0..2).map(|writer| write(&place, &stores[writer], 2, writer as u64 + 1, &others, &done));
    let erasing = async {
        eventually("there are pages", PATIENCE, async || {
            told.lock().unwrap().len() as u64 > 20 * history.page_size
        })
        .await;
        erase(&place, &stores[0], 1).await;
        place.is_erased(1).await;
        done.store(true, Ordering::Relaxed);
    };
    let rest = async {
        tokio::join!(join_all(writers), join_all(neighbours), erasing);
        is_reopened(&place, &stores, &told, &others).await;
        reopened.store(true, Ordering::Relaxed);
    };
    tokio::join!(rest, verify(&place, &[1, 2], &reopened));
}

async fn is_reopened(place: &Place, stores: &[Store], told: &Told, others: &Told) {
    let history = place.history;
    place.is_erased(1).await;
    let others: Vec<i64> = others.lock().unwrap().values().copied().collect();
    assert_eq!(
        stored(&place.database, history, 2).await.numbers,
        others,
        "the neighbour has all of its items"
    );

    let (items, owner) = (engine_of(&stores[1], place), place.owner(1));
    items.erasures().reopen(&owner, soon()).await.expect("an answer");
    let next = append(place, &stores[0], 1, 1, 1).await.expect("stored");
    let last = *told.lock().unwrap().last_key_value().unwrap().0;
    assert!(seqs(&next)[0] > last, "{next:?} after {last}: no address ever means two items");
    stored(&place.database, history, 1).await.holds_exactly([1]);
}
