//! Live streams: how soon another instance shows an append, what idle streams cost, and what many readers of
//! one owner cost.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, State};
use axum::response::Sse;
use axum::response::sse::Event;
use axum::routing::get;
use futures_util::{Stream, StreamExt};
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::harness::{
    Bench, Block, CLOSED_LOOP, COLLECTION, Client, Customers, LATENCY, Layout, Load, Outcome, P99, RATE,
    Report, Result, Section, Server, Spread, Summary, Timing, Verdict, Window, compare, grouped, on_its_own,
    take_quantities,
};

pub const PARTS: [&str; 3] = ["lag", "idle", "crowd"];

/// Trades of one customer that are appended in a second while many read it.
const OFFERED: u32 = 500;

/// How many more reads of the database there may be in a second with many readers than with one.
const MORE_READS: f64 = 1.1;

/// The most that an idle stream takes of the server's memory, in KiB, beside its connection.
const EXPECTED: f64 = 12.0;

pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    if bench.settings.includes("lag") {
        lag(bench, report).await?;
    }
    if bench.settings.includes("idle") {
        idle(bench, report).await?;
    }
    if bench.settings.includes("crowd") {
        crowd(bench, report).await?;
    }
    Ok(())
}

/// A trade is appended at one instance, by itself, and read at another: by our stream, or by a change stream
/// of the driver behind a minimal handler.
async fn lag(Bench { settings, mongod, .. }: &Bench, report: &mut Report) -> Result<()> {
    let name = "bench_live";
    let database = Layout::Ours.create(mongod, name).await?;
    let writer = Server::program(mongod, name, &[]).await?;
    let ours = Server::ours(mongod.store(name).await?, |_| ()).await?;
    let again = Server::ours(mongod.store(name).await?, |_| ()).await?;
    let peer = Server::peer(change_streams(mongod.database(name).await?), false).await?;
    let readers = [
        ("ours", &ours),
        ("ours again", &again),
        ("a plain change stream", &peer),
        ("a plain change stream again", &peer),
    ];
    let about = "One trade at a time is appended at an instance: from its request to its event at a reader of another \
                 server. A majority has a trade before its client knows, so an event may come before the acknowledgement.";
    let mut comparisons = compare(
        LATENCY,
        "ours / a plain change stream ≤ 1.3; ours again / ours; a plain change stream again / a plain change stream",
    );
    comparisons.extend(compare(P99, "ours / a plain change stream ≤ 1.3"));
    let (timing, from) = (settings.timing(2.0), writer.address);
    let mut lags: [Vec<f64>; 4] = Default::default();
    let outcome = Outcome::new("lag", about, "appends", comparisons);
    let outcome = outcome.in_turns(readers.map(|(label, _)| label), settings, async |place, _| {
        let to = readers[place].1.address;
        let block = on_its_own(async move {
            let mut events = Events::of(to, "/v1/customers/7/trades/live").await?;
            let (mut client, mut block, mut lags) = (Client::new(from), Block::default(), Vec::new());
            let window = Window::open(Some(timing));
            while !window.is_over() {
                let (sent, lag) = events.seen(&mut client).await?;
                block.answered(window, sent, 1, true);
                lags.push(lag);
                // No two appends are one commit, or one batch of changes.
                sleep(Duration::from_millis(rand::random_range(1..8))).await;
            }
            Ok((Block::merge([block], window), lags))
        });
        let (block, lagged) = block.await?;
        lags[place].extend(lagged);
        Ok(Summary::new(block, Verdict::default()))
    });
    let outcome = outcome.await?;
    let mut section = Section::of(&outcome, CLOSED_LOOP);
    let mut after = Vec::new();
    for ((label, _), mut lags) in readers.iter().zip(lags) {
        lags.sort_unstable_by(f64::total_cmp);
        let p99 = *lags.get(lags.len() * 99 / 100).ok_or("no events")?;
        let lag = Spread::of(lags).ok_or("no events")?;
        let shown = lag.show(|lag| format!("{lag:.2}"));
        section.lines.push(format!("- {label}: {shown} ms after the acknowledgement, p99 {p99:.2} ms"));
        after.push([lag.median, p99]);
    }
    report.workload(&outcome, section);
    for (place, name) in ["median", "p99"].into_iter().enumerate() {
        let compared = format!("{name} after the acknowledgement, ours / a plain change stream");
        let [ratio, noise] =
            [(0, 2), (1, 0)].map(|(one, other): (usize, usize)| after[one][place] / after[other][place]);
        report.expect(
            ["lag", &compared, "≤ 1.3", &format!("{ratio:.2}")],
            ratio <= 1.3,
            &format!("{noise:.2}"),
        );
    }
    for server in [writer, ours, again, peer] {
        server.stop().await?;
    }
    Ok(database.drop().await?)
}

/// The rival: each stream is a change stream on the buckets of a customer, whose changes are sent as they
/// are.
fn change_streams(database: Database) -> Router {
    Router::new().route("/v1/customers/{customer}/trades/live", get(changes)).with_state(database)
}

async fn changes(
    State(database): State<Database>,
    Path(customer): Path<u64>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let own = doc! { "$match": { "documentKey._id": { "$regex": format!("^{customer}_") } } };
    let changes = database.collection::<Document>(COLLECTION).watch().pipeline([own]).await;
    let changes = changes.expect("a change stream").with_type::<Document>();
    Sse::new(changes.filter_map(async |change| {
        let json = Bson::Document(change.ok()?).into_relaxed_extjson().to_string();
        Some(Ok(Event::default().data(json)))
    }))
}

/// What a live stream has shown: quantities of trades, and when they came.
struct Events(UnboundedReceiver<(u64, Instant)>);

impl Events {
    async fn of(server: SocketAddr, path: &str) -> Result<Self> {
        let mut stream = open(server, path).await?;
        let (sender, shown) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut read = Vec::new();
            while stream.read_buf(&mut read).await.is_ok_and(|count| count > 0) {
                let now = Instant::now();
                let Some(end) = read.windows(2).rposition(|end| end == b"\n\n") else { continue };
                for quantity in quantities(&String::from_utf8_lossy(&read[..end])) {
                    sender.send((quantity, now)).ok();
                }
                read.drain(..end);
            }
        });
        Ok(Self(shown))
    }

    /// Appends a trade, and waits until it is shown: when it was sent, and how many milliseconds after the
    /// acknowledgement it was shown.
    async fn seen(&mut self, client: &mut Client) -> Result<(Instant, f64)> {
        let (trade, sent) = (take_quantities(1), Instant::now());
        if !client.append(7, &trade, None).await? {
            return Err("an append was refused".into());
        }
        let acknowledged = Instant::now();
        loop {
            let shown = timeout(Duration::from_secs(10), self.0.recv()).await?;
            let (quantity, at) = shown.ok_or("the stream has ended")?;
            if quantity == trade.start {
                let [before, after] =
                    [acknowledged - sent, at - sent].map(|passed| passed.as_secs_f64() * 1000.0);
                return Ok((sent, after - before));
            }
        }
    }
}

/// The quantities in events, ours or of changes.
fn quantities(events: &str) -> impl Iterator<Item = u64> {
    let after = events.split("\"qty\":").skip(1);
    after.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
}

/// Opens a connection, and a stream on it.
async fn open(server: SocketAddr, path: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(server).await?;
    stream.set_nodelay(true)?;
    ask(&mut stream, path).await?;
    Ok(stream)
}

/// Reads the head of an answer, and what comes with it.
async fn ask(stream: &mut TcpStream, path: &str) -> Result<()> {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await?;
    let mut head = [0; 4096];
    let count = timeout(Duration::from_secs(30), stream.read(&mut head)).await??;
    match head[..count].starts_with(b"HTTP/1.1 200") {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&head[..count]).into_owned().into()),
    }
}

/// Two instances: one has many streams, each of another customer, and both are asked to append for others.
async fn idle(Bench { settings, mongod, .. }: &Bench, report: &mut Report) -> Result<()> {
    let (name, readers) = ("bench_idle", if settings.quick { 1_000 } else { 10_000 });
    let database = Layout::Ours.create(mongod, name).await?;
    // One address may have a quarter of the places.
    let flags = ["--max-live=40000", "--max-connections=16000", "--max-connections-per-address=16000"];
    let (watched, quiet) =
        (Server::program(mongod, name, &flags).await?, Server::program(mongod, name, &flags).await?);
    let timing = settings.timing(1.0);
    let others = Customers::Uniform(20_001..=30_000);
    for server in [&watched, &quiet] {
        Load::append(64, 1, others.clone(), Some(timing)).run(server.address).await?;
    }
    Load::append(64, 8, Customers::each(1..=readers), None).run(watched.address).await?;
    eprintln!("bench: idle: opening {readers} streams");
    let before = watched.resident()?.0;
    let mut streams = Vec::with_capacity(readers as usize);
    for customer in 1..=readers {
        streams.push(open(watched.address, &format!("/v1/customers/{customer}")).await?);
    }
    let between = watched.resident()?.0;
    for (customer, stream) in (1..).zip(&mut streams) {
        ask(stream, &format!("/v1/customers/{customer}/trades/live")).await?;
    }
    // What another instance appends is the last that the server keeps of each history.
    Load::append(64, 1, Customers::each(1..=readers), None).run(quiet.address).await?;
    // Longer than the server keeps what readers have read last.
    sleep(Duration::from_secs(8)).await;
    let [connection, each] =
        [between - before, watched.resident()?.0 - between].map(|mib| 1024.0 * mib / readers as f64);
    let many = format!("with {} idle streams", grouped(readers));
    let comparisons = compare(RATE, &format!("{many} / without ≥ 0.95"));
    let about = "64 connections append for customers whom no stream shows, at an instance with idle streams and at one without.";
    let servers = [watched.address, quiet.address];
    let outcome = Outcome::new("idle", about, "appends", comparisons);
    let outcome = outcome.in_turns([many.as_str(), "without"], settings, async |place, _| {
        let load = Load::append(64, 1, others.clone(), Some(timing));
        Ok(Summary::new(load.run(servers[place]).await?, Verdict::default()))
    });
    let outcome = outcome.await?;
    let mut section = Section::of(&outcome, CLOSED_LOOP);
    section
        .lines
        .push(format!("- memory: {connection:.1} KiB a connection, {each:.1} KiB more for its idle stream"));
    report.workload(&outcome, section);
    let (most, measured) = (format!("≤ {EXPECTED} KiB"), format!("{each:.1} KiB"));
    report.expect(
        ["idle", "memory of a stream, over its connection", &most, &measured],
        each <= EXPECTED,
        "",
    );
    drop(streams);
    for server in [watched, quiet] {
        server.stop().await?;
    }
    Ok(database.drop().await?)
}

/// One customer's trades are appended at a steady rate, and read by one stream or by many.
async fn crowd(Bench { settings, mongod, .. }: &Bench, report: &mut Report) -> Result<()> {
    let (name, many) = ("bench_crowd", if settings.quick { 100 } else { 1_000 });
    let database = Layout::Ours.create(mongod, name).await?;
    // One address may have a quarter of the places.
    let flags = ["--max-live=40000", "--max-connections=4000", "--max-connections-per-address=4000"];
    let server = Server::program(mongod, name, &flags).await?;
    let (address, timing) = (server.address, settings.timing(2.0));
    let labels = ["one reader".to_owned(), format!("{} readers", grouped(many))];
    let about = format!(
        "16 connections append trades of one customer, {OFFERED} a second if they are answered in time, while one stream shows them \
         or {} do.",
        grouped(many)
    );
    let (mut reads, mut shown): ([Vec<f64>; 2], [Vec<f64>; 2]) = Default::default();
    let outcome = Outcome::new("crowd", &about, "appends", Vec::new());
    let outcome = outcome.in_turns([&*labels[0], &*labels[1]], settings, async |place, _| {
        let items = Arc::new(AtomicU64::new(0));
        let mut streams = JoinSet::new();
        for _ in 0..[1, many][place] {
            let stream = open(address, "/v1/customers/7/trades/live").await?;
            streams.spawn(count_items(stream, Arc::clone(&items)));
        }
        let (began, before) = (Instant::now(), finds(&database).await?);
        let block = append_steadily(address, timing).await?;
        let in_a_second = |count: f64| count / began.elapsed().as_secs_f64();
        reads[place].push(in_a_second((finds(&database).await? - before) as f64));
        shown[place].push(in_a_second(items.load(Ordering::Relaxed) as f64));
        Ok(Summary::new(block, Verdict::default()))
    });
    let outcome = outcome.await?;
    let mut section = Section::of(&outcome, CLOSED_LOOP);
    let mut medians = Vec::new();
    for (label, (reads, shown)) in labels.iter().zip(reads.into_iter().zip(shown)) {
        let (reads, shown) = (Spread::of(reads).ok_or("no run")?, Spread::of(shown).ok_or("no run")?);
        let line = format!(
            "- {label}: {} reads of the database a second, {} items shown a second",
            reads.show(|reads| format!("{reads:.0}")),
            shown.show(|shown| grouped(shown as u64)),
        );
        section.lines.push(line);
        medians.push(reads.median);
    }
    report.workload(&outcome, section);
    let (most, more) = (format!("≤ {MORE_READS}"), medians[1] / medians[0]);
    let compared = format!("reads of the database a second, {} / {}", labels[1], labels[0]);
    report.expect(["crowd", &compared, &most, &format!("{more:.2}")], more <= MORE_READS, "");
    server.stop().await?;
    Ok(database.drop().await?)
}

/// Counts the items that a stream shows, until it ends.
async fn count_items(mut stream: TcpStream, items: Arc<AtomicU64>) {
    const ITEM: &[u8] = b"\"qty\":";
    let mut read = Vec::new();
    while stream.read_buf(&mut read).await.is_ok_and(|count| count > 0) {
        let found = read.windows(ITEM.len()).filter(|bytes| *bytes == ITEM).count();
        items.fetch_add(found as u64, Ordering::Relaxed);
        // The rest may be the begin of one.
        read.drain(..read.len().saturating_sub(ITEM.len() - 1));
    }
}

/// Appends trades of customer 7.
async fn append_steadily(to: SocketAddr, timing: Timing) -> Result<Block> {
    const CONNECTIONS: u32 = 16;
    let window = Window::open(Some(timing));
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        connections.spawn(async move {
            let (mut client, mut block) = (Client::new(to), Block::default());
            let mut ticks = interval(Duration::from_secs(1) * CONNECTIONS / OFFERED);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while !window.is_over() {
                ticks.tick().await;
                let (trade, sent) = (take_quantities(1), Instant::now());
                let is_stored = client.append(7, &trade, None).await?;
                block.answered(window, sent, 1, is_stored);
            }
            Ok(block)
        });
    }
    let blocks: Result<Vec<Block>> = connections.join_all().await.into_iter().collect();
    Ok(Block::merge(blocks?, window))
}

/// How many `find` commands the database has run.
async fn finds(database: &Database) -> Result<i64> {
    let status = database.run_command(doc! { "serverStatus": 1 }).await?;
    let count = status.get_document("opcounters")?.get("query").and_then(Bson::as_i64);
    Ok(count.ok_or("the server counts no reads")?)
}
