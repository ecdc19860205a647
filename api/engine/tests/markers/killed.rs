//! Erasers and housekeepers that end at any of their commands: another instance comes to the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pagebucket_engine::erasures::{Erasure, Reopening};

use tokio::sync::Notify;

use super::{Place, SHORT, append, engine_of, erase, keep, refused_as_erased, retire_to, seqs, soon};
use crate::harness::{History, PATIENCE, eventually, spawn, stored, test_over};

/// Runs `work` with a store of its own, which ends before its command number `fatal` is answered. Returns
/// whether it was that long.
async fn ends_at<F: Future<Output = ()> + Send + 'static>(
    place: &Place,
    fatal: u64,
    work: impl FnOnce(pagebucket_engine::Store) -> F,
) -> bool {
    let (sent, begun, killed) =
        (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
    let (count, counts, kill) = (Arc::clone(&sent), Arc::clone(&begun), Arc::clone(&killed));
    let setup = place.setup().await.observed(move |_, _| {
        if counts.load(Ordering::Relaxed) == 1 && count.fetch_add(1, Ordering::Relaxed) + 1 == fatal {
            kill.notify_one();
        }
    });
    // It asks for markers only at its beginning: the count is of what `work` sends.
    let store = setup.aging(pagebucket_engine::internal::Ages { poll: PATIENCE * 60, ..SHORT }).store().await;
    begun.store(1, Ordering::Relaxed);
    let mut working = spawn(work(store));
    tokio::select! {
        biased;
        () = killed.notified() => {
            working.abort();
            let _ = working.await;
            true
        }
        ended = &mut working => {
            ended.expect("it does not panic");
            false
        }
    }
}

/// For each number of a command, until there are no more of them.
macro_rules! at_every_command {
    ($at:ident, $least:literal, $work:block) => {
        let mut $at = 0;
        loop {
            $at += 1;
            if !$work {
                break;
            }
        }
        assert!($at > $least, "{} commands", $at);
    };
}

test_over!(an_eraser_ends_at_any_command, NOTES);
async fn an_eraser_ends_at_any_command(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    at_every_command!(at, 6, {
        let told = append(&place, &store, at, 1, 3 * history.page_size).await.expect("stored");
        let owner = place.owner(at);
        let name = history.name;
        let killed = ends_at(&place, at, async move |store| {
            let engine = store.history(name).expect("its definition");
            for _ in 0..3 {
                // It may be told that another has ended it.
                let _ = engine.erasures().erase(&owner, soon()).await;
            }
        })
        .await;
        // Before the tombstone, nothing has happened; after it, nothing is stored.
        erase(&place, &store, at).await;
        place.is_erased(at).await;
        refused_as_erased(append(&place, &store, at, 1_000, 1).await);
        let owner = place.owner(at);
        let items = engine_of(&store, &place);
        assert_eq!(items.erasures().reopen(&owner, soon()).await.expect("an answer"), Reopening::Reopened);
        let next = append(&place, &store, at, 2_000, 1).await.expect("stored");
        assert!(seqs(&next)[0] > *seqs(&told).last().unwrap(), "numbers go on");
        stored(&place.database, history, at).await.holds_exactly([2_000]);
        killed
    });
}

test_over!(one_that_reopens_ends_at_any_command, NOTES);
async fn one_that_reopens_ends_at_any_command(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    at_every_command!(at, 4, {
        append(&place, &store, at, 1, 3 * history.page_size).await.expect("stored");
        erase(&place, &store, at).await;
        let (owner, name) = (place.owner(at), history.name);
        let killed = ends_at(&place, at, async move |store| {
            let engine = store.history(name).expect("its definition");
            engine.erasures().reopen(&owner, soon()).await.expect("an answer");
        })
        .await;
        let (items, owner) = (engine_of(&store, &place), place.owner(at));
        // Erased, or reopened: never an owner whose numbers begin again.
        eventually("it is reopened", PATIENCE, async || {
            items.erasures().reopen(&owner, soon()).await.expect("an answer") != Reopening::NotSwept
        })
        .await;
        let next = append(&place, &store, at, 2_000, 1).await.expect("stored");
        assert_eq!(seqs(&next), [3 * history.page_size + 1]);
        stored(&place.database, history, at).await.holds_exactly([2_000]);
        killed
    });
}

test_over!(a_housekeeper_ends_at_any_command, TRADES);
async fn a_housekeeper_ends_at_any_command(history: &'static History) {
    // One owner that is being erased, and one whose pages are retired; in a new database, because its round
    // is of all owners.
    let (erased, retired) = (1, 2);
    at_every_command!(at, 6, {
        let place = Place::new(history).await;
        let store = place.store().await;
        append(&place, &store, erased, 1, 3 * history.page_size).await.expect("stored");
        append(&place, &store, retired, 1, 9 * history.page_size).await.expect("stored");
        engine_of(&store, &place).erasures().erase(&place.owner(erased), soon()).await.expect("an answer");
        let retention = [(history.name.into(), keep(2))].into();
        let killed = ends_at(&place, at, async move |store| {
            let _ = store.run_housekeeping(&retention).await;
        })
        .await;
        stored(&place.database, history, retired).await;
        retire_to(&place, &store, retired, keep(2), 7).await;
        assert_eq!(stored(&place.database, history, retired).await.first_page, 7);
        eventually("the sweep", PATIENCE, async || {
            let ended = engine_of(&store, &place).erasures().erase(&place.owner(erased), soon()).await;
            matches!(ended, Ok(Erasure::Swept))
        })
        .await;
        place.is_erased(erased).await;
        killed
    });
}
