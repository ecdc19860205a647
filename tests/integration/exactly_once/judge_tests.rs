//! The judge finds what is wrong in histories that are doctored, and nothing in one that is not.

use std::time::Duration;

use mongodb::bson::{DateTime, Document, doc};

use super::judge::{Histories, Kind, judge};
use super::record::{Item, Log, Range, Reply, Seen, Sight, Stored, Told, Wanted};
use crate::harness::{History, Setup, shared, test_over, try_stored};

const PAGE_SIZE: u64 = 10;
const DATE: i64 = 1_698_349_623_000;

fn told(sent: u64, reply: Reply) -> Told {
    Told { instance: 0, sent: Duration::from_millis(sent), heard: Duration::from_millis(sent + 5), reply }
}

fn stored(ranges: &[Range], replayed: bool) -> Reply {
    let items = ranges.last().expect("a range").1;
    let (ranges, pages) = (ranges.to_vec(), items.div_ceil(PAGE_SIZE));
    Reply::Stored(Stored { ranges, date: DATE, items, pages, replayed })
}

fn again(slug: &str, ranges: &[Range], unknown: u64) -> Reply {
    Reply::Again { slug: slug.to_owned(), ranges: ranges.to_vec(), unknown }
}

fn wanted(owner: u64, first: u64, count: u64, told: Vec<Told>) -> Wanted {
    Wanted { owner, key: Some(format!("key-{first}")), first, count, told }
}

fn page(page: u64, numbers: impl IntoIterator<Item = i64>) -> Sight {
    let items: Vec<Item> = numbers.into_iter().map(|number| Item { number, date: DATE }).collect();
    Sight::Page { page, full: items.len() as u64 == PAGE_SIZE, items }
}

fn seen(owner: u64, sight: Sight) -> Seen {
    Seen { reader: 0, instance: 0, restarts: 0, owner, at: Duration::ZERO, sight }
}

/// One owner with twelve items, another's single one, and one more of an append that was cut in
/// two; everything that may happen in a good run.
fn good() -> (Log, Histories) {
    let log = Log {
        wanted: vec![
            // Answered, and replayed.
            wanted(7, 100, 9, vec![told(0, stored(&[(1, 9)], false)), told(10, stored(&[(1, 9)], true))]),
            // Cut in two by another writer, told in part, completed.
            wanted(
                7,
                200,
                2,
                vec![
                    told(20, again("partly-stored", &[(10, 10)], 0)),
                    told(30, Reply::Silence),
                    told(40, stored(&[(10, 10), (12, 12)], false)),
                ],
            ),
            wanted(7, 300, 1, vec![told(25, stored(&[(11, 11)], false))]),
            // Never answered; it is stored, and might not be.
            wanted(8, 400, 1, vec![told(50, Reply::Silence)]),
            wanted(8, 500, 1, vec![told(60, Reply::Silence), told(90, again("overloaded", &[], 0))]),
            // Two attempts, each of which stored a bucket's part.
            wanted(
                9,
                600,
                12,
                vec![
                    told(0, stored(&[(1, 12)], false)),
                    told(1, stored(&[(1, 12)], false)),
                    told(2, stored(&[(1, 12)], true)),
                ],
            ),
        ],
        seen: vec![
            seen(7, page(1, 100..105)),
            seen(7, page(1, (100..109).chain([200]))),
            seen(7, page(2, [300])),
            seen(7, Sight::Totals { items: 0, pages: 0 }),
            seen(7, Sight::Totals { items: 11, pages: 2 }),
            seen(7, Sight::Totals { items: 12, pages: 2 }),
            seen(8, Sight::Totals { items: 1, pages: 1 }),
        ],
        faults: Vec::new(),
    };
    let items =
        |numbers: Vec<i64>| numbers.into_iter().map(|number| Item { number, date: DATE }).collect::<Vec<_>>();
    let histories = Histories::from([
        (7, items((100..109).chain([200, 300, 201]).collect())),
        (8, items(vec![400])),
        (9, items((600..612).collect())),
    ]);
    (log, histories)
}

/// What is found once this is done to a good run.
fn found(doctor: impl FnOnce(&mut Log, &mut Histories)) -> Vec<Kind> {
    let (mut log, mut histories) = good();
    doctor(&mut log, &mut histories);
    let mut kinds: Vec<Kind> =
        judge(&log, &histories, PAGE_SIZE).into_iter().map(|finding| finding.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn of(histories: &mut Histories, owner: u64) -> &mut Vec<Item> {
    histories.get_mut(&owner).expect("a owner")
}

/// The answer to one attempt at one append.
fn answer(log: &mut Log, wanted: usize, attempt: usize) -> &mut Reply {
    &mut log.wanted[wanted].told[attempt].reply
}

fn acknowledgement(log: &mut Log, wanted: usize, attempt: usize) -> &mut Stored {
    match answer(log, wanted, attempt) {
        Reply::Stored(stored) => stored,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_good_history_is_found_good() {
    let (log, histories) = good();
    assert_eq!(judge(&log, &histories, PAGE_SIZE), []);
    // What nobody acknowledged may be missing, unless it was seen.
    assert_eq!(found(|_, histories| of(histories, 8).clear()), [Kind::TotalShrank]);
}

#[test]
fn a_lost_item_is_found() {
    // The last of a history, so that nothing else moves; and the whole history.
    assert_eq!(found(|_, histories| of(histories, 9).truncate(11)), [Kind::Lost]);
    assert_eq!(found(|_, histories| drop(histories.remove(&9))), [Kind::Lost]);
    // Told in a problem alone.
    let in_part = |log: &mut Log, histories: &mut Histories| {
        log.wanted[2].told = vec![told(0, again("partly-stored", &[(11, 11)], 0))];
        of(histories, 7).truncate(10);
        log.wanted[1].told.truncate(2);
        log.seen.clear();
    };
    assert_eq!(found(in_part), [Kind::Lost]);
    // Another in its place.
    let other = |log: &mut Log, histories: &mut Histories| {
        of(histories, 8)[0].number = 500;
        *answer(log, 3, 0) = stored(&[(1, 1)], false);
    };
    assert_eq!(found(other), [Kind::Lost]);
}

#[test]
fn a_doubled_item_is_found() {
    for owner in [7, 8] {
        let doubled = |log: &mut Log, histories: &mut Histories| {
            log.seen.clear();
            let item = of(histories, owner)[0];
            of(histories, owner).push(item);
        };
        assert_eq!(found(doubled), [Kind::Doubled]);
    }
    // In another's history.
    let elsewhere = |_: &mut Log, histories: &mut Histories| {
        let item = of(histories, 8)[0];
        of(histories, 9).push(item);
    };
    assert_eq!(found(elsewhere), [Kind::Doubled]);
}

#[test]
fn swapped_items_are_found() {
    assert_eq!(found(|_, histories| of(histories, 9).swap(3, 4)), [Kind::Misplaced]);
    assert_eq!(found(|_, histories| of(histories, 9)[3].date += 1), [Kind::Misplaced]);
}

#[test]
fn a_item_that_nobody_sent_is_found() {
    let foreign = |_: &mut Log, histories: &mut Histories| {
        of(histories, 8).push(Item { number: 999, date: DATE });
    };
    assert_eq!(found(foreign), [Kind::Unasked]);
}

#[test]
fn a_item_that_was_told_to_be_not_stored_is_found() {
    for slug in ["overloaded", "database-unavailable", "shutting-down"] {
        let refused = |log: &mut Log, _: &mut Histories| *answer(log, 3, 0) = again(slug, &[], 0);
        assert_eq!(found(refused), [Kind::Unasked]);
    }
    let more_than_told = |log: &mut Log, _: &mut Histories| {
        log.wanted[5].told = vec![told(0, again("outcome-unknown", &[(1, 4)], 7))];
    };
    assert_eq!(found(more_than_told), [Kind::Unasked]);
    let refused = |log: &mut Log, histories: &mut Histories| {
        *answer(log, 3, 0) = Reply::Other("500".to_owned());
        histories.remove(&8);
        log.seen.clear();
    };
    assert_eq!(found(refused), [Kind::Refused]);
}

#[test]
fn a_replay_that_differs_is_found() {
    let ranges = |log: &mut Log, histories: &mut Histories| {
        // Stored a second time, and told so.
        log.seen.clear();
        let again: Vec<Item> = of(histories, 7)[..9].to_vec();
        of(histories, 7).extend(again);
        *answer(log, 0, 1) = stored(&[(13, 21)], true);
    };
    assert_eq!(found(ranges), [Kind::Doubled, Kind::ReplayDiffers]);
    assert_eq!(
        found(|log, _| acknowledgement(log, 0, 1).date += 1),
        [Kind::Misplaced, Kind::ReplayDiffers],
        "the date, which the items do not have"
    );
    assert_eq!(
        found(|log, _| acknowledgement(log, 0, 1).items += 1),
        [Kind::Absurd, Kind::ReplayDiffers],
        "the totals"
    );
    let in_part = |log: &mut Log, _: &mut Histories| {
        *answer(log, 1, 0) = again("partly-stored", &[(11, 11)], 0);
    };
    assert_eq!(found(in_part), [Kind::Misplaced, Kind::ReplayDiffers]);
}

#[test]
fn a_replay_that_does_not_say_so_is_found() {
    assert_eq!(found(|log, _| acknowledgement(log, 0, 1).replayed = false), [Kind::ReplayedWrongly]);
    assert_eq!(
        found(|log, _| acknowledgement(log, 5, 2).replayed = false),
        [Kind::ReplayedWrongly],
        "three attempts cannot each have stored a part of two buckets"
    );
}

#[test]
fn an_answer_that_does_not_add_up_is_found() {
    let short = |log: &mut Log, _: &mut Histories| *answer(log, 5, 0) = stored(&[(1, 11)], false);
    assert!(found(short).contains(&Kind::Absurd));
    let pages = |log: &mut Log, _: &mut Histories| acknowledgement(log, 2, 0).pages = 1;
    assert_eq!(found(pages), [Kind::Absurd]);
    let unknown = |log: &mut Log, _: &mut Histories| *answer(log, 3, 0) = again("outcome-unknown", &[], 2);
    assert_eq!(found(unknown), [Kind::Absurd]);
}

#[test]
fn a_page_that_changed_is_found() {
    // Another item, another order, another date, more than there is, a fullness that is none.
    for (number, doctored) in
        [(1, vec![101]), (1, vec![101, 100]), (2, vec![300, 201, 202]), (2, vec![]), (3, vec![1])]
    {
        let changed = |log: &mut Log, _: &mut Histories| {
            let mut sight = page(number, doctored);
            if let Sight::Page { items, full, .. } = &mut sight
                && items.is_empty()
            {
                *full = true;
            }
            log.seen.push(seen(7, sight));
        };
        assert_eq!(found(changed), [Kind::PageChanged]);
    }
    let date = |log: &mut Log, _: &mut Histories| {
        if let Sight::Page { items, .. } = &mut log.seen[0].sight {
            items[0].date += 1;
        }
    };
    assert_eq!(found(date), [Kind::PageChanged]);
}

#[test]
fn a_total_that_shrank_is_found() {
    for totals in [Sight::Totals { items: 13, pages: 2 }, Sight::Totals { items: 12, pages: 3 }] {
        assert_eq!(found(|log, _| log.seen.push(seen(7, totals))), [Kind::TotalShrank]);
    }
    // Before the end, for one reader.
    let earlier =
        |log: &mut Log, _: &mut Histories| log.seen.push(seen(7, Sight::Totals { items: 11, pages: 2 }));
    assert_eq!(found(earlier), [Kind::TotalShrank]);
    // Whatever was done to the servers meanwhile; only an instance that was killed may have forgotten.
    for (restarts, expected) in [(0, vec![Kind::TotalShrank]), (1, vec![])] {
        let across = |log: &mut Log, _: &mut Histories| {
            let total = |restarts, items, pages| Seen { restarts, ..seen(9, Sight::Totals { items, pages }) };
            log.seen.extend([total(0, 12, 2), total(restarts, 10, 1)]);
            log.faults.push((Duration::ZERO, "kill -9 of the primary".to_owned()));
        };
        assert_eq!(found(across), expected);
    }
}

test_over!(buckets_that_break_an_invariant_are_found, ALL);
/// Invariants 1 to 3, which the judge leaves to the reading of buckets.
async fn buckets_that_break_an_invariant_are_found(history: &'static History) {
    let setup = Setup::on(shared().await);
    let database = shared().await.client().await.database(&setup.connection.database);
    let collection = database.collection::<Document>(history.name);
    let (full, date) = (history.page_size, DateTime::from_millis(DATE));
    let bucket = |second: i64, page: u64, count: u64| {
        let items: Vec<_> = (0..count).map(|place| (page * 1_000 + place, date)).collect();
        history.bucket(7, second, page, &items)
    };
    for (good, buckets) in [
        (true, vec![bucket(1, 1, full), bucket(2, 2, 1)]),
        (false, vec![bucket(1, 1, full), bucket(2, 3, 1)]),
        (false, vec![bucket(1, 1, full), bucket(2, 1, 1)]),
        (false, vec![bucket(1, 1, full - 1), bucket(2, 2, 1)]),
        (false, vec![bucket(1, 2, 1), bucket(2, 1, full)]),
        (false, vec![bucket(1, 1, full + 1)]),
    ] {
        collection.delete_many(doc! {}).await.expect("to empty it");
        collection.insert_many(buckets.clone()).await.expect("buckets");
        assert_eq!(try_stored(&database, history, 7).await.is_ok(), good, "{buckets:?}");
    }
    database.drop().await.expect("to drop it");
}
