//! The wire is cut, or is silent, before or after the server has applied.

use super::rig::{LONG, Rig, SHORT, SHORT_BUT_PATIENT, Told};
use crate::harness::{Harm, History, Mongod, Proxy, Way, eventually, test_over};

const MANY: std::ops::RangeInclusive<u64> = 101..=140;

test_over!(a_cut_wire_loses_and_doubles_nothing, NOTES);
async fn a_cut_wire_loses_and_doubles_nothing(history: &'static History) {
    let mongod = Mongod::own().await;
    let proxy = Proxy::before(&mongod).await;
    let rig = Rig::through(history, &proxy, &mongod).await;
    let mut told: Vec<Told> = Vec::new();
    let (mut next, mut total) = (1, 0);
    for way in [Way::There, Way::Back] {
        for times in [1, 3] {
            for count in [1, history.pages(2.5)] {
                rig.sent.forget();
                proxy.harm("write", way, Harm::Cut, times);
                told.push(rig.append_after(7, total, next, count).await);
                told.last().expect("one").stored();
                (next, total) = (next + count, total + count);
                assert_eq!(
                    rig.sent.nothing_is_placed_anew(),
                    [times as usize + 1],
                    "{way:?}, {count} items, {times} times"
                );
            }
            let struck = proxy.strikes();
            rig.sent.forget();
            proxy.harm("write", way, Harm::Cut, times);
            let all = rig.append_to_all(MANY, next, 1, LONG).await;
            all.iter().for_each(Told::stored);
            told.extend(all);
            next += 1;
            assert_eq!(proxy.strikes(), struck + times);
            assert!(rig.sent.updates().iter().any(|update| update.owners().len() > 1));
            rig.sent.nothing_is_placed_anew();
        }
        // The read of a tail, by an instance that knows none.
        for times in [1, 3] {
            let cold = Rig::through(history, &proxy, &mongod).await;
            proxy.harm("aggregate", way, Harm::Cut, times);
            let count = history.pages(1.2);
            let all = cold.append_to_all([7, 101, 102], 1, count, LONG).await;
            all.iter().for_each(Told::stored);
            assert_eq!(cold.check(&all).await.len() as u64, 3 * count);
            proxy.relent();
        }
    }
    let stored = rig.check(&told).await;
    assert_eq!(stored.len(), told.iter().map(|told| told.seqs().len()).sum::<usize>());
    mongod.remove().await;
}

test_over!(an_answer_that_never_comes_is_unknown, NOTES);
async fn an_answer_that_never_comes_is_unknown(history: &'static History) {
    let mongod = Mongod::own().await;
    let proxy = Proxy::before(&mongod).await;
    let rig = Rig::through(history, &proxy, &mongod).await;
    let (half, several) = (history.pages(0.5), history.pages(2.5));
    let mut told = rig.append_to_all([1, 2], 1, half, LONG).await;
    rig.sent.forget();

    proxy.harm("write", Way::Back, Harm::Hold, 2);
    let (one, many) = tokio::join!(rig.append(1, 1_001, 1, SHORT), rig.append(2, 1_001, several, SHORT));
    one.unknown_after(0);
    many.unknown_after(0);
    let held: Vec<_> = rig.sent.updates().into_iter().map(|update| update.session).collect();
    assert_eq!(held.len(), 2, "each was sent once, and is waited for");
    rig.sent.forget();

    // The server had applied them; the store did not know, and reads the tail anew.
    let after = rig.append_to_all([1, 2], 2_001, 1, LONG).await;
    let expected = (vec![half + 2], vec![half + several + 1]);
    assert_eq!((after[0].seqs(), after[1].seqs()), expected);
    assert!(!rig.sent.tail_reads().is_empty(), "a tail that is not known is read");
    assert!(rig.sent.updates().iter().all(|update| !held.contains(&update.session)), "other sessions");
    told.extend([one, many]);
    told.extend(after);
    proxy.relent();
    told.extend(rig.append_to_all([1, 2], 3_001, 1, LONG).await);
    rig.sent.replays_are_identical();
    assert_eq!(rig.check(&told).await.len() as u64, half + 1 + 2 + half + several + 2);
    mongod.remove().await;
}

test_over!(a_request_that_comes_late_finds_its_place_taken, NOTES);
async fn a_request_that_comes_late_finds_its_place_taken(history: &'static History) {
    let mongod = Mongod::own().await;
    let proxy = Proxy::before(&mongod).await;
    let rig = Rig::through(history, &proxy, &mongod).await;
    // Behind something, and as the first of a history.
    let (half, several) = (history.pages(0.5), history.pages(2.5));
    let mut told = rig.append_to_all([1], 1, half, LONG).await;
    proxy.harm("write", Way::There, Harm::Hold, 2);
    let unknown = tokio::join!(rig.append(1, 1_001, several, SHORT), rig.append(2, 1_001, several, SHORT));
    unknown.0.unknown_after(0);
    unknown.1.unknown_after(0);
    told.extend([unknown.0, unknown.1]);
    let after = rig.append_to_all([1, 2], 2_001, 1, LONG).await;
    assert_eq!((after[0].seqs(), after[1].seqs()), (vec![half + 1], vec![1]));
    told.extend(after);

    // It reaches the server now, which answers what it answers.
    let held = proxy.strikes();
    proxy.relent_but("write", Way::Back, Harm::Hold, 2);
    proxy.struck(held + 2).await;
    proxy.relent();
    told.extend(rig.append_to_all([1, 2], 3_001, 1, LONG).await);
    let stored = rig.check(&told).await;
    let expected: Vec<_> = (1..=half as i64).chain([2_001, 3_001, 2_001, 3_001]).collect();
    assert_eq!(stored, expected, "nothing of what came late");
    mongod.remove().await;
}

test_over!(an_outcome_that_stays_unknown_may_be_stored_once, NOTES);
async fn an_outcome_that_stays_unknown_may_be_stored_once(history: &'static History) {
    let mongod = Mongod::own().await;
    let proxy = Proxy::before(&mongod).await;
    let rig = Rig::through(history, &proxy, &mongod).await;
    // Every answer is lost until nobody waits any more: the first time it was stored.
    proxy.harm("write", Way::Back, Harm::Cut, u32::MAX);
    let count = history.pages(2.5);
    let (one, several, many) = tokio::join!(
        rig.append(1, 1, 1, SHORT_BUT_PATIENT),
        rig.append(2, 1, count, SHORT_BUT_PATIENT),
        rig.append_to_all(MANY, 1, 1, SHORT_BUT_PATIENT),
    );
    one.unknown_after(0);
    several.unknown_after(0);
    assert!(many.iter().filter(|told| told.unknown_or_not_sent()).count() > 0, "none of many was sent");
    let mut told: Vec<Told> = [one, several].into_iter().chain(many).collect();
    assert!(rig.sent.nothing_is_placed_anew().iter().any(|&times| times > 1), "it was replayed");
    proxy.relent();
    told.extend(rig.append_to_all([1, 2].into_iter().chain(MANY), 1_001, 1, LONG).await);
    rig.check(&told).await;
    let expected: Vec<_> = (1..=count as i64).chain([1_001]).collect();
    assert_eq!(rig.stored(2).await.numbers, expected);

    // The request comes late, and nobody else has come: it is stored.
    proxy.harm("write", Way::There, Harm::Hold, 1);
    let late = rig.append(3, 1, count, SHORT_BUT_PATIENT).await;
    late.unknown_after(0);
    assert!(rig.stored(3).await.numbers.is_empty());
    proxy.relent();
    let stored = || async { rig.stored(3).await.numbers.len() as u64 == count };
    // Invariant 2 holds at each moment, also while it is being stored.
    eventually("what came late", LONG, stored).await;
    told.extend([late, rig.append(3, 1_001, 1, LONG).await]);
    rig.check(&told).await;
    mongod.remove().await;
}
