//! How long things are kept: as long as the last start says.

use std::time::Duration;

use mongodb::bson::{Bson, Document, doc};
use pagebucket::domain::Clock;
use pagebucket::store::trades::Capacity;
use pagebucket::store::{Connection, Store};

use super::program::{Place, run};
use crate::harness::tests;

tests!["commands":
    keys_are_kept_as_long_as_the_last_start_says,
    views_are_kept_as_long_as_the_last_start_says,
    instances_starting_together_agree,
];

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

/// Whoever is overtaken while it changes the index looks again: none fails, and what is there is what one said.
async fn instances_starting_together_agree() {
    let place = Place::new().await;
    let connection =
        Connection { uri: place.uri.clone(), database: place.name.clone(), pool_size: 4, observer: None };
    let store = async || {
        Store::connect(connection.clone(), Capacity::default(), Clock::system()).await.expect("a server")
    };
    store().await.migrate().await.expect("an empty database");
    for turn in 0..10_u32 {
        let mut instances = tokio::task::JoinSet::new();
        for number in 0..4_u32 {
            let store = store().await;
            // On and off in turns, as one mind; and in the last turns each as it likes.
            let days = if turn < 6 { turn % 2 } else { number % 3 };
            let retention = Some(Duration::from_secs(u64::from(days) * 86_400)).filter(|_| days > 0);
            instances.spawn(async move { store.keep_views_for(retention).await });
        }
        for kept in instances.join_all().await {
            kept.expect("whoever is overtaken looks again");
        }
        let seconds = expiry(&place, "page_views", "timestamp_1").await;
        match turn {
            0 | 2 | 4 => assert_eq!(seconds, None),
            1 | 3 | 5 => assert_eq!(seconds, Some(86_400)),
            _ => assert!([None, Some(86_400), Some(172_800)].contains(&seconds), "{seconds:?}"),
        }
    }
}
