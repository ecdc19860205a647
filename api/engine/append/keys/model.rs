//! The exactly-once rule, explored exhaustively in a small model: every possible order of the steps of
//! attempts, of the database and of the clock.
//!
//! **Code of the store**: [`KeySearch`](super::KeySearch) with [`Placed`](crate::append::placed::Placed). In
//! every attempt this code decides which stored items belong to the request, what counts as examined, whether
//! the next item may be appended right after a tail, and whether all items are stored. The model runs the
//! same code as the service.
//!
//! Also [`Expectation`](crate::append::expectation::Expectation): what becomes of a request that expects a
//! total.
//!
//! **Code of the model**: everything around it. The database ([`database`]): a history in pages of two, the
//! record of the key and its expiry, what is at majority and what may still be lost. The steps of an attempt
//! ([`steps`]): `from`, the record, tails, scans, commands and their answers. They restate what
//! `register.rs`, `record.rs`, `page_search.rs`, `commit.rs`, `batch.rs` and `session.rs` do; the tests with
//! a real mongod show that those files do it. The outcome in a record is left out, because it only repeats
//! the result of a search.
//!
//! The model is bounded to
//!
//! - one request of three items, so that it spans pages;
//! - a history that is empty or ends in half a page;
//! - three attempts, simultaneous or one after the other;
//! - one or two items of other writers, at any place, also before the request's items in one command.
//!
//! Failovers are not bounded, nor is how long ago something was read or sent. An attempt may use every tail
//! that ever existed, so it makes no difference which attempts share an instance and its catalog. An attempt
//! that is cut off by a crash, a deadline or an unknown outcome takes no further step. Every attempt may stop
//! so at any time. What it has sent runs later, in part, again after a failover, or never.
//!
//! Three more explorations have one item of another writer each. In one, time passes: records expire, and may
//! be inserted with an old time. In another, attempts raise `from`: to a total while no other attempt has
//! found the record, or to the position of a search. In the third, the request expects a total: its first
//! item is stored after that total or never, and an attempt that finds a part of it stored places the rest.
//!
//! Then each rule is relaxed, one at a time, and the same exploration must find a doubled or lost item.
//! Otherwise the exploration would prove nothing.

mod database;
mod explore;
mod state;
mod steps;

use explore::{Explored, explore};
use steps::{Besides, Relaxed};

/// Explores to the end, where nothing may be wrong. Returns the largest number of ranges in an answer.
fn assert_holds(others: u8, besides: Besides, steps: &[&str]) -> usize {
    let Explored { states, broken, taken, ends, parts } = explore(None, others, besides);
    println!("{states} states");
    assert!(broken.is_none(), "after {states} states: {}", broken.unwrap_or_default());
    // If one of these steps were never taken, little would have been explored.
    for step in steps {
        assert!(taken.contains(step), "{step}: {taken:?}");
    }
    assert!(ends > 0, "{ends} ends");
    parts
}

#[test]
fn in_every_order_each_item_is_stored_once() {
    let parts = assert_holds(
        2,
        Besides::Nothing,
        &["failover", "is refused", "has stored the rest", "finds all", "finds some, sends the rest"],
    );
    assert_eq!(parts, 3);
}

#[test]
fn a_record_that_expires_after_its_last_use_is_kept_long_enough() {
    assert_holds(
        1,
        Besides::Time,
        &["the record expires", "record, of an old attempt", "record, old at its birth", "touches"],
    );
}

#[test]
fn a_from_that_is_raised_doubles_nothing() {
    assert_holds(1, Besides::Raising, &["has confirmed `from`", "looks, raises `from`", "failover"]);
}

#[test]
fn a_request_that_expects_a_total_is_stored_after_it_or_refused() {
    let steps = [
        "failover",
        "is refused",
        "is refused for its total",
        "sends, after another's item",
        "has stored the rest",
        "finds all",
        "finds some, sends the rest",
    ];
    assert_eq!(assert_holds(1, Besides::Expecting, &steps), 2);
}

fn assert_breaks(relaxed: Relaxed, how: &str) {
    let besides = relaxed.besides();
    let others = u8::from(besides != Besides::Time);
    let Explored { states, broken, .. } = explore(Some(relaxed), others, besides);
    let broken = broken.unwrap_or_else(|| panic!("{relaxed:?}: nothing breaks in {states} states"));
    println!("{relaxed:?}, after {states} states: {broken}");
    assert!(broken.starts_with(how), "{broken}");
}

/// A test of each relaxed rule, and what the exploration finds.
macro_rules! relaxed {
    ($($test:ident: $rule:ident breaks $how:literal;)*) => {
        $(#[test]
        fn $test() {
            assert_breaks(Relaxed::$rule, $how);
        })*
    };
}

relaxed! {
    a_record_that_is_not_awaited_doubles: RecordNotAwaited breaks "doubled";
    a_record_that_the_primary_alone_has_acknowledged_doubles: RecordAtOne breaks "doubled";
    a_found_record_that_is_not_awaited_doubles: FoundRecordNotAwaited breaks "doubled";
    a_from_that_is_too_high_doubles: FromTooHigh breaks "doubled";
    looking_at_what_may_be_lost_loses: LookUpAtLocal breaks "lost";
    a_look_up_that_ends_early_but_counts_doubles: ShortLookUp breaks "doubled";
    no_second_look_after_a_refusal_doubles: NoSecondLook breaks "doubled";
    a_record_that_expires_after_its_creation_doubles: ExpiryFromCreation breaks "doubled";
    two_attempts_in_one_command_double: AttemptsMerged breaks "doubled";
    a_record_that_is_born_old_and_not_touched_doubles: OldAtBirth breaks "doubled";
    a_from_that_is_raised_though_another_attempt_may_have_stored_items_doubles: ConfirmedThoughFound breaks "doubled";
    a_from_that_is_raised_beyond_what_was_looked_at_doubles: RaisedTooFar breaks "doubled";
    a_from_that_is_raised_past_an_item_of_the_request_doubles: RaisedPastFound breaks "doubled";
    a_judgement_before_the_look_up_refuses_what_is_stored: JudgedBeforeLooking breaks "refused, though an item is stored";
    a_judgement_of_the_rest_refuses_what_is_partly_stored: RestJudged breaks "refused, though an item is stored";
    a_judgement_by_another_tail_stores_after_another_total: JudgedByAnotherTail breaks "unexpected";
    items_of_another_request_that_are_not_counted_come_before: OthersNotCounted breaks "unexpected";
    an_old_tail_refuses_what_is_expected: OldTailRefuses breaks "refused, though the history had";
}
