//! Who is measured: a server that reads from one of the databases.

use std::net::SocketAddr;

use axum::Router;
use mongodb::Database;
use tokio::task::JoinHandle;

use crate::fastify::{self, Fastify};
use crate::harness::Result;
use crate::harness::block::{Block, next_quantity};
use crate::harness::check::{self, Shape, Verdict};
use crate::harness::client::Client;
use crate::harness::load::{self, Load};
use crate::harness::mongod::Mongod;
use crate::harness::ours::Ours;
use crate::harness::peers::Peer;
use crate::harness::shell;
use crate::histories::Data;
use crate::minimal;
use crate::readers::Reader;
use crate::reading;

/// What to start.
#[derive(Clone, Copy)]
pub enum Kind {
    /// With its defaults but for these flags.
    Ours(Data, &'static [&'static str]),
    Manual,
    Flat,
    /// Flat that counts nothing.
    Skipping,
    Keyset,
    /// A find by `_id` in ours' buckets, behind our layers or behind none.
    ById {
        layers: bool,
    },
    /// Bytes that the contender started first has answered, from memory.
    SameBytes {
        layers: bool,
    },
    /// A library from npm, by its name.
    Npm(&'static str),
}

/// A contender that is running.
pub struct Contender {
    pub label: &'static str,
    address: SocketAddr,
    database: Database,
    shape: Shape,
    running: Running,
}

enum Running {
    Ours(Ours),
    Peer(JoinHandle<()>),
    /// Until it is dropped.
    Process {
        _server: Fastify,
    },
}

impl Kind {
    pub fn data(self) -> Data {
        match self {
            Self::Ours(data, _) => data,
            Self::ById { .. } | Self::SameBytes { .. } => Data::Ours,
            Self::Manual => Data::Manual,
            Self::Flat | Self::Skipping | Self::Keyset | Self::Npm(_) => Data::Flat,
        }
    }

    /// Whether this machine has what it needs.
    pub fn can_start(self) -> bool {
        !matches!(self, Self::Npm(_)) || fastify::installed().is_some()
    }
}

impl Contender {
    /// Starts it on the database that a stage has written. `first` is the address of the stage's first one.
    pub async fn start(
        mongod: &Mongod,
        stage: &str,
        label: &'static str,
        kind: Kind,
        first: Option<SocketAddr>,
    ) -> Result<Self> {
        let name = kind.data().database(stage);
        let database = mongod.database(&name).await?;
        let (address, running) = match kind {
            Kind::Ours(data, flags) => {
                let ours = Ours::start(data.open(mongod, stage).await?, flags).await?;
                (ours.address, Running::Ours(ours))
            }
            Kind::Npm(library) => {
                let modules = fastify::installed().ok_or("NPM_PEERS is not set")?;
                let server = Fastify::start(&modules, library, mongod, &name).await?;
                (server.address, Running::Process { _server: server })
            }
            Kind::Manual => serve(trades(Reader::manual(&database), Peer::manual(&database)), true).await?,
            Kind::Flat => serve(trades(Reader::flat(&database), flat(&database)), true).await?,
            Kind::Skipping => serve(trades(Reader::skipping(&database), flat(&database)), true).await?,
            Kind::Keyset => serve(trades(Reader::keyset(&database), flat(&database)), true).await?,
            Kind::ById { layers } => serve(minimal::by_id(&database), layers).await?,
            Kind::SameBytes { layers } => {
                let mut client = Client::new(first.ok_or("nobody to have the bytes from")?);
                let page = minimal::same_bytes(&mut client, "/v1/customers/1/trades/pages/1").await?;
                serve(page, layers).await?
            }
        };
        let shape = if kind.data() == Data::Flat { Shape::Flat } else { Shape::Buckets };
        Ok(Self { label, address, database, shape, running })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts it under load, and looks afterwards at what it has stored.
    pub async fn block(&self, load: Load<reading::Reader>) -> Result<(Block, Verdict)> {
        let (first, appends) = (next_quantity(), load.task.appends());
        let block =
            load::run(self.address, load).await.map_err(|error| format!("{}: {error}", self.label))?;
        if !appends {
            return Ok((block, Verdict::default()));
        }
        let verdict = check::judge(&self.database, self.shape, first, &block).await?;
        Ok((block, verdict))
    }

    pub async fn stop(self) -> Result<()> {
        match self.running {
            Running::Ours(ours) => ours.stop().await,
            Running::Peer(serving) => {
                serving.abort();
                Ok(())
            }
            Running::Process { .. } => Ok(()),
        }
    }
}

fn trades(reader: Reader, peer: Peer) -> Router {
    Router::new().route(shell::TRADES, reader.lists().merge(shell::appends(peer)))
}

/// The index that it needs the histories have.
fn flat(database: &Database) -> Peer {
    Peer::Flat(database.collection(check::COLLECTION))
}

async fn serve(routes: Router, layers: bool) -> Result<(SocketAddr, Running)> {
    let routes = if layers { shell::layered(routes) } else { routes };
    shell::serve(routes).await.map(|(address, serving)| (address, Running::Peer(serving)))
}
