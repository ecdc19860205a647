//! What 0005 makes: the guards of `page_views`, and the index that retention is chosen by.

use std::time::Duration;

use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_engine::ConnectError;
use pagebucket_model::domain::Clock;

use super::{AFTER_YEAR_9999, BEFORE_YEAR_0000, Place, REFUSED_BY_VALIDATOR, first_batch, mend, write_error};

/// 10:01 on 2014-01-01.
const MINUTE: i64 = 1_388_570_460_000;

fn bucket(page: &str, millis: i64) -> Document {
    let timestamp = DateTime::from_millis(millis);
    doc! { "page": page, "timestamp": timestamp, "totalViews": 17, "seconds": { "0": 3, "2": 14_i64 } }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_corrupt_minute_can_be_written() {
    let place = Place::new().await;
    place.store.migrate().await.expect("an empty database");
    let views = place.database.collection::<Document>("page_views");
    let with = |field: &str, value: Bson| {
        let mut bucket = bucket("/index.htm", MINUTE);
        bucket.insert(field, value);
        bucket
    };
    let millis = |millis: i64| Bson::from(DateTime::from_millis(millis));
    let mut corrupt = vec![
        with("_id", "text".into()),
        with("page", "index.htm".into()),
        with("page", "".into()),
        with("page", 7.into()),
        with("page", "/a?b".into()),
        with("page", "/a#b".into()),
        with("page", "/a\n".into()),
        with("page", "/a\0".into()),
        with("page", "/\u{85}".into()),
        with("page", format!("/{}", "x".repeat(512)).into()),
        with("page", format!("/{}", "ä".repeat(256)).into()),
        with("timestamp", millis(MINUTE + 1)),
        with("timestamp", millis(MINUTE + 1_000)),
        with("timestamp", millis(-1)),
        with("timestamp", millis(-59_999)),
        with("timestamp", BEFORE_YEAR_0000.into()),
        with("timestamp", millis(-62_167_219_260_000)),
        with("timestamp", AFTER_YEAR_9999.into()),
        with("timestamp", MINUTE.into()),
        with("timestamp", doc! {}.into()),
        with("totalViews", 16.into()),
        with("totalViews", 17.0.into()),
        with("totalViews", (-17).into()),
        with("totalViews", "17".into()),
        with("seconds", doc! {}.into()),
        with("seconds", Bson::Array(vec![3.into(), 14.into()])),
        with("seconds", 17.into()),
        with("note", "unknown".into()),
    ];
    for seconds in [
        doc! { "60": 17 },
        doc! { "00": 17 },
        doc! { "02": 17 },
        doc! { "-1": 17 },
        doc! { "": 17 },
        doc! { "2\n": 17 },
        doc! { "a": 17 },
        doc! { "2": 17.0 },
        doc! { "2": 18, "3": -1 },
        doc! { "2": "17" },
        doc! { "2": { "3": 17 } },
    ] {
        corrupt.push(with("seconds", seconds.into()));
    }
    for field in ["page", "timestamp", "totalViews", "seconds"] {
        let mut incomplete = bucket("/index.htm", MINUTE);
        incomplete.remove(field).expect("such a field");
        corrupt.push(incomplete);
    }
    for bucket in &corrupt {
        let refused = views.insert_one(bucket).await.expect_err(&format!("corrupt: {bucket}"));
        assert_eq!(write_error(&refused), Some(REFUSED_BY_VALIDATOR), "{bucket}: {refused}");
    }

    // What is sound goes in, the edges of all ranges included.
    let longest = format!("/{}", "x".repeat(511));
    for (page, timestamp) in [
        ("/index.htm", MINUTE),
        ("/index.htm", 0),
        ("/index.htm", -60_000),
        ("/index.htm", -62_167_219_200_000),
        ("/index.htm", 253_402_300_740_000),
        ("/", MINUTE),
        (&longest, MINUTE),
        ("/ä b/\u{2028}", MINUTE),
    ] {
        views.insert_one(bucket(page, timestamp)).await.expect("a sound minute");
    }
    let zeros: Document = (0..60).map(|second| (second.to_string(), Bson::Int32(0))).collect();
    let mut whole = bucket("/zeros", MINUTE);
    whole.extend(doc! { "totalViews": 0_i64, "seconds": zeros });
    views.insert_one(whole).await.expect("a preallocated minute");

    // It is held to its shape afterwards, and a page has each minute once.
    for update in [
        doc! { "$inc": { "totalViews": 1 } },
        doc! { "$inc": { "seconds.2": 1 } },
        doc! { "$inc": { "totalViews": 1, "seconds.60": 1 } },
        doc! { "$inc": { "totalViews": -4, "seconds.0": -4 } },
        doc! { "$set": { "timestamp": DateTime::from_millis(MINUTE + 1) } },
    ] {
        let refused = views.update_one(doc! { "page": "/" }, update.clone()).await;
        let refused = refused.expect_err(&format!("corrupt: {update}"));
        assert_eq!(write_error(&refused), Some(REFUSED_BY_VALIDATOR), "{update}: {refused}");
    }
    let again = views.insert_one(bucket("/", MINUTE)).await.expect_err("it is there");
    assert_eq!(write_error(&again), Some(11000), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn page_views_without_a_guard_are_refused() {
    let place = Place::new().await;
    place.store.migrate().await.expect("an empty database");
    place.store.check_collections().await.expect("its own collections");
    for (command, guard) in [
        (doc! { "collMod": "page_views", "validationAction": "warn" }, "validator"),
        (doc! { "collMod": "page_views", "validator": {} }, "validator"),
        (
            doc! { "dropIndexes": "page_views", "index": "page_1_timestamp_1" },
            "unique index on page and timestamp",
        ),
    ] {
        place.database.run_command(command).await.expect("to harm it");
        let error = place.store.check_collections().await.expect_err("it is harmed");
        assert!(
            matches!(&error, ConnectError::Unguarded { collection, guard: it } if collection == "page_views" && it == guard),
            "{error}"
        );
        assert!(error.to_string().contains("`page_views`"), "{error}");
        mend(&place).await;
    }
    place.database.collection::<Document>("page_views").drop().await.expect("to drop it");
    let error = place.store.check_collections().await.expect_err("it is dropped");
    assert!(matches!(&error, ConnectError::Missing(collection) if collection == "page_views"), "{error}");
}

/// The index on the minute alone: after how many seconds documents expire by it.
async fn expiry(place: &Place) -> Option<i64> {
    let found = place.database.run_command(doc! { "listIndexes": "page_views" }).await.expect("an answer");
    let mut indexes = first_batch(&found).iter().map(|index| index.as_document().expect("an index"));
    let index = indexes.find(|index| index.get_document("key").ok() == Some(&doc! { "timestamp": 1 }));
    let seconds = index.expect("an index on timestamp").get("expireAfterSeconds")?;
    Some(seconds.as_i64().unwrap_or_else(|| i64::from(seconds.as_i32().expect("a number"))))
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_is_chosen_and_changed() {
    const DAY: Duration = Duration::from_secs(86_400);
    let place = Place::new().await;
    place.store.migrate().await.expect("an empty database");
    assert_eq!(expiry(&place).await, None, "they are kept for ever, unless somebody says otherwise");
    let views = place.database.collection::<Document>("page_views");
    // A minute of today: the server may look for expired ones, at once or in a minute, while seven days are
    // kept.
    let minute = Clock::system().now().millis().div_euclid(60_000) * 60_000;
    views.insert_one(bucket("/index.htm", minute)).await.expect("a sound minute");
    // Turned on, on a collection that holds something; changed; the same again; off; off again; on.
    for days in [Some(30), Some(7), Some(7), None, None, Some(24_855)] {
        let retention = days.map(|days| DAY * days);
        place.store.keep_views_for(retention).await.expect("it may change an index");
        assert_eq!(expiry(&place).await, days.map(|days| i64::from(days) * 86_400));
        place.store.check_collections().await.expect("the guards are there");
    }
    // Made anew by the migrations, as an operator is told to do, it stays as it is.
    mend(&place).await;
    assert_eq!(expiry(&place).await, Some(24_855 * 86_400));
    place
        .database
        .run_command(doc! { "dropIndexes": "page_views", "index": "page_1_timestamp_1" })
        .await
        .expect("to harm it");
    mend(&place).await;

    // An index of that name over something else is none that can be kept.
    place
        .database
        .run_command(doc! { "dropIndexes": "page_views", "index": "page_1_timestamp_1" })
        .await
        .expect("to harm it");
    let other = doc! { "key": { "page": 1, "timestamp": 1 }, "name": "page_1_timestamp_1" };
    place
        .database
        .run_command(doc! { "createIndexes": "page_views", "indexes": [other] })
        .await
        .expect("another index");
    place.database.collection::<Document>("migrations").drop().await.expect("to drop it");
    let error = place.store.migrate().await.expect_err("it is not unique");
    assert!(error.to_string().contains("0005_page_views failed at `createIndexes`"), "{error}");
    assert_eq!(
        views.count_documents(doc! {}).await.expect("a count"),
        1,
        "nothing of this touches what is there"
    );
}
