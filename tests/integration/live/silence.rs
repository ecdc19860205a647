//! Change streams that are silent, fail each time they are asked for more, or cannot be opened: readers get
//! what is appended meanwhile, not only afterwards.

use mongodb::bson::doc;

use crate::commands::program::Place;
use crate::harness::events::Events;
use crate::harness::rig::of_streams;
use crate::harness::rig::{fail, heal};
use crate::harness::{Mongod, PATIENCE, TRADES, eventually};

/// However long it lasts, and however often the stream is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn silence_is_warned_of_once_and_measured() {
    let mongod = Mongod::failing().await;
    let place = Place::on(&mongod, TRADES);
    let serving = place.serve(&[]).await;
    let measured = async || {
        let metrics = String::from_utf8(serving.client.get("/metrics").await.body).expect("text");
        let line =
            |line: &str| line.strip_prefix("pagebucket_live_change_stream_silent_seconds ")?.parse().ok();
        metrics.lines().find_map(line).unwrap_or(0.0_f64)
    };
    let warned = || serving.err().matches("the change stream of live readers is interrupted").count();
    let mut events = Events::of(&serving.client, 1, "?after=0", &[]).await;
    assert_eq!(measured().await, 0.0);
    let how = of_streams(&place.database().await, &["getMore"], doc! { "errorCode": 133 });
    fail(&mongod, "getMore", "alwaysOn", how).await;
    let tries = async || {
        let metrics = String::from_utf8(serving.client.get("/metrics").await.body).expect("text");
        let of = "pagebucket_live_change_streams_total{start=\"resumed\"} ";
        metrics.lines().find_map(|line| line.strip_prefix(of)?.parse().ok()).unwrap_or(0.0_f64)
    };
    eventually("it is measured and tried again", PATIENCE, async || {
        measured().await > 10.0 && tries().await >= 3.0
    })
    .await;
    serving.client.append_all(1, 1..=2).await;
    events.read(TRADES, 1, 2).await;
    assert_eq!(warned(), 1, "{}", serving.err());
    heal(&mongod).await;
    eventually("it answers again", PATIENCE, async || measured().await == 0.0).await;
    assert_eq!(warned(), 1, "{}", serving.err());
    drop(events);
    serving.stop().await;
    mongod.remove().await;
}
