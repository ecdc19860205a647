//! What is retired is gone, and what stays is read as before.

use std::io::Read;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::TryStreamExt;
use mongodb::bson::{DateTime, Document, doc};
use pagebucket_engine::appends::{Append, AppendCause, AppendError, Once};
use pagebucket_engine::internal::{Ages, Retention};
use pagebucket_engine::{Error, Gone};
use pagebucket_model::domain::{Cursor, DateRange, IdempotencyKey, Instant, Limit, Position, Seq, Window};
use pagebucket_model::item::Draft;

use super::{
    Place, SHORT, append, clock, engine_of, int, is_retired, keep, numbers, page, pages_left, retire_to,
    seqs, soon,
};
use crate::harness::{History, Mongod, PATIENCE, Setup, TRADES, engine, eventually, fill, stored, test_over};

const PAGES: u64 = 40;

test_over!(the_oldest_pages_go_and_the_others_stay, SMALL);
async fn the_oldest_pages_go_and_the_others_stay(history: &'static History) {
    let place = Place::new(history).await;
    let (store, other) = (place.store().await, place.store().await);
    fill(&place.database, history, 1, PAGES, 1).await;
    fill(&place.database, history, 2, 3, 1).await;
    let (items, owner, size) = (engine_of(&store, &place), place.owner(1), history.page_size);
    let first = PAGES - 5;
    retire_to(&place, &store, 1, keep(5), first).await;
    assert_eq!(
        pages_left(&place, 1).await,
        [1].into_iter().chain(first as i64..=PAGES as i64).collect::<Vec<_>>()
    );
    assert_eq!(pages_left(&place, 2).await, [1, 2, 3], "it has no page too many");
    let left = stored(&place.database, history, 1).await;
    assert_eq!(left.first_page, first);

    // An instance that has not done it.
    eventually("the other instance knows", PATIENCE, async || {
        engine_of(&other, &place).reads().may_have_lost_pages()
    })
    .await;
    for store in [&store, &other] {
        let items = engine_of(store, &place);
        let whole = items.reads().history(owner.clone(), soon()).await.expect("a history");
        assert_eq!((whole.first_page(), whole.first_seq().get()), (page(first), (first - 1) * size + 1));
        assert_eq!(whole.totals().items(), (PAGES - 1) * size + 1, "of all that there ever were");
        for gone in [1, 2, 10, 17, 18, first - 1] {
            is_retired(items.reads().page(&owner, page(gone), soon()).await, first);
            is_retired(whole.pages(page(gone), page(gone), soon()).await, first);
            is_retired(whole.pages(page(gone), page(PAGES), soon()).await, first);
        }
        for there in first..=PAGES {
            let bucket =
                items.reads().page(&owner, page(there), soon()).await.expect("an answer").expect("a page");
            assert_eq!(numbers(&place, &bucket)[0] as u64, (there - 1) * size + 1);
            let [bucket] = &whole.pages(page(there), page(there), soon()).await.expect("an answer")[..]
            else {
                panic!("one page")
            };
            assert_eq!(bucket.page(), page(there));
        }
        assert!(items.reads().page(&owner, page(PAGES + 1), soon()).await.expect("an answer").is_none());
        // Many at once share commands, and each has its own answer.
        let pages = (first - 20)..=PAGES + 3;
        let at_once = pages.clone().map(|number| items.reads().page(&owner, page(number), soon()));
        for (number, found) in pages.zip(futures_util::future::join_all(at_once).await) {
            match number {
                gone if gone < first => is_retired(found, first),
                there if there <= PAGES => assert_eq!(found.unwrap().unwrap().page(), page(there)),
                _ => assert!(found.expect("an answer").is_none()),
            }
        }
        // Walks begin at the first that is there; what is asked for by its position must be there.
        let mut export =
            items.reads().export(owner.clone(), Position::BEGINNING, None, soon()).await.expect("an export");
        let mut exported = Vec::new();
        while let Some(batch) = export.next().await.expect("pages") {
            exported.extend(batch.items().map(|item| item.seq.get()));
        }
        assert_eq!(exported, ((first - 1) * size + 1..=(PAGES - 1) * size + 1).collect::<Vec<_>>());
        let inside = Position::behind(Seq::new(size).unwrap());
        is_retired(items.reads().export(owner.clone(), inside, None, soon()).await, first);
        let (first_page, first_seq) = (page(first), whole.first_seq());
        assert_eq!(whole.from(inside), Err(Gone::Retired { first_page, first_seq }));
        let span =
            Window { cursor: Cursor::After(whole.from(Position::BEGINNING).unwrap()), limit: Limit::MOST };
        assert_eq!(span.span(whole.totals()).seqs().unwrap().first, whole.first_seq());
        let all = DateRange::new(Some(Instant::from_millis(0).unwrap()), None).expect("a span");
        for cursor in [Cursor::After(Position::BEGINNING), Cursor::End] {
            let found = whole.dated(all, cursor, 10_000, soon()).await.expect("an answer");
            assert_eq!(found.items.first().map(|(_, seq)| *seq), Some(whole.first_seq()));
            assert_eq!(found.items.len() as u64, 5 * size + 1);
        }
        let owners = items.reads().owners(None, Limit::MOST, soon()).await.expect("owners");
        assert_eq!(owners.found.len(), 2);
    }

    // Appends go on as if nothing had happened, also when their instance knows nothing.
    let told = append(&place, &other, 1, 1_000_000, 3 * size).await.expect("stored");
    assert_eq!(seqs(&told)[0], (PAGES - 1) * size + 2);
    let told = append(&place, &place.store().await, 1, 2_000_000, size).await.expect("stored");
    assert_eq!(seqs(&told)[0], (PAGES + 2) * size + 2);
    // The next retirement raises the beginning.
    let totals = items.reads().history(owner, soon()).await.expect("a history").totals();
    retire_to(&place, &other, 1, keep(2), totals.pages() - 2).await;
    assert_eq!(stored(&place.database, history, 1).await.first_page, totals.pages() - 2);
}

test_over!(pages_go_by_their_dates, ALL);
async fn pages_go_by_their_dates(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    fill(&place.database, history, 1, 12, 1).await;
    let buckets = place.database.collection::<Document>(history.name);
    // Page 4 has an item of today: it stays, and so does all that follows.
    buckets
        .update_one(doc! { "page": 4_i64 }, doc! { "$set": { "last": DateTime::now() } })
        .await
        .expect("an answer");
    let old = Retention { days: NonZero::new(365), ..Default::default() };
    retire_to(&place, &store, 1, old, 4).await;
    assert_eq!(pages_left(&place, 1).await[..2], [1, 4]);
    // Kept by either.
    let both = Retention { pages: NonZero::new(6), days: NonZero::new(365), ..Default::default() };
    buckets
        .update_one(doc! { "page": 4_i64 }, doc! { "$set": { "last": DateTime::from_millis(0) } })
        .await
        .expect("an answer");
    retire_to(&place, &store, 1, both, 6).await;
    assert_eq!(pages_left(&place, 1).await[..2], [1, 6]);
    // The last page stays, however old.
    retire_to(&place, &store, 1, old, 12).await;
    assert_eq!(pages_left(&place, 1).await, [1, 12]);
}

test_over!(a_search_tells_of_pages_that_go_meanwhile, NOTES);
/// The index of a search has no entry for what is deleted, so the search alone would pass over it.
async fn a_search_tells_of_pages_that_go_meanwhile(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    fill(&place.database, history, 1, 12, 1).await;
    let (owner, all) =
        (place.owner(1), DateRange::new(Some(Instant::from_millis(0).unwrap()), None).unwrap());
    let before = engine_of(&store, &place).reads().history(owner, soon()).await.expect("a history");
    retire_to(&place, &store, 1, keep(4), 8).await;
    let begin = Cursor::After(Position::BEGINNING);
    for cursor in [begin, Cursor::End] {
        is_retired(before.dated(all, cursor, 10_000, soon()).await, 8);
    }
    is_retired(before.dated(all, begin, 1, soon()).await, 8);
    for dates in [None, Some(all)] {
        is_retired(before.matching(&[], dates, begin, 1, soon()).await, 8);
    }
    // What ends before them needs none of them.
    let size = history.page_size as usize;
    for found in [
        before.dated(all, Cursor::End, size, soon()).await,
        before.matching(&[], None, Cursor::End, size, soon()).await,
        before.matching(&[], Some(all), Cursor::End, size, soon()).await,
    ] {
        assert_eq!(found.expect("the last items").items.len(), size);
    }
}

test_over!(a_page_waits_until_no_instance_can_follow_it, NOTES);
async fn a_page_waits_until_no_instance_can_follow_it(history: &'static History) {
    let place = Place::new(history).await;
    let long = pagebucket_engine::internal::Ages { marker: std::time::Duration::from_secs(3600), ..SHORT };
    let store = place.store_with(long).await;
    fill(&place.database, history, 1, 10, 1).await;
    let items = engine_of(&store, &place);
    for _ in 0..3 {
        let retired = items.retirement().retire(keep(2), soon()).await.expect("an answer");
        assert_eq!((retired.pages, retired.more), (0, false));
    }
    assert_eq!(pages_left(&place, 1).await.len(), 10, "it is too early");
    assert_eq!(items.reads().history(place.owner(1), soon()).await.unwrap().first_page(), page(8));
    is_retired(items.reads().page(&place.owner(1), page(2), soon()).await, 8);
    // Those that wait are deleted first, and the beginning stays where it is meanwhile.
    let told = append(&place, &store, 1, 100, 5 * history.page_size).await;
    told.expect("stored");
    items.retirement().retire(keep(2), soon()).await.expect("an answer");
    assert_eq!(items.reads().history(place.owner(1), soon()).await.unwrap().first_page(), page(8));
}

test_over!(a_key_of_retired_items_is_not_stored_again, NOTES);
async fn a_key_of_retired_items_is_not_stored_again(history: &'static History) {
    let place = Place::new(history).await;
    let (store, other) = (place.store().await, place.store().await);
    let owner = place.owner(1);
    let once = async |store: &pagebucket_engine::Store| {
        let drafts: Vec<Draft> = (1..=2).map(|number| engine::draft(history, number)).collect();
        let canonical = vec![vec![1], vec![2]];
        let key = IdempotencyKey::parse(b"k").expect("a key");
        let now = Instant::from_millis(super::DATE).unwrap();
        let once = Some(Once::Request { key, canonical: &canonical });
        let append = Append { once, ..Append::new(owner.clone(), drafts, now, soon()) };
        engine_of(store, &place).appends().append(append).await
    };
    once(&store).await.expect("stored");
    append(&place, &store, 1, 3, 8 * history.page_size).await.expect("stored");
    retire_to(&place, &store, 1, keep(2), 7).await;
    let before = stored(&place.database, history, 1).await.numbers;
    for store in [&store, &other] {
        let again = once(store).await;
        let Err(AppendError {
            cause: AppendCause::Database(Error::Gone(Gone::Retired { .. })),
            unknown: 0,
            ..
        }) = again
        else {
            panic!("{again:?}")
        };
    }
    assert_eq!(stored(&place.database, history, 1).await.numbers, before);
}

test_over!(a_marker_takes_no_items, SMALL);
/// The statement that opens page 1 may have the `_id` of the marker that has its place by now.
async fn a_marker_takes_no_items(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    fill(&place.database, history, 1, 5, 1).await;
    engine_of(&store, &place).retirement().retire(keep(1), soon()).await.expect("an answer");
    let buckets = place.database.collection::<Document>(history.name);
    let marker = buckets.find_one(doc! { "page": 1_i64 }).await.expect("an answer").expect("a marker");
    assert_eq!((marker.get_i32("count").ok(), int(&marker, "firstPage")), (Some(0), 4));
    let item = history.stored_item(1, DateTime::from_millis(super::DATE));
    let update = doc! {
        "update": history.name,
        "updates": [{
            "q": {
                "_id": marker.get_str("_id").unwrap(), history.owner_field: history.owner_bson(1), "count": 0,
            },
            "u": { "$push": { "history": { "$each": [item] } }, "$inc": { "count": 1 } },
            "upsert": true,
            "hint": { "_id": 1 },
        }],
    };
    let reply = place.database.run_command(update).await.expect("an answer");
    let error = reply.get_array("writeErrors").expect("it is refused")[0].as_document().unwrap().clone();
    assert_eq!(error.get_i32("code").ok(), Some(121), "{error}");
    let clauses = error.get_document("errInfo").unwrap().get_document("details").unwrap();
    let clauses = clauses.get_array("clausesNotSatisfied").unwrap();
    assert_eq!(clauses.len(), 1, "only the guard, so it is read as refused: {error}");
    let refused = clauses[0].as_document().unwrap().get_document("details").unwrap();
    assert_eq!(refused.get_str("operatorName").ok(), Some("$expr"), "{error}");
    let all: Vec<Document> = buckets.find(doc! {}).await.unwrap().try_collect().await.unwrap();
    assert_eq!(all.len(), 5);
    for without in ["firstPage", "second", "since"] {
        let mut empty = marker.clone();
        empty.insert("_id", format!("{}_0000000001", history.id(9)));
        empty.insert(history.owner_field, history.owner_bson(9));
        empty.remove(without);
        buckets.insert_one(empty).await.expect_err("only a marker has no items");
    }
}

test_over!(a_damaged_marker_keeps_no_other_owner, SMALL);
async fn a_damaged_marker_keeps_no_other_owner(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    let buckets = place.database.collection::<Document>(history.name);
    for owner in 1..=3 {
        fill(&place.database, history, owner, 5, 1).await;
    }
    // The marker of the first, and the tombstone of the last, whose sweep is still to come.
    retire_to(&place, &store, 1, keep(3), 2).await;
    let (items, owner) = (engine_of(&store, &place), place.owner(3));
    items.erasures().erase(&owner, soon()).await.expect("an answer");
    let field = history.owner_field;
    let marker = doc! { field: history.owner_bson(1), "page": 1_i64 };
    let tombstone = doc! { "_id": format!("{}_:", history.id(3)) };
    for (query, change) in [
        (marker, doc! { "$unset": { "firstPage": 1 } }),
        (tombstone, doc! { "$set": { field: true, "swept": false } }),
    ] {
        let damaged = buckets.update_one(query, change).bypass_document_validation(true).await;
        assert_eq!(damaged.expect("an answer").modified_count, 1);
    }
    let retention = [(history.name.into(), keep(2))].into();
    eventually("the pages of the second are deleted", PATIENCE, async || {
        store.run_housekeeping(&retention).await.expect("an answer");
        pages_left(&place, 2).await == [1, 3, 4, 5]
    })
    .await;
}

test_over!(one_instance_keeps_house, NOTES);
async fn one_instance_keeps_house(history: &'static History) {
    let place = Place::new(history).await;
    let (store, other) = (place.store().await, place.store().await);
    fill(&place.database, history, 1, 10, 1).await;
    let retention = [(history.name.into(), keep(2))].into();
    let locks = place.database.collection::<Document>("migrations");
    let held = vec![doc! { "$set": { "until": { "$add": ["$$NOW", 600_000_i64] }, "owner": "another" } }];
    locks.update_one(doc! { "_id": "house" }, held).upsert(true).await.expect("an answer");
    assert_eq!(
        store.run_housekeeping(&retention).await.expect("an answer"),
        None,
        "another instance is at it"
    );
    let free = doc! { "$set": { "until": DateTime::from_millis(0) } };
    locks.update_one(doc! { "_id": "house" }, free).await.expect("an answer");
    let deleted = AtomicU64::new(0);
    eventually("the pages are deleted", PATIENCE, async || {
        let rounds = tokio::join!(store.run_housekeeping(&retention), other.run_housekeeping(&retention));
        for round in [rounds.0, rounds.1] {
            let done = round.expect("an answer").unwrap_or_default();
            deleted.fetch_add(done.retired_pages, Ordering::Relaxed);
        }
        deleted.load(Ordering::Relaxed) == 6
    })
    .await;
    assert_eq!(pages_left(&place, 1).await, [1, 8, 9, 10]);
}

/// What is deleted for good is never without a line, at the level that logs have.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_retired_is_logged() {
    let place = Place::new(TRADES).await;
    let store = place.store().await;
    fill(&place.database, TRADES, 1, 10, 1).await;
    // Another test's thread, which has no subscriber, would otherwise decide that the log is off.
    let nowhere = tracing_subscriber::fmt().with_writer(std::io::sink).finish();
    let _ = tracing::subscriber::set_global_default(nowhere);
    let (mut log, written) = std::io::pipe().expect("a pipe");
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(Mutex::new(written)).finish();
    let logging = tracing::subscriber::set_default(subscriber);
    let retention = [("trades".into(), keep(2))].into();
    eventually("the pages are deleted", PATIENCE, async || {
        store.run_housekeeping(&retention).await.expect("an answer").unwrap_or_default().retired_pages > 0
    })
    .await;
    drop(logging);
    let mut lines = String::new();
    log.read_to_string(&mut lines).expect("text");
    let lines: Vec<_> = lines.lines().filter(|line| line.contains("pages were retired")).collect();
    let [marked, deleted] = &lines[..] else {
        panic!("a line for each of the rounds that did something: {lines:?}")
    };
    for (line, numbers) in [(marked, "marked=7 deleted=0"), (deleted, "marked=0 deleted=6")] {
        assert!(
            line.contains(" INFO ") && line.contains("history=\"trades\"") && line.contains(numbers),
            "{line}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_deletes_more_than_one_batch() {
    const PAGES: u64 = 2_500;
    let place = Place::new(TRADES).await;
    let store = place.store().await;
    fill(&place.database, TRADES, 1, PAGES, 1).await;
    let old = [("trades".into(), Retention { days: NonZero::new(365), ..Default::default() })].into();
    assert_eq!(store.run_housekeeping(&old).await.expect("an answer").unwrap_or_default().retired_pages, 0);
    let history = engine_of(&store, &place).reads().history(place.owner(1), soon()).await.expect("a history");
    assert_eq!(history.first_page(), page(PAGES), "all are too old");
    let deleted = AtomicU64::new(0);
    eventually("it is old enough", PATIENCE, async || {
        let round = store.run_housekeeping(&old).await.expect("an answer").unwrap_or_default();
        deleted.store(round.retired_pages, Ordering::Relaxed);
        round.retired_pages > 0
    })
    .await;
    // The marker has the place of page 1.
    assert_eq!(deleted.into_inner(), PAGES - 2);
}

/// It fails after the pages were read, where it looks whether one before them was deleted meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_of_dates_that_fails_leaves_no_page_out() {
    let mongod = Mongod::failing().await;
    let setup = Setup::on(&mongod);
    let database = mongod.client().await.database(&setup.connection.database);
    let store = setup.store().await;
    fill(&database, TRADES, 7, 250, 3).await;
    let (trades, seven) = (engine::histories(&store, TRADES), engine::owner(TRADES, 7));
    // From now on there are markers to look for.
    trades.erasures().erase(&engine::owner(TRADES, 9), soon()).await.expect("an answer");
    let dates = DateRange::new(Some(Instant::from_millis(0).unwrap()), None).expect("a span");
    let export = trades.reads().export(seven, Position::BEGINNING, Some(dates), soon()).await;
    let (mut export, mut seqs) = (export.expect("an export"), Vec::new());
    // The pages are chosen, and read.
    let data = doc! { "failCommands": ["find"], "errorCode": 8 };
    mongod.fail_point("failCommand", doc! { "skip": 2 }, data).await;
    assert!(export.next().await.is_err(), "the third find fails");
    mongod.fail_point("failCommand", "off", doc! {}).await;
    while let Some(batch) = export.next().await.expect("an answer") {
        seqs.extend(batch.items().map(|item| item.seq.get()));
    }
    assert!(seqs.iter().copied().eq(1..=2_493), "{} items from {:?} on", seqs.len(), seqs.first());
    drop(store);
    mongod.remove().await;
}

test_over!(a_history_without_markers_pays_nothing, NOTES);
/// No command more than before for what is there, and for what never was.
async fn a_history_without_markers_pays_nothing(history: &'static History) {
    let place = Place::new(history).await;
    fill(&place.database, history, 1, 30, 1).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let watch = Arc::clone(&seen);
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let (clock, later) = clock();
    let mut setup = place.setup().await.observed(move |name, command| match command.get_str(name) {
        Ok(collection) if collection == history.name => {
            watch.lock().expect("no test panics here").push(name.to_owned());
        }
        Ok("histories") => {
            count.fetch_add(1, Ordering::Relaxed);
        }
        _ => {}
    });
    setup.clock = clock;
    // A slow answer to the question for markers must not make the tail too old.
    let store = setup.aging(Ages { tail: PATIENCE, ..SHORT }).store().await;
    let (items, owner) = (engine_of(&store, &place), place.owner(1));
    let take = || std::mem::take(&mut *seen.lock().expect("no test panics here"));
    take();
    items.reads().history(owner.clone(), soon()).await.expect("a history");
    assert_eq!(take(), ["find"]);
    for (number, there) in [(1, true), (9, true), (25, true), (31, false), (9_000, false)] {
        assert_eq!(
            items.reads().page(&owner, page(number), soon()).await.expect("an answer").is_some(),
            there
        );
        assert_eq!(take(), ["find"], "{number}");
    }
    // A tail that is known has no age, as long as no page can have been deleted.
    append(&place, &store, 1, 1, history.page_size - 1).await.expect("stored");
    assert_eq!(take(), ["aggregate", "update"]);
    later(3_600_000);
    let before = asked.load(Ordering::Relaxed);
    eventually("it has asked for markers since", PATIENCE, async || {
        // The first answer tells the database's time, which the second question relies on.
        asked.load(Ordering::Relaxed) > before + 2
    })
    .await;
    append(&place, &store, 1, 100, 1).await.expect("stored");
    assert_eq!(take(), ["update"]);
}
