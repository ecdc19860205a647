//! Contenders that count views, each in a database of its own.

use std::net::SocketAddr;

use mongodb::Client as Driver;
use mongodb::bson::doc;
use pagebucket_page_views::COLLECTION;
use tokio::task::JoinSet;

use super::ledger::Ledger;
use super::open_loop::{self, Answers, Arrivals, Counter, PROCESSES};
use super::upsert::{self, Upserts};
use super::view::{MinuteNumber, PAGES, path, start};
use crate::harness::{Client, Contender, Mongod, POOL, Result, Running, Server, Verdict, index, on_its_own};

/// A contender that is running. Its label says what it is:
///
/// - `ours`, or `ours again` for a second one: the real server;
/// - `bare driver`: `updateOne` by the driver, without HTTP;
/// - `plain upsert`: the same statement behind a minimal handler in our shell, `, our collection` with our
///   validator and our second index;
/// - `, w: 1`: acknowledged as published, and not at majority and journal;
/// - `, preallocated`: the minutes are there before they are counted in.
pub struct Counting {
    /// Its drivers are one for each process.
    contender: Contender<Vec<Upserts>>,
    told: Ledger,
    next_minute: MinuteNumber,
}

impl Counting {
    /// Starts it on a new database.
    pub async fn start(mongod: &Mongod, part: &str, label: &str) -> Result<Self> {
        eprintln!("bench: {part}: starting {label}");
        let name = format!("bench_{part}_{}", label.replace(|c: char| !c.is_alphanumeric(), "_"));
        let database = mongod.database(&name).await?;
        let w1 = label.contains(", w: 1");
        let store = if label.starts_with("ours") || label.contains(", our collection") {
            Some(mongod.store(&name).await?)
        } else {
            index(&database, COLLECTION, doc! { "page": 1, "timestamp": 1 }, true).await?;
            None
        };
        let running = match store {
            Some(store) if label.starts_with("ours") => {
                let store = if w1 { store.counting_at_w1() } else { store };
                // All views come from one client, which has a quarter of the places.
                Running::Server(Server::ours(store, |config| config.api.max_requests = 4096).await?)
            }
            _ if label.starts_with("bare driver") => {
                let mut drivers = Vec::new();
                for _ in 0..PROCESSES {
                    // Together they have as many connections as each of the others.
                    let pool = POOL as usize / PROCESSES;
                    let driver = Driver::with_uri_str(format!("{}&maxPoolSize={pool}", mongod.uri())).await?;
                    drivers.push(Upserts::new(&driver.database(&name), w1));
                }
                Running::Driver(drivers)
            }
            _ => Running::Server(Server::peer(upsert::routes(Upserts::new(&database, w1)), true).await?),
        };
        let contender = Contender { label: label.to_owned(), database, running };
        Ok(Self { contender, told: Ledger::default(), next_minute: 0 })
    }

    pub fn label(&self) -> &str {
        &self.contender.label
    }

    /// So many minutes in which nothing was counted yet: the first of them. They are there if this setup has
    /// them so.
    pub async fn take_minutes(&mut self, minutes: u32) -> Result<MinuteNumber> {
        const HOUR: u32 = 60;
        let first = self.next_minute;
        self.next_minute += minutes;
        if self.label().ends_with(", preallocated") {
            for hour in first.div_ceil(HOUR)..self.next_minute.div_ceil(HOUR) {
                match &self.contender.running {
                    Running::Server(server) if self.label().starts_with("ours") => {
                        ask_for_hour(server.address, hour * HOUR).await?;
                    }
                    _ => {
                        upsert::preallocate(&self.contender.database, hour * HOUR..(hour + 1) * HOUR).await?;
                    }
                }
            }
        }
        Ok(first)
    }

    /// Lets views come in, through so many connections, and looks afterwards at what is stored.
    pub async fn block(&mut self, connections: usize, arrivals: Arrivals) -> Result<(Answers, Verdict)> {
        let each = connections / PROCESSES;
        let mut answers = match &self.contender.running {
            Running::Server(server) => {
                let connections = |_| (0..each).map(|_| Counter::Http(Client::new(server.address))).collect();
                on_its_own(open_loop::run((0..PROCESSES).map(connections).collect(), arrivals)).await?
            }
            Running::Driver(drivers) => {
                let counters =
                    |driver: &Upserts| (0..each).map(|_| Counter::Driver(Box::new(driver.clone()))).collect();
                open_loop::run(drivers.iter().map(counters).collect(), arrivals).await?
            }
        };
        let minutes = self.told.add(std::mem::take(&mut answers.told));
        let verdict = self.told.judge(&self.contender.database, &minutes).await?;
        if verdict.lost + verdict.wrong > 0 {
            let Verdict { lost, wrong, .. } = verdict;
            eprintln!("bench: {}: {lost} views lost, {wrong} counted wrongly", self.label());
        }
        Ok((answers, verdict))
    }

    /// Stops it, and drops its database.
    pub async fn stop(self) -> Result<()> {
        Ok(self.contender.stop().await?.drop().await?)
    }
}

/// Asks ours for the hour of all pages that begins with this minute.
async fn ask_for_hour(address: SocketAddr, hour: MinuteNumber) -> Result<()> {
    const AT_ONCE: u32 = 16;
    let hour = pagebucket_model::domain::Instant::from_millis(start(hour))?;
    let mut asking = JoinSet::new();
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
