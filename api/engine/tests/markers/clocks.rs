//! Retirement by dates while a clock is wrong.

use std::collections::BTreeMap;
use std::num::NonZero;

use pagebucket_engine::Store;
use pagebucket_engine::internal::Retention;
use pagebucket_model::domain::Clock;

use super::{Place, SHORT, clock, engine_of, pages_left, soon};
use crate::harness::{PATIENCE, Proxy, Setup, TRADES, engine, eventually, fill, shared};

const DAY: u32 = 86_400;

fn retention() -> BTreeMap<Box<str>, Retention> {
    [("trades".into(), Retention { days: NonZero::new(30), ..Default::default() })].into()
}

/// Keeps house once. Returns whether it waits because of the time.
async fn waits(store: &Store) -> bool {
    store
        .run_housekeeping(&retention())
        .await
        .expect("an answer")
        .expect("no other instance keeps house")
        .waits
}

/// A database with three pages of today of owner 1.
async fn of_today() -> Place {
    let place = Place::new(TRADES).await;
    let store = place.store().await;
    let now = Clock::system().now().millis();
    let items = (1..=3 * TRADES.page_size).map(|number| engine::dated(TRADES, number, now)).collect();
    let append = engine::append(place.owner(1), items, soon());
    engine_of(&store, &place).appends().append(append).await.expect("stored");
    place
}

/// Old pages are retired, once the time is right.
async fn retires_what_is_old(place: &Place, store: &Store) {
    fill(&place.database, TRADES, 2, 5, 1).await;
    eventually("old pages are retired", PATIENCE, async || {
        assert!(!waits(store).await);
        pages_left(place, 2).await == [1, 5]
    })
    .await;
    assert_eq!(pages_left(place, 1).await, [1, 2, 3]);
}

/// None of the pages of today is deleted, nor the items of the first.
async fn is_whole(place: &Place) {
    let items = crate::harness::stored(&place.database, TRADES, 1).await.numbers.len() as u64;
    assert_eq!(items, 3 * TRADES.page_size);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_the_servers_clock_retires_no_page_of_today() {
    let (place, proxy) = (of_today().await, Proxy::before(shared().await).await);
    let setup = Setup::at(&proxy.uri()).of(TRADES).in_database(&place.database).aging(SHORT);
    let store = setup.store().await;
    assert!(!waits(&store).await);
    proxy.put_ahead(60 * DAY);
    for _ in 0..2 {
        assert!(waits(&store).await);
    }
    is_whole(&place).await;
    // What was retired before is deleted all the same.
    fill(&place.database, TRADES, 3, 5, 1).await;
    proxy.put_ahead(0);
    assert!(!waits(&store).await);
    proxy.put_ahead(60 * DAY);
    eventually("marked pages are deleted", PATIENCE, async || {
        assert!(waits(&store).await);
        pages_left(&place, 3).await == [1, 5]
    })
    .await;
    is_whole(&place).await;
    proxy.put_ahead(0);
    retires_what_is_old(&place, &store).await;
}

/// From the first round on.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_whose_clock_is_wrong_retires_nothing() {
    let place = of_today().await;
    for ahead in [60, -60] {
        let (clock, later) = clock();
        later(ahead * i64::from(DAY) * 1000);
        let mut setup = place.setup().await.aging(SHORT);
        setup.clock = clock;
        let store = setup.store().await;
        fill(&place.database, TRADES, 2, 5, 1).await;
        assert!(waits(&store).await, "{ahead} days");
        is_whole(&place).await;
        assert_eq!(pages_left(&place, 2).await.len(), 5, "nothing at all is retired");
        // Put right.
        later(-ahead * i64::from(DAY) * 1000);
        assert_eq!([waits(&store).await, waits(&store).await], [false; 2], "{ahead} days");
        let buckets = place.database.collection::<mongodb::bson::Document>("trades");
        buckets.delete_many(mongodb::bson::doc! { "customerId": 2_i64 }).await.expect("an answer");
    }
    is_whole(&place).await;
}

/// As on a machine that has the server and the instance.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_both_clocks_retires_no_page_of_today() {
    let (place, proxy) = (of_today().await, Proxy::before(shared().await).await);
    let (clock, later) = clock();
    let mut setup = Setup::at(&proxy.uri()).of(TRADES).in_database(&place.database).aging(SHORT);
    setup.clock = clock;
    let store = setup.store().await;
    assert!(!waits(&store).await);
    proxy.put_ahead(60 * DAY);
    later(60 * i64::from(DAY) * 1000);
    for _ in 0..2 {
        assert!(waits(&store).await);
    }
    is_whole(&place).await;
    proxy.put_ahead(0);
    later(-60 * i64::from(DAY) * 1000);
    retires_what_is_old(&place, &store).await;
}

/// The database remembers an earlier time.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_starts_while_both_clocks_are_wrong_retires_no_page_of_today() {
    let (place, proxy) = (of_today().await, Proxy::before(shared().await).await);
    assert!(!waits(&place.store().await).await);
    let (clock, later) = clock();
    let mut setup = Setup::at(&proxy.uri()).of(TRADES).in_database(&place.database).aging(SHORT);
    setup.clock = clock;
    proxy.put_ahead(60 * DAY);
    later(60 * i64::from(DAY) * 1000);
    for _ in 0..2 {
        let store = setup.store().await;
        assert!(waits(&store).await && waits(&store).await);
    }
    is_whole(&place).await;
    proxy.put_ahead(0);
    later(-60 * i64::from(DAY) * 1000);
    retires_what_is_old(&place, &setup.store().await).await;
}
