//! `series rebuild`, `series drop` and `verify --series`.

use std::path::PathBuf;

use mongodb::bson::{DateTime, Document, doc};
use serde_json::{Value, json};

use super::{SHORT, append, collections, count, each_once, raw};
use crate::commands::program::{Place, pagebucket as program, run};
use crate::harness::{PATIENCE, SERIES, Service, Setup, TRADES, eventually, shared};

/// The definition with another `timeSeries`, in a directory of its own.
fn redefined(name: &str, series: &Value) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("pagebucket-series-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let text = std::fs::read_to_string(format!("{}/trades.json", SERIES.definitions.expect("a directory")));
    let mut definition: Value = serde_json::from_str(&text.expect("a file")).expect("JSON");
    definition["timeSeries"] = series.clone();
    std::fs::write(directory.join("trades.json"), definition.to_string()).expect("to write");
    directory
}

/// Runs a command on the database of a service; its status and what it says.
pub(super) async fn pagebucket(
    service: &Service,
    directory: Option<&str>,
    arguments: &[&str],
) -> (Option<i32>, String) {
    let place = Place::of_service(service).await;
    let on = ["--mongodb-uri", &place.uri, "--database", &place.name, "--log", "warn"];
    let histories = directory.map(|directory| ["--histories", directory]);
    let histories = histories.as_ref().map_or(&[][..], |flags| flags);
    let ended = run(&mut program(&[arguments, &on, histories].concat())).await;
    (ended.status, format!("{}{}", ended.out, ended.err))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_replaces_a_time_series_also_with_another_definition() {
    let service = Service::of(SERIES).await;
    for owner in 1..=5 {
        append(&service.client, owner, 1..=owner * 20).await;
    }
    each_once(&service.client, &service.database, 1..=5).await;
    let same = SERIES.definitions;
    let (status, told) = pagebucket(&service, same, &["series", "rebuild"]).await;
    assert_eq!((status, &*told), (Some(0), "the time series of trades is rebuilt\n"));
    assert_eq!(count(&service.client).await, 300);
    // Under its name it is a view of the new one, which is fed.
    append(&service.client, 1, 21..=30).await;
    each_once(&service.client, &service.database, 1..=5).await;
    let second = raw(&service.database).await;
    assert_eq!(
        collections(&service.database).await,
        std::slice::from_ref(&second),
        "the former one is dropped"
    );

    let other = redefined(
        "rebuilt",
        &json!({ "meta": ["type", "ticker"], "granularity": "hours", "expireAfterDays": 18000 }),
    );
    let directory = other.to_str();
    let (status, told) = pagebucket(&service, directory, &["migrate"]).await;
    assert_eq!(status, Some(3), "{told}");
    assert!(
        told.contains("the time series of `trades` has the meta") && told.contains("series rebuild"),
        "{told}"
    );
    let (status, told) = pagebucket(&service, directory, &["series", "rebuild"]).await;
    assert_eq!(status, Some(0), "{told}");
    let third = raw(&service.database).await;
    assert!(third > second && collections(&service.database).await == [third], "{second}");
    let series = service.database.collection::<Document>("trades_series");
    let found = series.find_one(doc! { "meta.type": "buy", "meta.ticker": "AMD" }).await.expect("an answer");
    assert!(found.is_some_and(|found| !found.contains_key("type")));
    // An instance of the former definition feeds what there is, and cannot answer from it.
    let path = "/v1/trades/summary?by=1d&from=2024-02-01T00:00:00Z&to=2024-03-01T00:00:00Z";
    service.client.get(path).await.problem(503, "database-unavailable");
    let mut setup = Setup::on(shared().await).of(SERIES).in_database(&service.database);
    setup.definitions = Some(other.clone());
    let again = setup.start().await;
    append(&again.client, 2, 41..=45).await;
    each_once(&again.client, &service.database, 1..=5).await;
    assert_eq!(count(&again.client).await, 315);
    let (status, told) = pagebucket(&again, directory, &["verify", "--series"]).await;
    assert_eq!(status, Some(0), "{told}");
    std::fs::remove_dir_all(other).expect("to remove");
}

/// A rebuild that ended before it had dropped the first time series, which has the name that others read: an
/// owner who is erased later would stay there.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_rebuild_is_completed() {
    let service = Setup::on(shared().await).of(SERIES).aging(SHORT).start().await;
    append(&service.client, 1, 1..=20).await;
    each_once(&service.client, &service.database, [1]).await;
    let (status, told) = pagebucket(&service, SERIES.definitions, &["series", "rebuild"]).await;
    assert_eq!(status, Some(0), "{told}");
    let series = service.database.collection::<Document>("trades_series");
    let left = doc! {
        "create": "trades_series", "timeseries": { "timeField": "date", "metaField": "meta", "granularity": "minutes" },
    };
    eventually("a time series, which the service has not made a view again before", PATIENCE, async || {
        series.drop().await.expect("a view");
        service.database.run_command(left.clone()).await.is_ok()
    })
    .await;
    let erased = doc! { "date": DateTime::from_millis(0), "meta": { "owner": 9_i64 }, "seq": 1_i64 };
    series.insert_one(erased).await.expect("a measurement");
    each_once(&service.client, &service.database, [1]).await;
    append(&service.client, 2, 1..=5).await;
    each_once(&service.client, &service.database, [1, 2]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_finds_what_is_wrong_in_a_time_series() {
    let service = Service::of(SERIES).await;
    append(&service.client, 1, 1..=25).await;
    append(&service.client, 2, 1..=9).await;
    each_once(&service.client, &service.database, 1..=2).await;
    let same = SERIES.definitions;
    let (status, told) = pagebucket(&service, same, &["verify", "--series"]).await;
    assert_eq!(status, Some(0), "{told}");
    let series = service.database.collection::<Document>(&raw(&service.database).await);
    let mut doubled = series
        .find_one(doc! { "meta.owner": 2_i64, "seq": 4_i64 })
        .await
        .expect("an answer")
        .expect("a measurement");
    doubled.remove("_id");
    series.insert_one(&doubled).await.expect("an insert");
    doubled.get_document_mut("meta").expect("the metaField").insert("owner", 77_i64);
    series.insert_one(&doubled).await.expect("an insert");
    let (status, told) = pagebucket(&service, same, &["verify", "--series"]).await;
    assert_eq!(status, Some(1), "{told}");
    assert!(told.contains("trades_series: 77 has measurements, and no items"), "{told}");
    assert!(
        told.contains("2024-02-05T00:00:00.000Z AMD: the pages have 2 items")
            && told.contains("the time series has 3 items"),
        "{told}"
    );
    assert_eq!(told.matches("trades_series: ").count(), 2, "{told}");
    let (status, told) = pagebucket(&service, same, &["series", "rebuild"]).await;
    assert_eq!(status, Some(0), "{told}");
    let (status, told) = pagebucket(&service, same, &["verify", "--series"]).await;
    assert_eq!(status, Some(0), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_series_is_dropped_when_no_definition_asks_for_it() {
    let service = Service::of(SERIES).await;
    append(&service.client, 1, 1..=25).await;
    each_once(&service.client, &service.database, [1]).await;
    let (status, told) = pagebucket(&service, SERIES.definitions, &["series", "drop"]).await;
    assert_eq!(status, Some(2), "{told}");
    assert!(told.contains("has timeSeries: remove it"), "{told}");
    let database = service.database.clone();
    service.stop().await;
    let service = Setup::on(shared().await).of(TRADES).in_database(&database).start().await;
    for told in ["the time series of trades is deleted\n", "trades has no time series\n"] {
        assert_eq!(pagebucket(&service, None, &["series", "drop"]).await, (Some(0), told.to_owned()));
    }
    eventually("nothing is left", PATIENCE, async || {
        let names = database.list_collection_names().await.expect("names");
        !names.iter().any(|name| name.starts_with("trades_series") || name.contains("system.buckets"))
    })
    .await;
    assert!(collections(&database).await.is_empty());
    assert_eq!(service.client.total(1).await, 25);
}
