//! How long things are kept: as long as the last start says.

use std::time::Duration;

use mongodb::bson::{Bson, Document, doc};
use pagebucket_engine::{Capacity, ConnectionSettings, Store};
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::Clock;
use tokio::task::JoinSet;

use super::program::{Place, run};

/// After how many seconds documents expire by an index, which must be there.
async fn expiry(place: &Place, collection: &str, index: &str) -> Option<i64> {
    let indexes = place.database().await.run_command(doc! { "listIndexes": collection }).await;
    let indexes: Document = indexes.expect("an answer");
    let batch =
        indexes.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch")).expect("a batch");
    let mut indexes = batch.iter().filter_map(Bson::as_document);
    let index =
        indexes.find(|found| found.get_str("name").is_ok_and(|name| name == index)).expect("the index");
    let seconds = index.get("expireAfterSeconds")?;
    seconds.as_i32().map(i64::from).or(seconds.as_i64())
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_kept_as_long_as_the_last_start_says() {
    let place = Place::new().await;
    let expiry = async || expiry(&place, "idempotency_keys", "touched_1").await;
    let margin = 600;
    for (arguments, hours) in [(&[][..], 24), (&["--key-retention", "1"], 1), (&["--key-retention", "1"], 1)]
    {
        place.serve(arguments).await.stop().await;
        assert_eq!(expiry().await, Some(hours * 3600 + margin), "{arguments:?}");
    }
    let migrated = run(&mut place.pagebucket("migrate", &["--key-retention", "48"])).await;
    assert_eq!(migrated.status, Some(0), "{migrated:?}");
    assert_eq!(expiry().await, Some(48 * 3600 + margin));
    let unchanged = place.serve(&["--no-migrate", "--key-retention", "2"]).await;
    unchanged.stop().await;
    assert_eq!(expiry().await, Some(48 * 3600 + margin));
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_kept_as_long_as_the_last_start_says() {
    const DAY: i64 = 86_400;
    let place = Place::new().await;
    let expiry = async || expiry(&place, "page_views", "timestamp_1").await;
    for (arguments, expected) in [
        (&[][..], None),
        (&["--view-retention", "7"], Some(7 * DAY)),
        (&["--view-retention", "30"], Some(30 * DAY)),
        (&["--view-retention", "0"], None),
    ] {
        place.serve(arguments).await.stop().await;
        assert_eq!(expiry().await, expected, "{arguments:?}");
    }
    let migrated = run(&mut place.pagebucket("migrate", &["--view-retention", "1"])).await;
    assert_eq!(migrated.status, Some(0), "{migrated:?}");
    place.serve(&["--no-migrate"]).await.stop().await;
    assert_eq!(expiry().await, Some(DAY));
}

/// An instance that is overtaken while it changes an index looks again: none fails, and the index is what one
/// of them asked for.
#[tokio::test(flavor = "multi_thread")]
async fn instances_starting_together_agree() {
    let place = Place::new().await;
    store(&place).await.migrate().await.expect("an empty database");
    for turn in 0..10_u32 {
        let mut instances = JoinSet::new();
        for number in 0..4_u32 {
            let store = store(&place).await;
            // All with the same, on and off in turns; in the last turns with different ones.
            let days = if turn < 6 { turn % 2 } else { number % 3 };
            let retention = Some(Duration::from_secs(u64::from(days) * 86_400)).filter(|_| days > 0);
            instances.spawn(async move { store.keep_views_for(retention).await });
        }
        for kept in instances.join_all().await {
            kept.expect("an instance that is overtaken looks again");
        }
        let seconds = expiry(&place, "page_views", "timestamp_1").await;
        match turn {
            0 | 2 | 4 => assert_eq!(seconds, None),
            1 | 3 | 5 => assert_eq!(seconds, Some(86_400)),
            _ => assert!([None, Some(86_400), Some(172_800)].contains(&seconds), "{seconds:?}"),
        }
    }
}

/// On a new database each instance finds no index, and creates one with its own retention.
#[tokio::test(flavor = "multi_thread")]
async fn instances_with_different_key_retentions_start_together() {
    const HOURS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    let place = Place::new().await;
    store(&place).await.migrate().await.expect("an empty database");
    let collection = place.database().await.collection::<Document>("idempotency_keys");
    for turn in 0..10 {
        // Each connects before the first begins.
        let mut stores = Vec::new();
        for hours in HOURS {
            stores.push((store(&place).await, Duration::from_secs(hours * 3600)));
        }
        let starts: JoinSet<_> = stores
            .into_iter()
            .map(|(store, retention)| async move { store.keep_keys_for(retention).await })
            .collect();
        for kept in starts.join_all().await {
            kept.unwrap_or_else(|error| panic!("each instance starts, in turn {turn}: {error}"));
        }
        let seconds = expiry(&place, "idempotency_keys", "touched_1").await.expect("a TTL index");
        assert!(HOURS.contains(&((seconds as u64 - 600) / 3600)), "{seconds}");
        collection.drop_index("touched_1").await.expect("as on a new database");
    }
}

async fn store(place: &Place) -> Store {
    let connection = ConnectionSettings {
        uri: place.uri.clone(),
        database: place.name.clone(),
        pool_size: 4,
        observer: None,
    };
    Store::connect(connection, Definitions::built_in(), Capacity::default(), Clock::system())
        .await
        .expect("a server")
}
