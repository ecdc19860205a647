//! A store on a database of its own.

use std::path::PathBuf;
use std::time::Duration;

use pagebucket_engine::internal::{Ages, CommandObserver};
use pagebucket_engine::{Capacity, ConnectionSettings, Store, Topology};
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::{Clock, ReadPreference};

use super::{History, Mongod, TRADES, spawn};

/// How a store differs from the usual one.
pub struct Setup {
    /// The history that the test is about.
    pub history: &'static History,
    /// The directory of definitions; `None` for those that the engine embeds.
    pub definitions: Option<PathBuf>,
    pub connection: ConnectionSettings,
    pub capacity: Capacity,
    pub clock: Clock,
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
        Self {
            history: TRADES,
            definitions: None,
            connection: ConnectionSettings { uri: uri.to_owned(), database, pool_size: 64, observer: None },
            capacity: Capacity { ages: quiet(), ..Capacity::default() },
            clock: Clock::system(),
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
}
