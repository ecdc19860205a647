//! A whole service in this process: real sockets, a real mongod, a database of its own.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use pagebucket_engine::internal::Ages;
use pagebucket_engine_tests as engine;
use pagebucket_http::Gate;
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

/// How a service differs from the usual one; of its store, too.
pub struct Setup {
    pub store: engine::Setup,
    pub config: ServiceConfig,
    pub gate: Gate,
}

impl Deref for Setup {
    type Target = engine::Setup;

    fn deref(&self) -> &engine::Setup {
        &self.store
    }
}

impl DerefMut for Setup {
    fn deref_mut(&mut self) -> &mut engine::Setup {
        &mut self.store
    }
}

impl Setup {
    /// The usual one, on a new database of `mongod`.
    pub fn on(mongod: &Mongod) -> Self {
        Self::of_store(engine::Setup::on(mongod))
    }

    /// The usual one, on a new database of whatever this connection string leads to.
    pub fn at(uri: &str) -> Self {
        Self::of_store(engine::Setup::at(uri))
    }

    /// The usual one on this store.
    pub fn of_store(store: engine::Setup) -> Self {
        let mut config = ServiceConfig::default();
        config.server.listen.set_port(0);
        // As with `--allow-erase`: what erases is tested without tokens.
        Self { store, config, gate: Gate::unguarded().allowing_erasure() }
    }

    /// The same for this history.
    #[must_use]
    pub fn of(self, history: &'static History) -> Self {
        Self { store: self.store.of(history), ..self }
    }

    /// The same on another database.
    #[must_use]
    pub fn in_database(self, database: &mongodb::Database) -> Self {
        Self { store: self.store.in_database(database), ..self }
    }

    /// The same with other ages of what it knows of deleted pages.
    #[must_use]
    pub fn aging(self, ages: Ages) -> Self {
        Self { store: self.store.aging(ages), ..self }
    }

    #[must_use]
    pub fn observed(self, observe: impl Fn(&str, &mongodb::bson::Document) + Send + Sync + 'static) -> Self {
        Self { store: self.store.observed(observe), ..self }
    }

    pub async fn start(self) -> Service {
        pagebucket_service::measure();
        let Self { store: setup, config, gate } = self;
        let certificate = config.server.certificate.clone();
        let service = pagebucket_service::Service::bind(config, setup.store().await, setup.clock, gate).await;
        let service = service.expect("a free port");
        let (scheme, address) = (service.scheme(), service.address());
        let (stop, stopped) = oneshot::channel();
        let serving = spawn(service.serve(async {
            stopped.await.ok();
        }));
        let client = mongodb::Client::with_uri_str(&setup.connection.uri).await.expect("a connection string");
        Service {
            client: Client::trusting(
                setup.history,
                format!("{scheme}://{address}"),
                certificate.as_ref().map(|files| &*files.certificate),
            ),
            database: client.database(&setup.connection.database),
            history: setup.history,
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
