//! Whether preallocation pays: what it can bring at most, and what it takes on disk.

use std::net::SocketAddr;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::{Collection, Database};
use pagebucket::domain::{Instant, Minute, PageView};
use pagebucket::store::page_views::COLLECTION;
use pagebucket::store::{COMMAND, Deadline, Store};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::contender::{Contender, Kind, Setup};
use crate::harness::Result;
use crate::harness::check::number;
use crate::harness::client::Client;
use crate::harness::comparison::Expected::Nothing;
use crate::harness::comparison::Metric::{Mean, P99};
use crate::harness::comparison::compare;
use crate::harness::mongod::Mongod;
use crate::harness::ours::Ours;
use crate::harness::settings::{Settings, Timing};
use crate::harness::turns::{Outcome, Summary, in_turns};
use crate::open_loop::Arrivals;
use crate::scenario::USERS;
use crate::upsert;
use crate::views::{MinuteNumber, PAGES, Pattern, bucket, path, start};

/// As `ONLY` names it.
pub const STAGE: &str = "preallocation";

const CONNECTIONS: usize = 128;

/// Asks ours for the hour of all pages that begins with this minute.
pub async fn ask(address: SocketAddr, hour: MinuteNumber) -> Result<()> {
    const AT_ONCE: u32 = 16;
    let hour = Instant::from_millis(start(hour)?)?;
    let mut asking = tokio::task::JoinSet::new();
    for first in 1..=AT_ONCE {
        asking.spawn(async move {
            let mut client = Client::new(address);
            for page in (first..=PAGES).step_by(AT_ONCE as usize) {
                let json = format!(r#"{{"path":"{}","hour":"{hour}"}}"#, path(page));
                let answer = client.post("/v1/page-views/preallocations", &json).await?;
                if answer.status != 201 {
                    let body = String::from_utf8_lossy(answer.body);
                    return Err(format!("a preallocation was answered {}: {body}", answer.status).into());
                }
            }
            Ok(())
        });
    }
    asking.join_all().await.into_iter().collect()
}

/// Users who each are the first in a minute of a page, with and without preallocation: it cannot bring more.
pub async fn first_views(mongod: &Mongod, settings: &Settings) -> Result<(Outcome, Vec<(String, Duration)>)> {
    let (ours, driver) = (Setup::of(Kind::Ours), Setup::of(Kind::Driver));
    let mut contenders = Vec::new();
    for setup in [ours, ours.preallocated(), driver, driver.preallocated()] {
        contenders.push(Contender::start(mongod, STAGE, setup).await?);
    }
    let labels = contenders.iter().map(|contender| contender.setup.to_string());
    let timing = Timing {
        warm_up: Duration::from_millis(200),
        measured: Duration::from_millis(if settings.quick { 500 } else { 1000 }),
    };
    let minutes = ((timing.warm_up + timing.measured).as_secs_f64() * USERS / f64::from(PAGES)).ceil() as u32;
    let block = async |place: usize, round: u64| {
        let arrivals = Arrivals {
            per_second: USERS,
            timing,
            pattern: Pattern::First { from: contenders[place].take_minutes(minutes).await? },
            seed: settings.seed.wrapping_add(round),
            patience: Duration::from_secs(10),
        };
        let (block, _, verdict) = contenders[place].block(CONNECTIONS, arrivals).await?;
        Ok(Summary::new(&block, verdict))
    };
    let series = in_turns("first views of a minute", labels, settings, block).await?;
    let mut took = Vec::new();
    for contender in contenders {
        if contender.setup.preallocated {
            took.push((contender.setup.to_string(), *contender.preallocating.lock().await));
        }
        contender.stop().await?;
    }
    let comparisons = [ours, driver].into_iter().flat_map(|setup| {
        [Mean, P99]
            .map(|metric| compare(setup.preallocated().to_string(), metric, setup.to_string(), Nothing))
    });
    let outcome = Outcome {
        name: "first views of a minute",
        about: "1,000 users a second, each the first in a minute of a page: an insert, or with preallocation an \
                update. Preallocation cannot bring more than here: in the scenario one view in 25 is a first one.",
        unit: "views",
        comparisons: comparisons.collect(),
        series,
    };
    Ok((outcome, took))
}

/// Views in a minute of a page: as many as the scenario counts there.
pub const VIEWS: u32 = 25;

/// Bytes of a minute of a page, after a checkpoint.
pub struct Disk {
    pub label: &'static str,
    /// Minutes of pages.
    pub documents: u64,
    /// The document before compression.
    pub document: f64,
    /// The file with the documents, free blocks included.
    pub data: f64,
    /// Of that, what is free to be used again.
    pub free: f64,
    pub indexes: f64,
}

/// Counts the same views in ours twice, with and without preallocation.
pub async fn disk(mongod: &Mongod, settings: &Settings) -> Result<Vec<Disk>> {
    let minutes = if settings.quick { 3 } else { 10 };
    let documents = u64::from(minutes * PAGES);
    let mut measured = Vec::new();
    for preallocated in [false, true] {
        let name = format!("bench_{STAGE}_disk_{preallocated}");
        let label = if preallocated { "preallocated, counted" } else { "counted" };
        eprintln!("bench: {STAGE}: {} views, {label}", u64::from(VIEWS) * documents);
        let store = Ours::prepare(mongod, &name).await?;
        let database = mongod.database(&name).await?;
        if preallocated {
            upsert::preallocate(&database, 0..minutes).await?;
            measured.push(look(mongod, &database, "preallocated", documents).await?);
        }
        let mut rng = StdRng::seed_from_u64(settings.seed);
        for minute in 0..minutes {
            for _ in 0..VIEWS {
                count_once(&store, minute, &mut rng).await?;
            }
        }
        measured.push(look(mongod, &database, label, documents).await?);
        database.drop().await?;
    }
    Ok(measured)
}

/// One view of each page in a minute.
async fn count_once(store: &Store, minute: MinuteNumber, rng: &mut StdRng) -> Result<()> {
    let mut view = |page| -> Result<PageView> {
        let (path, minute): (_, Minute) = bucket(page, minute)?;
        let at = Instant::from_millis(minute.start().millis() + rng.random_range(0..60_000))?;
        Ok(PageView { path, at, views: 1 })
    };
    let views: Result<Vec<PageView>> = (1..=PAGES).map(&mut view).collect();
    Ok(store.page_views().count(views?, Deadline::within(COMMAND)).await?)
}

async fn look(mongod: &Mongod, database: &Database, label: &'static str, documents: u64) -> Result<Disk> {
    mongod.database("admin").await?.run_command(doc! { "fsync": 1 }).await?;
    let collection: Collection<Document> = database.collection(COLLECTION);
    let found = collection.count_documents(doc! {}).await?;
    if found != documents {
        return Err(format!("{found} minutes of pages where there should be {documents}").into());
    }
    let stats = database.run_command(doc! { "collStats": COLLECTION }).await?;
    let each = |field| number(&stats, field).map(|bytes| bytes / documents as f64);
    Ok(Disk {
        label,
        documents,
        document: each("size")?,
        data: each("storageSize")?,
        free: each("freeStorageSize")?,
        indexes: each("totalIndexSize")?,
    })
}
