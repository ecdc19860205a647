//! The clock of the server is stepped, by more than a marker's age, while a command is late.

use pagebucket_engine::Store;
use pagebucket_engine::appends::{AppendError, AppendProgress};
use pagebucket_engine::erasures::{Erasure, Reopening};

use super::fence::{beside, held, hold};
use super::{Place, append, engine_of, pages_left, refused_as_erased, seqs, soon};
use crate::harness::{Mongod, PATIENCE, Proxy, SteppedClock, TRADES, amount, eventually};

/// By how many seconds: more than the age of a marker, by default and in these tests.
const STEP: i64 = 125;

/// When the clock steps while a command is late.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// After the tombstone, before the sweep.
    BeforeSweep(i64),
    /// After the sweep.
    AfterSweep(i64),
}

/// Erases until the tombstone is swept, also while the time of a set stands still.
async fn sweep(place: &Place, store: &Store) {
    eventually("the sweep", 4 * PATIENCE, async || {
        matches!(engine_of(store, place).erasures().erase(&place.owner(1), soon()).await, Ok(Erasure::Swept))
    })
    .await;
    place.is_erased(1).await;
}

/// An owner with one full page, who is erased while the command that opens the second is held back. Returns
/// what became of that.
async fn erased_meanwhile(
    mongod: &Mongod,
    clock: &SteppedClock,
    step: Step,
) -> (Place, Store, Result<AppendProgress, AppendError>) {
    let proxy = Proxy::before(mongod).await;
    let (place, late, other) = beside(TRADES, &proxy.uri(), mongod.uri()).await;
    append(&place, &late, 1, 1, TRADES.page_size).await.expect("stored");
    hold(&place, &proxy);
    let meanwhile = async {
        proxy.struck(1).await;
        engine_of(&other, &place).erasures().erase(&place.owner(1), soon()).await.expect("a tombstone");
        if let Step::BeforeSweep(seconds) = step {
            clock.put_ahead(seconds);
        }
        sweep(&place, &other).await;
        if let Step::AfterSweep(seconds) = step {
            clock.put_ahead(seconds);
        }
        proxy.relent();
    };
    let (told, ()) = tokio::join!(held(&place, &late, 1, 1_000), meanwhile);
    (place, other, told)
}

/// The owner is reopened, and has nothing. Its numbers go on after those that were used.
async fn is_reopened_empty(place: &Place, store: &Store, used: u64) {
    let reopened = engine_of(store, place).erasures().reopen(&place.owner(1), soon()).await;
    assert_eq!(reopened.expect("an answer"), Reopening::Reopened);
    let told = append(place, store, 1, 1, 1).await.expect("stored");
    assert_eq!(seqs(&told), [used * TRADES.page_size + 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_the_clock_of_a_set_lets_nothing_come_late() {
    let mut steps = vec![Step::BeforeSweep(STEP), Step::AfterSweep(-STEP)];
    // The time of the set stands still until its clock has caught up.
    steps.extend((amount(0, 1) > 0).then_some(Step::BeforeSweep(-STEP)));
    for step in steps {
        let (mongod, clock) = Mongod::with_stepped_clock(true).await;
        let (place, other, told) = erased_meanwhile(&mongod, &clock, step).await;
        refused_as_erased(told);
        place.is_erased(1).await;
        is_reopened_empty(&place, &other, 1).await;
        mongod.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_forward_of_a_standalone_server_lets_nothing_come_late() {
    let (mongod, clock) = Mongod::with_stepped_clock(false).await;
    let (place, other, told) = erased_meanwhile(&mongod, &clock, Step::BeforeSweep(STEP)).await;
    refused_as_erased(told);
    place.is_erased(1).await;
    is_reopened_empty(&place, &other, 1).await;
    mongod.remove().await;
}

/// Its fence goes by its own clock. What came late is not shown by a reopening.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_back_of_a_standalone_server_opens_its_fence_and_shows_nothing() {
    let (mongod, clock) = Mongod::with_stepped_clock(false).await;
    let (place, other, told) = erased_meanwhile(&mongod, &clock, Step::AfterSweep(-STEP)).await;
    assert_eq!(seqs(&told.expect("this is the trap")), [TRADES.page_size + 1]);
    assert_eq!(pages_left(&place, 1).await[0], 2, "a page of an erased owner");
    let reopened = engine_of(&other, &place).erasures().reopen(&place.owner(1), soon()).await;
    assert_eq!(reopened.expect("an answer"), Reopening::NotSwept);
    sweep(&place, &other).await;
    is_reopened_empty(&place, &other, 2).await;
    mongod.remove().await;
}
