//! Who is measured: a server or a bare driver, with a database of its own.

use std::net::SocketAddr;

use axum::Router;
use mongodb::Database;
use tokio::task::JoinHandle;

use crate::harness::Result;
use crate::harness::block::{Block, next_quantity, take_quantities};
use crate::harness::check::{self, Shape, Verdict};
use crate::harness::client::{Client, Key};
use crate::harness::history;
use crate::harness::load::{self, Append, Load};
use crate::harness::mongod::Mongod;
use crate::harness::ours::Ours;
use crate::harness::peers::Peer;
use crate::harness::shell;
use crate::limits::{Commands, Limit};

/// Customers 1 to this have the long history. A limit to what has to be written before the first block:
/// 32 customers with 10,000 pages are 320,000 buckets a contender.
pub const CUSTOMERS: u64 = 32;

/// What to start.
#[derive(Clone, Copy)]
pub enum Kind {
    /// With so many pages in each history of [`CUSTOMERS`].
    Ours {
        pages: u64,
    },
    /// The same without long histories, asked with an `Idempotency-Key` in each request.
    OursKeyed,
    Manual {
        pages: u64,
    },
    Flat,
    /// Asked with the same keys, which it keeps.
    FlatKeyed,
    TimeSeries,
    Limit(Commands),
}

impl Kind {
    /// Whether its requests have keys.
    pub fn keyed(self) -> bool {
        matches!(self, Self::OursKeyed | Self::FlatKeyed)
    }
}

/// A contender that is running.
pub struct Contender {
    pub label: &'static str,
    pub kind: Kind,
    database: Database,
    shape: Shape,
    running: Running,
}

enum Running {
    Ours(Ours),
    Peer(SocketAddr, JoinHandle<()>),
    Limit(Limit),
}

impl Contender {
    /// Starts it on a new database.
    pub async fn start(mongod: &Mongod, name: &str, label: &'static str, kind: Kind) -> Result<Self> {
        let database = mongod.database(name).await?;
        let peer = async |peer: Peer| {
            let routes = Router::new().route(shell::TRADES, shell::appends(peer));
            shell::serve(shell::layered(routes)).await.map(|(at, task)| Running::Peer(at, task))
        };
        let (shape, running) = match kind {
            Kind::Ours { pages } => {
                let store = Ours::prepare(mongod, name).await?;
                history::write(&database, history::ours, 1..=CUSTOMERS, pages).await?;
                (Shape::Buckets, Running::Ours(Ours::start(store, &[]).await?))
            }
            Kind::Manual { pages } => {
                history::write(&database, history::manual, 1..=CUSTOMERS, pages).await?;
                (Shape::Buckets, peer(Peer::manual(&database)).await?)
            }
            Kind::OursKeyed => {
                let store = Ours::prepare(mongod, name).await?;
                (Shape::Buckets, Running::Ours(Ours::start(store, &[]).await?))
            }
            Kind::FlatKeyed => (Shape::Flat, peer(Peer::flat_with_ids(&database).await?).await?),
            Kind::Flat => (Shape::Flat, peer(Peer::flat(&database).await?).await?),
            Kind::TimeSeries => (Shape::Flat, peer(Peer::time_series(&database).await?).await?),
            Kind::Limit(commands) => {
                let shape = match commands {
                    Commands::Statements(_) => {
                        Ours::prepare(mongod, name).await?;
                        Shape::Buckets
                    }
                    Commands::Inserts { .. } => {
                        Peer::flat(&database).await?;
                        Shape::Flat
                    }
                    Commands::Ping { .. } => Shape::Nothing,
                };
                (shape, Running::Limit(Limit::new(database.clone(), commands).await?))
            }
        };
        Ok(Self { label, kind, database, shape, running })
    }

    /// Whether it is a server, which can be put under load.
    pub fn is_server(&self) -> bool {
        !matches!(self.running, Running::Limit(_))
    }

    /// Sends a request and its repeat, and looks whether the trade is stored once: a server that does not heed
    /// keys would be measured without their cost.
    pub async fn try_a_repeat(&self) -> Result<()> {
        let address = match &self.running {
            Running::Ours(ours) => ours.address,
            Running::Peer(address, _) => *address,
            Running::Limit(_) => return Ok(()),
        };
        let (mut client, key, trade) = (Client::new(address), Key::fresh(), take_quantities(1));
        for _ in 0..2 {
            client.append(CUSTOMERS, &trade, Some(key)).await?;
        }
        let mut once = Block::default();
        once.appended(&trade, true);
        let Verdict { lost: 0, wrong: 0, .. } =
            check::judge(&self.database, self.shape, trade.start, &once).await?
        else {
            return Err(format!("{} does not store a repeated request's trade once", self.label).into());
        };
        Ok(())
    }

    /// Puts it under load, and looks afterwards at what it has stored.
    pub async fn block(&self, load: Load<Append>) -> Result<(Block, Verdict)> {
        let first = next_quantity();
        let block = match &self.running {
            Running::Ours(ours) => load::run(ours.address, load).await?,
            Running::Peer(address, _) => load::run(*address, load).await?,
            Running::Limit(limit) => limit.block(load.window()).await?,
        };
        let verdict = check::judge(&self.database, self.shape, first, &block).await?;
        Ok((block, verdict))
    }

    /// Stops it, and drops its database.
    pub async fn stop(self) -> Result<()> {
        match self.running {
            Running::Ours(ours) => ours.stop().await?,
            Running::Peer(_, serving) => serving.abort(),
            Running::Limit(_) => {}
        }
        Ok(self.database.drop().await?)
    }
}
