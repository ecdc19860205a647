//! What grows with the number of owners: the same requests over more and more histories of one full page,
//! with a cache of the database that holds the fewest of them and no others.

use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};

use crate::harness::{
    Bench, COLLECTION, Client, Customers, Disk, Form, Layout, Load, Report, Result, Section, Server, Summary,
    Verdict, Work, family_time, grouped, write_history,
};

pub const PARTS: [&str; 1] = ["owners"];

/// GB of the cache of mongod: the least that it takes.
pub const CACHE: &str = "0.25";

const DATABASE: &str = "bench_grow";
const CONNECTIONS: usize = 64;

/// So many owners have their pages in the memory of the service.
const HOT: u64 = 100;

/// The most documents and keys that a request examines, however many owners there are: a page by its key, the
/// newest page of the owner, and what opens a page.
const MOST_EXAMINED: f64 = 6.0;

/// The most times that the service needs for a request, and of memory, with the most owners compared with a
/// tenth of them.
const MOST_TIMES: f64 = 2.0;

/// A workload, by its name in the report.
struct Kind {
    name: &'static str,
    about: &'static str,
    /// Among so many owners.
    work: fn(u64) -> Work,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "appends",
        about: "One trade to any owner. Mostly it opens a page, because the one that is there is full.",
        work: |owners| Work::Append { trades: 1, customers: Customers::Uniform(1..=owners) },
    },
    Kind {
        name: "listings",
        about: "The first page of any owner, by its number, with totals.",
        work: |owners| first_page(owners, Form::Listed),
    },
    Kind {
        name: "pages",
        about: "The first page of any owner, as it is stored.",
        work: |owners| first_page(owners, Form::Stored),
    },
    Kind {
        name: "cached pages",
        about: "The first page of one of a hundred owners, as it is stored.",
        work: |_| first_page(HOT, Form::Stored),
    },
];

fn first_page(owners: u64, form: Form) -> Work {
    Work::Read { customers: Customers::Uniform(1..=owners), pages: 1..=1, form }
}

const HEAD: [&str; 9] = [
    "Requests/s",
    "p50 ms",
    "p99 ms",
    "Server µs",
    "Database µs",
    "Documents examined",
    "Keys examined",
    "KiB read into cache",
    "Server MiB",
];

pub async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let sizes: &[u64] =
        if bench.settings.quick { &[10_000, 100_000] } else { &[10_000, 1_000_000, 10_000_000] };
    let database = Layout::Ours.create(&bench.mongod, DATABASE).await?;
    let about = format!(
        "Owners with one full page each, written past the service. mongod has a cache of {CACHE} GB. The service is a process of its \
         own, started for each number of owners. MiB resident: after its start, and the most while it did all of the work below. \
         Bytes an owner on disk are those of documents and indexes."
    );
    let mut memory = Section::new(
        "owners",
        about,
        &["Service, idle", "Service, at most", "Documents", "Data", "Free", "Indexes", "Disk"],
    );
    let mut sections = KINDS.map(|Kind { name, about, .. }| {
        let about = format!(
            "{about} {CONNECTIONS} connections, one block. Processor time, what the database examined, and what it read from files \
             into its cache are those of one request."
        );
        Section::new(name, about, &HEAD)
    });
    // With the owners before: what a request of each workload took, in µs, and the memory of the service, in
    // MiB.
    let (mut times, mut memories) = ([0.0; KINDS.len()], 0.0);
    let mut before = String::new();
    let mut written = 0;
    for &owners in sizes {
        eprintln!("bench: grow: writing up to {owners} owners");
        write_history(&database, Layout::Ours, (written + 1, owners, 1)).await?;
        written = owners;
        // What is still to be written is not part of the work.
        bench.mongod.database("admin").await?.run_command(doc! { "fsync": 1 }).await?;
        let server = Server::program(&bench.mongod, DATABASE, &[]).await?;
        Client::new(server.address).get("/v1/customers/1/trades", "").await?;
        let (idle, _) = server.resident()?;
        let label = format!("{} owners", grouped(owners));
        let is_last = Some(&owners) == sizes.last();
        let mut expect = |name: &str, what: &str, most: f64, measured: f64| {
            let most_words = format!("≤ {most}");
            report.expect([name, what, &most_words, &format!("{measured:.2}")], measured <= most, "");
        };
        let than_before = format!("{label} / {before}");
        for ((Kind { name, work, .. }, section), time) in KINDS.iter().zip(&mut sections).zip(&mut times) {
            eprintln!("bench: grow: {name}");
            let Measured { cells, server_time, examined } =
                measure(bench, &server, &database, work(owners)).await?;
            section.row(&label, cells);
            if is_last {
                expect(name, &format!("examined a request, {label}"), MOST_EXAMINED, examined);
                let what = format!("processor time of the service a request, {than_before}");
                expect(name, &what, MOST_TIMES, server_time / *time);
            }
            *time = server_time;
        }
        let (_, most) = server.resident()?;
        if is_last {
            expect(
                "all of it",
                &format!("memory of the service, {than_before}"),
                MOST_TIMES,
                most / memories,
            );
        }
        (memories, before) = (most, label.clone());
        server.stop().await?;
        let disk = Disk::of(&database, COLLECTION).await?.cells(owners, 1);
        memory.row(&label, [format!("{idle:.0}"), format!("{most:.0}")].into_iter().chain(disk));
    }
    report.sections.push(memory);
    report.sections.extend(sections);
    Ok(database.drop().await?)
}

/// What a block shows.
struct Measured {
    cells: Vec<String>,
    /// Of a request, in µs.
    server_time: f64,
    /// Documents and keys, of a request.
    examined: f64,
}

async fn measure(bench: &Bench, server: &Server, database: &Database, work: Work) -> Result<Measured> {
    let timing = bench.settings.timing(if bench.settings.quick { 2.0 } else { 4.0 });
    let load = Load {
        connections: CONNECTIONS,
        work,
        keyed: false,
        timing: Some(timing),
        seed: bench.settings.seed,
    };
    let look = async || -> Result<([f64; 2], [f64; 3])> {
        let times = [server.id(), bench.mongod.id()].map(|id| family_time(id).as_micros() as f64);
        Ok((times, counters(database).await?))
    };
    let (times, counts) = look().await?;
    let block = load.run(server.address).await?;
    let (later_times, later_counts) = look().await?;
    let requests = block.answers.max(1) as f64;
    if block.measured_failed > 0 {
        return Err(format!("{} of {requests} requests failed", block.measured_failed).into());
    }
    let [server_time, database_time] = [0, 1].map(|at| (later_times[at] - times[at]) / requests);
    let [documents, keys, bytes] = [0, 1, 2].map(|at| (later_counts[at] - counts[at]) / requests);
    let (resident, _) = server.resident()?;
    let Summary { rate, p50, p99, .. } = Summary::new(block, Verdict::default());
    let cells = vec![
        grouped(rate as u64),
        format!("{p50:.2}"),
        format!("{p99:.2}"),
        format!("{server_time:.0}"),
        format!("{database_time:.0}"),
        format!("{documents:.2}"),
        format!("{keys:.2}"),
        format!("{:.1}", bytes / 1024.0),
        format!("{resident:.0}"),
    ];
    Ok(Measured { cells, server_time, examined: documents + keys })
}

/// Documents and keys that the database has examined, and bytes that it has read into its cache.
async fn counters(database: &Database) -> Result<[f64; 3]> {
    let status = database.run_command(doc! { "serverStatus": 1 }).await?;
    let number = |path: &[&str]| -> Result<f64> {
        let (name, parents) = path.split_last().ok_or("no path")?;
        let parent =
            parents.iter().try_fold(&status, |document: &Document, name| document.get_document(name))?;
        match parent.get(name) {
            Some(Bson::Int64(number)) => Ok(*number as f64),
            Some(Bson::Int32(number)) => Ok(f64::from(*number)),
            Some(Bson::Double(number)) => Ok(*number),
            _ => Err(format!("serverStatus has no {name}").into()),
        }
    };
    Ok([
        number(&["metrics", "queryExecutor", "scannedObjects"])?,
        number(&["metrics", "queryExecutor", "scanned"])?,
        number(&["wiredTiger", "cache", "bytes read into cache"])?,
    ])
}
