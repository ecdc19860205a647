//! Summaries by day of a million trades of one customer: from pages, from tiles, and by aggregations of the
//! database.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{DateTime, Decimal128, Document, doc};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::sleep;

use crate::harness::{
    Bench, COLLECTION, Client, Disk, Layout, Report, Result, Section, Server, Spread, grouped, page_of, walk,
};

pub const PARTS: [&str; 2] = ["dense", "sparse"];

/// How many times faster a dense summary must be than an aggregation over one document a trade.
const FASTER: f64 = 20.0;
/// The most bytes of tiles a trade of a dense history.
const BYTES: f64 = 2.0;

/// The question, and the first page of its answer.
const ROUTE: &str = "/v1/customers/1/trades/summary?by=1d&group=ticker&limit=1000";

/// Trades of a customer: how many a day, of how many symbols.
struct Kind {
    name: &'static str,
    about: &'static str,
    a_day: u64,
    symbols: u64,
}

const KINDS: [Kind; 2] = [
    Kind { name: "dense", about: "2,000 a day of 5 symbols, in 6.5 hours", a_day: 2_000, symbols: 5 },
    Kind { name: "sparse", about: "one a day of each of 500 symbols, in 24 hours", a_day: 500, symbols: 500 },
];

pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    for kind in KINDS.iter().filter(|kind| bench.settings.includes(kind.name)) {
        measure(bench, report, kind).await?;
    }
    Ok(())
}

async fn measure(Bench { settings, mongod, .. }: &Bench, report: &mut Report, kind: &Kind) -> Result<()> {
    let count: u64 = if settings.quick { 100_000 } else { 1_000_000 };
    let (name, pages) = (format!("bench_summaries_{}", kind.name), count / 10);
    let ours = Layout::Ours.create(mongod, &name).await?;
    let flat = Layout::Flat("date").create(mongod, &format!("{name}_flat")).await?;
    eprintln!("bench: summaries: {}, {count} trades", kind.name);
    write(&ours, &flat, kind, count, settings.seed).await?;
    let server = Server::ours(mongod.store(&name).await?, |_| ()).await?;
    let about = format!(
        "A summary by day and symbol of {} trades of one customer, {}: count, sum of `qty`, and of `price` open, high, low, close \
         and the volume-weighted average. Ours: all answers of `limit=1000` along `links.next`. Aggregations compute the same, \
         with decimals that the server rounds. Medians and quartiles of {} runs; the first call is one.",
        grouped(count),
        kind.about,
        settings.rounds
    );
    let mut section = Section::new(kind.name, about, &["Seconds", "Requests", "Points"]);
    let mut client = Client::new(server.address);
    let (first, requests, points) = walk(&mut client, ROUTE).await?;
    section.row("ours, first call", [format!("{first:.3}"), requests.to_string(), grouped(points)]);
    let began = Instant::now();
    let tiles = ours.collection::<Document>("summary_tiles");
    // The last page is in no tile.
    while tiles.count_documents(doc! {}).await? < (pages - 1) / 64 {
        sleep(Duration::from_millis(50)).await;
        if began.elapsed() > Duration::from_secs(600) {
            return Err("the tiles were not made".into());
        }
    }
    section
        .lines
        .push(format!("- All tiles were made {:.1} s after the first call.", began.elapsed().as_secs_f64()));
    let mut medians = Vec::new();
    for label in ["ours, later calls", "one document a trade, index by date", "over the buckets"] {
        let mut seconds = Vec::new();
        let mut last = (0, 0);
        for _ in 0..settings.rounds {
            let (time, requests, points) = match label {
                "ours, later calls" => walk(&mut client, ROUTE).await?,
                "over the buckets" => aggregate(&ours, true).await?,
                _ => aggregate(&flat, false).await?,
            };
            seconds.push(time);
            last = (requests, points);
        }
        let spread = Spread::of(seconds).ok_or("no run")?;
        medians.push(spread.median);
        section.row(
            label,
            [spread.show(|seconds| format!("{seconds:.3}")), last.0.to_string(), grouped(last.1)],
        );
        if last.1 != points {
            return Err(format!("{label}: {} points, not {points}", last.1).into());
        }
    }
    let grouped_tiles =
        tiles.count_documents(doc! { "size": { "$gt": 0 }, "grouped": { "$exists": false } }).await?;
    let ungrouped = tiles.count_documents(doc! { "grouped": false }).await?;
    let stored = tiles.find(doc! {}).projection(doc! { "size": 1 }).await?.try_collect::<Vec<_>>().await?;
    let bytes: i64 = stored.iter().map(|tile| i64::from(tile.get_i32("size").unwrap_or(0))).sum();
    let bytes = bytes as f64 / count as f64;
    let [documents, data, ..] = Disk::of(&ours, "summary_tiles").await?.cells(count, 2);
    section.lines.push(format!(
        "- Of {} tiles {grouped_tiles} have groups and {ungrouped} have none; the others are stubs. Bytes a trade: {bytes:.2} of points, {documents} of documents, {data} on disk.",
        stored.len()
    ));
    let [faster, over_buckets] = [medians[1] / medians[0], medians[2] / medians[0]];
    section.lines.push(format!("- Later calls are {faster:.1} × as fast as one document a trade, {over_buckets:.1} × as fast as an aggregation over the buckets."));
    if kind.name == "dense" {
        let row = [
            "dense, later calls",
            "speed, ours / one document a trade",
            &format!("≥ {FASTER}"),
            &format!("{faster:.1}"),
        ];
        report.expect(row, faster >= FASTER, "");
        let row = ["dense", "bytes of points a trade", &format!("< {BYTES}"), &format!("{bytes:.2}")];
        report.expect(row, bytes < BYTES, "");
    }
    report.sections.push(section);
    server.stop().await?;
    flat.drop().await?;
    Ok(ours.drop().await?)
}

/// Writes the same trades as buckets and as single documents.
async fn write(ours: &Database, flat: &Database, kind: &Kind, count: u64, seed: u64) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut cents: Vec<i64> = (0..kind.symbols).map(|_| random.random_range(1_000..100_000)).collect();
    // 2004-01-05, and 13:30 for the hours of an exchange.
    let (day, open, hours) =
        (1_073_260_800_000_i64, 48_600_000, if kind.name == "dense" { 6.5 } else { 24.0 });
    let mut trades = (0..count).map(|number| {
        let symbol = if kind.name == "dense" { random.random_range(0..kind.symbols) } else { number % kind.symbols };
        cents[symbol as usize] = (cents[symbol as usize] + random.random_range(-9..=9)).max(100);
        let price: Decimal128 = format!("{:.2}", cents[symbol as usize] as f64 / 100.0).parse().expect("a decimal");
        let after = (number % kind.a_day) as f64 / kind.a_day as f64 * hours * 3_600.0;
        let open = if kind.name == "dense" { open } else { 0 };
        let date = day + (number / kind.a_day) as i64 * 86_400_000 + open + after as i64 * 1_000;
        doc! {
            "type": "buy", "ticker": format!("S{symbol}"), "qty": random.random_range(1..1_000_i64), "date": DateTime::from_millis(date),
            "price": price,
        }
    });
    let (buckets, documents) =
        (ours.collection::<Document>(COLLECTION), flat.collection::<Document>(COLLECTION));
    for first in (1..=count / 10).step_by(200) {
        let (mut full, mut single) = (Vec::new(), Vec::new());
        for page in first..(first + 200).min(count / 10 + 1) {
            let items: Vec<Document> = trades.by_ref().take(10).collect();
            let (bucket, documents_of_page) = page_of(1, page, items);
            full.push(bucket);
            single.extend(documents_of_page);
        }
        buckets.insert_many(full).await?;
        documents.insert_many(single).await?;
    }
    Ok(())
}

/// The same by the database: over single documents in the order of the index, or over the items of buckets.
async fn aggregate(database: &Database, buckets: bool) -> Result<(f64, u64, u64)> {
    let began = Instant::now();
    let item = |name: &str| if buckets { format!("$history.{name}") } else { format!("${name}") };
    let (date, price, qty) = (item("date"), item("price"), item("qty"));
    let first_and_last = |top: &str, plain: &str| match buckets {
        true => doc! { top: { "sortBy": { "history.date": 1 }, "output": &price } },
        false => doc! { plain: &price },
    };
    let mut pipeline = vec![doc! { "$match": { "customerId": 1_i64 } }];
    pipeline.push(if buckets {
        doc! { "$unwind": "$history" }
    } else {
        doc! { "$sort": { "customerId": 1, "date": 1 } }
    });
    pipeline.push(doc! { "$group": {
        "_id": { "day": { "$dateTrunc": { "date": date, "unit": "day" } }, "ticker": item("ticker") },
        "count": { "$sum": 1 }, "qty": { "$sum": &qty },
        "open": first_and_last("$top", "$first"), "close": first_and_last("$bottom", "$last"),
        "high": { "$max": &price }, "low": { "$min": &price }, "weighted": { "$sum": { "$multiply": [&price, &qty] } },
    } });
    pipeline.push(doc! { "$sort": { "_id": 1 } });
    let found = database.collection::<Document>(COLLECTION).aggregate(pipeline).allow_disk_use(true).await?;
    let points = found.try_collect::<Vec<_>>().await?.len() as u64;
    Ok((began.elapsed().as_secs_f64(), 1, points))
}
