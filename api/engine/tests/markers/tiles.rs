//! Tiles of summaries are forgotten with the pages that they are of, also one that is late.

use std::time::Duration;

use mongodb::bson::{DateTime, Document, doc};
use pagebucket_engine::erasures::{Erasure, Reopening};
use pagebucket_engine::internal::Ages;
use pagebucket_engine::{Deadline, Store};

use super::fence::{LATE, delayed, erased_while_held};
use super::{Place, documents, engine_of, erase, int, keep, keep_summaries, pages_left, retire_to, soon};
use crate::harness::{Harm, NOTES, PATIENCE, Setup, TRADES, Way, eventually, fill, fill_pages, shared};

/// Its tiles are never late.
const CONTROL: Ages = Ages { tail: Duration::from_secs(3600), ..LATE };

/// The `_id`s of all tiles.
async fn tiles(place: &Place) -> Vec<String> {
    ids_of(&documents(place, "summary_tiles").await)
}

fn ids_of(tiles: &[Document]) -> Vec<String> {
    tiles.iter().map(|tile| tile.get_str("_id").expect("a text").to_owned()).collect()
}

/// The owner, the number and the first page of each kept tile.
async fn kept(place: &Place) -> Vec<(String, i64)> {
    let kept = documents(place, "kept_summaries").await;
    let of_hash = |id: &str| id.splitn(3, '/').nth(2).expect("an owner and a number").to_owned();
    kept.iter().map(|tile| (of_hash(tile.get_str("_id").expect("a text")), int(tile, "firstPage"))).collect()
}

/// Makes the tiles that are missing, by the walk of housekeeping.
async fn make(place: &Place, store: &Store, count: usize) {
    eventually("the tiles are made", PATIENCE, async || {
        engine_of(store, place).summaries().make_tiles(soon()).await.expect("it may be repeated");
        tiles(place).await.len() == count
    })
    .await;
}

/// A tile of another definition.
async fn of_another_definition(place: &Place, owner: u64) {
    let date = DateTime::from_millis(super::DATE);
    let tile = doc! {
        "_id": format!("trades/0000000000000000/{owner}/000000000000000"), "customerId": owner as i64,
        "first": date, "last": date, "size": 0,
    };
    place.database.collection("summary_tiles").insert_one(tile).await.expect("a tile");
}

/// An owner who is erased while the command that stores a tile is held back.
async fn erased_meanwhile(place: &Place, ages: Ages) {
    let (proxy, late) = delayed(place, ages).await;
    fill(&place.database, TRADES, 1, 65, 1).await;
    proxy.harm("update summary_tiles", Way::There, Harm::Hold, 1);
    let summaries = engine_of(&late, place).summaries();
    let making = summaries.make_tiles(Deadline::within(3 * PATIENCE));
    tokio::join!(making, erased_while_held(place, &proxy)).0.expect("an answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_tile_brings_back_nothing_of_an_erased_owner() {
    let place = Place::new(TRADES).await;
    erased_meanwhile(&place, LATE).await;
    place.is_erased(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_fence_a_late_tile_is_stored() {
    let place = Place::new(TRADES).await;
    erased_meanwhile(&place, CONTROL).await;
    eventually("this is the trap", PATIENCE, async || tiles(&place).await.len() == 1).await;
    // Housekeeping looks behind the tombstones of the last day.
    let store = place.store().await;
    eventually("what came late is deleted", PATIENCE, async || {
        store.run_housekeeping(&Default::default()).await.expect("an answer");
        tiles(&place).await.is_empty()
    })
    .await;
    place.is_erased(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tiles_go_with_their_pages_and_with_their_definition() {
    let place = Place::new(TRADES).await;
    let store = place.store().await;
    fill(&place.database, TRADES, 1, 140, 1).await;
    fill(&place.database, TRADES, 2, 65, 1).await;
    make(&place, &store, 3).await;
    let made = tiles(&place).await;
    assert!(made.iter().all(|id| id.starts_with("trades/")), "{made:?}");
    let of_2 = made.iter().find(|id| id.ends_with("/2/000000000000000")).expect("a tile of 2");
    let of_2 = std::slice::from_ref(of_2);
    // Page 70 stands in the second tile: the pages before it are in the tile, too.
    of_another_definition(&place, 1).await;
    retire_to(&place, &store, 1, keep(70), 70).await;
    assert_eq!(tiles(&place).await, of_2);
    // Of page 1 nothing is left to delete when its marker is there, but its tile.
    fill(&place.database, TRADES, 3, 66, 1).await;
    make(&place, &store, 2).await;
    eventually("the tile of a retired page is deleted", PATIENCE, async || {
        engine_of(&store, &place).retirement().retire(keep(64), soon()).await.expect("it may be repeated");
        tiles(&place).await == of_2
    })
    .await;
    of_another_definition(&place, 2).await;
    make(&place, &store, 1).await;
    assert_eq!(tiles(&place).await, of_2, "housekeeping deletes those of other definitions");

    // An instance that has no definition of trades.
    of_another_definition(&place, 2).await;
    let other =
        Setup::on(shared().await).of(NOTES).in_database(&place.database).aging(super::SHORT).store().await;
    let undefined = other.histories_of("customers", soon()).await.expect("an answer").remove(0);
    eventually("the sweep", PATIENCE, async || {
        matches!(undefined.erasures().erase(&place.owner(2), soon()).await, Ok(Erasure::Swept))
    })
    .await;
    place.is_erased(2).await;
    assert!(tiles(&place).await.is_empty());
}

/// Pages are retired after their tiles are kept, so only whole tiles of them are.
#[tokio::test(flavor = "multi_thread")]
async fn kept_tiles_outlive_their_pages() {
    let place = Place::new(TRADES).await;
    let store = place.store().await;
    fill(&place.database, TRADES, 1, 300, 1).await;
    // From before summaries were kept: page 70 stands in the second tile.
    retire_to(&place, &store, 1, keep(230), 70).await;
    assert!(kept(&place).await.is_empty());
    make(&place, &store, 2).await;
    retire_to(&place, &store, 1, keep_summaries(100), 193).await;
    let of_1 = |tile: u64, first: i64| (format!("1/{tile:015}"), first);
    assert_eq!(kept(&place).await, [of_1(1, 70), of_1(2, 129)]);
    assert_eq!(pages_left(&place, 1).await[1], 193, "page 200 would be the first that is kept");
    eventually("tiles go with their pages", PATIENCE, async || {
        engine_of(&store, &place)
            .retirement()
            .retire(keep_summaries(100), soon())
            .await
            .expect("it may be repeated");
        ids_of(&documents(&place, "summary_tiles").await).iter().all(|id| id.ends_with("/000000000000003"))
    })
    .await;
    // Nor does anything else delete a kept tile: a retirement that keeps none, and the walk over tiles of
    // other definitions.
    let tiles = place.database.collection::<Document>("kept_summaries");
    let other =
        doc! { "_id": "trades/0000000000000000/1/000000000000000", "customerId": 1_i64, "firstPage": 1_i64 };
    tiles.insert_one(other).await.expect("a tile");
    retire_to(&place, &store, 1, keep(50), 250).await;
    engine_of(&store, &place).summaries().make_tiles(soon()).await.expect("an answer");
    let all = [of_1(0, 1), of_1(1, 70), of_1(2, 129)];
    assert_eq!(kept(&place).await, all);
    // One that an attempt which did not come to its end has left is of pages that may become others after a
    // restore.
    let id = &ids_of(&documents(&place, "kept_summaries").await)[1];
    let id = id.strip_suffix('1').expect("the second tile");
    tiles
        .insert_one(doc! { "_id": format!("{id}3"), "customerId": 1_i64, "firstPage": 193_i64 })
        .await
        .expect("a tile");
    assert_eq!(kept(&place).await.len(), 4);
    store.renew_epoch().await.expect("to renew");
    assert_eq!(kept(&place).await, all);
    erase(&place, &store, 1).await;
    place.is_erased(1).await;
    assert!(kept(&place).await.is_empty());

    // A history that begins again keeps what it has.
    let reopened = engine_of(&store, &place).erasures().reopen(&place.owner(1), soon()).await;
    assert_eq!(reopened.expect("an answer"), Reopening::Reopened);
    fill_pages(&place.database, TRADES, 1, 301..=400, 1).await;
    retire_to(&place, &store, 1, keep_summaries(10), 385).await;
    assert_eq!(kept(&place).await, [of_1(4, 301), of_1(5, 321)]);
}

/// A restore may bring back kept tiles of an owner who is erased in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_epoch_has_no_kept_tiles_of_erased_owners() {
    let place = Place::new(TRADES).await;
    let store = place.store().await;
    for owner in [1, 2] {
        fill(&place.database, TRADES, owner, 140, 1).await;
        retire_to(&place, &store, owner, keep_summaries(20), 65).await;
    }
    let all = documents(&place, "kept_summaries").await;
    erase(&place, &store, 1).await;
    place.is_erased(1).await;
    let of_2 = kept(&place).await;
    assert_eq!(of_2, [("2/000000000000000".to_owned(), 1)]);
    let of_1 = all.into_iter().find(|tile| int(tile, "customerId") == 1).expect("a tile of 1");
    place.database.collection("kept_summaries").insert_one(of_1).await.expect("a tile");
    store.renew_epoch().await.expect("to renew");
    assert_eq!(kept(&place).await, of_2);
}

/// A retirement that ends after it has stored a tile has retired nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_tile_is_kept_before_its_pages_are_retired() {
    let place = Place::new(TRADES).await;
    let (proxy, late) = delayed(&place, LATE).await;
    fill(&place.database, TRADES, 1, 140, 1).await;
    proxy.harm("update kept_summaries", Way::Back, Harm::Hold, 1);
    let retiring =
        engine_of(&late, &place).retirement().retire(keep_summaries(20), Deadline::within(3 * PATIENCE));
    let meanwhile = async {
        proxy.struck(1).await;
        assert_eq!(kept(&place).await, [("1/000000000000000".to_owned(), 1)]);
        assert_eq!(pages_left(&place, 1).await.len(), 140);
        let first =
            engine_of(&late, &place).reads().history(place.owner(1), soon()).await.expect("an answer");
        assert_eq!(first.first_page().get(), 1);
        proxy.relent();
    };
    tokio::join!(retiring, meanwhile).0.expect("an answer");
    retire_to(&place, &place.store().await, 1, keep_summaries(20), 65).await;
    assert_eq!(kept(&place).await, [("1/000000000000000".to_owned(), 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_kept_tile_brings_back_nothing_of_an_erased_owner() {
    let place = Place::new(TRADES).await;
    let (proxy, late) = delayed(&place, LATE).await;
    fill(&place.database, TRADES, 1, 140, 1).await;
    proxy.harm("update kept_summaries", Way::There, Harm::Hold, 1);
    let retiring =
        engine_of(&late, &place).retirement().retire(keep_summaries(20), Deadline::within(3 * PATIENCE));
    let (retired, ()) = tokio::join!(retiring, erased_while_held(&place, &proxy));
    assert!(retired.is_err(), "the database refuses it: {retired:?}");
    place.is_erased(1).await;
    assert!(kept(&place).await.is_empty());
}
