//! Native time series: a projection of all histories of a definition, each item once, whatever becomes of its
//! feeders.

mod answers;
mod erasures;
mod killed;
mod late;
mod settled;
mod sums;

use crate::harness::series::*;
use std::collections::BTreeMap;

use mongodb::bson::{Document, doc};
use serde_json::json;

use crate::harness::{History, SERIES, Setup, shared};

#[tokio::test(flavor = "multi_thread")]
async fn an_item_is_a_measurement() {
    let service = service().await;
    let trade = json!({
        "type": "sell", "ticker": "MDB", "qty": 419, "price": "1.50", "date": "2024-02-29T23:59:59.999Z",
    });
    service.client.append_once(7, "a-key", &trade).await.expect(201);
    // Dates that the native buckets have no room for in 32 bits.
    for date in ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"] {
        service
            .client
            .append(7, &json!({ "type": "buy", "ticker": "AMD", "qty": 1, "date": date }))
            .await
            .expect(201);
    }
    each_once(&service.client, &service.database, [7]).await;
    let series = service.database.collection::<Document>("trades_series");
    let mut found = series.find_one(doc! { "seq": 1_i64 }).await.expect("an answer").expect("a measurement");
    found.remove("_id");
    let history: &History = SERIES;
    let price: mongodb::bson::Decimal128 = "1.50".parse().expect("a decimal");
    let date = mongodb::bson::DateTime::parse_rfc3339_str("2024-02-29T23:59:59.999Z").expect("a date");
    let expected = doc! {
        "date": date, "meta": { "owner": history.owner_bson(7), "ticker": "MDB" }, "seq": 1_i64,
        "type": "sell", "qty": 419_i64, "price": price,
    };
    let fields = |document: &Document| {
        document.iter().map(|(name, value)| (name.clone(), value.clone())).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(fields(&found).keys().collect::<Vec<_>>(), fields(&expected).keys().collect::<Vec<_>>());
    assert!(fields(&found) == fields(&expected), "{found}");
    let mut listed = service
        .database
        .list_collections()
        .filter(doc! { "name": raw(&service.database).await })
        .await
        .expect("an answer");
    assert!(listed.advance().await.expect("an answer"));
    let listed = Document::try_from(listed.current()).expect("BSON");
    let options = listed
        .get_document("options")
        .and_then(|options| options.get_document("timeseries"))
        .expect("native");
    assert_eq!(
        [options.get_str("timeField"), options.get_str("metaField"), options.get_str("granularity")]
            .map(Result::ok),
        [Some("date"), Some("meta"), Some("minutes")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_time_series_nothing_is_made_and_nothing_is_asked() {
    let commands = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&commands);
    let setup = Setup::on(shared().await).observed(move |_, command| {
        let about_series =
            command.values().any(|value| value.as_str().is_some_and(|name| name.contains("series")));
        if about_series {
            seen.lock().push(command.to_string());
        }
    });
    let service = setup.start().await;
    service.client.append_all(1, 1..=25).await;
    service.client.get(&service.history.path(1)).await.expect(200);
    assert_eq!(*commands.lock(), Vec::<String>::new());
    let names = service.database.list_collection_names().await.expect("names");
    assert!(!names.iter().any(|name| name.contains("series")), "{names:?}");
    let path = "/v1/trades/summary?by=1d&from=2024-02-01T00:00:00Z&to=2024-03-01T00:00:00Z";
    let problem = service.client.get(path).await.problem(404, "not-found");
    assert_eq!(problem["detail"], "The definition of trades has no `timeSeries`.");
}
