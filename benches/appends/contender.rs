//! Who is measured: a server or a bare driver, with a database of its own.

use std::net::SocketAddr;

use mongodb::Database;
use tokio::task::JoinHandle;

use crate::Result;
use crate::block::{Block, next_quantity};
use crate::check::{self, Shape, Verdict};
use crate::history::{self, Layout};
use crate::limits::{Commands, Limit};
use crate::load::{self, Load};
use crate::mongod::Mongod;
use crate::ours::Ours;
use crate::peers::Peer;
use crate::shell;

/// What to start.
#[derive(Clone, Copy)]
pub enum Kind {
    /// With so many pages in each history of `history::CUSTOMERS`.
    Ours {
        pages: u64,
    },
    Manual {
        pages: u64,
    },
    Flat,
    TimeSeries,
    Limit(Commands),
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
        let peer = async |peer: Peer| shell::serve(peer).await.map(|(at, task)| Running::Peer(at, task));
        let (shape, running) = match kind {
            Kind::Ours { pages } => {
                let store = Ours::prepare(mongod, name).await?;
                history::write(&database, Layout::Ours, pages).await?;
                (Shape::Buckets, Running::Ours(Ours::start(store).await?))
            }
            Kind::Manual { pages } => {
                history::write(&database, Layout::Manual, pages).await?;
                (Shape::Buckets, peer(Peer::manual(&database)).await?)
            }
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

    /// Puts it under load, and looks afterwards at what it has stored.
    pub async fn block(&self, load: Load) -> Result<(Block, Verdict)> {
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
