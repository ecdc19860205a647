//! The trap: an instance that still knows a full tail would open the page after it, of nothing. What it knows
//! has an age, and pages are deleted only when no instance can still use an older tail. The controls show
//! what happens without the age.

use std::time::Duration;

use pagebucket_engine::Store;
use pagebucket_engine::internal::Ages;

use super::{
    Place, SHORT, append, clock, engine_of, erase, keep, pages_left, refused_as_erased, retire_to, seqs, soon,
};
use crate::harness::events::Events;
use crate::harness::{History, Service, Setup, TRADES, stored, test_over, try_stored};

/// Never asks for markers again after it began.
const DEAF: Ages = Ages { poll: Duration::from_secs(3600), ..SHORT };

/// Never drops a tail that it knows.
const CONTROL: Ages = Ages { tail: Duration::from_secs(3600), ..DEAF };

/// An instance with these ages that knows the full tail of owner 1, whose clock was put forward since; and
/// one that erases.
async fn stale(place: &Place, ages: Ages) -> (Store, Store) {
    let (clock, later) = clock();
    let mut setup = place.setup().await.aging(ages);
    setup.clock = clock;
    let stale = setup.store().await;
    append(place, &stale, 1, 1, 3 * place.history.page_size).await.expect("stored");
    later(60_000);
    (stale, place.store().await)
}

test_over!(a_stale_tail_of_an_erased_owner_opens_no_page, NOTES);
async fn a_stale_tail_of_an_erased_owner_opens_no_page(history: &'static History) {
    let place = Place::new(history).await;
    let (stale, other) = stale(&place, DEAF).await;
    erase(&place, &other, 1).await;
    refused_as_erased(append(&place, &stale, 1, 1_000, 1).await);
    place.is_erased(1).await;
}

test_over!(without_an_age_it_opens_a_page_of_nothing, NOTES);
async fn without_an_age_it_opens_a_page_of_nothing(history: &'static History) {
    let place = Place::new(history).await;
    let (stale, other) = stale(&place, CONTROL).await;
    erase(&place, &other, 1).await;
    let told = append(&place, &stale, 1, 1_000, 1).await.expect("this is the trap");
    assert_eq!(seqs(&told), [3 * history.page_size + 1]);
    assert_eq!(place.left(1).await.len(), 2, "a page of an erased owner");
}

test_over!(a_stale_tail_before_retired_pages_opens_no_page, NOTES);
async fn a_stale_tail_before_retired_pages_opens_no_page(history: &'static History) {
    let place = Place::new(history).await;
    let (stale, other) = stale(&place, DEAF).await;
    append(&place, &other, 1, 1_000, 5 * history.page_size).await.expect("stored");
    retire_to(&place, &other, 1, keep(2), 6).await;
    let told = append(&place, &stale, 1, 2_000, 1).await.expect("stored");
    assert_eq!(seqs(&told), [8 * history.page_size + 1], "at the end");
    assert_eq!(stored(&place.database, history, 1).await.first_page, 6);
}

test_over!(without_an_age_it_opens_a_retired_page_again, NOTES);
async fn without_an_age_it_opens_a_retired_page_again(history: &'static History) {
    let place = Place::new(history).await;
    let (stale, other) = stale(&place, CONTROL).await;
    append(&place, &other, 1, 1_000, 5 * history.page_size).await.expect("stored");
    retire_to(&place, &other, 1, keep(2), 6).await;
    let told = append(&place, &stale, 1, 2_000, 1).await.expect("this is the trap");
    assert_eq!(seqs(&told), [3 * history.page_size + 1], "the number of a page that is deleted");
    assert!(try_stored(&place.database, history, 1).await.is_err(), "the invariants are broken");
}

/// An instance that knows of no marker, and not that it should ask. Pages 1 and 2 of owner 1 are retired: the
/// first is a marker at once, and the other is deleted later.
async fn deaf(place: &Place) -> Service {
    let deaf = Setup::of_store(place.setup().await.aging(CONTROL)).start().await;
    deaf.client.append_all(1, 1..=50).await;
    let other = place.store_with(Ages { tail: Duration::from_secs(3600), ..SHORT }).await;
    engine_of(&other, place).retirement().retire(keep(2), soon()).await.expect("it may be repeated");
    assert_eq!(pages_left(place, 1).await, [1, 2, 3, 4, 5], "page 1 is a marker");
    deaf
}

/// A search that finds pages which are deleted later must not take them for all.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_misses_no_first_page_that_is_a_marker() {
    for query in [
        "/summary?by=1d&asOf=50",
        "?type=buy&order=asc&limit=100",
        "?from=2000-01-01T00:00:00Z&order=asc&limit=100",
        "?after=0",
        "?after=0&wait=10",
        "?after=0&limit=1&asOf=50",
    ] {
        let place = Place::new(TRADES).await;
        let deaf = deaf(&place).await;
        let answer = deaf.client.get(&format!("{}{query}", TRADES.path(1))).await;
        // It has read the history again.
        let shown = answer.expect(200);
        if query.starts_with('?') {
            assert_eq!(TRADES.seqs(&shown)[0], 21, "{query}: {shown}");
            continue;
        }
        assert_eq!(shown["firstSeq"], 21, "{shown}");
        assert!(!answer.header("cache-control").contains("immutable"), "{}", answer.header("cache-control"));
    }
}

/// What begins at the beginning begins with the first item that is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_after_a_first_page_that_is_a_marker() {
    let several = format!("/v1/live?watch={}:0", TRADES.path(1).trim_start_matches("/v1/"));
    for path in [&TRADES.at(1, "/live?after=0"), &several] {
        let deaf = deaf(&Place::new(TRADES).await).await;
        let mut events = Events::at(&deaf.client, path, &[]).await;
        for first in [21, 31] {
            let event = events.next().await;
            assert_eq!(
                (event.name.as_str(), &event.data["items"][0]["seq"]),
                ("message", &first.into()),
                "{path}"
            );
        }
    }
    for query in ["", "?after=0", "?from=2000-01-01T00:00:00Z"] {
        let deaf = deaf(&Place::new(TRADES).await).await;
        let answer = deaf.client.get(&TRADES.at(1, &format!("/export.ndjson{query}"))).await;
        assert_eq!(answer.status, 200);
        let rows = String::from_utf8(answer.body).expect("text");
        let first: serde_json::Value =
            serde_json::from_str(rows.lines().next().expect("a row")).expect("JSON");
        assert_eq!((rows.lines().count(), &first["seq"]), (30, &21.into()), "{query}");
    }
}

test_over!(a_machine_that_slept_reads_the_tail, NOTES);
/// The monotonic clock stands still meanwhile; the other one does not.
async fn a_machine_that_slept_reads_the_tail(history: &'static History) {
    let place = Place::new(history).await;
    let (clock, later) = clock();
    let mut setup = place.setup().await.aging(Ages { tail: Duration::from_secs(60), ..DEAF });
    setup.clock = clock;
    let asleep = setup.store().await;
    append(&place, &asleep, 1, 1, history.page_size).await.expect("stored");
    let other = place.store().await;
    erase(&place, &other, 1).await;
    later(3_600_000);
    refused_as_erased(append(&place, &asleep, 1, 1_000, 1).await);
    place.is_erased(1).await;
}

test_over!(an_append_does_not_renew_the_age_of_its_tail, NOTES);
/// It shows that the page had room, and nothing about a tombstone.
async fn an_append_does_not_renew_the_age_of_its_tail(history: &'static History) {
    let place = Place::new(history).await;
    let (clock, later) = clock();
    let mut setup = place.setup().await.aging(Ages { tail: Duration::from_secs(3600), ..DEAF });
    setup.clock = clock;
    let stale = setup.store().await;
    append(&place, &stale, 1, 1, 1).await.expect("stored: the tail is read");
    later(1_900_000);
    let full = append(&place, &stale, 1, 2, history.page_size - 1).await.expect("stored on the open page");
    assert_eq!(seqs(&full), (2..=history.page_size).collect::<Vec<_>>());
    later(1_900_000);
    let other = place.store().await;
    erase(&place, &other, 1).await;
    refused_as_erased(append(&place, &stale, 1, 1_000, 1).await);
    place.is_erased(1).await;
}
