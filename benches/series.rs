//! Native time series: volume by hour and ticker of a month over all customers, what a time series costs
//! appends, and what the owner in the metaField costs.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{DateTime, Document, doc};
use pagebucket_model::definition::{Definition, Definitions};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::harness::{
    Bench, COLLECTION, Client, Customers, Disk, Load, Outcome, RATE, RATES_AND_LATENCIES, Report, Result,
    Section, Server, Spread, Summary, Timing, Verdict, compare, grouped, index, page_of, walk,
};

pub const PARTS: [&str; 3] = ["month", "appends", "meta"];

/// 2024-02-01, and the milliseconds of its month.
const BEGIN: i64 = 1_706_745_600_000;
const MONTH: i64 = 29 * 86_400_000;

const TICKERS: u64 = 10;

/// The question, and the first page of its answer.
const ROUTE: &str =
    "/v1/trades/summary?by=1h&group=ticker&limit=1000&from=2024-02-01T00:00:00Z&to=2024-03-01T00:00:00Z";

pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    if bench.settings.includes("month") {
        month(bench, report).await?;
    }
    if bench.settings.includes("appends") {
        appends(bench, report).await?;
    }
    if bench.settings.includes("meta") {
        meta(bench, report).await?;
    }
    Ok(())
}

/// That of trades, with a time series.
fn definitions() -> Result<Definitions> {
    let mut definition: Value = serde_json::from_str(Definition::trades_text())?;
    definition["timeSeries"] = json!({ "meta": ["ticker"], "granularity": "minutes" });
    let directory = std::env::temp_dir().join(format!("pagebucket-bench-series-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    std::fs::write(directory.join("trades.json"), definition.to_string())?;
    let definitions = Definitions::of_directory(&directory).map_err(|error| error.to_string());
    std::fs::remove_dir_all(directory)?;
    Ok(definitions?)
}

/// The trade of this number among so many of a month.
fn trade(number: u64, count: u64) -> Document {
    let date = BEGIN + (number as i128 * i128::from(MONTH) / i128::from(count)) as i64;
    // Neighbours have other tickers, and the quantities are not all the same.
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    doc! {
        "type": "buy", "ticker": format!("S{}", mixed % TICKERS), "qty": (mixed % 1_000 + 1) as i64,
        "date": DateTime::from_millis(date),
    }
}

/// Writes the trades of a month of these customers as full pages, and as one document each.
async fn write(ours: &Database, flat: &Database, customers: u64, count: u64) -> Result<()> {
    let (buckets, documents) =
        (ours.collection::<Document>(COLLECTION), flat.collection::<Document>(COLLECTION));
    let (mut full, mut single) = (Vec::new(), Vec::new());
    for page in 1..=count / 10 / customers {
        for customer in 1..=customers {
            // The trades of a page follow each other, as those of all customers do.
            let number = |place| ((page - 1) * 10 + place - 1) * customers + customer - 1;
            let items: Vec<_> = (1..=10).map(|place| trade(number(place), count)).collect();
            let (bucket, documents_of_page) = page_of(customer, page, items);
            full.push(bucket);
            single.extend(documents_of_page);
            if full.len() == 200 {
                buckets.insert_many(std::mem::take(&mut full)).await?;
                documents.insert_many(std::mem::take(&mut single)).await?;
            }
        }
    }
    if !full.is_empty() {
        buckets.insert_many(full).await?;
        documents.insert_many(single).await?;
    }
    Ok(())
}

async fn month(Bench { settings, mongod, .. }: &Bench, report: &mut Report) -> Result<()> {
    let (customers, count) = (1_000, if settings.quick { 100_000 } else { 1_000_000 });
    eprintln!("bench: series: month, {count} trades");
    let ours = mongod.database("bench_series").await?;
    let flat = mongod.database("bench_series_flat").await?;
    index(&flat, COLLECTION, doc! { "date": 1, "ticker": 1, "qty": 1 }, false).await?;
    let store = mongod.store_of("bench_series", definitions()?).await?;
    write(&ours, &flat, customers, count).await?;
    let began = Instant::now();
    let server = Server::ours(store, |_| ()).await?;
    let series = ours.collection::<Document>("trades_series");
    while series.count_documents(doc! {}).await? < count {
        sleep(Duration::from_millis(500)).await;
        if began.elapsed() > Duration::from_secs(1_800) {
            return Err("the time series was not made".into());
        }
    }
    let fed = count as f64 / began.elapsed().as_secs_f64();
    let about = format!(
        "Volume by hour and ticker of a month: {} trades of {} customers, {TICKERS} tickers. Ours: all answers of `limit=1000` \
         along `links.next`. Aggregations sum the same whole numbers. Medians and quartiles of {} runs.",
        grouped(count),
        grouped(customers),
        settings.rounds
    );
    let mut section = Section::new("month", about, &["Seconds", "Requests", "Points"]);
    let mut client = Client::new(server.address);
    let mut points = None;
    for label in [
        "ours, the route",
        "the time series, an aggregation",
        "one document a trade, index by date, ticker and qty",
        "over the buckets of the history",
    ] {
        let (mut seconds, mut last) = (Vec::new(), (0, 0));
        for _ in 0..settings.rounds {
            let (time, requests, found) = match label {
                "ours, the route" => walk(&mut client, ROUTE).await?,
                "the time series, an aggregation" => {
                    aggregate(&ours, "trades_series", "$meta.ticker", false).await?
                }
                "over the buckets of the history" => {
                    aggregate(&ours, COLLECTION, "$history.ticker", true).await?
                }
                _ => aggregate(&flat, COLLECTION, "$ticker", false).await?,
            };
            seconds.push(time);
            last = (requests, found);
        }
        if *points.get_or_insert(last.1) != last.1 {
            return Err(format!("{label}: {} points", last.1).into());
        }
        let seconds = Spread::of(seconds).ok_or("no run")?.show(|seconds| format!("{seconds:.3}"));
        section.row(label, [seconds, last.0.to_string(), grouped(last.1)]);
    }
    section.lines.push(format!("- Fed from the pages at {} items a second.", grouped(fed as u64)));
    // The view of this name has no size.
    let builds = ours.collection::<Document>("series").find_one(doc! { "_id": "trades" }).await?;
    let number = builds.ok_or("the time series has a build")?.get_i64("current")?;
    let measurements = format!("trades_series_{number}");
    for (label, database, collection) in [
        ("the time series", &ours, &*measurements),
        ("the history", &ours, COLLECTION),
        ("one document a trade", &flat, COLLECTION),
    ] {
        let [documents, .., all] = Disk::of(database, collection).await?.cells(count, 1);
        section
            .lines
            .push(format!("- Bytes an item, {label}: {documents} of documents, {all} on disk with indexes."));
    }
    report.sections.push(section);
    server.stop().await?;
    flat.drop().await?;
    Ok(ours.drop().await?)
}

/// The same by the database.
async fn aggregate(
    database: &Database,
    collection: &str,
    ticker: &str,
    buckets: bool,
) -> Result<(f64, u64, u64)> {
    let began = Instant::now();
    let range = doc! { "$gte": DateTime::from_millis(BEGIN), "$lt": DateTime::from_millis(BEGIN + MONTH) };
    let mut pipeline = match buckets {
        true => vec![
            doc! { "$match": { "last": { "$gte": DateTime::from_millis(BEGIN) }, "first": { "$lt": DateTime::from_millis(BEGIN + MONTH) } } },
            doc! { "$unwind": "$history" },
            doc! { "$match": { "history.date": range } },
        ],
        false => vec![doc! { "$match": { "date": range } }],
    };
    let item = |name: &str| if buckets { format!("$history.{name}") } else { format!("${name}") };
    pipeline.push(doc! { "$group": {
        "_id": { "hour": { "$dateTrunc": { "date": item("date"), "unit": "hour" } }, "ticker": ticker },
        "count": { "$sum": 1 }, "qty": { "$sum": item("qty") },
    } });
    pipeline.push(doc! { "$sort": { "_id": 1 } });
    let found = database.collection::<Document>(collection).aggregate(pipeline).allow_disk_use(true).await?;
    let points = found.try_collect::<Vec<_>>().await?.len() as u64;
    Ok((began.elapsed().as_secs_f64(), 1, points))
}

/// Appends to a history with a time series beside one without.
async fn appends(Bench { settings, mongod, .. }: &Bench, report: &mut Report) -> Result<()> {
    let without = Server::ours(mongod.store("bench_series_without").await?, |_| ()).await?;
    let with = Server::ours(mongod.store_of("bench_series_with", definitions()?).await?, |_| ()).await?;
    let about = "Appends of one trade over 64 connections to 1,000 customers, to a history with a time series beside one without. The time series is fed meanwhile, \
                 and has all items before the next block.";
    let comparisons = compare(RATE, "with / without ≥ 0.9");
    let database = mongod.database("bench_series_with").await?;
    // A feeder that is busy pauses for two seconds: some are in each block.
    let (timing, servers) = (Timing::millis(4_500, 9_000), [("with", &with), ("without", &without)]);
    let outcome = Outcome::new("appends", about, "appends", comparisons);
    let outcome = outcome.in_turns(servers.map(|(label, _)| label), settings, async |place, round| {
        let mut load = Load::append(64, 1, Customers::Uniform(1..=1_000), Some(timing));
        load.seed = round;
        let block = load.run(servers[place].1.address).await?;
        until_fed(&database).await?;
        Ok(Summary::new(block, Verdict::default()))
    });
    let outcome = outcome.await?;
    let mut section = Section::of(&outcome, RATES_AND_LATENCIES);
    let stored = database.collection::<Document>("trades_series").count_documents(doc! {}).await?;
    section.lines.push(format!("- {} items were fed by the end.", grouped(stored)));
    report.workload(&outcome, section);
    for server in [with, without] {
        server.stop().await?;
    }
    Ok(())
}

/// Waits until the time series has all items of the history.
async fn until_fed(database: &Database) -> Result<()> {
    let count = doc! { "$group": { "_id": null, "items": { "$sum": "$count" } } };
    let mut counted = database.collection::<Document>(COLLECTION).aggregate([count]).await?;
    let items = counted.try_next().await?.and_then(|items| items.get_i32("items").ok()).unwrap_or(0);
    let (series, began) = (database.collection::<Document>("trades_series"), Instant::now());
    while series.count_documents(doc! {}).await? < items as u64 {
        sleep(Duration::from_millis(100)).await;
        if began.elapsed() > Duration::from_secs(120) {
            return Err("the time series is not fed".into());
        }
    }
    Ok(())
}

/// The same items in collections that differ in granularity, and in whether the metaField has the owner.
async fn meta(Bench { settings, mongod, .. }: &Bench, report: &mut Report) -> Result<()> {
    let count: u64 = if settings.quick { 50_000 } else { 500_000 };
    let about = format!(
        "{} trades of a month, inserted in the order of their dates, {TICKERS} tickers. The query: volume by hour and ticker of all of them. \
         Medians and quartiles of {} runs.",
        grouped(count),
        settings.rounds
    );
    let head = ["Owners", "metaField", "Bytes an item", "Items a bucket", "Query, s"];
    let mut section = Section::new("meta", about, &head);
    for granularity in ["seconds", "minutes", "hours"] {
        for owners in [10, 1_000, 100_000] {
            for has_owner in [true, false] {
                let database = mongod.database("bench_series_meta").await?;
                database.drop().await?;
                eprintln!("bench: series: meta, {granularity}, {owners} owners, with the owner: {has_owner}");
                let options = doc! { "timeField": "date", "metaField": "meta", "granularity": granularity };
                database.run_command(doc! { "create": "items", "timeseries": options }).await?;
                let items = database.collection::<Document>("items");
                for first in (0..count).step_by(5_000) {
                    let measurement = |number: u64| {
                        let mut item = trade(number, count);
                        let ticker = item.remove("ticker");
                        let owner = (number.wrapping_mul(0xd134_2543_de82_ef95) >> 33) % owners;
                        let meta = match has_owner {
                            true => doc! { "owner": owner as i64, "ticker": ticker },
                            false => {
                                item.insert("owner", owner as i64);
                                doc! { "ticker": ticker }
                            }
                        };
                        item.extend(doc! { "meta": meta, "seq": number as i64 });
                        item
                    };
                    let end = (first + 5_000).min(count);
                    items.insert_many((first..end).map(measurement)).ordered(false).await?;
                }
                let stats = database.run_command(doc! { "collStats": "items" }).await?;
                let stats = stats.get_document("timeseries")?.get("bucketCount").cloned();
                let buckets = stats.and_then(|count| count.as_i32().map(f64::from)).unwrap_or(f64::NAN);
                let [.., all] = Disk::of(&database, "items").await?.cells(count, 1);
                let mut seconds = Vec::new();
                for _ in 0..settings.rounds {
                    seconds.push(aggregate(&database, "items", "$meta.ticker", false).await?.0);
                }
                let seconds = Spread::of(seconds).ok_or("no run")?.show(|seconds| format!("{seconds:.3}"));
                let meta = if has_owner { "owner, ticker" } else { "ticker" };
                let bucket = format!("{:.1}", count as f64 / buckets);
                section.row(granularity, [grouped(owners), meta.to_owned(), all, bucket, seconds]);
                database.drop().await?;
            }
        }
    }
    report.sections.push(section);
    Ok(())
}
