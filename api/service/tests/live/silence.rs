//! Change streams that are silent, fail each time they are asked for more, or cannot be opened: readers get
//! what is appended meanwhile, not only afterwards.

use mongodb::bson::doc;
use reqwest::Method;
use serde_json::json;

use crate::harness::events::Events;
use crate::harness::rig::of_streams;
use crate::harness::rig::{fail, heal};
use crate::harness::{Mongod, PATIENCE, Setup, TRADES, eventually};

/// Readers of one owner begin and go on; those of all owners are told to come back.
#[tokio::test(flavor = "multi_thread")]
async fn what_begins_while_no_stream_can_be_opened() {
    let mongod = Mongod::failing().await;
    let service = Setup::on(&mongod).start().await;
    let how = of_streams(&service.database, &["getMore", "aggregate"], doc! { "errorCode": 8 });
    fail(&mongod, "getMore", "alwaysOn", how).await;
    let mut events = Events::of(&service.client, 1, "?after=0", &[]).await;
    let polled = service.client.get(&TRADES.at(1, "?after=0&wait=1")).await.expect(200);
    assert_eq!(polled["items"], json!([]));
    service.client.append_all(1, 1..=12).await;
    events.read(TRADES, 1, 12).await;
    let refused = service.client.send(Method::GET, "/v1/trades/live", |request| request).await;
    assert!(!refused.header("retry-after").is_empty(), "{refused:?}");
    refused.problem(503, "database-unavailable");
    heal(&mongod).await;
    let begins =
        async || service.client.send(Method::HEAD, "/v1/trades/live", |request| request).await.status == 200;
    eventually("a stream of all owners begins", PATIENCE, begins).await;
    mongod.remove().await;
}
