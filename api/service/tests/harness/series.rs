//! Native time series: a projection of all histories of a definition, each item once, whatever becomes of its
//! feeders.

use std::collections::BTreeMap;
use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReadConcern;
use pagebucket_engine::erasures::Erasure;
use pagebucket_engine::internal::Ages;
use pagebucket_engine::{Deadline, Engine};
use serde_json::{Value, json};

use crate::{Client, PATIENCE, SERIES, Service, Setup, engine, eventually};

/// What does not count is deleted soon, and erasures come to their end.
pub const SHORT: Ages = Ages {
    poll: Duration::from_millis(50),
    tail: Duration::from_secs(2),
    command: Duration::from_secs(1),
    marker: Duration::from_secs(5),
    late: Duration::from_millis(500),
};

/// A trade of this owner, which no other request sends.
pub fn dated(number: u64, ticker: &str) -> Value {
    let (day, hour) = (1 + number % 28, number % 24);
    json!({
        "type": "buy", "ticker": ticker, "qty": number, "price": format!("{number}.5"),
        "date": format!("2024-02-{day:02}T{hour:02}:30:00Z"),
    })
}

pub async fn append(client: &Client, owner: u64, numbers: std::ops::RangeInclusive<u64>) {
    let trades: Vec<_> = numbers.map(|number| dated(number, ["AMD", "MDB"][(number % 2) as usize])).collect();
    client.append(owner, &json!(trades)).await.expect(201);
}

/// The number of the build that is read; 0 if there is none.
pub async fn number(database: &Database) -> i64 {
    let builds = database.collection::<Document>("series");
    let builds = builds.find_one(doc! { "_id": "trades" }).await.expect("an answer");
    builds.and_then(|builds| builds.get_i64("current").ok()).unwrap_or(0)
}

/// The name of its collection.
pub async fn raw(database: &Database) -> String {
    match number(database).await {
        1 => "trades_series".to_owned(),
        number => format!("trades_series_{number}"),
    }
}

/// The collections of all builds that have one of their own.
pub async fn collections(database: &Database) -> Vec<String> {
    let names = database.list_collection_names().await.expect("names");
    names.into_iter().filter(|name| name.starts_with("trades_series_")).collect()
}

/// The document of that build.
pub async fn build(database: &Database) -> Document {
    let id = format!("trades/{}", number(database).await);
    let build = database.collection::<Document>("series").find_one(doc! { "_id": id }).await;
    build.expect("an answer").unwrap_or_default()
}

/// Changes the document of that build.
pub async fn change_build(database: &Database, change: Document) {
    let id = format!("trades/{}", number(database).await);
    let builds = database.collection::<Document>("series");
    builds.update_one(doc! { "_id": id }, doc! { "$set": change }).await.expect("an update");
}

/// The term of its lease.
pub async fn term(database: &Database) -> i64 {
    build(database).await.get_i64("term").unwrap_or(0)
}

/// The measurements of each owner: generation, `seq` and quantity, in the order of `seq`, whether they count
/// or not.
pub async fn measurements(database: &Database) -> Measured {
    measured_in(database, &raw(database).await).await
}

/// Those that count, as a program finds them that reads the database.
pub async fn counting(database: &Database) -> Measured {
    measured_in(database, "trades_series").await
}

/// By owner: `seq`, generation and quantity.
pub type Measured = BTreeMap<u64, Vec<(i64, i64, i64)>>;

pub async fn measured_in(database: &Database, collection: &str) -> Measured {
    let mut all: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    let collection = database.collection::<Document>(collection);
    // As readers of the service find them, who read later.
    let found = collection.find(doc! {}).read_concern(ReadConcern::majority()).await;
    let mut found = found.expect("an answer");
    while found.advance().await.expect("an answer") {
        let measurement = found.deserialize_current().expect("a document");
        let number = |document: &Document, field: &str| document.get(field).and_then(Bson::as_i64);
        let meta = measurement.get_document("meta").expect("the metaField");
        let seq = number(&measurement, "seq").expect("a seq");
        let owner = number(meta, "owner").expect("an owner") as u64;
        let generation = number(meta, "generation").unwrap_or(0);
        all.entry(owner).or_default().push((seq, generation, number(&measurement, "qty").unwrap_or(0)));
    }
    all.values_mut().for_each(|of_owner| of_owner.sort_unstable());
    all
}

/// The generation of each owner that has one in the build that is read.
pub async fn generations(database: &Database) -> BTreeMap<u64, i64> {
    let mut all = BTreeMap::new();
    let generations = database.collection::<Document>("series_generations");
    let of_build = doc! { "_id": { "$regex": format!("^trades/{}/", number(database).await) } };
    let mut found = generations.find(of_build).await.expect("an answer");
    while found.advance().await.expect("an answer") {
        let document = found.deserialize_current().expect("a document");
        let number = |field| document.get_i64(field).expect("a number");
        all.insert(number("owner") as u64, number("current"));
    }
    all
}

/// Waits until each owner has each of its items once in the collection, and nothing else is there. The public
/// name shows the same.
pub async fn each_once(client: &Client, database: &Database, owners: impl IntoIterator<Item = u64>) {
    let mut totals = BTreeMap::new();
    for owner in owners {
        totals.insert(owner, client.total(owner).await as i64);
    }
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        let (all, seen) = (measurements(database).await, counting(database).await);
        let wrong = |all: &Measured| {
            let has_not_each = |(owner, total): &(&u64, &i64)| {
                let seqs = all.get(owner).into_iter().flatten().map(|(seq, ..)| *seq);
                !seqs.eq(1..=**total)
            };
            let stranger = all.keys().find(|owner| !totals.contains_key(owner));
            totals.iter().find(has_not_each).map(|(owner, _)| *owner).or(stranger.copied())
        };
        let (wrong, wrongly_seen) = (wrong(&all), wrong(&seen));
        if wrong.is_none() && wrongly_seen.is_none() {
            return;
        }
        assert!(
            tokio::time::Instant::now() < until,
            "not each item is measured once: of {wrong:?} there are {:?}, of {wrongly_seen:?} are seen {:?}; generations {:?}",
            wrong.map(|owner| all.get(&owner)),
            wrongly_seen.map(|owner| seen.get(&owner)),
            generations(database).await,
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The question for the month of all trades.
pub const MONTH: &str = "/v1/trades/summary?by=1d&from=2024-02-01T00:00:00Z&to=2024-03-01T00:00:00Z";

/// Up to which moment all items count, as the service says.
pub async fn up_to(client: &Client) -> Option<String> {
    client.get(MONTH).await.expect(200)["upTo"].as_str().map(str::to_owned)
}

/// The items that count, as a reader of the service finds them.
pub async fn count(client: &Client) -> u64 {
    let points = client.get(MONTH).await.expect(200)["points"].clone();
    points.as_array().expect("points").iter().map(|point| point["count"].as_u64().expect("a count")).sum()
}

/// Erases an owner, until all is swept.
pub async fn erase(engine: &Engine, owner: u64) {
    eventually("the sweep", PATIENCE, async || {
        let erased = engine.erasures().erase(&engine::owner(SERIES, owner), Deadline::within(PATIENCE)).await;
        matches!(erased, Ok(Erasure::Swept))
    })
    .await;
}

/// A service with a time series.
pub async fn service() -> Service {
    Service::of(SERIES).await
}

/// Another instance of it.
pub fn sibling(uri: &str, database: &Database) -> Setup {
    Setup::at(uri).of(SERIES).in_database(database)
}
