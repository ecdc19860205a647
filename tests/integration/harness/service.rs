//! A whole service in this process: real sockets, a real mongod, a database of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use pagebucket_engine::internal::{Ages, CommandObserver};
use pagebucket_engine::{Capacity, ConnectionSettings, Store, Topology};
use pagebucket_http::Gate;
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::{Clock, ReadPreference};
use pagebucket_service::ServiceConfig;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Client, History, Mongod, Stored, TRADES, shared, spawn, stored};

/// A running service, which ends with this value.
pub struct Service {
    pub client: Client,
    pub database: mongodb::Database,
    pub history: &'static History,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<bool>,
}

/// How a service differs from the usual one.
pub struct Setup {
    /// The history that the test is about.
    pub history: &'static History,
    /// The directory of definitions; `None` for those that the binary embeds.
    pub definitions: Option<PathBuf>,
    pub connection: ConnectionSettings,
    pub config: ServiceConfig,
    pub capacity: Capacity,
    pub clock: Clock,
    pub gate: Gate,
    pub read_preference: ReadPreference,
}

/// Tests count commands, and break the first of a kind: only those about deleted pages ask for markers again
/// and again.
fn quiet() -> Ages {
    let hour = Duration::from_secs(3600);
    Ages { poll: hour, tail: hour, ..Ages::default() }
}

/// Drops a database, with this value: one on the server of `TEST_MONGODB_URI`, which goes on after the tests.
struct Dropped {
    uri: String,
    database: String,
}

impl Dropped {
    /// When the test ends.
    fn at_the_end(uri: &str, database: &str) {
        if std::env::var("TEST_MONGODB_URI").as_deref() == Ok(uri) {
            let dropped = Self { uri: uri.to_owned(), database: database.to_owned() };
            spawn(async move {
                std::future::pending::<()>().await;
                drop(dropped);
            });
        }
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        let dropping = async {
            let client = mongodb::Client::with_uri_str(&self.uri).await.expect("the given server");
            client.database(&self.database).drop().await.expect("to drop a database of ours");
        };
        // The runtime of the test ends.
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        std::thread::scope(|scope| scope.spawn(|| runtime.block_on(dropping)).join().ok());
    }
}

impl Setup {
    /// The usual one, on a new database of `mongod`.
    pub fn on(mongod: &Mongod) -> Self {
        Self::at(mongod.uri())
    }

    /// The usual one, on a new database of whatever this connection string leads to.
    pub fn at(uri: &str) -> Self {
        let database = format!("test_{:016x}", rand::random::<u64>());
        Dropped::at_the_end(uri, &database);
        let connection = ConnectionSettings { uri: uri.to_owned(), database, pool_size: 64, observer: None };
        let mut config = ServiceConfig::default();
        config.server.listen.set_port(0);
        Self {
            history: TRADES,
            definitions: None,
            connection,
            config,
            capacity: Capacity { ages: quiet(), ..Capacity::default() },
            clock: Clock::system(),
            // As with `--allow-erase`: what erases is tested without tokens.
            gate: Gate::unguarded().allowing_erasure(),
            read_preference: ReadPreference::Primary,
        }
    }

    /// The same for this history.
    #[must_use]
    pub fn of(mut self, history: &'static History) -> Self {
        self.history = history;
        self.definitions = history.definitions.map(PathBuf::from);
        self
    }

    /// The same on another database.
    #[must_use]
    pub fn in_database(mut self, database: &mongodb::Database) -> Self {
        self.connection.database = database.name().to_owned();
        self
    }

    /// The same with other ages of what it knows of deleted pages.
    #[must_use]
    pub fn aging(mut self, ages: Ages) -> Self {
        self.capacity.ages = ages;
        self
    }

    pub fn observed(
        mut self,
        observe: impl Fn(&str, &mongodb::bson::Document) + Send + Sync + 'static,
    ) -> Self {
        self.connection.observer = Some(CommandObserver::new(observe));
        self
    }

    /// The store of the service, on a database that is migrated.
    pub async fn store(&self) -> Store {
        let definitions = match &self.definitions {
            None => Definitions::built_in(),
            Some(directory) => Definitions::of_directory(directory).expect("definitions without a mistake"),
        };
        let store = Store::connect(self.connection.clone(), definitions, self.capacity, self.clock.clone());
        let store = store.await.expect("the test's mongod").preferring(self.read_preference);
        store.migrate().await.expect("the migrations");
        // scripts/sharded: on a cluster.
        if let Ok(chunks) = std::env::var("TEST_SHARD_CHUNKS")
            && store.topology() == Topology::Sharded
        {
            store.shard(chunks.parse().expect("a number")).await.expect("a sharded database");
        }
        store
    }

    pub async fn start(self) -> Service {
        pagebucket_service::measure();
        let store = self.store().await;
        let certificate = self.config.server.certificate.clone();
        let server = pagebucket_service::Service::bind(self.config, store, self.clock, self.gate).await;
        let server = server.expect("a free port");
        let (scheme, address) = (server.scheme(), server.address());
        let (stop, stopped) = oneshot::channel();
        let serving = spawn(server.serve(async {
            stopped.await.ok();
        }));
        let client = mongodb::Client::with_uri_str(&self.connection.uri).await.expect("a connection string");
        Service {
            client: Client::trusting(
                self.history,
                format!("{scheme}://{address}"),
                certificate.as_ref().map(|files| &*files.certificate),
            ),
            database: client.database(&self.connection.database),
            history: self.history,
            address,
            stop: Some(stop),
            serving,
        }
    }
}

impl Service {
    /// The usual one, on the shared mongod.
    pub async fn start() -> Self {
        Self::of(TRADES).await
    }

    /// The usual one, on the shared mongod, of this history.
    pub async fn of(history: &'static History) -> Self {
        Setup::on(shared().await).of(history).start().await
    }

    /// The usual one, whose owner 1 has the items with the numbers from 1 to `items`.
    pub async fn filled(history: &'static History, items: u64) -> Self {
        let service = Self::of(history).await;
        service.client.append_all(1, 1..=items).await;
        service
    }

    /// Another instance on the same database.
    pub async fn sibling(&self, mongod: &Mongod) -> Self {
        Setup::on(mongod).of(self.history).in_database(&self.database).start().await
    }

    /// What the database holds of an owner; fails the test when it breaks an invariant.
    #[track_caller]
    pub fn stored(&self, owner: u64) -> impl Future<Output = Stored> {
        stored(&self.database, self.history, owner)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells it to stop; true when every request under way ended in time.
    pub async fn stop(mut self) -> bool {
        self.stop.take();
        (&mut self.serving).await.expect("the server not to panic")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.take();
    }
}
