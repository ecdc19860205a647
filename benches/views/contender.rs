//! Who is measured: a server or a bare driver, with a database of its own.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use mongodb::{Client as Driver, Database};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::harness::Result;
use crate::harness::block::Block;
use crate::harness::check::Verdict;
use crate::harness::client::Client;
use crate::harness::mongod::{Mongod, POOL};
use crate::harness::ours::Ours;
use crate::harness::shell;
use crate::ledger::Ledger;
use crate::open_loop::{self, Answers, Arrivals, Counter, PROCESSES};
use crate::preallocation;
use crate::upsert::{self, Concern, Upserts};
use crate::views::{MinuteNumber, View};

/// Where views are counted.
const COUNTING: &str = "/v1/page-views";

/// Who counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The real server.
    Ours,
    /// A second one, in a database of its own.
    Again,
    /// `updateOne` by the driver, without HTTP.
    Driver,
    /// The same statement behind a minimal handler in our shell.
    Plain,
    /// The same on our collection, with its validator and its second index.
    Guarded,
}

/// What to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    pub kind: Kind,
    pub concern: Concern,
    /// Whether the minutes are there before they are counted in.
    pub preallocated: bool,
}

impl Setup {
    /// As most are: majority and journal, and no preallocation.
    pub fn of(kind: Kind) -> Self {
        Self { kind, concern: Concern::Majority, preallocated: false }
    }

    pub fn preallocated(self) -> Self {
        Self { preallocated: true, ..self }
    }

    pub fn at_w1(self) -> Self {
        Self { concern: Concern::One, ..self }
    }
}

/// The label of a series.
impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Ours => "ours",
            Kind::Again => "ours again",
            Kind::Driver => "bare driver",
            Kind::Plain => "plain upsert",
            Kind::Guarded => "plain upsert, our collection",
        })?;
        f.write_str(if self.concern == Concern::One { ", w: 1" } else { "" })?;
        f.write_str(if self.preallocated { ", preallocated" } else { "" })
    }
}

/// A contender that is running.
pub struct Contender {
    pub setup: Setup,
    /// How long preallocating an hour of all pages took, the longest of those that were.
    pub preallocating: Mutex<Duration>,
    database: Database,
    running: Running,
    ledger: Mutex<Ledger>,
    next_minute: AtomicU32,
}

enum Running {
    Ours(Ours),
    Peer(SocketAddr, JoinHandle<()>),
    /// One for each process.
    Drivers(Vec<Upserts>),
}

impl Contender {
    /// Starts it on a new database.
    pub async fn start(mongod: &Mongod, stage: &str, setup: Setup) -> Result<Self> {
        let journal = if setup.concern == Concern::One { "w1" } else { "j" };
        let empty = if setup.preallocated { "preallocated" } else { "empty" };
        let name = format!("bench_{stage}_{:?}_{journal}_{empty}", setup.kind).to_lowercase();
        eprintln!("bench: {stage}: starting {setup}");
        let database = mongod.database(&name).await?;
        let running = match setup.kind {
            Kind::Ours | Kind::Again => {
                let store = Ours::prepare(mongod, &name).await?;
                let store = match setup.concern {
                    Concern::One => store.counting_at_w1(),
                    Concern::Majority => store,
                };
                Running::Ours(Ours::start(store, &[]).await?)
            }
            Kind::Driver => {
                upsert::prepare(&database).await?;
                let mut drivers = Vec::new();
                for _ in 0..PROCESSES {
                    // Together they have as many connections as each of the others.
                    let pool = POOL as usize / PROCESSES;
                    let driver = Driver::with_uri_str(format!("{}&maxPoolSize={pool}", mongod.uri())).await?;
                    drivers.push(Upserts::new(&driver.database(&name), setup.concern));
                }
                Running::Drivers(drivers)
            }
            Kind::Plain | Kind::Guarded => {
                if setup.kind == Kind::Guarded {
                    drop(Ours::prepare(mongod, &name).await?);
                } else {
                    upsert::prepare(&database).await?;
                }
                let counting = upsert::handler(Upserts::new(&database, setup.concern));
                let routes = Router::new().route(COUNTING, counting);
                let (address, serving) = shell::serve(shell::layered(routes)).await?;
                Running::Peer(address, serving)
            }
        };
        let contender = Self {
            setup,
            preallocating: Mutex::default(),
            database,
            running,
            ledger: Mutex::default(),
            next_minute: AtomicU32::new(0),
        };
        Ok(contender)
    }

    /// So many minutes in which nothing was counted yet: the first of them. They are there if this setup has them so.
    pub async fn take_minutes(&self, minutes: u32) -> Result<MinuteNumber> {
        const HOUR: u32 = 60;
        let first = self.next_minute.fetch_add(minutes, Ordering::Relaxed);
        let after = first + minutes;
        if self.setup.preallocated {
            for hour in first.div_ceil(HOUR)..after.div_ceil(HOUR) {
                let began = Instant::now();
                match &self.running {
                    Running::Ours(ours) => preallocation::ask(ours.address, hour * HOUR).await?,
                    _ => upsert::preallocate(&self.database, hour * HOUR..(hour + 1) * HOUR).await?,
                }
                let mut longest = self.preallocating.lock().await;
                *longest = longest.max(began.elapsed());
            }
        }
        Ok(first)
    }

    /// Lets views come in, through so many connections, and looks afterwards at what is stored.
    pub async fn block(&self, connections: usize, arrivals: Arrivals) -> Result<(Block, Answers, Verdict)> {
        let window = arrivals.timing.measured;
        let each = connections / PROCESSES;
        let answers = match &self.running {
            Running::Ours(ours) => over_http(ours.address, each, arrivals).await?,
            Running::Peer(address, _) => over_http(*address, each, arrivals).await?,
            Running::Drivers(drivers) => {
                let counters = drivers.iter().map(|driver| vec![driver.clone(); each]).collect();
                open_loop::run(counters, arrivals).await?
            }
        };
        let verdict = self.ledger.lock().await.judge(&self.database, &answers.told).await?;
        if verdict.lost + verdict.wrong > 0 {
            eprintln!(
                "bench: {}: {} views lost, {} counted wrongly",
                self.setup, verdict.lost, verdict.wrong
            );
        }
        Ok((answers.block(window), answers, verdict))
    }

    /// Stops it, and drops its database.
    pub async fn stop(self) -> Result<()> {
        match self.running {
            Running::Ours(ours) => ours.stop().await?,
            Running::Peer(_, serving) => serving.abort(),
            Running::Drivers(_) => {}
        }
        Ok(self.database.drop().await?)
    }
}

/// From a thread with a runtime of its own, as the other benchmarks' load: a scheduler shared with the servers
/// would let them wake each other for free.
async fn over_http(address: SocketAddr, each: usize, arrivals: Arrivals) -> Result<Answers> {
    let on_its_own = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let connections = || (0..each).map(|_| Connection(Client::new(address))).collect();
        runtime.block_on(open_loop::run((0..PROCESSES).map(|_| connections()).collect(), arrivals))
    };
    tokio::task::spawn_blocking(on_its_own).await?
}

/// One connection to a server.
struct Connection(Client);

impl Counter for Connection {
    async fn ready(&mut self) -> Result<()> {
        Ok(self.0.connect().await?)
    }

    async fn count(&mut self, view: View) -> bool {
        let Ok(json) = view.json() else { return false };
        self.0.post(COUNTING, &json).await.is_ok_and(|answer| answer.status == 204)
    }
}
