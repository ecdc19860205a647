//! Stages: contenders on databases of trades, and the workloads that they go through.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use pagebucket_service::ServiceConfig;

use super::peers::{self, Way};
use super::{Bench, Postgres, Result, family_time, gate, own_time, take_quantities};
use super::{
    Block, Client, Commands, Comparison, Contender, Customers, History, Layout, Limit, Load, Outcome,
};
use super::{POOL, Running, Server, Storage, Summary, Timing, Verdict, Window, Work};
use crate::reads::npm;

/// Contenders, and the workloads they go through, in this order.
pub struct Stage {
    pub name: &'static str,
    /// Those that this machine cannot start are left out.
    pub setups: Vec<Setup>,
    /// Customers 1 to this get one trade each beforehand: a history that exists, in a server that knows it.
    pub seeded: u64,
    pub workloads: Vec<Workload>,
}

/// What to start.
#[derive(Clone, Copy)]
pub struct Setup {
    pub label: &'static str,
    pub kind: Kind,
    /// `None`: in PostgreSQL.
    pub layout: Option<Layout>,
    /// Contenders of a stage that give the same name share a database.
    pub database: &'static str,
    pub histories: &'static [History],
    /// Whether each append has an `Idempotency-Key`.
    pub keyed: bool,
}

#[derive(Clone, Copy)]
pub enum Kind {
    /// With its defaults except for this change.
    Ours(fn(&mut ServiceConfig)),
    /// The same behind a gate that asks for a token.
    Guarded,
    /// The program in a process of its own, with traces of this share of the requests, if any.
    Traced(Option<&'static str>),
    Peer(Way),
    /// Rows in PostgreSQL behind the same shell.
    Postgres,
    /// A find by `_id` in our buckets, with our layers or without any.
    ById {
        layers: bool,
    },
    /// Bytes with which the stage's first contender answers, from memory.
    SameBytes {
        layers: bool,
    },
    /// A library from npm, by its name.
    Npm(&'static str),
    Limit(Commands),
}

/// A kind of load on some of the stage's contenders.
pub struct Workload {
    /// As `ONLY` names it.
    pub part: &'static str,
    pub name: &'static str,
    /// What is done, in a sentence or two.
    pub about: &'static str,
    /// What a rate counts.
    pub unit: &'static str,
    pub connections: usize,
    pub timing: Timing,
    pub entries: Vec<Entry>,
    pub comparisons: Vec<Comparison>,
}

/// One series: a contender that is asked in one way.
pub struct Entry {
    pub label: String,
    pub contender: &'static str,
    pub work: Work,
}

/// A series for each contender, labelled as it is, all asked in the same way.
pub fn each(contenders: &[&'static str], work: &Work) -> Vec<Entry> {
    let entry =
        |&contender: &&'static str| Entry { label: contender.to_owned(), contender, work: work.clone() };
    contenders.iter().map(entry).collect()
}

impl Setup {
    /// On a database of its own without histories.
    pub fn new(label: &'static str, kind: Kind, layout: Layout) -> Self {
        Self { label, kind, layout: Some(layout), database: label, histories: &[], keyed: false }
    }

    pub fn postgres(histories: &'static [History]) -> Self {
        let (label, kind) = ("PostgreSQL", Kind::Postgres);
        Self { label, kind, layout: None, database: label, histories, keyed: false }
    }

    /// Whether this machine can start it.
    fn can_start(&self, bench: &Bench) -> bool {
        match self.kind {
            Kind::Npm(_) => npm::installed().is_some(),
            Kind::Postgres => bench.postgres.is_some(),
            _ => true,
        }
    }
}

impl Contender<Limit, Storage> {
    fn address(&self) -> Option<SocketAddr> {
        if let Running::Server(server) = &self.running { Some(server.address) } else { None }
    }

    /// Puts it under load, and looks afterwards at what it has stored.
    async fn block(&self, bench: &Bench, load: Load) -> Result<Summary> {
        let first = take_quantities(0).start;
        let appends = matches!(load.work, Work::Append { .. } | Work::NewestAndAppends { .. });
        let database = match &self.database {
            Storage::Mongo(..) => bench.mongod.id(),
            Storage::Postgres(_) => bench.postgres.as_ref().and_then(Postgres::id),
        };
        let times = || [own_time(), family_time(database)];
        let before = times();
        let block = match &self.running {
            Running::Server(server) => load.run(server.address).await?,
            Running::Driver(limit) => limit.block(Window::open(load.timing)).await?,
        };
        let [own, database] = times();
        let micros = |time: Duration| time.as_micros() as f64 / block.answers.max(1) as f64;
        let server = micros((own - before[0]).saturating_sub(block.load));
        let database = micros(database.saturating_sub(before[1]));
        let verdict = if appends { self.database.judge(first, &block).await? } else { Verdict::default() };
        Ok(Summary { server, database, ..Summary::new(block, verdict) })
    }

    /// Sends a request and its repeat, and looks whether the trade is stored once: a server that ignores keys
    /// would be measured without their cost.
    async fn try_a_repeat(&self, address: SocketAddr) -> Result<()> {
        let (mut client, key, trade) = (Client::new(address), rand::random(), take_quantities(1));
        for _ in 0..2 {
            client.append(1, &trade, Some(key)).await?;
        }
        let mut once = Block::default();
        once.appended(&trade, true);
        match self.database.judge(trade.start, &once).await? {
            Verdict { lost: 0, wrong: 0, .. } => Ok(()),
            _ => Err(format!("{} does not store a repeated request's trade once", self.label).into()),
        }
    }
}

/// A contender with what it was started as.
type Started = (Setup, Contender<Limit, Storage>);

impl Stage {
    /// Starts the contenders, runs the workloads that are asked for, and stops the contenders.
    pub async fn run(mut self, bench: &Bench) -> Result<Vec<Outcome>> {
        let settings = &bench.settings;
        self.workloads.retain(|workload| settings.includes(workload.part));
        if self.workloads.is_empty() {
            return Ok(Vec::new());
        }
        let entries = self.workloads.iter().flat_map(|workload| &workload.entries);
        let asked: BTreeSet<&str> = entries.map(|entry| entry.contender).collect();
        let mut started: Vec<Started> = Vec::new();
        for setup in &self.setups {
            // The first is started in any case: others have bytes from it.
            let needed = started.is_empty() || asked.contains(setup.label);
            if needed && setup.can_start(bench) {
                let contender = self.start(*setup, bench, &started).await?;
                started.push((*setup, contender));
            }
        }
        let mut outcomes = Vec::new();
        for workload in self.workloads {
            outcomes.push(workload.run(&started, bench).await?);
        }
        let mut databases = Vec::new();
        for (_, contender) in started {
            databases.push(contender.stop().await?);
        }
        for database in databases {
            database.drop_database().await?;
        }
        Ok(outcomes)
    }

    async fn start(
        &self,
        setup: Setup,
        bench: &Bench,
        started: &[Started],
    ) -> Result<Contender<Limit, Storage>> {
        let mongod = &bench.mongod;
        eprintln!("bench: {}: starting {}", self.name, setup.label);
        let name = setup.database.replace(|c: char| !c.is_alphanumeric(), "_");
        let name = format!("bench_{}_{name}", self.name);
        let storage = match setup.layout {
            Some(layout) if started.iter().any(|(other, _)| other.database == setup.database) => {
                Storage::Mongo(layout, mongod.database(&name).await?)
            }
            layout => {
                let storage = Storage::create(bench, layout, &name, POOL as usize).await?;
                for history in setup.histories {
                    storage.write_history(*history).await?;
                }
                storage
            }
        };
        let label = setup.label.to_owned();
        let server = match (setup.kind, &storage) {
            (Kind::Ours(change), _) => Server::ours(mongod.store(&name).await?, change).await?,
            (Kind::Guarded, _) => Server::behind(gate().await?, mongod.store(&name).await?, |_| ()).await?,
            (Kind::Traced(share), _) => Server::traced(mongod, &name, share).await?,
            (Kind::Peer(way), Storage::Mongo(_, database)) => {
                Server::peer(peers::routes(database, way), true).await?
            }
            (Kind::Postgres, Storage::Postgres(pool)) => {
                Server::peer(peers::postgres(pool.clone()), true).await?
            }
            (Kind::ById { layers }, Storage::Mongo(_, database)) => {
                Server::peer(peers::by_id(database), layers).await?
            }
            (Kind::SameBytes { layers }, _) => {
                let ours = started.first().and_then(|(_, first)| first.address());
                let bytes = peers::same_bytes(ours.ok_or("no server to have the bytes from")?).await?;
                Server::peer(bytes, layers).await?
            }
            (Kind::Npm(library), _) => npm::serve(library, mongod, &name).await?,
            (Kind::Limit(commands), Storage::Mongo(_, database)) => {
                let running = Running::Driver(Limit::new(database, commands).await?);
                return Ok(Contender { label, database: storage, running });
            }
            _ => return Err(format!("{label} is not on its own database").into()),
        };
        let address = server.address;
        let contender = Contender { label, database: storage, running: Running::Server(server) };
        if setup.keyed {
            contender.try_a_repeat(address).await?;
        }
        if self.seeded > 0 {
            let load = Load::append(64, 1, Customers::each(1..=self.seeded), None);
            let seeded = contender.block(bench, Load { keyed: setup.keyed, ..load }).await?;
            if seeded.failed > 0.0 {
                return Err(format!("{} refused first trades", setup.label).into());
            }
        }
        Ok(contender)
    }
}

impl Workload {
    async fn run(self, started: &[Started], bench: &Bench) -> Result<Outcome> {
        let settings = &bench.settings;
        let Self { name, about, unit, connections, timing, entries, comparisons, .. } = self;
        for label in comparisons.iter().flat_map(|compared| [&compared.subject, &compared.against]) {
            if entries.iter().all(|entry| entry.label != *label) {
                return Err(format!("{name} compares {label}, which is none of its series").into());
            }
        }
        let running = |entry: Entry| {
            let (setup, contender) = started.iter().find(|(setup, _)| setup.label == entry.contender)?;
            Some((entry, setup, contender))
        };
        let entries: Vec<_> = entries.into_iter().filter_map(running).collect();
        let block = async |place: usize, round: u64| {
            let (entry, setup, contender) = &entries[place];
            let work = match &entry.work {
                Work::Append { trades, customers } => {
                    Work::Append { trades: *trades, customers: customers.in_round(round) }
                }
                work => work.clone(),
            };
            let seed = settings.seed.wrapping_add(round * 1000);
            let load = Load { connections, work, keyed: setup.keyed, timing: Some(timing), seed };
            contender.block(bench, load).await
        };
        let labels = entries.iter().map(|(entry, ..)| &entry.label);
        Outcome::new(name, about, unit, comparisons).in_turns(labels, settings, block).await
    }
}
