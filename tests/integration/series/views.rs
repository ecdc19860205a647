//! What a program finds that reads the database itself: the public name shows what counts.

use std::process::Stdio;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_engine::internal::Ages;
use serde_json::{Value, json};
use tokio::process::Command;

use super::commands::pagebucket;
use super::{SHORT, append, build, count, counting, each_once, erase, number, raw, sibling};
use crate::harness::{PATIENCE, SERIES, Service, Setup, engine, eventually, shared, skip};

const PAGE: &str = include_str!("../../../docs/reference/time-series.md");

/// What the public name is: its type, and the pipeline of a view.
async fn public(database: &Database) -> (String, Vec<Bson>) {
    let listed = database.list_collections().filter(doc! { "name": "trades_series" }).await;
    let mut listed = listed.expect("an answer");
    assert!(listed.advance().await.expect("an answer"), "nothing has the name");
    let listed = Document::try_from(listed.current()).expect("BSON");
    let pipeline = listed.get_document("options").and_then(|options| options.get_array("pipeline"));
    let kind = listed.get_str("type").expect("a type");
    (kind.to_owned(), pipeline.cloned().unwrap_or_default())
}

/// Makes the first build one of an earlier version: its collection has the public name.
async fn make_former(database: &Database) {
    let (mut first, name) = (build(database).await, raw(database).await);
    for name in ["trades_series", &name] {
        database.collection::<Document>(name).drop().await.expect("an answer");
    }
    let create = doc! {
        "create": "trades_series", "timeseries": { "timeField": "date", "metaField": "meta", "granularity": "minutes" },
    };
    database.run_command(create).await.expect("a time series");
    let builds = database.collection::<Document>("series");
    builds.delete_one(doc! { "_id": first.get_str("_id").expect("a text") }).await.expect("an answer");
    first.insert("_id", "trades/1");
    builds.insert_one(first).await.expect("an insert");
    let update = doc! { "$set": { "current": 1_i64, "latest": 1_i64 } };
    builds.update_one(doc! { "_id": "trades" }, update).await.expect("an update");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_series_of_an_earlier_version_goes_on() {
    let setup = Setup::on(shared().await).of(SERIES);
    setup.store().await;
    let database = shared().await.client().await.database(&setup.connection.database);
    make_former(&database).await;
    let service = sibling(shared().await.uri(), &database).aging(SHORT).start().await;
    append(&service.client, 1, 1..=25).await;
    append(&service.client, 2, 1..=5).await;
    each_once(&service.client, &database, [1, 2]).await;
    let store = sibling(shared().await.uri(), &database).aging(SHORT).store().await;
    erase(engine::histories(&store, SERIES), 1).await;
    each_once(&service.client, &database, [2]).await;
    assert_eq!((number(&database).await, &*public(&database).await.0), (1, "timeseries"));

    let (status, told) = pagebucket(&service, SERIES.definitions, &["series", "rebuild"]).await;
    assert_eq!(status, Some(0), "{told}");
    append(&service.client, 2, 6..=9).await;
    each_once(&service.client, &database, [2]).await;
    assert_eq!((count(&service.client).await, &*public(&database).await.0), (9, "view"));
}

/// A view names the owners of other generations than 0, up to 10,000 of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_of_many_generations_joins_them() {
    let patient = Ages {
        tail: std::time::Duration::from_secs(3600),
        late: std::time::Duration::from_secs(3600),
        ..SHORT
    };
    let service = Setup::on(shared().await).of(SERIES).aging(patient).start().await;
    let (client, database) = (&service.client, &service.database);
    for owner in 1..=4 {
        append(client, owner, 1..=5).await;
    }
    each_once(client, database, 1..=4).await;
    let number = number(database).await;
    let generation = |owner: i64| doc! { "_id": format!("trades/{number}/{owner}"), "owner": owner, "current": 1_i64, "next": 1_i64 };
    let generations = database.collection::<Document>("series_generations");
    generations.insert_many((1_001..=11_001).map(generation)).await.expect("an insert");
    let measurement = |owner: i64, seq: i64| doc! { "date": DateTime::from_millis(1_706_800_000_000), "meta": { "owner": owner, "ticker": "AMD" }, "seq": seq };
    let mut counts = measurement(1_001, 2);
    counts.get_document_mut("meta").expect("the metaField").insert("generation", 1_i64);
    let collection = database.collection::<Document>(&raw(database).await);
    collection.insert_many([measurement(1_001, 1), counts]).await.expect("an insert");

    let store = sibling(shared().await.uri(), database).aging(SHORT).store().await;
    erase(engine::histories(&store, SERIES), 2).await;
    let joins = |pipeline: Vec<Bson>| pipeline.iter().any(|stage| stage.to_string().contains("$lookup"));
    assert!(joins(public(database).await.1));
    let seqs = async |owner: u64| {
        let all = counting(database).await;
        all.get(&owner).into_iter().flatten().map(|(seq, ..)| *seq).collect::<Vec<_>>()
    };
    assert_eq!((seqs(1).await, seqs(2).await, seqs(1_001).await), (vec![1, 2, 3, 4, 5], vec![], vec![2]));
    generations.delete_many(doc! { "owner": { "$gt": 1_001_i64 } }).await.expect("an answer");
    erase(engine::histories(&store, SERIES), 3).await;
    assert!(!joins(public(database).await.1));
    assert_eq!((seqs(4).await, seqs(3).await, seqs(1_001).await), (vec![1, 2, 3, 4, 5], vec![], vec![2]));
}

/// The code of the page in a language.
fn example(language: &str) -> &'static str {
    let (_, code) = PAGE.split_once(&format!("```{language}\n")).expect("the page has it");
    code.split_once("\n```").expect("its end").0
}

/// A service whose database has a collection that is read by others: an owner is erased, and another one is a
/// copy.
async fn read_by_others() -> Service {
    let service = Setup::on(shared().await).of(SERIES).aging(SHORT).start().await;
    let (client, database) = (&service.client, &service.database);
    for owner in 1..=3 {
        append(client, owner, owner..=owner * 9).await;
    }
    eventually("it is fed", PATIENCE, async || count(client).await == 51).await;
    let store = sibling(shared().await.uri(), database).aging(SHORT).store().await;
    erase(engine::histories(&store, SERIES), 3).await;
    eventually("it is erased", PATIENCE, async || counting(database).await.len() == 2).await;
    service
}

/// The hours, the tickers, the volumes and the counts of the page's question, by the route.
async fn answers(service: &Service) -> Vec<Value> {
    let path = "/v1/trades/summary?by=1h&group=ticker&ticker=AMD&from=2024-02-01T00:00:00Z&to=2024-03-01T00:00:00Z&limit=1000";
    let answer = service.client.get(path).await.expect(200);
    let points = answer["points"].as_array().expect("points").iter();
    let point = |point: &Value| {
        let volume: i64 =
            point["values"]["qty"]["sum"].as_str().and_then(|sum| sum.parse().ok()).expect("a sum");
        json!([point["start"], volume, point["count"]])
    };
    points.map(point).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_a_pipeline_for_compass() {
    let service = read_by_others().await;
    // The syntax of the shell, which Compass takes, is Extended JSON but for dates.
    let pipeline = example("js").replace("ISODate(\"", "{ \"$date\": \"").replace("\")", "\" }");
    let pipeline: Vec<serde_json::Map<String, Value>> = serde_json::from_str(&pipeline).expect("JSON");
    let pipeline = pipeline.into_iter().map(|stage| Document::try_from(stage).expect("Extended JSON"));
    let series = service.database.collection::<Document>("trades_series");
    let found: Vec<_> =
        series.aggregate(pipeline).await.expect("an answer").try_collect().await.expect("points");
    let point = |point: &Document| {
        let hour = point.get_datetime("_id").expect("a date").try_to_rfc3339_string().expect("a date");
        let number =
            |field| point.get(field).and_then(|value| value.as_i64().or(value.as_i32().map(i64::from)));
        json!([hour.replace("00Z", "00.000Z"), number("volume"), number("trades")])
    };
    let found: Vec<_> = found.iter().map(point).collect();
    assert!(!found.is_empty() && found == answers(&service).await, "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_a_program_for_pymongo() {
    let service = read_by_others().await;
    let python =
        std::env::var_os("SCHEMATHESIS").map(|tool| std::path::PathBuf::from(tool).with_file_name("python"));
    let Some(python) = python else { return skip("pymongo", "SCHEMATHESIS is not set; make test sets it") };
    let program = example("python").replace("mongodb://127.0.0.1:27017/", shared().await.uri());
    let program = program.replace("[\"pagebucket\"]", &format!("[{:?}]", service.database.name()));
    assert!(program.contains(service.database.name()), "{program}");
    let ended =
        Command::new(python).args(["-c", &program]).stdin(Stdio::null()).output().await.expect("Python");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let expected: String = answers(&service)
        .await
        .iter()
        .map(|point| {
            format!(
                "{} {} {}\n",
                &point[0].as_str().expect("a date")[..13].replace('T', " "),
                point[1],
                point[2]
            )
        })
        .collect();
    assert_eq!(String::from_utf8_lossy(&ended.stdout), expected);
}
